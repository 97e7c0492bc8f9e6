//! The flags of the scheduler: those of kube-scheduler, and those that the original adds.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use koord_program::{
    MetricFlags, ShownVersion,
    component::{ElectionFlags, lay_over},
    flags::{FeatureGates, Klog, accepted, count, from_go, span, switch, wrong},
    gates::Gates,
    logs,
    serving::{SecurePort, SecureServingFlags, TlsFlags},
    shown_version,
};
use koord_runtime::{key::ObjectKey, manager::ListenAddress, otlp::Endpoint};
use koord_scheduler_runtime::{AuditorSettings, Controllers, Dumps};
use koord_webhook_server::TlsPolicy;
use serde_json::{Map, Value, json};

use crate::{Exposition, Preset, accepted::ACCEPTED, auditor::AuditorFlags, identity::BUILD};

/// The scheduler of Koordinator.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "koord-scheduler",
    disable_help_subcommand = true,
    disable_version_flag = true,
    args_override_self = true
)]
pub struct Options {
    /// Show the version, and end; with =raw all that is known of the build.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_name = "raw", hide_default_value = true, value_parser = shown_version)]
    pub(crate) version: ShownVersion,
    /// The configuration: a KubeSchedulerConfiguration. Without it one profile, default-scheduler, has the plugins of Kubernetes.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A configuration for one feature beside kube-scheduler, instead of a file: its plugins, and those of the feature, for pods whose
    /// schedulerName is koord-scheduler.
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "config")]
    pub preset: Option<Preset>,
    /// Write the configuration with all defaults to this file, and end.
    #[arg(long, value_name = "FILE")]
    pub write_config_to: Option<PathBuf>,
    /// Address on which health and metrics are served.
    #[arg(long, default_value_t = Ipv4Addr::UNSPECIFIED.into(), value_name = "IP")]
    address: IpAddr,
    /// Port on which health and metrics are served; 0 serves none.
    #[arg(long, default_value_t = 10251)]
    port: u16,
    /// Port on which health and metrics are served with TLS, to users whom the API server permits it: 10259, as far as that is free;
    /// 0 serves none.
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// Serve what changes the program or shows what users have (/apis/v1, /configz, /debug, /metrics/resources) at --port too, without
    /// TLS and to everybody, as the original does.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    pub(crate) insecure_debug: bool,
    /// The secure port.
    #[command(flatten)]
    pub(crate) serving: SecureServingFlags,
    /// URL of the API server, instead of the one in the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
    /// Kubeconfig of the API server, where the configuration names none. Without any, $KUBECONFIG, ~/.kube/config or the pod's
    /// service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Requests per second to the API server; the configuration counts where there is one.
    #[arg(long, default_value_t = 50.0, allow_negative_numbers = true)]
    kube_api_qps: f64,
    /// Burst of requests above that rate; the configuration counts where there is one.
    #[arg(long, default_value = "100", allow_negative_numbers = true, value_parser = count)]
    kube_api_burst: u32,
    /// Leader election.
    #[command(flatten)]
    election: ElectionFlags,
    /// Answer /debug/pprof with how profiles are taken; the configuration counts where there is one.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set,
          value_parser = switch)]
    profiling: Option<bool>,
    /// Send traces of what becomes of pods to this OpenTelemetry collector, by OTLP over HTTP, such as http://localhost:4318; empty sends none.
    #[arg(long, default_value = "", value_name = "URL")]
    otlp_endpoint: String,
    /// How long a pod that was refused waits for an event that may help before it is tried again anyway.
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = span)]
    pub pod_max_in_unschedulable_pods_duration: Duration,
    /// Write a ScheduleExplanation for every pod or gang that waits; it is answered once a minute and deleted after an hour.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    pub explain_waiting: bool,
    /// Plugins whose controllers run, which write beside scheduling: `*` for all, `-NAME` for all but one, or names.
    #[arg(long, default_value = "*", value_delimiter = ',', value_name = "NAME,…", allow_hyphen_values = true)]
    controller_plugins: Vec<String>,
    /// Namespace of the pod that a new leader writes with the feature gate SyncBarrier, to wait until it has seen that.
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    sync_barrier_pod_namespace: String,
    /// Name of that pod. Where there is none, a new leader does not wait.
    #[arg(long, default_value = "koord-scheduler-sync-barrier", value_name = "NAME")]
    sync_barrier_pod_name: String,
    /// How long a new leader waits for that at most.
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = span)]
    sync_hard_timeout: Duration,
    /// How often the monitor looks for pods whose decision or binding lasts for too long.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
    pub scheduler_monitor_period: Duration,
    /// What is too long for a decision or a binding.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = span)]
    pub scheduling_timeout: Duration,
    /// Log of every attempt so many nodes with the highest scores; 0 logs none. It costs milliseconds an attempt.
    #[arg(long, alias = "s", default_value_t = 0, value_name = "N")]
    debug_scores: usize,
    /// Log of every attempt which plugin refuses which node, and why. It costs milliseconds an attempt.
    #[arg(long, alias = "f", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    debug_filters: bool,
    /// The workload auditor.
    #[command(flatten)]
    auditor: AuditorFlags,
    /// The metrics.
    #[command(flatten)]
    pub(crate) metrics: MetricFlags,
    /// Which features are on.
    #[command(flatten)]
    features: FeatureGates,
    /// Logs.
    #[command(flatten)]
    logs: Klog,
    /// Flags of the original that were given and have no effect, each with the reason.
    #[arg(skip)]
    pub(crate) without_effect: Vec<(&'static str, &'static str)>,
}

