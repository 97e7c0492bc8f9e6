//! What a pod needs that the scheduler cannot give it yet. Such a pod is refused with that reason, and never placed wrongly.

use k8s_openapi::api::core::v1::PodSpec;

/// A set of needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs(u64);

/// The names of the needs, each with its bit: what a user would look for.
const NAMES: &[&str] = &["resource claims"];

impl Needs {
    /// No need.
    pub const NONE: Self = Self(0);
    /// Resource claims.
    pub const CLAIMS: Self = Self(1);

    /// The needs of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those needs that are in the other set too.
    pub const fn among(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What a pod needs by its spec.
    pub fn of(spec: &PodSpec) -> Self {
        if spec.resource_claims.iter().flatten().next().is_some() { Self::CLAIMS } else { Self::NONE }
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

    fn needs(spec: Value) -> Vec<&'static str> {
        Needs::names(Needs::of(&serde_json::from_value(spec).unwrap()).bits()).collect()
    }

    #[test]
    fn what_is_not_built_is_named() {
        assert_eq!(needs(json!({"containers": [], "resourceClaims": [{"name": "c"}]})), ["resource claims"]);
        assert_eq!(needs(json!({"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]})), [""; 0]);
        assert_eq!(Needs::names(u64::MAX).count(), NAMES.len());
    }
}
