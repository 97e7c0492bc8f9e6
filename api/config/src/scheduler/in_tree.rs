//! Arguments of the plugins of kube-scheduler.

use koord_configuration::{Configuration, Problems};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Args;

/// Arguments of NodeResourcesFit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not looked at.
    pub ignored_resources: Vec<String>,
    /// Domains of extended resources that are not looked at, such as example.com, without a slash.
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are scored.
    pub scoring_strategy: FitStrategy,
}

/// How NodeResourcesFit scores nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FitStrategy {
    /// The rule.
    #[serde(rename = "type")]
    pub type_: FitStrategyType,
    /// The resources that count: cpu and memory where none is named.
    pub resources: Vec<ResourceSpec>,
    /// The line of RequestedToCapacityRatio, which needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<CapacityRatio>,
}

/// A rule by which NodeResourcesFit scores nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceSpec {
    /// The resource.
    pub name: String,
    /// Its weight. 0 is the default.
    #[koord(default = 1, zero_is_unset, minimum = 0, maximum = 100)]
    pub weight: i64,
}

/// The line of RequestedToCapacityRatio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct CapacityRatio {
    /// Its points by rising utilization, one at least.
    pub shape: Vec<ShapePoint>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ShapePoint {
    /// The used share in percent.
    #[koord(minimum = 0, maximum = 100)]
    pub utilization: i64,
    /// The score there.
    #[koord(minimum = 0, maximum = 10)]
    pub score: i64,
}

/// cpu and memory where no resource is named.
fn complete_resources(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = ["cpu", "memory"].map(|name| ResourceSpec { name: name.to_owned(), weight: 1 }).into();
    }
}

impl Args for NodeResourcesFitArgs {
    const PLUGIN: &'static str = "NodeResourcesFit";
}

impl NodeResourcesFitArgs {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources that are compared, each once and with the weight 1: cpu and memory where none is named.
    pub resources: Vec<ResourceSpec>,
}

impl Args for NodeResourcesBalancedAllocationArgs {
    const PLUGIN: &'static str = "NodeResourcesBalancedAllocation";
}

impl NodeResourcesBalancedAllocationArgs {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InterPodAffinityArgs {
    /// How much the required affinity of a running pod counts when nodes are scored for a pod that it selects.
    #[koord(default = 1, minimum = 0, maximum = 100)]
    pub hard_pod_affinity_weight: i64,
    /// Whether preferred affinity of running pods is left out for pods without affinity.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Args for InterPodAffinityArgs {
    const PLUGIN: &'static str = "InterPodAffinity";
}

/// Arguments of PodTopologySpread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct PodTopologySpreadArgs {
    /// The constraints of pods without any, where defaultingType is List; each pair of topologyKey and whenUnsatisfiable once.
    pub default_constraints: Vec<DefaultConstraint>,
    /// Whether pods without constraints are spread as Kubernetes does, or by the list.
    pub defaulting_type: DefaultingType,
}

/// Where the constraints of pods without any come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum DefaultingType {
    /// From Kubernetes: over hostnames and zones.
    #[default]
    System,
    /// From defaultConstraints.
    List,
}

/// A constraint of pods without any. Its selector is that of the pod's controller or service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultConstraint {
    /// How much the numbers of pods may differ.
    #[koord(minimum = 1)]
    pub max_skew: i32,
    /// The label of nodes whose values are the domains.
    pub topology_key: String,
    /// What happens where it cannot be met.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// With fewer domains the emptiest one counts as empty, where the constraint must be met.
    #[koord(default = 1)]
    pub min_domains: i32,
    /// Whether only nodes count that the pod's node affinity selects.
    #[koord(default = "Honor")]
    pub node_affinity_policy: InclusionPolicy,
    /// Whether only nodes count whose taints the pod tolerates.
    #[koord(default = "Ignore")]
    pub node_taints_policy: InclusionPolicy,
    /// Keys of labels that are added to the selector.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[koord(no_effect = "the selector of the pod's controller or service takes its place")]
    pub match_label_keys: Vec<String>,
}

/// Whether a rule about nodes decides which of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum InclusionPolicy {
    /// It does.
    Honor,
    /// All nodes count.
    Ignore,
}

/// What happens where a constraint cannot be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    #[default]
    DoNotSchedule,
    /// Nodes that meet it better are preferred.
    ScheduleAnyway,
}

impl Args for PodTopologySpreadArgs {
    const PLUGIN: &'static str = "PodTopologySpread";
}

impl PodTopologySpreadArgs {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VolumeBindingArgs {
    /// How long the binding of volumes may take.
    #[koord(default = 600, minimum = 0)]
    pub bind_timeout_seconds: i64,
}

impl Args for VolumeBindingArgs {
    const PLUGIN: &'static str = "VolumeBinding";
}

/// Arguments of DynamicResources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DynamicResourcesArgs {
    /// How long devices of one node are searched for.
    #[koord(
        default = "10s",
        no_effect = "the search for devices of one node ends after 10 000 steps, whatever they take"
    )]
    pub filter_timeout: Duration,
}

impl Args for DynamicResourcesArgs {
    const PLUGIN: &'static str = "DynamicResources";
}

/// Arguments of DefaultPreemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct DefaultPreemptionArgs {
    /// The share of nodes, in percent, that are candidates.
    #[koord(default = 10, minimum = 0, maximum = 100)]
    pub min_candidate_nodes_percentage: i64,
    /// The least number of nodes that are candidates; not 0 where the share is 0.
    #[koord(default = 100, minimum = 0)]
    pub min_candidate_nodes_absolute: i64,
}

impl Args for DefaultPreemptionArgs {
    const PLUGIN: &'static str = "DefaultPreemption";
}

impl DefaultPreemptionArgs {
    fn check(&self, problems: &mut Problems) {
        if (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute) == (0, 0) {
            problems.add(&["minCandidateNodesAbsolute"], "must not be 0 together with minCandidateNodesPercentage");
        }
    }
}
