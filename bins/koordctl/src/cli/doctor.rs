//! Options of `doctor`.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use koord_program::flags::time;

use super::shared::{AnswerArgs, ConfigurationArgs, name, namespace};

/// What `doctor` looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// The API server: its version and its clock
    Server,
    /// Custom resource definitions: there, served, with our structure
    Definitions,
    /// Webhook configurations: what they call, and which namespaces they catch
    Webhooks,
    /// The webhooks' certificate: until when, for which name, trusted by the API server
    Certificates,
    /// What koord-manager may do, by access reviews
    Permissions,
    /// The leader's lease
    Lease,
    /// The ConfigMap slo-controller-config, by the webhooks' own rules
    Configuration,
    /// Objects that koord-manager sets aside: unreadable ones, nonsense on nodes, contradictory quotas
    Objects,
    /// Reports of koordlet
    Nodes,
    /// Devices and CPUs of pods: there, healthy, and allocated once
    Allocations,
}

impl Check {
    /// Every check, in the order in which they are made.
    pub const ALL: [Self; 10] = [
        Self::Server,
        Self::Definitions,
        Self::Webhooks,
        Self::Certificates,
        Self::Permissions,
        Self::Lease,
        Self::Configuration,
        Self::Objects,
        Self::Nodes,
        Self::Allocations,
    ];

    /// As `--only` and `--skip` name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Definitions => "definitions",
            Self::Webhooks => "webhooks",
            Self::Certificates => "certificates",
            Self::Permissions => "permissions",
            Self::Lease => "lease",
            Self::Configuration => "configuration",
            Self::Objects => "objects",
            Self::Nodes => "nodes",
            Self::Allocations => "allocations",
        }
    }
}

/// Options of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Look at these alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CHECK,...")]
    pub only: Vec<Check>,
    /// Look not at these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CHECK,...")]
    pub skip: Vec<Check>,
    /// Namespace that koord-manager is installed in
    #[arg(short, long, default_value = "koordinator-system", value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: String,
    /// ServiceAccount that koord-manager runs as
    #[arg(long, default_value = "koord-manager", value_name = "NAME", value_parser = name)]
    pub service_account: String,
    /// Feature gates that koord-manager runs with
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub configuration: ConfigurationArgs,
    /// Where the webhooks' Service can be reached from here, such as 127.0.0.1:9443 of a port-forward: the certificate that it presents there is
    /// looked at
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub webhook_at: Option<String>,
    /// The time by which certificates and this machine's clock are judged; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(_))) { Ok(text.to_owned()) } else { Err("a place such as 127.0.0.1:9443".to_owned()) }
}
