//! Arguments of Coscheduling.

use koord_configuration::DurationText;
use koord_resource::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of Coscheduling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CoschedulingArgs {
    /// How long the pods of a gang wait for each other. Default 10m.
    #[schemars(with = "Option<DurationText>")]
    pub default_timeout: Option<Duration>,
    /// Accepted without an effect: one task writes all statuses. Default 1.
    #[schemars(range(min = 1))]
    pub controller_workers: Option<i64>,
    /// Accepted without an effect.
    pub skip_check_schedule_cycle: Option<bool>,
    /// Whether pods may be preempted for a gang. Default false.
    pub enable_preemption: Option<bool>,
    /// Whether gangs are placed by the network topology. Default false.
    pub aware_network_topology: Option<bool>,
    /// Which pods count for a gang that does not say. Default once-satisfied.
    pub default_match_policy: Option<MatchPolicy>,
}

/// Which pods count for a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    const IDLE: &'static [(&'static str, &'static str)] = &[
        ("controllerWorkers", "one task writes the statuses of all PodGroups"),
        ("skipCheckScheduleCycle", "gangs have no cycles of scheduling"),
    ];

    fn complete(&mut self) {
        self.default_timeout.get_or_insert(Duration::from_secs(600));
        self.controller_workers.get_or_insert(1);
        self.enable_preemption.get_or_insert(false);
        self.aware_network_topology.get_or_insert(false);
        self.default_match_policy.get_or_insert(MatchPolicy::OnceSatisfied);
    }
}
