//! Which nodes a pod's `nodeSelector` and node affinity allow and prefer.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PreferredSchedulingTerm};

use koord_schema::names;

use crate::{
    Selector,
    selector::{Term, Test},
};

/// The field by which a term selects a node by its name.
const NAME: &str = "metadata.name";

/// The nodes that a pod may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAffinity {
    labels: Selector,
    /// One of them must hold, where there are any. A term that cannot be parsed holds for no node.
    required: Option<Box<[NodeTerm]>>,
    /// The names of the nodes that can be allowed at all; none where that is not a matter of names.
    names: Option<BTreeSet<Box<str>>>,
}

/// One term: all that it says about labels and fields must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTerm {
    labels: Selector,
    fields: Selector,
}

impl NodeTerm {
    /// Parses a term; none where it holds for no node: it says nothing, or a requirement cannot be parsed.
    pub fn new(term: &NodeSelectorTerm) -> Option<Self> {
        let labels = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        if labels.is_empty() && fields.is_empty() {
            return None;
        }
        let labels: Option<Vec<Term>> = labels.iter().map(requirement).collect();
        let fields: Option<Vec<Term>> = fields.iter().map(field).collect();
        Some(Self { labels: Selector::of_terms(labels?), fields: Selector::of_terms(fields?) })
    }

    /// Whether it holds for a node.
    pub fn selects<'a>(&self, name: &str, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.labels.selects(label) && self.fields.selects(|_| Some(name))
    }
}

impl NodeAffinity {
    /// What a pod requires of its node.
    pub fn required(spec: &PodSpec) -> Self {
        let equal = |(key, value): (&String, &String)| Term { key: key.clone(), test: Test::In(vec![value.clone()]) };
        let labels = spec.node_selector.iter().flatten().map(equal).collect();
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        Self {
            labels: Selector::of_terms(labels),
            required: required.map(|required| required.node_selector_terms.iter().filter_map(NodeTerm::new).collect()),
            names: required.and_then(|required| names_in(&required.node_selector_terms)),
        }
    }

    /// Whether every node is allowed.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.required.is_none()
    }

    /// Whether a node is allowed.
    pub fn selects<'a>(&self, name: &str, label: impl Fn(&str) -> Option<&'a str> + Copy) -> bool {
        self.labels.selects(label)
            && self.required.as_ref().is_none_or(|terms| terms.iter().any(|term| term.selects(name, label)))
    }

    /// The names of the nodes that can be allowed at all; none where that is not a matter of names.
    pub fn names(&self) -> Option<&BTreeSet<Box<str>>> {
        self.names.as_ref()
    }
}

/// The nodes that a pod prefers, with weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreferredNodes(Box<[(i64, NodeTerm)]>);

impl PreferredNodes {
    /// What a pod prefers. Terms without a weight, and those that hold for no node, count nothing.
    pub fn new(terms: &[PreferredSchedulingTerm]) -> Self {
        let weighted = terms.iter().filter(|term| term.weight != 0);
        Self(weighted.filter_map(|term| Some((i64::from(term.weight), NodeTerm::new(&term.preference)?))).collect())
    }

    /// Whether no node is preferred.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum of the weights of the terms that hold for a node.
    pub fn score<'a>(&self, name: &str, label: impl Fn(&str) -> Option<&'a str> + Copy) -> i64 {
        self.0.iter().filter(|(_, term)| term.selects(name, label)).map(|(weight, _)| weight).sum()
    }
}

