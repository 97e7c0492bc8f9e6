//! Which taints of a node a pod tolerates.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They are not scheduled there.
    NoSchedule,
    /// They are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// They are not scheduled there, and those that run there are evicted.
    NoExecute,
}

impl Effect {
    /// Effects that keep a pod away from a node.
    pub const HARD: [Self; 2] = [Self::NoSchedule, Self::NoExecute];

    /// The text in a taint.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// Whether a toleration is about a taint. An empty effect is about all effects, an empty key with `Exists` about all
/// keys.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        "Exists" => true,
        _ => false,
    }
}

/// The first taint with one of these effects that no toleration is about.
pub fn untolerated<'t>(taints: &'t [Taint], tolerations: &[Toleration], effects: &[Effect]) -> Option<&'t Taint> {
    let counts = |taint: &&Taint| effects.iter().any(|effect| effect.as_str() == taint.effect);
    taints.iter().filter(counts).find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn taint(effect: &str) -> Taint {
        serde_json::from_value(json!({"key": "gpu", "value": "a100", "effect": effect})).unwrap()
    }

    #[test]
    fn a_toleration_is_about_keys_values_and_effects() {
        let tolerated =
            |toleration: Value| tolerates(&serde_json::from_value(toleration).unwrap(), &taint("NoSchedule"));
        for toleration in [
            json!({"operator": "Exists"}),
            json!({"key": "gpu", "operator": "Exists"}),
            json!({"key": "gpu", "value": "a100"}),
            json!({"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}),
            json!({"operator": "Exists", "effect": "NoSchedule"}),
        ] {
            assert!(tolerated(toleration.clone()), "{toleration}");
        }
        for toleration in [
            json!({"key": "gpu", "value": "h100"}),
            json!({"key": "gpu"}),
            json!({"key": "cpu", "operator": "Exists"}),
            json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}),
            json!({"key": "gpu", "operator": "Like", "value": "a100"}),
            json!({}),
        ] {
            assert!(!tolerated(toleration.clone()), "{toleration}");
        }
    }

    #[test]
    fn the_first_taint_that_counts_and_is_not_tolerated_is_found() {
        let taints = [taint("PreferNoSchedule"), taint("NoExecute"), taint("NoSchedule")];
        let found = |tolerations: &[Toleration], effects: &[Effect]| {
            untolerated(&taints, tolerations, effects).map(|taint| taint.effect.clone())
        };
        assert_eq!(found(&[], &Effect::HARD).as_deref(), Some("NoExecute"));
        let of = |effect: &str| serde_json::from_value(json!({"operator": "Exists", "effect": effect})).unwrap();
        assert_eq!(found(&[of("NoExecute")], &Effect::HARD).as_deref(), Some("NoSchedule"));
        assert_eq!(found(&[of("")], &Effect::HARD), None);
        assert_eq!(found(&[of("NoExecute")], &[Effect::PreferNoSchedule]).as_deref(), Some("PreferNoSchedule"));
    }
}
