//! What pods say about the group that they must be scheduled with.

use koord_resource::Duration;
use serde::{Deserialize, Serialize};

use crate::{
    protocol::{Key, Labels, ProtocolError, Text, json_texts, word_texts},
    word::{self, words},
};

/// Label: the PodGroup of the pod.
pub const POD_GROUP_LABEL: &str = "pod-group.scheduling.sigs.k8s.io";
/// Label: the PodGroup of the pod, by its old name.
pub const DEPRECATED_POD_GROUP_LABEL: &str = "pod-group.scheduling.sigs.k8s.io/name";

/// Annotation: name of the group, where no PodGroup exists.
pub const NAME: Key<String> = Key::new("gang.scheduling.koordinator.sh/name", "a name");
/// Annotation: how many pods must be scheduled together.
pub const MIN_AVAILABLE: Key<i32> = Key::new("gang.scheduling.koordinator.sh/min-available", "an integer");
/// Label: how many pods must be scheduled together, by its old name.
pub const DEPRECATED_MIN_AVAILABLE: Key<i32> = Key::new("pod-group.scheduling.sigs.k8s.io/min-available", "an integer");
/// Annotation: how long the first pods wait for the others.
pub const WAITING_TIME: Key<Duration> =
    Key::new("gang.scheduling.koordinator.sh/waiting-time", "a duration such as 5m");
/// Annotation: how many pods the group has.
pub const TOTAL_NUMBER: Key<i32> = Key::new("gang.scheduling.koordinator.sh/total-number", "an integer");
/// Annotation: whether pods that have found a node give it up when the others find none.
pub const MODE: Key<GangMode> = Key::new("gang.scheduling.koordinator.sh/mode", "Strict or NonStrict");
/// Annotation: groups that must be scheduled together with this one.
pub const GROUPS: Key<Vec<String>> =
    Key::new("gang.scheduling.koordinator.sh/groups", r#"a JSON list such as ["namespace/name"]"#);
/// Annotation: set when the group waited too long.
pub const TIMEOUT: Key<String> = Key::new("gang.scheduling.koordinator.sh/timeout", "a text");
/// Annotation: which pods of the group count as scheduled.
pub const MATCH_POLICY: Key<GangMatchPolicy> =
    Key::new("gang.scheduling.koordinator.sh/match-policy", "only-waiting, waiting-and-running or once-satisfied");
/// Annotation: the same, on PodGroups; the other goes before it.
pub const MATCH_POLICY_ALIAS: Key<GangMatchPolicy> =
    Key::new("pod-group.scheduling.sigs.k8s.io/match-policy", "only-waiting, waiting-and-running or once-satisfied");
/// Annotation: the place of the pod in the order of its group.
pub const NETWORK_TOPOLOGY_INDEX: Key<i64> =
    Key::new("gang.scheduling.koordinator.sh/network-topology-index", "an integer");
/// Annotation: how close to each other the pods of the group must be.
pub const NETWORK_TOPOLOGY_SPEC: Key<NetworkTopologySpec> = Key::new(
    "gang.scheduling.koordinator.sh/network-topology-spec",
    r#"a JSON object such as {"gatherStrategy":[{"layer":"rack","strategy":"MustGather"}]}"#,
);
/// Annotation, internal: the group that the pod was bound with.
pub const BIND_GANG_GROUP_ID: Renamed<String> = Renamed {
    key: Key::new("internal.scheduling.koordinator.sh/bind-gang-group-id", "a text"),
    deprecated: "scheduling.koordinator.sh/bind-gang-group-id",
};
/// Annotation, internal: how many pods were bound together.
pub const BIND_GANG_MEMBER_COUNT: Renamed<i32> = Renamed {
    key: Key::new("internal.scheduling.koordinator.sh/bind-gang-member-count", "an integer"),
    deprecated: "scheduling.koordinator.sh/bind-gang-member-count",
};
/// Annotation, internal: where the pod should go.
pub const SCHEDULING_HINT: Renamed<SchedulingHint> = Renamed {
    key: Key::new("internal.scheduling.koordinator.sh/scheduling-hint", r#"a JSON object such as {"nodeNames":["a"]}"#),
    deprecated: "scheduling.koordinator.sh/scheduling-hint",
};
/// Annotation, internal: the scheduler that the pod was made for.
pub const ORIGINAL_SCHEDULER_NAME: Key<String> =
    Key::new("internal.scheduling.koordinator.sh/original-scheduler-name", "a text");

/// An annotation that has an old name. The new one goes before it unless it is empty.
pub struct Renamed<T> {
    /// The annotation.
    pub key: Key<T>,
    /// Its old name.
    pub deprecated: &'static str,
}

impl<T: Text> Renamed<T> {
    /// The value under the new name, else under the old one.
    pub fn get(&self, annotations: &Labels) -> Result<Option<T>, ProtocolError> {
        let text = annotations.get(self.key.name()).filter(|text| !text.is_empty());
        let text = text.or_else(|| annotations.get(self.deprecated)).filter(|text| !text.is_empty());
        text.map(|text| self.key.read(text)).transpose()
    }
}

/// Name of the group that a pod belongs to; none for a pod on its own.
pub fn name_of_pod<'a>(labels: &'a Labels, annotations: &'a Labels) -> Option<&'a str> {
    let names = [labels.get(POD_GROUP_LABEL), labels.get(DEPRECATED_POD_GROUP_LABEL), annotations.get(NAME.name())];
    names.into_iter().flatten().find(|name| !name.is_empty()).map(String::as_str)
}

/// The place of a pod in the order of its group; -1 where it has none, or none that makes sense.
pub fn network_topology_index(annotations: &Labels) -> i64 {
    NETWORK_TOPOLOGY_INDEX.get(annotations).ok().flatten().unwrap_or(-1)
}

words! {
    /// Whether pods give up the node that they have found when the others find none.
    pub open enum GangMode {
        /// They do.
        Strict = "Strict",
        /// They keep it.
        NonStrict = "NonStrict",
    }
}

words! {
    /// Which pods of a group count as scheduled.
    pub open enum GangMatchPolicy {
        /// Those that wait.
        OnlyWaiting = "only-waiting",
        /// Those that wait or run.
        WaitingAndRunning = "waiting-and-running",
        /// All, once there were enough.
        OnceSatisfied = "once-satisfied",
    }
}

/// How close to each other the pods of a group must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkTopologySpec {
    /// One entry per layer of the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gather_strategy: Vec<GatherStrategy>,
}

/// How the pods of a group are gathered in one layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatherStrategy {
    /// Name of the layer.
    pub layer: String,
    /// Whether the pods must be in one place.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub strategy: Option<Gather>,
    /// Each place gets a multiple of this many pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_count_multiple: Option<i64>,
}

