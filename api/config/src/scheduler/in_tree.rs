//! Arguments of the plugins of kube-scheduler.

use koord_configuration::{DurationText, Problems};
use koord_resource::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Args;

/// Arguments of NodeResourcesFit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not looked at.
    pub ignored_resources: Vec<String>,
    /// Domains of extended resources that are not looked at, such as example.com, without a slash.
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are scored.
    pub scoring_strategy: FitStrategy,
}

/// How NodeResourcesFit scores nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FitStrategy {
    /// The rule. Default LeastAllocated.
    #[serde(rename = "type")]
    pub type_: FitStrategyType,
    /// The resources that count. Default cpu and memory.
    pub resources: Vec<ResourceSpec>,
    /// The line of RequestedToCapacityRatio, which needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<CapacityRatio>,
}

/// A rule by which NodeResourcesFit scores nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FitStrategyType {
    /// Prefers nodes of which much is free.
    #[default]
    LeastAllocated,
    /// Prefers nodes of which little is free.
    MostAllocated,
    /// Scores the used share by a line through points.
    RequestedToCapacityRatio,
}

/// A resource and its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceSpec {
    /// The resource.
    pub name: String,
    /// Its weight. 0 is the default of 1.
    #[schemars(range(min = 0, max = 100))]
    pub weight: i64,
}

/// The line of RequestedToCapacityRatio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CapacityRatio {
    /// Its points by rising utilization, one at least.
    pub shape: Vec<ShapePoint>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShapePoint {
    /// The used share in percent.
    #[schemars(range(min = 0, max = 100))]
    pub utilization: i64,
    /// The score there.
    #[schemars(range(min = 0, max = 10))]
    pub score: i64,
}

impl Default for ResourceSpec {
    fn default() -> Self {
        Self { name: String::new(), weight: 1 }
    }
}

/// cpu and memory where no resource is named; a weight of 0 is one of 1.
fn complete_resources(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = ["cpu", "memory"].map(|name| ResourceSpec { name: name.to_owned(), weight: 1 }).into();
    }
    for resource in resources {
        resource.weight = resource.weight.max(1);
    }
}

impl Args for NodeResourcesFitArgs {
    const PLUGIN: &'static str = "NodeResourcesFit";

    fn complete(&mut self) {
        complete_resources(&mut self.scoring_strategy.resources);
    }

    fn check(&self, problems: &mut Problems) {
        for (index, group) in self.ignored_resource_groups.iter().enumerate().filter(|(_, group)| group.contains('/')) {
            let at = ["ignoredResourceGroups", &index.to_string()];
            problems.add(&at, format!("{group:?} must be a domain without a slash, such as example.com"));
        }
        let strategy = &self.scoring_strategy;
        let shape = strategy.requested_to_capacity_ratio.as_ref().map(|ratio| &*ratio.shape);
        let at = ["scoringStrategy", "requestedToCapacityRatio", "shape"];
        match shape {
            None | Some([]) if strategy.type_ == FitStrategyType::RequestedToCapacityRatio || shape.is_some() => {
                problems.add(&at, "must have at least one point");
            }
            shape => {
                let points = shape.unwrap_or_default();
                if points.windows(2).any(|pair| matches!(pair, [one, next] if one.utilization >= next.utilization)) {
                    problems.add(&at, "points must stand by rising utilization");
                }
            }
        }
    }
}

/// Arguments of NodeResourcesBalancedAllocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources that are compared, each once and with the weight 1. Default cpu and memory.
    pub resources: Vec<ResourceSpec>,
}

impl Args for NodeResourcesBalancedAllocationArgs {
    const PLUGIN: &'static str = "NodeResourcesBalancedAllocation";

    fn complete(&mut self) {
        complete_resources(&mut self.resources);
    }

    fn check(&self, problems: &mut Problems) {
        for (index, resource) in self.resources.iter().enumerate() {
            let at = index.to_string();
            if resource.weight != 1 {
                problems.add(&["resources", &at, "weight"], "must be 1");
            }
            if self.resources.iter().take(index).any(|other| other.name == resource.name) {
                problems.add(&["resources", &at, "name"], format!("{:?} stands twice", resource.name));
            }
        }
    }
}

/// Arguments of NodeAffinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeAffinityArgs {
    /// A node affinity that all pods have beside their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_affinity: Option<Value>,
}

impl Args for NodeAffinityArgs {
    const PLUGIN: &'static str = "NodeAffinity";
}

/// Arguments of InterPodAffinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InterPodAffinityArgs {
    /// How much the required affinity of a running pod counts when nodes are scored for a pod that it selects. Default 1.
    #[schemars(range(min = 0, max = 100))]
    pub hard_pod_affinity_weight: Option<i64>,
    /// Whether preferred affinity of running pods is left out for pods without affinity. Default false.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Args for InterPodAffinityArgs {
    const PLUGIN: &'static str = "InterPodAffinity";

    fn complete(&mut self) {
        self.hard_pod_affinity_weight.get_or_insert(1);
    }
}

