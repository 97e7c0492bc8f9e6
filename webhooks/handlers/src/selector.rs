//! Label selectors, prepared once per profile and evaluated per pod without copying labels.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A label selector that is ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selector {
    /// Selects everything.
    All,
    /// Cannot be understood. QUIRK: it selects everything, as recorded (`selector-in-without-values`).
    Malformed,
    /// Selects by these terms together.
    Terms(Box<[Term]>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// An absent selector selects everything, as an empty one does.
    pub(crate) fn of(selector: Option<&LabelSelector>) -> Self {
        let Some(selector) = selector else { return Self::All };
        let labels = selector.match_labels.iter().flatten();
        let mut terms: Vec<Term> = labels.map(|(key, value)| Term::In(key.clone(), vec![value.clone()])).collect();
        for expression in selector.match_expressions.iter().flatten() {
            let (key, values) = (expression.key.clone(), expression.values.clone().unwrap_or_default());
            terms.push(match (expression.operator.as_str(), values.is_empty()) {
                ("In", false) => Term::In(key, values),
                ("NotIn", false) => Term::NotIn(key, values),
                ("Exists", true) => Term::Exists(key),
                ("DoesNotExist", true) => Term::Absent(key),
                _ => return Self::Malformed,
            });
        }
        if terms.is_empty() { Self::All } else { Self::Terms(terms.into_boxed_slice()) }
    }

    /// Whether labels are selected.
    pub(crate) fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let Self::Terms(terms) = self else { return true };
        let among =
            |key: &str, values: &[String]| label(key).is_some_and(|value| values.iter().any(|one| one == value));
        terms.iter().all(|term| match term {
            Term::In(key, values) => among(key, values),
            Term::NotIn(key, values) => !among(key, values),
            Term::Exists(key) => label(key).is_some(),
            Term::Absent(key) => label(key).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selects(selector: &Value, labels: &[(&str, &'static str)]) -> bool {
        let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        Selector::of(Some(&selector)).selects(label)
    }

    #[test]
    fn terms_hold_together() {
        let term = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        assert!(selects(&term("In", &["a", "b"]), &[("tier", "b")]));
        assert!(!selects(&term("In", &["a", "b"]), &[("tier", "c")]));
        assert!(selects(&term("NotIn", &["a"]), &[]));
        assert!(!selects(&term("NotIn", &["a"]), &[("tier", "a")]));
        assert!(selects(&term("Exists", &[]), &[("tier", "")]));
        assert!(selects(&term("DoesNotExist", &[]), &[("other", "a")]));
        let both = json!({"matchLabels": {"x": "1"}, "matchExpressions": [{"key": "y", "operator": "Exists"}]});
        assert!(selects(&both, &[("x", "1"), ("y", "")]));
        assert!(!selects(&both, &[("x", "1")]));
    }

    #[test]
    fn nothing_said_and_nothing_understood_select_everything() {
        assert!(Selector::of(None).selects(|_| None));
        assert!(selects(&json!({}), &[]));
        assert!(selects(&json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}), &[]));
        assert!(selects(&json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]}), &[]));
    }
}
