//! The command line: what can be asked for, and how it is explained.

mod bench;
mod coexist;
mod config;
mod convert;
mod crd;
mod deschedule;
mod doctor;
mod explain;
mod lint;
mod new;
mod node;
mod plan;
mod profile;
mod queue;
mod shared;
mod simulate;
mod snapshot;
pub(crate) mod up;
mod version;
mod why;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
pub use koord_program::output::OutputFormat;

pub(crate) use self::new::names as new_names;
pub use self::{
    bench::BenchArgs,
    coexist::{CoexistCheckArgs, CoexistCommand},
    config::{ConfigCommand, EffectiveArgs},
    convert::{ConvertArgs, Evictor as PolicyEvictor},
    crd::{CrdArgs, CrdCommand, Profile},
    deschedule::{
        DescheduleApplyArgs, DescheduleCommand, DescheduleDiffArgs, DescheduleHistoryArgs, DeschedulePlanArgs,
        DescheduleWhyArgs, DeschedulerArgs, ForesightArgs, PlannedArgs,
    },
    doctor::{Check, DoctorArgs},
    explain::{AllocationsArgs, ExplainArgs, ExplainCommand, QuotaArgs},
    lint::LintArgs,
    new::{NewCommand, NewOperatorArgs, Source},
    node::{NodeAgentArgs, NodeArgs, NodeCommand, NodeExplainArgs},
    plan::PlanArgs,
    profile::{ProfileCommand, ProfileTestArgs},
    queue::{QueueArgs, QueueCommand, QueueShowArgs},
    shared::{AnswerArgs, ClusterArgs, ConfigurationArgs, SchedulerArgs},
    simulate::{Percent, SimulateArgs, TraceArg},
    snapshot::{SnapshotCommand, SnapshotReplayArgs, SnapshotSaveArgs},
    up::UpArgs,
    version::VersionArgs,
    why::WhyArgs,
};

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
  koordctl up --scenario=scheduling
  koordctl up --scenario=descheduling")]
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
    /// Look at schedulers that run beside each other in a cluster
    Coexist {
        /// What to say of them.
        #[command(subcommand)]
        command: CoexistCommand,
    },
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
    /// Show why a pod is on its node, or on none: the verdict of every plugin of koord-scheduler on every node now
    #[command(after_help = "\
Examples:
  koordctl why web-0 -n shop                       # what koord-scheduler would do now in this cluster
  koordctl why web-0 -n shop --node n1             # the message of every plugin about one node
  koordctl why web-0 -n shop -f objects.yaml       # … if these were all objects
  koordctl why web-0 --config scheduler.yaml -o json
  koordctl why --file pod.yaml                     # of a pod that does not exist yet
  koordctl why gang shop/train                     # which members have their places, which wait, and why
  koordctl why reservation r-1                     # of a Reservation
  koordctl why web-0 -n shop --history             # the results of its last attempts in the running scheduler
  koordctl why gang shop/train --history           # … of all members of a gang

A cluster is only read, with one list per collection; nothing is written. A pod that has a node is evaluated as if it had
none. For a pod that waits, the answer lists the smallest changes with which it would be placed, and the pods after whose end it would be; each was tried. Exit code: 0 when the pod has a node or would be given one, 1 when it waits, 2 when it cannot be determined.")]
    Why(WhyArgs),
    /// Show what koord-descheduler would do and why, carry that out, and show what it has done
    Deschedule {
        /// What to show.
        #[command(subcommand)]
        command: DescheduleCommand,
    },
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
    /// Measure how fast pods are scheduled, with hollow nodes on an API server in this process or in a cluster
    #[command(after_help = "\
Examples:
  koordctl bench                                              # 100 nodes, 1000 pods
  koordctl bench list                                         # the scenarios that are built in
  koordctl bench gangs --qps 0
  koordctl bench -f scenario.yaml --baseline bench-earlier.json
  koordctl bench --kubeconfig kind.kubeconfig                 # the scheduler of this cluster

The result is written as JSON too, to bench-NAME-RUN.json unless --result names another file. Exit code: 0 when every measured pod got a node in
time and no threshold was crossed, 1 when not, 2 when it cannot be measured.")]
    Bench(BenchArgs),
    /// Save what koord-scheduler reads of a cluster, and play it again
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
    /// Show what koordlet does on a node, why, and whether the kernel has it
    Node {
        /// What to show.
        #[command(subcommand)]
        command: NodeCommand,
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
    /// Make a DeschedulerConfiguration of a policy of kubernetes-sigs/descheduler
    ///
    /// Reads a DeschedulerPolicy of descheduler/v1alpha1 or descheduler/v1alpha2. The configuration is printed; what it does not have of the policy, or does
    /// otherwise, is printed to the standard error, and with -o json it stands beside the configuration.
    #[command(after_help = "\
Examples:
  koordctl convert -f policy.yaml --descheduling-interval 5m > descheduler.yaml
  koordctl convert -f policy.yaml -o json
  koordctl convert -f policy.yaml --check --snapshot objects.yaml                            # the pods of one pass with both
  koordctl convert -f policy.yaml --check --config descheduler.yaml                          # … in this cluster, with a changed configuration

Two deschedulers evict independently of each other: stop that of kubernetes-sigs/descheduler before koord-descheduler runs. Exit code: 0 when
nothing is lost or changed (with --check: when both evict the same pods), 1 when something is, 2 when it cannot be converted.")]
    Convert(ConvertArgs),
    /// Begin a project that is made with the library
    New {
        /// What it is.
        #[command(subcommand)]
        command: NewCommand,
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
            Self::Coexist { command: CoexistCommand::Check(args) } => Some(args.answer.output),
            Self::Plan(args) => Some(args.answer.output),
            Self::Why(args) => Some(args.answer.output),
            Self::Deschedule { command } => command.output(),
            Self::Simulate(args) => Some(args.answer.output),
            Self::Lint(args) => Some(args.output),
            Self::Config { command: ConfigCommand::Effective(args) } => Some(args.answer.output),
            Self::Convert(args) => Some(args.answer.output),
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
            Self::Node { command } => Some(command.agent().answer.output),
            Self::Bench(args) => Some(args.output),
            Self::Snapshot { command: SnapshotCommand::Replay(args) } => Some(args.output),
            Self::Up(_)
            | Self::Snapshot { .. }
            | Self::Crd { .. }
            | Self::New { .. }
            | Self::Version(_)
            | Self::Completion { .. } => None,
        }
    }
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