/// Arguments of PodTopologySpread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodTopologySpreadArgs {
    /// The constraints of pods without any, where defaultingType is List; each pair of topologyKey and whenUnsatisfiable once.
    pub default_constraints: Vec<DefaultConstraint>,
    /// Whether pods without constraints are spread as Kubernetes does, or by the list. Default System.
    pub defaulting_type: DefaultingType,
}

/// Where the constraints of pods without any come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DefaultingType {
    /// From Kubernetes: over hostnames and zones.
    #[default]
    System,
    /// From defaultConstraints.
    List,
}

/// A constraint of pods without any. Its selector is that of the pod's controller or service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultConstraint {
    /// How much the numbers of pods may differ.
    #[schemars(range(min = 1))]
    pub max_skew: i32,
    /// The label of nodes whose values are the domains.
    pub topology_key: String,
    /// What happens where it cannot be met.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// With fewer domains the emptiest one counts as empty, where the constraint must be met. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Whether only nodes count that the pod's node affinity selects. Default Honor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<InclusionPolicy>,
    /// Whether only nodes count whose taints the pod tolerates. Default Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<InclusionPolicy>,
    /// Of no effect: the selector of the pod's controller or service takes its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
}

/// Whether a rule about nodes decides which of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InclusionPolicy {
    /// It does.
    Honor,
    /// All nodes count.
    Ignore,
}

/// What happens where a constraint cannot be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    #[default]
    DoNotSchedule,
    /// Nodes that meet it better are preferred.
    ScheduleAnyway,
}

impl Args for PodTopologySpreadArgs {
    const PLUGIN: &'static str = "PodTopologySpread";

    fn check(&self, problems: &mut Problems) {
        if self.defaulting_type == DefaultingType::System && !self.default_constraints.is_empty() {
            problems.add(&["defaultingType"], "must be List where defaultConstraints has entries");
        }
        for (index, constraint) in self.default_constraints.iter().enumerate() {
            let at = index.to_string();
            let is_same = |other: &DefaultConstraint| {
                (&other.topology_key, other.when_unsatisfiable)
                    == (&constraint.topology_key, constraint.when_unsatisfiable)
            };
            if constraint.max_skew < 1 {
                problems.add(&["defaultConstraints", &at, "maxSkew"], "must be 1 or greater");
            }
            if constraint.topology_key.is_empty() {
                problems.add(&["defaultConstraints", &at, "topologyKey"], "must not be empty");
            }
            if self.default_constraints.iter().take(index).any(is_same) {
                problems.add(&["defaultConstraints", &at], "stands twice");
            }
        }
    }
}

/// Arguments of VolumeBinding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VolumeBindingArgs {
    /// How long the binding of volumes may take. Default 600.
    #[schemars(range(min = 0))]
    pub bind_timeout_seconds: Option<i64>,
}

impl Args for VolumeBindingArgs {
    const PLUGIN: &'static str = "VolumeBinding";

    fn complete(&mut self) {
        self.bind_timeout_seconds.get_or_insert(600);
    }
}

/// Arguments of DynamicResources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DynamicResourcesArgs {
    /// Accepted without an effect: the search for devices of one node ends after 10 000 steps. Default 10s.
    #[schemars(with = "Option<DurationText>")]
    pub filter_timeout: Option<Duration>,
}

impl Args for DynamicResourcesArgs {
    const PLUGIN: &'static str = "DynamicResources";
    const IDLE: &'static [(&'static str, &'static str)] =
        &[("filterTimeout", "the search for devices of one node ends after 10 000 steps, whatever they take")];

    fn complete(&mut self) {
        self.filter_timeout.get_or_insert(Duration::from_secs(10));
    }
}

/// Arguments of DefaultPreemption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultPreemptionArgs {
    /// The share of nodes, in percent, that are candidates. Default 10.
    #[schemars(range(min = 0, max = 100))]
    pub min_candidate_nodes_percentage: Option<i64>,
    /// The least number of nodes that are candidates; not 0 where the share is 0. Default 100.
    #[schemars(range(min = 0))]
    pub min_candidate_nodes_absolute: Option<i64>,
}

impl Args for DefaultPreemptionArgs {
    const PLUGIN: &'static str = "DefaultPreemption";

    fn complete(&mut self) {
        self.min_candidate_nodes_percentage.get_or_insert(10);
        self.min_candidate_nodes_absolute.get_or_insert(100);
    }

    fn check(&self, problems: &mut Problems) {
        if (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute) == (Some(0), Some(0)) {
            problems.add(&["minCandidateNodesAbsolute"], "must not be 0 together with minCandidateNodesPercentage");
        }
    }
}
