//! What pods and PodGroups declare about their gang, and what counts where they declare nothing legal (3E.1).

use koord_core::key::ObjectKey;
use koord_resource::Duration;
use koord_scheduler_framework::labels::Labels;
use koord_types::{
    gang::{
        DEPRECATED_MIN_AVAILABLE, DEPRECATED_POD_GROUP_LABEL, GROUPS, GangMatchPolicy, GangMode, MATCH_POLICY,
        MATCH_POLICY_ALIAS, MIN_AVAILABLE, MODE, NAME, NETWORK_TOPOLOGY_SPEC, NetworkTopologySpec, POD_GROUP_LABEL,
        TOTAL_NUMBER, WAITING_TIME,
    },
    pod_group::PodGroup,
    protocol::{Key, Text},
};

use super::group::GangGroup;

/// Which pods of a gang count for its minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchPolicy {
    /// Those that are being placed.
    OnlyWaiting,
    /// Those that are being placed and those that are bound.
    WaitingAndRunning,
    /// Those that are being placed; all others are free once there were enough.
    #[default]
    OnceSatisfied,
}

/// What counts for a gang that does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// How long pods wait for others.
    pub waiting_time: Duration,
    pub policy: MatchPolicy,
}

/// What a gang declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// How many pods must be placed together.
    pub min: usize,
    /// How many pods it will have, at least `min`.
    pub total: usize,
    /// Whether pods that found a node keep it while others find none. No pod holds a node before all do, in either mode.
    pub mode: GangMode,
    pub policy: MatchPolicy,
    /// The gangs that are placed together with it, itself among them.
    pub group: GangGroup,
    /// How long pods wait for others. No pod does.
    pub waiting_time: Duration,
    /// How close to each other its pods must be.
    pub topology: Option<NetworkTopologySpec>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { waiting_time: Duration::from_secs(600), policy: MatchPolicy::default() }
    }
}

/// The gang of a pod, and whether a PodGroup declares it.
pub fn gang_of_pod(namespace: &str, labels: &Labels, annotations: &Labels) -> Option<(ObjectKey, bool)> {
    let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(|name| ObjectKey::new(namespace, name));
    if let Some(gang) = named(labels.get(POD_GROUP_LABEL)) {
        return Some((gang, true));
    }
    let gang = named(labels.get(DEPRECATED_POD_GROUP_LABEL)).or_else(|| named(annotations.get(NAME.name())));
    gang.map(|gang| (gang, false))
}

impl Declaration {
    /// What the first pod of a gang declares; none where its minimum is missing or no number. A label that is not empty goes before
    /// the annotation, be it a number or not.
    pub fn of_pod(gang: &ObjectKey, labels: &Labels, annotations: &Labels, defaults: &Defaults) -> Option<Self> {
        let min = match labels.get(DEPRECATED_MIN_AVAILABLE.name()).filter(|text| !text.is_empty()) {
            Some(text) => DEPRECATED_MIN_AVAILABLE.read(text),
            None => MIN_AVAILABLE.read(annotations.get(MIN_AVAILABLE.name())?),
        };
        let waiting_time = read(&WAITING_TIME, |key| annotations.get(key));
        Some(Self::new(gang, min.ok()?, waiting_time, |key| annotations.get(key), defaults))
    }

    /// What a PodGroup declares.
    pub fn of_pod_group(gang: &ObjectKey, object: &PodGroup, defaults: &Defaults) -> Self {
        let annotations = object.metadata.annotations.as_ref();
        let annotation = |key: &str| annotations.and_then(|annotations| annotations.get(key)).map(String::as_str);
        let waiting_time = object.spec.schedule_timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        Self::new(gang, object.spec.min_member, waiting_time, annotation, defaults)
    }

    fn new<'a>(
        gang: &ObjectKey,
        min: i32,
        waiting_time: Option<Duration>,
        annotation: impl Fn(&str) -> Option<&'a str>,
        defaults: &Defaults,
    ) -> Self {
        let count = |number: i32| usize::try_from(number).unwrap_or(0);
        let given = |key: &str| annotation(key).filter(|text| !text.is_empty());
        let policy = read(&MATCH_POLICY, given).or_else(|| read(&MATCH_POLICY_ALIAS, given));
        let others = read(&GROUPS, &annotation).into_iter().flatten().map(|id| ObjectKey::cluster(&id));
        Self {
            min: count(min),
            total: read(&TOTAL_NUMBER, &annotation).map_or(0, count).max(count(min)),
            mode: read(&MODE, &annotation).filter(|mode| *mode == GangMode::NonStrict).unwrap_or(GangMode::Strict),
            policy: policy.and_then(|policy| MatchPolicy::of(&policy)).unwrap_or(defaults.policy),
            group: GangGroup::new(others.chain([gang.clone()]).collect()),
            waiting_time: waiting_time.filter(|time| time.as_nanos() > 0).unwrap_or(defaults.waiting_time),
            topology: read(&NETWORK_TOPOLOGY_SPEC, &annotation),
        }
    }
}

