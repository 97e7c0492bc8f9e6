//! The flags of programs that run controllers, as programs made with controller-runtime have them.

use std::path::PathBuf;

use clap::ArgAction;
use koord_runtime::{manager::ListenAddress, otlp::Endpoint};

use crate::{
    Build,
    flags::{FeatureGates, Klog, count, listen_address, switch, wrong},
    gates::Gates,
    logs,
};

/// A flag with the name by which errors refer to it.
struct Flag(&'static str);

const NAMESPACE: Flag = Flag("--namespace");
const METRICS_ADDR: Flag = Flag("--metrics-addr");
const HEALTH_PROBE_ADDR: Flag = Flag("--health-probe-addr");
const OTLP_ENDPOINT: Flag = Flag("--otlp-endpoint");

impl Flag {
    /// The name without dashes.
    fn name(&self) -> &'static str {
        self.0.trim_start_matches('-')
    }
}

/// The flags, as they are written.
#[derive(Clone, Debug, clap::Args)]
pub struct ControllerFlags {
    /// Kubeconfig of the API server; without it $KUBECONFIG, ~/.kube/config or the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where metrics are served; 0 serves none.
    #[arg(long = METRICS_ADDR.name(), default_value = ":8080", value_name = "ADDRESS")]
    metrics_addr: String,
    /// Where health and readiness are served; 0 serves none.
    #[arg(long = HEALTH_PROBE_ADDR.name(), default_value = ":8000", value_name = "ADDRESS")]
    health_probe_addr: String,
    /// Send traces of admission reviews and of the writes that follow from them to this OpenTelemetry collector, by OTLP over
    /// HTTP, such as http://localhost:4318; empty sends none.
    #[arg(long = OTLP_ENDPOINT.name(), default_value = "", value_name = "URL")]
    otlp_endpoint: String,
    /// Run leader election: only one of several replicas runs the controllers.
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    enable_leader_election: bool,
    /// Namespace of the Lease; without it the namespace that the program is usually installed in.
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// Kind of the resource lock; only leases exist.
    #[arg(long, default_value = "leases", hide = true, value_parser = ["leases"])]
    leader_elect_resource_lock: String,
    /// Watch namespaced objects of this namespace alone, or of several with commas between; those whose namespace another flag
    /// names are watched all the same. A Role there can then replace the namespaced part of the ClusterRole.
    #[arg(long = NAMESPACE.name(), default_value = "", hide_default_value = true, value_name = "NAMESPACE,…")]
    namespace: String,
    /// Accepted for compatibility: profiles are taken from outside the process.
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch, hide = true)]
    enable_pprof: bool,
    /// Accepted for compatibility.
    #[arg(long, default_value = ":8090", hide = true)]
    pprof_addr: String,
    /// Accepted for compatibility: caches here need no periodic resync.
    #[arg(long, default_value = "", hide = true)]
    sync_period: String,
    /// Requests per second to the API server; 0 or less means no limit.
    #[arg(long, default_value_t = 30.0, allow_negative_numbers = true)]
    rest_config_qps: f32,
    /// Burst of requests to the API server above that rate.
    #[arg(long, default_value = "50", allow_negative_numbers = true, value_parser = count)]
    rest_config_burst: u32,
    /// Which features are on.
    #[command(flatten)]
    features: FeatureGates,
    /// Logs.
    #[command(flatten)]
    logs: Klog,
}

/// How a program with controllers runs, whatever its flags are called.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// The kubeconfig; without one the search of [`kubeconfig`](crate::kubeconfig).
    pub kubeconfig: Option<PathBuf>,
    /// Namespaced objects of these namespaces alone are watched; none for all.
    pub namespaces: Vec<String>,
    /// Where metrics are served.
    pub metrics: Option<ListenAddress>,
    /// Where health and readiness are served.
    pub health: Option<ListenAddress>,
    /// Where traces are sent.
    pub traces: Option<Endpoint>,
    /// The namespace of the Lease; without one there is no leader election, and this process leads.
    pub lease_namespace: Option<String>,
    /// Requests per second to the API server; 0 or less means no limit.
    pub requests_per_second: f32,
    /// Burst of requests above that rate.
    pub requests_burst: u32,
    /// Which features are on.
    pub gates: Gates,
}

#[cfg(feature = "configuration")]
impl ControllerSettings {
    /// Of a component whose configuration file names the connection. Nothing is served, and there is no leader election: the file says how replicas elect a leader.
    pub fn of_component(connection: &koord_configuration::ClientConnection, gates: Gates) -> Self {
        Self {
            kubeconfig: None,
            namespaces: Vec::new(),
            metrics: None,
            health: None,
            traces: None,
            lease_namespace: None,
            requests_per_second: connection.qps as f32,
            requests_burst: u32::try_from(connection.burst).unwrap_or(0),
            gates,
        }
    }
}

impl ControllerFlags {
    /// What the flags mean to this program; an error where a value is wrong.
    pub fn check(&self, build: &Build) -> Result<ControllerSettings, clap::Error> {
        let traces = match self.otlp_endpoint.as_str() {
            "" => None,
            address => Some(address.parse::<Endpoint>().map_err(|reason| wrong(OTLP_ENDPOINT.name(), reason))?),
        };
        let lease_namespace = self.leader_election_namespace.as_deref().unwrap_or(build.namespace);
        let address = |flag: Flag, text: &str| {
            let address = listen_address(text).map_err(|reason| wrong(flag.name(), reason))?;
            Ok::<_, clap::Error>(address.map(|address| ListenAddress { address, set_by: flag.0 }))
        };
        Ok(ControllerSettings {
            kubeconfig: self.kubeconfig.clone(),
            namespaces: namespaces(&self.namespace).map_err(|reason| wrong(NAMESPACE.name(), reason))?,
            metrics: address(METRICS_ADDR, &self.metrics_addr)?,
            health: address(HEALTH_PROBE_ADDR, &self.health_probe_addr)?,
            traces,
            lease_namespace: self.enable_leader_election.then(|| lease_namespace.to_owned()),
            requests_per_second: self.rest_config_qps,
            requests_burst: self.rest_config_burst,
            gates: self.features.check(build.gates)?,
        })
    }

    /// As [`ControllerFlags::check`], and sets up the logs.
    pub(crate) fn check_and_log(&self, build: &Build) -> Result<ControllerSettings, clap::Error> {
        // A crate's name has underscores where its program's has dashes.
        logs::init(&self.log_filter(&[&build.program.replace('-', "_")]));
        self.check(build)
    }

    /// The filter of the logs of a program whose crates begin with these prefixes.
    pub fn log_filter(&self, prefixes: &[&str]) -> String {
        logs::filter(self.logs.verbosity, prefixes)
    }
}

/// The names in a list with commas between; what is no name of a namespace would be part of a URL.
fn namespaces(list: &str) -> Result<Vec<String>, String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let checked = names.map(|name| {
        let is_name = name.len() <= 63 && plain(name) && !name.starts_with('-') && !name.ends_with('-');
        is_name.then(|| name.to_owned()).ok_or_else(|| {
            format!("{name:?} is no namespace: their names have lower case letters, digits and dashes; commas stand between several")
        })
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_namespaces_is_read_or_refused_by_name() {
        assert_eq!(namespaces("").unwrap(), [""; 0]);
        assert_eq!(namespaces("shop, kube-system").unwrap(), ["shop", "kube-system"]);
        for wrong in ["shop;pay", "Shop", "a/b", "-a"] {
            assert!(namespaces(&format!("ok,{wrong}")).unwrap_err().starts_with(&format!("{wrong:?} is no namespace")));
        }
    }
}
