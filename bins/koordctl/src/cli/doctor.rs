//! Options of `doctor`.

use clap::Args;
use jiff::Timestamp;
pub use koord_doctor::Check;
use koord_doctor::Options;
use koord_program::flags::time;

use super::shared::{AnswerArgs, ConfigurationArgs, name, namespace};

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

impl DoctorArgs {
    /// As the checks take them.
    pub fn options(&self) -> Options<'_> {
        Options {
            only: &self.only,
            skip: &self.skip,
            namespace: &self.namespace,
            service_account: &self.service_account,
            feature_gates: &self.feature_gates,
            config_namespace: &self.configuration.config_namespace,
            slo_config_name: &self.configuration.slo_config_name,
            webhook_at: self.webhook_at.as_deref(),
            at: self.at,
            cluster: self.answer.cluster.flags(),
            output: self.answer.output,
        }
    }
}

fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(_))) { Ok(text.to_owned()) } else { Err("a place such as 127.0.0.1:9443".to_owned()) }
}
