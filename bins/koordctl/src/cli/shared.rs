//! Options that several commands have: where objects come from, and how an answer is written.

use std::path::PathBuf;

use clap::Args;
use koord_program::{connect::ClusterFlags, output::OutputFormat};
use koord_resource::schema::names::{dns1123_label, dns1123_subdomain};

/// Which scheduler an engine is like.
#[derive(Clone, Debug, Args)]
pub struct SchedulerArgs {
    /// The configuration of the scheduler, KubeSchedulerConfiguration; without it the one that Koordinator ships
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Feature gates of the scheduler
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
}

/// Which cluster a command talks to.
#[derive(Clone, Debug, Args)]
pub struct ClusterArgs {
    /// The kubeconfig; without it $KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; without it the current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// As those take them who look for the cluster.
    pub fn flags(&self) -> ClusterFlags<'_> {
        ClusterFlags {
            kubeconfig: self.kubeconfig.as_deref(),
            context: self.context.as_deref(),
            otherwise: Some("run `koordctl up`"),
        }
    }
}

/// Which cluster answers, and how the answer is written.
#[derive(Clone, Debug, Args)]
pub struct AnswerArgs {
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}

/// Where the manager's configuration is.
#[derive(Clone, Debug, Args)]
pub struct ConfigurationArgs {
    /// Namespace of the configuration
    #[arg(long, default_value = koord_types::slo_config::CONFIG_MAP_NAMESPACE, value_name = "NAMESPACE", value_parser = namespace)]
    pub config_namespace: String,
    /// Name of the ConfigMap with the configuration
    #[arg(long, default_value = koord_types::slo_config::CONFIG_MAP_NAME, value_name = "NAME", value_parser = name)]
    pub slo_config_name: String,
}

/// The name of an object of most kinds.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_name = dns1123_subdomain(text).is_empty();
    is_name.then(|| text.to_owned()).ok_or_else(|| "a name: lower-case letters, digits, '-' and '.'".to_owned())
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    let is_name = dns1123_label(text).is_empty();
    is_name.then(|| text.to_owned()).ok_or_else(|| "a namespace: lower-case letters, digits and '-'".to_owned())
}
