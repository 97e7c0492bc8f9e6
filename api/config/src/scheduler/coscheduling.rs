//! Arguments of Coscheduling.

use koord_configuration::Configuration;
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of Coscheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CoschedulingArgs {
    /// How long the pods of a gang wait for each other.
    #[koord(default = "10m")]
    pub default_timeout: Duration,
    /// How many tasks write statuses.
    #[koord(default = 1, minimum = 1, no_effect = "one task writes the statuses of all PodGroups")]
    pub controller_workers: i64,
    /// Whether a pod is tried again in the scheduling cycle of its gang in which it was refused.
    #[koord(no_effect = "gangs have no cycles of scheduling")]
    pub skip_check_schedule_cycle: bool,
    /// Whether pods may be preempted for a gang.
    pub enable_preemption: bool,
    /// Whether gangs are placed by the network topology.
    pub aware_network_topology: bool,
    /// Which pods count for a gang that does not say.
    #[koord(default = "once-satisfied")]
    pub default_match_policy: MatchPolicy,
}

/// Which pods count for a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "kebab-case")]
pub enum MatchPolicy {
    /// Those that wait.
    OnlyWaiting,
    /// Those that wait and those that run.
    WaitingAndRunning,
    /// All, once there were enough.
    OnceSatisfied,
}

impl Args for CoschedulingArgs {
    const PLUGIN: &'static str = "Coscheduling";
}
