//! The command line: what can be asked for, and how it is explained.

mod simulate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::Timestamp;
use koord_program::flags::time;
pub use koord_program::output::OutputFormat;
use koord_resource::schema::names::{dns1123_label, dns1123_subdomain};

pub use self::simulate::{Percent, SimulateArgs, TraceArg};

/// Try, inspect and install Koordinator.
///
/// Also runs as `kubectl koord` when a file named kubectl-koord in the path is this program.
#[derive(Debug, Parser)]
#[command(name = "koordctl", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a small cluster in this process: API server, koord-manager and hollow nodes
    #[command(after_help = "\
Examples:
  koordctl up
  koordctl up --nodes=100 --speed=60
  koordctl up --scenario=tour
  koordctl up --scenario=scheduling")]
    Up(UpArgs),
    /// Compare the custom resource definitions of a cluster with those of this program, or install them
    Crd {
        /// What to do with them.
        #[command(subcommand)]
        command: CrdCommand,
    },
    /// Look for what is wrong with Koordinator in a cluster, and say how to fix it
    #[command(after_help = "\
Examples:
  koordctl doctor
  koordctl doctor --only certificates,webhooks
  koordctl doctor --skip permissions -o json

Where koord-manager runs with other names than the default ones (SECRET_NAME, SERVICE_NAME, MUTATING_WEBHOOK_NAME,
VALIDATING_WEBHOOK_NAME), set the same environment variables here. Exit code: 0 when nothing is wrong, 1 when there
are warnings, 2 when something does not work or the cluster cannot be reached.")]
    Doctor(DoctorArgs),
    /// Say how what the manager writes comes about, term by term, and why a change of a quota would be refused
    Explain {
        /// What to explain.
        #[command(subcommand)]
        command: ExplainCommand,
    },
    /// Say what the controllers of koord-manager would write now, or those of another program, without writing it
    #[command(after_help = "\
Examples:
  koordctl plan                                   # what a manager that starts now would write in this cluster
  koordctl plan -f objects.yaml                   # … if these were all objects
  koordctl plan --controllers=nodeslo -o json
  koordctl plan -- --noderesource-plugins=-MidResource,* --config-namespace=koord
  koordctl plan --program ./postgres-operator -f objects.yaml -- --namespace=shop

A cluster is only read, with one list per collection. Exit code: 0 when nothing would be written, 1 when something
would, 2 when it cannot be determined.")]
    Plan(PlanArgs),
    /// Say why a pod is on its node, or on none: what every plugin of koord-scheduler says about every node now
    #[command(after_help = "\
Examples:
  koordctl why web-0 -n shop                       # what koord-scheduler would do now in this cluster
  koordctl why web-0 -n shop --node n1             # every plugin's words about one node
  koordctl why web-0 -n shop -f objects.yaml       # … if these were all objects
  koordctl why web-0 --config scheduler.yaml -o json
  koordctl why --file pod.yaml                     # of a pod that does not exist yet
  koordctl why gang shop/train                     # which members have their places, which wait, and why
  koordctl why reservation r-1                     # of a Reservation
  koordctl why web-0 -n shop --history             # what the scheduler that runs has found out in its last attempts

A cluster is only read, with one list per collection; nothing is written. A pod that has a node is looked at as if it had
none. For a pod that waits the smallest changes are named with which it would be placed; each was tried. Exit code: 0 when the pod has a node or would be given one, 1 when it waits, 2 when it cannot be determined.")]
    Why(WhyArgs),
    /// Play what koord-scheduler would make of pods in virtual time, and compare configurations
    #[command(after_help = "\
Examples:
  koordctl simulate -f cluster.yaml -f pods.yaml                      # nodes and pods of files
  koordctl simulate --add pods.yaml                                   # these pods in this cluster, which is only read
  koordctl simulate -f snapshot.yaml --add pods.yaml --report report.html
  koordctl simulate -f objects.yaml --config now.yaml --config new.yaml
  koordctl simulate --trace openb=data/openb --demand 130% --nodes 300