impl MatchPolicy {
    /// The policy of this word.
    pub fn of(word: &GangMatchPolicy) -> Option<Self> {
        match word {
            GangMatchPolicy::OnlyWaiting => Some(Self::OnlyWaiting),
            GangMatchPolicy::WaitingAndRunning => Some(Self::WaitingAndRunning),
            GangMatchPolicy::OnceSatisfied => Some(Self::OnceSatisfied),
            GangMatchPolicy::Other(_) => None,
        }
    }
}

/// The value of an annotation; none where it is missing or illegal.
fn read<'a, T: Text>(key: &Key<T>, annotation: impl Fn(&str) -> Option<&'a str>) -> Option<T> {
    annotation(key.name()).and_then(|text| key.read(text).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_pod(annotations: &[(&str, &str)]) -> Option<Declaration> {
        let prefixed: Vec<_> = annotations
            .iter()
            .map(|(key, value)| {
                let key =
                    if key.contains('/') { (*key).to_owned() } else { format!("gang.scheduling.koordinator.sh/{key}") };
                (key, *value)
            })
            .collect();
        let annotations = prefixed.iter().map(|(key, value)| (&**key, *value)).collect();
        Declaration::of_pod(&ObjectKey::new("ns", "g"), &Labels::default(), &annotations, &Defaults::default())
    }

    #[test]
    fn the_label_names_a_pod_group_and_all_else_a_gang_of_annotations() {
        let gang = |labels: &[(&str, &str)], annotations: &[(&str, &str)]| {
            gang_of_pod("ns", &labels.iter().copied().collect(), &annotations.iter().copied().collect())
        };
        let (label, old) = ("pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name");
        let name = "gang.scheduling.koordinator.sh/name";
        assert_eq!(gang(&[(label, "a"), (old, "b")], &[(name, "c")]), Some((ObjectKey::new("ns", "a"), true)));
        assert_eq!(gang(&[(label, ""), (old, "b")], &[(name, "c")]), Some((ObjectKey::new("ns", "b"), false)));
        assert_eq!(gang(&[], &[(name, "c")]), Some((ObjectKey::new("ns", "c"), false)));
        assert_eq!(gang(&[], &[(name, "")]), None);
    }

    #[test]
    fn a_minimum_that_is_no_number_declares_nothing() {
        assert_eq!(of_pod(&[]), None);
        assert_eq!(of_pod(&[("min-available", "x")]), None);
        assert_eq!(of_pod(&[("min-available", "0")]).unwrap().min, 0);
    }

    #[test]
    fn a_minimum_as_a_label_goes_before_the_annotation_unless_it_is_empty() {
        let declared = |label: &str, annotation: Option<&str>| {
            let labels = [("pod-group.scheduling.sigs.k8s.io/min-available", label)].into_iter().collect();
            let annotation = annotation.map(|value| ("gang.scheduling.koordinator.sh/min-available", value));
            let annotations = annotation.into_iter().collect();
            let gang = ObjectKey::new("ns", "g");
            Declaration::of_pod(&gang, &labels, &annotations, &Defaults::default()).map(|declared| declared.min)
        };
        assert_eq!([declared("2", None), declared("2", Some("3"))], [Some(2), Some(2)]);
        assert_eq!([declared("x", Some("3")), declared("", None)], [None, None]);
        assert_eq!(declared("", Some("3")), Some(3));
    }

    #[test]
    fn illegal_values_count_as_none() {
        let declared = of_pod(&[
            ("min-available", "3"),
            ("total-number", "1"),
            ("mode", "Foo"),
            ("match-policy", "foo"),
            ("groups", "[bad"),
            ("waiting-time", "-3s"),
            ("network-topology-spec", "{bad"),
        ]);
        assert_eq!(declared, of_pod(&[("min-available", "3")]));
        let declared = declared.unwrap();
        assert_eq!((declared.total, declared.policy), (3, MatchPolicy::OnceSatisfied));
        assert_eq!(
            (declared.group, declared.waiting_time),
            (GangGroup::new(vec![ObjectKey::new("ns", "g")]), Duration::from_secs(600))
        );
    }

    #[test]
    fn legal_values_count() {
        let declared = of_pod(&[
            ("min-available", "3"),
            ("total-number", "5"),
            ("mode", "NonStrict"),
            ("pod-group.scheduling.sigs.k8s.io/match-policy", "only-waiting"),
            ("groups", r#"["ns/z","ns/g","a/b"]"#),
            ("waiting-time", "1m30s"),
        ]);
        let declared = declared.unwrap();
        assert_eq!((declared.total, declared.mode), (5, GangMode::NonStrict));
        assert_eq!((declared.policy, declared.waiting_time), (MatchPolicy::OnlyWaiting, Duration::from_secs(90)));
        assert_eq!(declared.group.ids().iter().map(ObjectKey::as_str).collect::<Vec<_>>(), ["a/b", "ns/g", "ns/z"]);
        let both = of_pod(&[
            ("min-available", "1"),
            ("match-policy", "waiting-and-running"),
            ("pod-group.scheduling.sigs.k8s.io/match-policy", "only-waiting"),
        ]);
        assert_eq!(both.unwrap().policy, MatchPolicy::WaitingAndRunning);
        let empty = of_pod(&[
            ("min-available", "1"),
            ("match-policy", ""),
            ("pod-group.scheduling.sigs.k8s.io/match-policy", "only-waiting"),
        ]);
        assert_eq!(empty.unwrap().policy, MatchPolicy::OnlyWaiting, "an empty word is none");
    }

    #[test]
    fn a_gang_belongs_to_its_group_whether_that_names_it_or_not() {
        let group = |ids: &str| {
            let declared = of_pod(&[("min-available", "1"), ("groups", ids)]).unwrap();
            declared.group.ids().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(group("[]"), ["ns/g"]);
        assert_eq!(group(r#"["ns/other"]"#), ["ns/g", "ns/other"]);
        assert_eq!(group(r#"["ns/other"]"#), group(r#"["ns/other","ns/g"]"#));
    }

    #[test]
    fn a_gang_that_a_group_names_twice_is_in_it_once() {
        let declared = of_pod(&[("min-available", "1"), ("groups", r#"["ns/other","ns/g","ns/other"]"#)]);
        assert_eq!(**declared.unwrap().group.ids(), [ObjectKey::new("ns", "g"), ObjectKey::new("ns", "other")]);
    }

    #[test]
    fn a_pod_group_without_a_timeout_has_the_default() {
        let of = |spec: serde_json::Value| {
            let object = serde_json::from_value(json!({"spec": spec})).unwrap();
            Declaration::of_pod_group(&ObjectKey::new("ns", "g"), &object, &Defaults::default())
        };
        let declared = of(json!({"minMember": 2}));
        assert_eq!((declared.min, declared.total, declared.waiting_time), (2, 2, Duration::from_secs(600)));
        assert_eq!(of(json!({"minMember": -1, "scheduleTimeoutSeconds": 0})).waiting_time, Duration::from_secs(600));
        assert_eq!(of(json!({"minMember": -1, "scheduleTimeoutSeconds": 5})).waiting_time, Duration::from_secs(5));
        assert_eq!(of(json!({"minMember": -1})).min, 0);
    }

    #[test]
    fn illegal_annotations_of_a_pod_group_count_as_none_and_legal_ones_as_those_of_pods() {
        let of = |annotations: serde_json::Value| {
            let object = json!({"metadata": {"annotations": annotations}, "spec": {"minMember": 3}});
            let object = serde_json::from_value(object).unwrap();
            Declaration::of_pod_group(&ObjectKey::new("ns", "g"), &object, &Defaults::default())
        };
        let with = |values: &[(&str, &str)]| {
            let key = |name: &str| format!("gang.scheduling.koordinator.sh/{name}");
            of(values.iter().map(|(name, value)| (key(name), json!(value))).collect())
        };
        let illegal = [("total-number", "2"), ("mode", "Foo"), ("match-policy", "foo"), ("groups", "[bad")];
        assert_eq!(with(&illegal), with(&[]));
        let legal = with(&[("total-number", "5"), ("mode", "NonStrict"), ("match-policy", "only-waiting")]);
        assert_eq!((legal.total, legal.mode, legal.policy), (5, GangMode::NonStrict, MatchPolicy::OnlyWaiting));
    }
}