/// The names that the terms allow, as they are written; none where one of them does not say, and without terms.
fn names_in(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<Box<str>>> {
    let of_term = |term: &NodeSelectorTerm| {
        let lists = term.match_fields.iter().flatten().filter(|field| field.key == NAME && field.operator == "In");
        let sets = lists.map(|field| field.values.iter().flatten().map(|name| Box::from(&**name)).collect());
        sets.reduce(|known: BTreeSet<Box<str>>, more| known.intersection(&more).cloned().collect())
    };
    let names: Vec<BTreeSet<Box<str>>> = terms.iter().map(of_term).collect::<Option<_>>()?;
    (!names.is_empty()).then(|| names.into_iter().flatten().collect())
}

/// A test of a label. What no label can be or have makes the term hold for no node.
fn requirement(requirement: &NodeSelectorRequirement) -> Option<Term> {
    let values = requirement.values.clone().unwrap_or_default();
    let is_valid = |value: &String| names::label_value(value).is_empty();
    if !names::qualified_name(&requirement.key).is_empty() || !values.iter().all(is_valid) {
        return None;
    }
    test(requirement, values)
}

fn test(requirement: &NodeSelectorRequirement, values: Vec<String>) -> Option<Term> {
    let bound = || match values.as_slice() {
        [bound] => bound.parse::<i64>().ok(),
        _ => None,
    };
    let test = match requirement.operator.as_str() {
        "In" if !values.is_empty() => Test::In(values),
        "NotIn" if !values.is_empty() => Test::NotIn(values),
        "Exists" if values.is_empty() => Test::Exists,
        "DoesNotExist" if values.is_empty() => Test::Absent,
        "Gt" => Test::Above(bound()?),
        "Lt" => Test::Below(bound()?),
        _ => return None,
    };
    Some(Term { key: requirement.key.clone(), test })
}

/// Of fields only the name is known, and it is compared with one value.
fn field(field: &NodeSelectorRequirement) -> Option<Term> {
    let one = field.values.as_ref().is_some_and(|values| values.len() == 1);
    let operator = matches!(field.operator.as_str(), "In" | "NotIn");
    (field.key == NAME && one && operator).then(|| test(field, field.values.clone().unwrap_or_default())).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LABELS: [(&str, &str); 3] = [("zone", "a"), ("cpus", "16"), ("empty", "")];

    fn label(key: &str) -> Option<&'static str> {
        LABELS.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn affinity(terms: &Value) -> NodeAffinity {
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        let spec = json!({"containers": [], "affinity": {"nodeAffinity": required}});
        NodeAffinity::required(&serde_json::from_value(spec).unwrap())
    }

    fn holds(term: &Value) -> bool {
        affinity(&json!([term])).selects("n1", label)
    }

    #[test]
    fn every_operator_selects_nodes_by_their_labels() {
        let expression = |key: &str, operator: &str, values: &[&str]| {
            holds(&json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        for (key, operator, values) in [
            ("zone", "In", &["b", "a"][..]),
            ("zone", "NotIn", &["b"]),
            ("rack", "NotIn", &["b"]),
            ("zone", "Exists", &[]),
            ("rack", "DoesNotExist", &[]),
            ("cpus", "Gt", &["15"]),
            ("cpus", "Lt", &["17"]),
        ] {
            assert!(expression(key, operator, values), "{key} {operator} {values:?}");
        }
        for (key, operator, values) in [
            ("zone", "In", &["b"][..]),
            ("zone", "NotIn", &["a"]),
            ("rack", "Exists", &[]),
            ("cpus", "Gt", &["16"]),
            ("cpus", "Lt", &["16"]),
            ("zone", "Gt", &["1"]),
            ("rack", "Lt", &["1"]),
            // What cannot be parsed holds for no node.
            ("zone", "In", &[]),
            ("rack", "NotIn", &[]),
            ("zone", "Exists", &["a"]),
            ("cpus", "Gt", &["x"]),
            ("cpus", "Gt", &["1", "2"]),
            ("zone", "Near", &["a"]),
            ("zone", "NotIn", &["no label: @"]),
            ("zone of a", "DoesNotExist", &[]),
        ] {
            assert!(!expression(key, operator, values), "{key} {operator} {values:?}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_selects_nothing() {
        assert!(NodeAffinity::default().selects("n1", label));
        assert!(!affinity(&json!([])).selects("n1", label));
        assert!(!holds(&json!({})));
        let zone = |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        assert!(affinity(&json!([zone("b"), {}, zone("a")])).selects("n1", label));
    }

    #[test]
    fn fields_select_by_name() {
        let named = |operator: &str, names: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": operator, "values": names}]});
        assert!(holds(&named("In", &["n1"])) && holds(&named("NotIn", &["n2"])));
        assert!(!holds(&named("In", &["n2"])) && !holds(&named("In", &["n1", "n2"])) && !holds(&named("Exists", &[])));
        let names = |terms: &Value| {
            affinity(terms).names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&json!([named("In", &["b"]), named("In", &["a"])])),
            Some(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(names(&json!([named("In", &["b"]), named("NotIn", &["a"])])), None);
        let both = json!([{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["a"]},
            {"key": "metadata.name", "operator": "In", "values": ["b"]},
        ]}]);
        assert_eq!(names(&both), Some(vec![]), "both must hold");
        assert_eq!(names(&json!([{}])), None, "a term that holds for no node is about no name");
        assert_eq!(names(&json!([named("In", &["b"]), {}])), None, "nor are those beside it");
        assert_eq!(NodeAffinity::default().names(), None);
    }

    #[test]
    fn the_node_selector_must_hold_too_and_preferences_add_up() {
        let spec = json!({"containers": [], "nodeSelector": {"zone": "a", "empty": ""}});
        assert!(NodeAffinity::required(&serde_json::from_value(spec).unwrap()).selects("n1", label));
        let spec = json!({"containers": [], "nodeSelector": {"zone": "b"}});
        assert!(!NodeAffinity::required(&serde_json::from_value(spec).unwrap()).selects("n1", label));
        let preference = |weight: i32, key: &str| json!({"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}});
        let terms = json!([preference(5, "zone"), preference(7, "rack"), preference(2, "cpus"), {"weight": 9, "preference": {}}]);
        assert_eq!(PreferredNodes::new(&serde_json::from_value::<Vec<_>>(terms).unwrap()).score("n1", label), 7);
    }
}
