//! Options of `up`.

use std::path::PathBuf;

use clap::Args;

use super::crd::Profile;

/// Where kubeconfigs look for an API server on the own machine.
pub(crate) const DEFAULT_PORT: u16 = 6443;

/// Options of `up`.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// How many hollow nodes there are
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = whole::<u32, 20_000>)]
    pub nodes: u32,
    /// Port of the API server on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = DEFAULT_PORT, value_parser = whole::<u16, 65_535>)]
    pub port: u16,
    /// Seed of names, node sizes and loads: the same seed gives the same cluster
    #[arg(long, default_value_t = 1, value_parser = whole::<u64, { u64::MAX }>)]
    pub seed: u64,
    /// How many times faster than the wall clock the cluster's time runs. Above 1 it starts in the past, so that it does not run ahead of
    /// yours; leases and HTTP timeouts stay real [default: 1, or what the scenario asks for]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,
    /// How many production pods run on each hollow node. They use what the node's load says, between night and day and in bursts; what they leave
    /// over is what batch pods get [default: 1 with up to 100 nodes, else 0]
    #[arg(long, value_name = "COUNT", value_parser = whole::<u32, 100>)]
    pub pods_per_node: Option<u32>,
    /// Play a scenario in the cluster, step by step: on a terminal space or enter goes on, p pauses, q ends it. Elsewhere it plays to its end, and
    /// the exit code is 0 when all of it came true. `list` says which there are
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Wait for enter before each step of the scenario
    #[arg(long, requires = "scenario")]
    pub step: bool,
    /// Where to write the kubeconfig
    #[arg(long, default_value = "koord.kubeconfig", value_name = "FILE")]
    pub kubeconfig: PathBuf,
    /// Which custom resource definitions to serve
    #[arg(long, value_enum, default_value_t = Profile::Hardened)]
    pub profile: Profile,
    /// Run the API server and the nodes, but not koord-manager
    #[arg(long)]
    pub no_manager: bool,
    /// Do not run koord-scheduler: pods without a node wait
    #[arg(long)]
    pub no_scheduler: bool,
    /// Run koordlet on the first node, on files of a machine in this folder, which is empty or not there: without root, its kernel is played, and gives
    /// pods what the agent's files let them have. The other nodes' agents are hollow
    #[arg(long, value_name = "FOLDER")]
    pub node_agent: Option<PathBuf>,
    /// Do not run koord-descheduler
    #[arg(long)]
    pub no_descheduler: bool,
    /// The configuration of koord-descheduler, a DeschedulerConfiguration; without it nodes that are overloaded lose pods to those that are not
    #[arg(long, value_name = "FILE", conflicts_with = "no_descheduler")]
    pub descheduler_config: Option<PathBuf>,
    /// Feature gates of koord-manager, such as ReservationMutatingWebhook=false
    #[arg(
        long,
        value_name = "GATE=BOOL,...",
        default_value = "ReservationMutatingWebhook=true,ConfigMapValidatingWebhook=true,EnableSyncGPUSharedResource=true"
    )]
    pub feature_gates: String,
    /// What koord-manager does with requests that break rules which the original never enforced [default: enforce, or what the gate
    /// DeclaredWebhooks says]
    #[arg(long, value_name = "MODE", value_parser = koord_webhook_handlers::Declared::WORDS)]
    pub declared_webhooks: Option<String>,
    /// Where koord-scheduler answers over HTTP [default: 127.0.0.1:10251, where `koordctl queue` and `koordctl why --history` ask, or a free port
    /// where that one is taken; nowhere beside another --port than the default]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_scheduler")]
    pub scheduler_addr: Option<std::net::SocketAddr>,
    /// Where koord-manager serves its metrics, such as 127.0.0.1:8080; without it nowhere
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<std::net::SocketAddr>,
    /// Keep the objects in this folder, so that they survive a restart; without it they are gone when the program ends
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Give every new pod a ServiceAccount, which must exist, and its token, as kube-apiserver does: for pods on real nodes that speak to the API
    /// server. Hollow nodes run nothing, and without it their pods are smaller
    #[arg(long)]
    pub service_account_admission: bool,
    /// Overwrite a kubeconfig file that exists
    #[arg(long)]
    pub force: bool,
    /// More about what happens: -v what the parts do, -vv how
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl UpArgs {
    /// How many times faster than the wall clock the cluster's time runs.
    pub fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    /// How many production pods run on each hollow node.
    pub fn pods_per_node(&self) -> u32 {
        /// In a larger fleet they would take longer to create than anything else.
        const NODES_WITH_PODS_MAX: u32 = 100;
        self.pods_per_node.unwrap_or_else(|| u32::from(self.nodes <= NODES_WITH_PODS_MAX))
    }
}

/// A whole number up to `MAX`; whatever else was written, the error names the range.
fn whole<T: TryFrom<u64>, const MAX: u64>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("a whole number from 0 to {MAX}"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "a number such as 1, 60 or 0.5".to_owned())?;
    if (0.01..=10_000.0).contains(&speed) { Ok(speed) } else { Err("a number from 0.01 to 10000".to_owned()) }
}