Pods without a node come when they were created, and run for as long as their annotation simulation.koordinator.sh/duration or
activeDeadlineSeconds says, else for ever. Deciding takes no time, a pod that is bound runs at once, and one that is evicted does not come
again. With the same objects, configuration and seed the answer is the same, up to the time that it takes. Nothing is written but the report. Exit code: 0 when every
pod got a node, 1 when some wait at the end, 2 when it cannot be determined.")]
    Simulate(SimulateArgs),
    /// Save what koord-scheduler reads of a cluster
    Snapshot {
        /// What to do.
        #[command(subcommand)]
        command: SnapshotCommand,
    },
    /// Show the pods that wait in a koord-scheduler that runs
    Queue {
        /// What to show.
        #[command(subcommand)]
        command: QueueCommand,
    },
    /// Try ClusterColocationProfiles
    Profile {
        /// What to do with them.
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Check files as the API server and the webhooks would, without a cluster
    ///
    /// Custom resources, profiles, quotas (as one tree over all files), pods, nodes, slo-controller-config, labels and
    /// annotations, and the flags and environment of koord-manager in a Deployment.
    #[command(after_help = "\
Examples:
  koordctl lint -f config/
  kustomize build . | koordctl lint -f -
  koordctl lint -f quotas.yaml -f pods.yaml -o json

Exit code: 0 when nothing is wrong (warnings apart), 1 when something is, 2 when a file cannot be read.")]
    Lint(LintArgs),
    /// Show configurations of components
    Config {
        /// What to show.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the version of this program, and of the server if one answers
    #[command(after_help = "Example:  koordctl version --client")]
    Version(VersionArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:  source <(koordctl completion bash)")]
    Completion {
        /// The shell to complete for.
        shell: Shell,
    },
}

impl Command {
    /// How the answer is to be written; none where there is no choice.
    pub fn output(&self) -> Option<OutputFormat> {
        match self {
            Self::Doctor(args) => Some(args.answer.output),
            Self::Plan(args) => Some(args.answer.output),
            Self::Why(args) => Some(args.answer.output),
            Self::Simulate(args) => Some(args.answer.output),
            Self::Lint(args) => Some(args.output),
            Self::Config { command: ConfigCommand::Effective(args) } => Some(args.answer.output),
            Self::Profile { command: ProfileCommand::Test(args) } => Some(args.answer.output),
            Self::Explain { command } => Some(match command {
                ExplainCommand::Batch(args)
                | ExplainCommand::Mid(args)
                | ExplainCommand::Zone(args)
                | ExplainCommand::Slo(args) => args.answer.output,
                ExplainCommand::Node(args) => args.answer.output,
                ExplainCommand::Quota(args) => args.answer.output,
            }),
            Self::Queue { command: QueueCommand::List(args) } => Some(args.output),
            Self::Queue { command: QueueCommand::Show(args) } => Some(args.queue.output),
            Self::Up(_) | Self::Snapshot { .. } | Self::Crd { .. } | Self::Version(_) | Self::Completion { .. } => None,
        }
    }
}

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

/// Options of `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Another program whose writes are planned: one that is made with the library and knows --plan
    #[arg(long, value_name = "PROGRAM", conflicts_with = "controllers")]
    pub program: Option<PathBuf>,
    /// Which controllers plan, as --controllers of koord-manager takes them; without it those of the manager's default
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub controllers: Option<String>,
    /// The time for which it is planned, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
    /// Further flags of the program whose writes are planned, such as --feature-gates and --config-namespace of koord-manager
    #[arg(last = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}

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

/// Options of `why`.
#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// Name of the pod; or gang NAMESPACE/NAME; or reservation NAME
    #[arg(value_name = "[KIND] NAME", num_args = 0..=2, value_parser = name_or_key)]
    pub what: Vec<String>,
    /// Namespace of the pod or gang
    #[arg(short, long, default_value = "default", value_name = "NAME", value_parser = namespace)]
    pub namespace: String,
    /// File with a pod that does not exist yet, as if it had just been created: YAML or JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The last attempts of the pod instead, as the scheduler that runs has kept them, newest first
    #[arg(long, conflicts_with_all = ["file", "node", "filename", "at"])]
    pub history: bool,
    /// URL of the HTTP port of the scheduler that is asked for --history; in a cluster after kubectl port-forward
    #[arg(long = "scheduler", default_value = "http://127.0.0.1:10251", value_name = "URL", requires = "history")]
    pub running: String,
    /// The only node that is asked about, with the words of every plugin
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub node: Option<String>,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scheduler: SchedulerArgs,
    /// The time for which it is said, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// What `snapshot` can do.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Save all objects that koord-scheduler reads as one file, which koordctl why -f reads
    #[command(after_help = "\
Examples:
  koordctl snapshot save cluster.yaml
  koordctl snapshot save --redact cluster.json            # with pseudonyms instead of names, to be given away
  koordctl snapshot save --redact -f mine.yaml cluster.yaml

A cluster is only read, with one list per collection. With --redact names, namespaces, labels, images and annotations are replaced
consistently, numbers and structure stay, and what the scheduler does not read of containers and volumes is left out: koordctl why says
the same of it, up to names.")]
    Save(SnapshotSaveArgs),
}

/// Options of `snapshot save`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotSaveArgs {
    /// The file to be written; its name ends in .yaml or .json
    #[arg(value_name = "FILE")]
    pub output: PathBuf,
    /// Replace names by pseudonyms
    #[arg(long)]
    pub redact: bool,
    /// Overwrite the file
    #[arg(long)]
    pub force: bool,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scheduler: SchedulerArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}