words! {
    /// Whether pods must be in one place.
    pub open enum Gather {
        /// They must.
        MustGather = "MustGather",
        /// As far as possible.
        PreferGather = "PreferGather",
    }
}

/// Where a pod should go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingHint {
    /// The only nodes that it may go to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_names: Vec<String>,
    /// Nodes that are tried first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred_node_names: Vec<String>,
    /// Hints for plugins.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub extensions: serde_json::Map<String, serde_json::Value>,
}

json_texts!(NetworkTopologySpec, SchedulingHint);
word_texts!(GangMode, GangMatchPolicy);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text};

    fn map(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&NAME);
        reads_any_text(&MIN_AVAILABLE);
        reads_any_text(&DEPRECATED_MIN_AVAILABLE);
        reads_any_text(&WAITING_TIME);
        reads_any_text(&TOTAL_NUMBER);
        reads_any_text(&MODE);
        reads_any_text(&GROUPS);
        reads_any_text(&TIMEOUT);
        reads_any_text(&MATCH_POLICY);
        reads_any_text(&MATCH_POLICY_ALIAS);
        reads_any_text(&NETWORK_TOPOLOGY_INDEX);
        reads_any_text(&NETWORK_TOPOLOGY_SPEC);
        reads_any_text(&BIND_GANG_GROUP_ID.key);
        reads_any_text(&BIND_GANG_MEMBER_COUNT.key);
        reads_any_text(&SCHEDULING_HINT.key);
        reads_any_text(&ORIGINAL_SCHEDULER_NAME);
    }

    #[test]
    fn values_survive() {
        keeps_values(&MIN_AVAILABLE, any::<i32>());
        keeps_values(&WAITING_TIME, any::<i64>().prop_map(Duration::from_nanos));
        keeps_values(&GROUPS, proptest::collection::vec(any::<String>(), 0..4));
    }

    #[test]
    fn the_label_goes_before_the_old_label_and_the_annotation() {
        let labels = map(&[(POD_GROUP_LABEL, "a"), (DEPRECATED_POD_GROUP_LABEL, "b")]);
        let annotations = map(&[(NAME.name(), "c")]);
        let none = Labels::new();
        assert_eq!(name_of_pod(&labels, &annotations), Some("a"));
        assert_eq!(name_of_pod(&map(&[(DEPRECATED_POD_GROUP_LABEL, "b")]), &annotations), Some("b"));
        assert_eq!(name_of_pod(&none, &annotations), Some("c"));
        assert_eq!(name_of_pod(&none, &none), None);
    }

    #[test]
    fn the_new_name_of_an_annotation_goes_before_the_old_one() {
        let (new, old) = (BIND_GANG_MEMBER_COUNT.key.name(), BIND_GANG_MEMBER_COUNT.deprecated);
        assert_eq!(BIND_GANG_MEMBER_COUNT.get(&map(&[(new, "2"), (old, "3")])), Ok(Some(2)));
        assert_eq!(BIND_GANG_MEMBER_COUNT.get(&map(&[(new, ""), (old, "3")])), Ok(Some(3)));
        assert_eq!(BIND_GANG_MEMBER_COUNT.get(&map(&[])), Ok(None));
    }

    #[test]
    fn a_missing_index_is_minus_one() {
        assert_eq!(network_topology_index(&map(&[])), -1);
        assert_eq!(network_topology_index(&map(&[(NETWORK_TOPOLOGY_INDEX.name(), "x")])), -1);
        assert_eq!(network_topology_index(&map(&[(NETWORK_TOPOLOGY_INDEX.name(), "7")])), 7);
    }

    #[test]
    fn the_topology_of_a_group_is_read() {
        let text = r#"{"gatherStrategy":[{"layer":"rack","strategy":"MustGather","podCountMultiple":4}]}"#;
        let spec = read(&NETWORK_TOPOLOGY_SPEC, text).unwrap();
        assert_eq!(spec.gather_strategy[0].strategy, Some(Gather::MustGather));
        assert_eq!(spec.write(), text);
    }
}
