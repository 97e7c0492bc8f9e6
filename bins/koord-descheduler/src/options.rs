//! The flags of the descheduler: those of the original.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use koord_program::{
    MetricFlags, ShownVersion,
    component::{ElectionFlags, lay_over},
    flags::{FeatureGates, Klog, accepted, from_go, wrong},
    gates::Gates,
    logs,
    serving::{SecurePort, SecureServingFlags, TlsFlags},
    shown_version,
};
use koord_runtime::{manager::ListenAddress, metrics::Exposition, otlp::Endpoint};
use koord_webhook_server::TlsPolicy;
use serde_json::{Map, Value, json};

use crate::{accepted::ACCEPTED, identity::BUILD};

/// The descheduler of Koordinator.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "koord-descheduler",
    disable_help_subcommand = true,
    disable_version_flag = true,
    args_override_self = true
)]
pub struct Options {
    /// Show the version, and end; with =raw all that is known of the build.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_name = "raw", hide_default_value = true, value_parser = shown_version)]
    pub(crate) version: ShownVersion,
    /// The configuration: a DeschedulerConfiguration. Without it one profile has the default plugins, and no strategy.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The configuration of the cluster's scheduler: a KubeSchedulerConfiguration. Profiles with planning follow evictions through it; without the flag
    /// through the one that is shipped.
    #[arg(long, value_name = "FILE")]
    pub scheduler_config: Option<PathBuf>,
    /// Write the configuration with all defaults to this file, and end.
    #[arg(long, value_name = "FILE")]
    pub write_config_to: Option<PathBuf>,
    /// Address on which health and metrics are served; the configuration counts where there is one.
    #[arg(long, default_value_t = Ipv4Addr::UNSPECIFIED.into(), value_name = "IP")]
    address: IpAddr,
    /// Port on which health and metrics are served; 0 serves none. The configuration counts where there is one.
    #[arg(long, default_value_t = 10251)]
    port: u16,
    /// Port on which health and metrics are served with TLS, to users whom the API server permits it: 10258, as far as that is free;
    /// 0 serves none.
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// The secure port.
    #[command(flatten)]
    serving: SecureServingFlags,
    /// Kubeconfig of the API server, where the configuration names none. Without any, $KUBECONFIG, ~/.kube/config or the pod's service
    /// account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Leader election.
    #[command(flatten)]
    election: ElectionFlags,
    /// Send traces to this OpenTelemetry collector, by OTLP over HTTP, such as http://localhost:4318; empty sends none.
    #[arg(long, default_value = "", value_name = "URL")]
    otlp_endpoint: String,
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
        let exposition = self.metrics.check()?;
        let traces = match self.otlp_endpoint.as_str() {
            "" => None,
            address => Some(address.parse::<Endpoint>().map_err(|reason| wrong("otlp-endpoint", reason))?),
        };
        let tls = self.serving.check()?;
        Ok(Checked { options: self, gates, tls, exposition, traces })
    }

    /// The filter of the logs.
    pub fn log_filter(&self) -> String {
        logs::filter(self.logs.verbosity, &[])
    }

    /// How the secure port is served.
    pub(crate) fn secure(&self, tls: TlsPolicy) -> Option<SecurePort> {
        self.serving.secure_port(self.secure_port, 10258, tls)
    }

    /// Lays the flags over a document. Those of leader election count whatever the document says, the kubeconfig where it names none, the
    /// others only `without_file`.
    pub(crate) fn apply_to(&self, document: &mut Value, without_file: bool) {
        self.election.apply_to(document);
        if let Some(file) = &self.kubeconfig
            && document["clientConnection"]["kubeconfig"].as_str().is_none_or(str::is_empty)
        {
            let kubeconfig = ("kubeconfig".to_owned(), json!(file.display().to_string()));
            lay_over(document, "clientConnection", Map::from_iter([kubeconfig]));
        }
        if let Some(members) = document.as_object_mut().filter(|_| without_file) {
            let address = SocketAddr::new(self.address, self.port).to_string();
            for field in ["healthzBindAddress", "metricsBindAddress"] {
                members.insert(field.to_owned(), address.clone().into());
            }
        }
    }
}

/// Where something is served; `None` where the configuration says port 0.
pub(crate) fn listen(address: &str, set_by: &'static str) -> anyhow::Result<Option<ListenAddress>> {
    use std::net::ToSocketAddrs as _;
    let mut addresses = address.to_socket_addrs().map_err(|error| anyhow::anyhow!("{set_by}: {address}: {error}"))?;
    let address = addresses.next().filter(|address| address.port() != 0);
    Ok(address.map(|address| ListenAddress { address, set_by }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Checked, String> {
        let arguments = std::iter::once("koord-descheduler").chain(line.split_whitespace()).map(str::to_owned);
        let checked = Options::from_arguments(arguments).and_then(Options::check);
        checked.map_err(|error| error.render().to_string())
    }

    #[test]
    fn flags_count_as_in_the_original() {
        let mut document = json!({});
        parse("--port=0 --leader-elect=false").unwrap().options.apply_to(&mut document, true);
        let expected = json!({
            "leaderElection": {"leaderElect": false},
            "healthzBindAddress": "0.0.0.0:0", "metricsBindAddress": "0.0.0.0:0",
        });
        assert_eq!(document, expected);
        let mut file = json!({"healthzBindAddress": "127.0.0.1:1"});
        parse("--port=0 --kubeconfig=x").unwrap().options.apply_to(&mut file, false);
        let expected = json!({"healthzBindAddress": "127.0.0.1:1", "clientConnection": {"kubeconfig": "x"}});
        assert_eq!(file, expected);
    }

    #[test]
    fn a_wrong_flag_is_refused() {
        for line in ["positional", "--no-such-flag", "--port=x", "--feature-gates=NoSuchGate=true"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn port_0_is_served_nowhere() {
        assert!(listen("127.0.0.1:0", "healthzBindAddress").unwrap().is_none());
        assert_eq!(listen("127.0.0.1:5", "healthzBindAddress").unwrap().unwrap().address.port(), 5);
        let error = listen("no.such.host.invalid:5", "healthzBindAddress").unwrap_err().to_string();
        assert!(error.starts_with("healthzBindAddress: no.such.host.invalid:5"), "{error}");
    }
}