/// What `queue` shows.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the pods that wait, in the order in which they would be tried
    #[command(after_help = "\
Examples:
  koordctl queue list
  koordctl queue list --scheduler http://127.0.0.1:20251 -o json")]
    List(QueueArgs),
    /// Show where a pod stands, who refused it, and after which events it is tried again
    #[command(after_help = "\
Example:  koordctl queue show web-0 -n shop

Exit code: 0 when the pod waits, 1 when it is not in the queue, 2 when the scheduler cannot be asked.")]
    Show(QueueShowArgs),
}

/// Which scheduler is asked, and how the answer is written.
#[derive(Clone, Debug, Args)]
pub struct QueueArgs {
    /// URL of the HTTP port of the scheduler, which must hold the Lease; in a cluster after kubectl port-forward
    #[arg(long, default_value = "http://127.0.0.1:10251", value_name = "URL")]
    pub scheduler: String,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}

/// Options of `queue show`.
#[derive(Clone, Debug, Args)]
pub struct QueueShowArgs {
    /// Name of the pod
    #[arg(value_parser = name)]
    pub pod: String,
    /// Namespace of the pod
    #[arg(short, long, default_value = "default", value_name = "NAME", value_parser = namespace)]
    pub namespace: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub queue: QueueArgs,
}

/// What `profile` can do.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Say which profiles match a pod, in which order, why the others do not, and what they change
    #[command(after_help = "\
Examples:
  koordctl profile test -f pod.yaml                                 # with the profiles of the cluster
  koordctl profile test -f deployment.yaml --profiles profiles/     # … of files: also namespaces, priority classes, quotas
  koordctl profile test -f pod.yaml -n shop -o json

Nothing is created. Exit code: 0 when the pod would be admitted, 1 when it would be refused, 2 when it cannot be determined.")]
    Test(ProfileTestArgs),
}

/// Options of `profile test`.
#[derive(Clone, Debug, Args)]
pub struct ProfileTestArgs {
    /// Files with pods, or with Deployments, Jobs and the like: YAML or JSON; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Files or folders with the profiles instead of a cluster, and with what they refer to: namespaces, priority classes
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// Namespace of the pods; without it that of the file, or default
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Feature gates of the koord-manager that would answer
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `lint`.
#[derive(Clone, Debug, Args)]
pub struct LintArgs {
    /// Files of YAML or JSON, also lists and folders; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Feature gates of koord-manager, of which some decide what is refused
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}

/// What `config` shows.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the complete configuration that is in force: its values, the defaults of what is left out, and what sets each value
    ///
    /// Without -f: slo-controller-config of the cluster, which koord-manager reads. With -f: a ConfigMap of that name, or the configuration of a component
    /// (KubeSchedulerConfiguration, DeschedulerConfiguration).
    #[command(after_help = "\
Examples:
  koordctl config effective                                    # slo-controller-config: each value with the strategy that sets it
  koordctl config effective --node node-1                      # … as it is merged for this node, with its labels and annotations
  koordctl config effective -f slo-controller-config.yaml      # … of a file
  koordctl config effective -f koord-scheduler.yaml            # each value with the line that sets it, or default
  koordctl config effective -f koord-descheduler.yaml -o yaml  # the configuration itself

Exit code: 0 when it is printed, 1 when it has mistakes, which are listed as by lint, 2 when it cannot be read.")]
    Effective(EffectiveArgs),
}

