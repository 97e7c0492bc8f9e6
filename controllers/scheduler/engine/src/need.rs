//! What a pod needs that the scheduler cannot give it yet. Such a pod is refused with that reason, and never placed wrongly.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;

/// A set of needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs(u64);

/// The names of the needs, each with its bit: what a user would look for.
const NAMES: &[&str] = &["resource claims", "reservations"];

impl Needs {
    /// No need.
    pub const NONE: Self = Self(0);
    /// Resource claims.
    pub const CLAIMS: Self = Self(1);
    /// A reservation.
    pub const RESERVATIONS: Self = Self(1 << 1);

    /// The needs of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those needs that are in the other set too.
    pub const fn among(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What a pod needs by its spec and its annotations.
    pub fn of(spec: &PodSpec, annotations: &BTreeMap<&str, &str>) -> Self {
        let annotated = |name: &str| annotations.contains_key(name);
        let when = |is_needed: bool, need: Self| if is_needed { need.0 } else { 0 };
        Self(
            when(spec.resource_claims.iter().flatten().next().is_some(), Self::CLAIMS)
                | when(annotated("scheduling.koordinator.sh/reservation-affinity"), Self::RESERVATIONS),
        )
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As the operand of a refusal.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The names of the needs in the operand of a refusal.
    pub fn names(bits: u64) -> impl Iterator<Item = &'static str> {
        (0..).zip(NAMES).filter(move |(bit, _)| bits & (1_u64 << bit) != 0).map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn needs(pod: &Value) -> Vec<&'static str> {
        let mut spec = pod["spec"].clone();
        if spec["containers"].is_null() {
            spec = json!({"containers": [], "volumes": spec["volumes"]});
        }
        let annotations = pod["annotations"].as_object().into_iter().flatten();
        let annotations = annotations.map(|(key, value)| (&**key, value.as_str().unwrap())).collect();
        Needs::names(Needs::of(&serde_json::from_value(spec).unwrap(), &annotations).bits()).collect()
    }

    #[test]
    fn what_is_not_built_is_named() {
        for (pod, expected) in [
            (json!({"spec": {"containers": [], "resourceClaims": [{"name": "c"}]}}), "resource claims"),
            (json!({"annotations": {"scheduling.koordinator.sh/reservation-affinity": "{}"}}), "reservations"),
        ] {
            assert_eq!(needs(&pod), [expected], "{pod}");
        }
        let empty_dir = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
        assert_eq!(needs(&empty_dir), [""; 0]);
        assert_eq!(Needs::names(u64::MAX).count(), NAMES.len());
    }
}