/// Options whose values have been checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The options.
    pub options: Options,
    /// Which features are on.
    pub gates: Gates,
    /// How the secure port speaks TLS.
    pub tls: TlsFlags,
    /// How workloads are audited; none where they are not.
    pub auditor: Option<AuditorSettings>,
    /// Which metrics are shown.
    pub exposition: Exposition,
    /// Where traces are sent.
    pub traces: Option<Endpoint>,
}

impl Options {
    /// Reads Go-style arguments, the program's name first.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let given = accepted::add(Self::command(), ACCEPTED).try_get_matches_from(from_go(arguments))?;
        Ok(Self { without_effect: accepted::without_effect(ACCEPTED, &given), ..Self::from_arg_matches(&given)? })
    }

    /// Checks values that are more than words.
    pub fn check(self) -> Result<Checked, clap::Error> {
        let gates = self.features.check(BUILD.gates)?;
        let auditor = self.auditor.check()?;
        let exposition = self.metrics.check()?;
        let traces = match self.otlp_endpoint.as_str() {
            "" => None,
            address => Some(address.parse::<Endpoint>().map_err(|reason| wrong("otlp-endpoint", reason))?),
        };
        let tls = self.serving.check()?;
        Ok(Checked { options: self, gates, tls, auditor, exposition, traces })
    }

    /// The filter of the logs.
    pub fn log_filter(&self) -> String {
        logs::filter(self.logs.verbosity, &[])
    }

    /// Where health and metrics are served.
    pub(crate) fn listen(&self) -> Option<ListenAddress> {
        let address = SocketAddr::new(self.address, self.port);
        (self.port != 0).then_some(ListenAddress { address, set_by: "--port" })
    }

    /// What is logged of attempts.
    pub(crate) fn dumps(&self) -> Dumps {
        let dumps = Dumps::default();
        dumps.set_scores(self.debug_scores);
        dumps.set_refusals(self.debug_filters);
        dumps
    }

    /// Plugins whose controllers run.
    pub(crate) fn controllers(&self) -> Controllers {
        Controllers::of(self.controller_plugins.iter().cloned())
    }

    /// The pod that a new leader writes, and how long it waits at most.
    pub(crate) fn barrier(&self) -> (ObjectKey, Duration) {
        (ObjectKey::new(&self.sync_barrier_pod_namespace, &self.sync_barrier_pod_name), self.sync_hard_timeout)
    }

    /// How the secure port is served.
    pub(crate) fn secure(&self, tls: TlsPolicy) -> Option<SecurePort> {
        self.serving.secure_port(self.secure_port, 10259, tls)
    }

    /// Lays the flags over a document. Those of leader election count whatever the document says, the kubeconfig where it names
    /// none, the others only `without_file`.
    pub(crate) fn apply_to(&self, document: &mut Value, without_file: bool) {
        self.election.apply_to(document);
        if without_file {
            let kubeconfig = self.kubeconfig.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
            let connection = [
                ("kubeconfig", json!(kubeconfig)),
                ("qps", json!(self.kube_api_qps)),
                ("burst", json!(self.kube_api_burst)),
            ];
            let connection = connection.into_iter().map(|(key, value)| (key.to_owned(), value));
            lay_over(document, "clientConnection", connection.collect());
            if let (Some(profiling), Some(members)) = (self.profiling, document.as_object_mut()) {
                members.insert("enableProfiling".to_owned(), profiling.into());
            }
        } else if let Some(file) = &self.kubeconfig
            && document["clientConnection"]["kubeconfig"].as_str().is_none_or(str::is_empty)
        {
            let kubeconfig = ("kubeconfig".to_owned(), json!(file.display().to_string()));
            lay_over(document, "clientConnection", Map::from_iter([kubeconfig]));
        }
    }
}

#[cfg(test)]
mod tests;