/// Options of `config effective`.
#[derive(Clone, Debug, Args)]
pub struct EffectiveArgs {
    /// File with the configuration instead of a cluster, in YAML or JSON; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show the values that are in force on this node; with -f the file holds the Node too
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub node: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub configuration: ConfigurationArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `up`.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// How many hollow nodes there are
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = whole::<u32, 20_000>)]
    pub nodes: u32,
    /// Port of the API server on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 6443, value_parser = whole::<u16, 65_535>)]
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
    /// Feature gates of koord-manager, such as DeclaredWebhooks=false
    #[arg(
        long,
        value_name = "GATE=BOOL,...",
        default_value = "DeclaredWebhooks=true,ReservationMutatingWebhook=true,ConfigMapValidatingWebhook=true"
    )]
    pub feature_gates: String,
    /// Where koord-scheduler answers over HTTP, such as 127.0.0.1:10251, where `koordctl queue` asks; without it nowhere
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_scheduler")]
    pub scheduler_addr: Option<std::net::SocketAddr>,
    /// Where koord-manager serves its metrics, such as 127.0.0.1:8080; without it nowhere
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<std::net::SocketAddr>,
    /// Keep the objects in this folder, so that they survive a restart; without it they are gone when the program ends
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
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

/// A flavour of the custom resource definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Exactly the structure of the original's
    Compatible,
    /// With rules, columns and short names that the original lacks; never rejects what compatible and the webhooks accept
    Hardened,
}

/// What `crd` can do.
#[derive(Debug, Subcommand)]
pub enum CrdCommand {
    /// Print how the cluster's definitions differ from this program's; exits with 1 when they do
    #[command(after_help = "Example:  koordctl crd diff --profile=hardened")]
    Diff(CrdArgs),
    /// Create or change the cluster's definitions so that they are this program's
    #[command(after_help = "Example:  koordctl crd apply --context=staging")]
    Apply(CrdArgs),
}

/// Options of the `crd` commands.
#[derive(Clone, Debug, Args)]
pub struct CrdArgs {
    /// Which custom resource definitions
    #[arg(long, value_enum, default_value_t = Profile::Compatible)]
    pub profile: Profile,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
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
    #[arg(long, default_value = koord_api::slo_config::CONFIG_MAP_NAMESPACE, value_name = "NAMESPACE", value_parser = namespace)]
    pub config_namespace: String,
    /// Name of the ConfigMap with the configuration
    #[arg(long, default_value = koord_api::slo_config::CONFIG_MAP_NAME, value_name = "NAME", value_parser = name)]
    pub slo_config_name: String,
}

/// What `explain` can explain.
#[derive(Debug, Subcommand)]
pub enum ExplainCommand {
    /// What batch pods may use of a node
    #[command(after_help = "Example:  koordctl explain batch node-1")]
    Batch(ExplainArgs),
    /// What mid pods may use of a node
    #[command(after_help = "Example:  koordctl explain mid node-1 -o json")]
    Mid(ExplainArgs),
    /// What batch pods may use of each NUMA zone of a node
    #[command(after_help = "Example:  koordctl explain zone node-1")]
    Zone(ExplainArgs),
    /// Where each value of a node's NodeSLO came from
    #[command(after_help = "Example:  koordctl explain slo node-1")]
    Slo(ExplainArgs),
    /// The devices, CPUs and NUMA nodes of a node: what is free, and which pods have the rest
    #[command(after_help = "\
Examples:
  koordctl explain node node-1
  koordctl explain node node-1 -f objects.yaml            # of Device, NodeResourceTopology and pods in a file")]
    Node(AllocationsArgs),
    /// What a quota may have, what it has, and which changes of it the webhook would refuse
    #[command(after_help = "\
Examples:
  koordctl explain quota team-a
  koordctl explain quota team-a --what-if team-a.yaml     # would this change be admitted, and what then?
  koordctl explain quota team-a -f quotas.yaml            # without a cluster

Exit code: 0 when every proposed change is admitted, 1 when one is refused, 2 when it cannot be determined.")]
    Quota(QuotaArgs),
}

