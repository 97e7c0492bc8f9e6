//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Parser;
use envtest::admission::ServiceAlias;

/// A Kubernetes API server in one small process: real kubectl, real webhooks, no etcd.
///
/// It writes a kubeconfig once it answers, and runs until it is interrupted.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 120)]
pub(crate) struct Arguments {
    /// Port to listen on; 0 takes any free one.
    #[arg(long, default_value_t = 6443)]
    pub(crate) port: u16,

    /// Address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// Further name or address that the certificate is for; may be repeated.
    #[arg(long = "tls-name", value_name = "NAME")]
    pub(crate) tls_names: Vec<String>,

    /// Where to write the kubeconfig of user `admin`.
    #[arg(long, value_name = "FILE", default_value = "koord-envtest.kubeconfig")]
    pub(crate) kubeconfig: PathBuf,

    /// Overwrite the kubeconfig if there is one already.
    #[arg(long)]
    pub(crate) force: bool,

    /// Further users: lines `token,user,uid,"group1,group2"`, as kube-apiserver reads them.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Folder with YAML or JSON files to create before the server answers: definitions first, then everything else.
    #[arg(long, value_name = "DIR")]
    pub(crate) crds: Option<PathBuf>,

    /// Where a webhook's service is really found; may be repeated.
    #[arg(long = "service-alias", value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT")]
    pub(crate) service_aliases: Vec<ServiceAlias>,

    /// Folder where objects are kept over restarts; without it they live in memory alone.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Also do what kube-controller-manager does: collect garbage, empty and remove namespaces that are being deleted, keep
    /// ServiceAccount `default` and ConfigMap `kube-root-ca.crt` in every namespace and the rules of aggregated ClusterRoles,
    /// bind volumes and claims, taint nodes that are cordoned or in a bad condition, mark nodes whose kubelets are gone,
    /// approve and sign kubelets' requests for certificates. Without it the server is alone, as kube-apiserver is.
    #[arg(long)]
    pub(crate) controllers: bool,

    /// Give every new pod a ServiceAccount, which must exist, and its token, as kube-apiserver does by default.
    #[arg(long)]
    pub(crate) service_account_admission: bool,

    /// Print nothing but errors.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