/// Options of `explain node`.
#[derive(Clone, Debug, Args)]
pub struct AllocationsArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `explain quota`.
#[derive(Clone, Debug, Args)]
pub struct QuotaArgs {
    /// Name of the quota
    #[arg(value_parser = name)]
    pub name: String,
    /// Namespace of the quota; also of proposed quotas that name none
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Files with the quotas (and pods) instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Files with new or changed quotas, as they would be applied one after the other. Labels and annotations that a
    /// file leaves out stay as they are
    #[arg(long, value_name = "FILE")]
    pub what_if: Vec<PathBuf>,
    /// Feature gates of koord-manager, of which some decide what is refused
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of the explanations about a node.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// The time for which it is explained, such as 2026-01-02T03:04:05Z; without it the cluster's, or with files now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub configuration: ConfigurationArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `version`.
#[derive(Clone, Debug, Args)]
pub struct VersionArgs {
    /// Only this program's version; ask no server
    #[arg(long)]
    pub client: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}

/// A whole number up to `MAX`; whatever else was written, the error names the range.
fn whole<T: TryFrom<u64>, const MAX: u64>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("a whole number from 0 to {MAX}"))
}

/// The name of an object of most kinds.
fn name(text: &str) -> Result<String, String> {
    let is_name = dns1123_subdomain(text).is_empty();
    is_name.then(|| text.to_owned()).ok_or_else(|| "a name: lower-case letters, digits, '-' and '.'".to_owned())
}

/// A name, or a namespace and a name.
fn name_or_key(text: &str) -> Result<String, String> {
    let (of, own) = text.split_once('/').map_or((None, text), |(of, own)| (Some(of), own));
    of.map(namespace).transpose()?;
    name(own).map(|_| text.to_owned())
}

fn namespace(text: &str) -> Result<String, String> {
    let is_name = dns1123_label(text).is_empty();
    is_name.then(|| text.to_owned()).ok_or_else(|| "a namespace: lower-case letters, digits and '-'".to_owned())
}

fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(_))) { Ok(text.to_owned()) } else { Err("a place such as 127.0.0.1:9443".to_owned()) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "a number such as 1, 60 or 0.5".to_owned())?;
    if (0.01..=10_000.0).contains(&speed) { Ok(speed) } else { Err("a number from 0.01 to 10000".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn refused(arguments: &[&str]) -> String {
        Cli::try_parse_from(arguments).unwrap_err().to_string()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn up_needs_no_flags() {
        let Command::Up(up) = Cli::try_parse_from(["koordctl", "up"]).unwrap().command else { panic!("not up") };
        assert_eq!((up.nodes, up.port, up.profile, up.no_manager), (10, 6443, Profile::Hardened, false));
    }

    #[test]
    fn a_misspelt_flag_names_the_right_one() {
        let text = refused(&["koordctl", "up", "--node", "3"]);
        assert!(text.contains("unexpected argument '--node'") && text.contains("'--nodes'"), "{text}");
        let text = refused(&["koordctl", "upp"]);
        assert!(text.contains("unrecognized subcommand 'upp'") && text.contains("'up'"), "{text}");
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        assert!(refused(&["koordctl", "up", "--speed", "0"]).contains("from 0.01 to 10000"));
        assert!(refused(&["koordctl", "up", "--speed", "fast"]).contains("a number such as"));
        assert!(refused(&["koordctl", "up", "--nodes", "50000"]).contains("from 0 to 20000"));
        assert!(refused(&["koordctl", "up", "--port", "70000"]).contains("from 0 to 65535"));
        assert!(refused(&["koordctl", "up", "--port", "https"]).contains("from 0 to 65535"));
        assert!(refused(&["koordctl", "up", "--seed=-1"]).contains("from 0 to 18446744073709551615"));
        assert!(
            refused(&["koordctl", "up", "--profile", "strict"]).contains("[possible values: compatible, hardened]")
        );
    }
}
