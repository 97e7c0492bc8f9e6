//! Which nodes a pod's `nodeSelector` and node affinity allow and prefer.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PreferredSchedulingTerm};

use koord_schema::go_text::quote;

use crate::{
    Selector,
    selector::{SelectorError, Term, Test, check_key, check_value, check_values},
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
        Self::parse(term).ok().flatten()
    }

    /// Parses terms; none of those that say nothing. The error names all requirements that cannot be parsed, as client-go does.
    pub fn all(terms: &[NodeSelectorTerm]) -> Result<Box<[Self]>, String> {
        let (mut parsed, mut wrong) = (Vec::new(), Vec::new());
        for (index, term) in terms.iter().enumerate() {
            match Self::parse(term) {
                Ok(term) => parsed.extend(term),
                Err(errors) => wrong.extend(errors.iter().map(|error| format!("nodeSelectorTerms[{index}].{error}"))),
            }
        }
        match wrong.as_slice() {
            [] => Ok(parsed.into()),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    fn parse(term: &NodeSelectorTerm) -> Result<Option<Self>, Vec<String>> {
        let labels = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        if labels.is_empty() && fields.is_empty() {
            return Ok(None);
        }
        let (labels, mut wrong) = all_of(labels, "matchExpressions", requirement);
        let (fields, more) = all_of(fields, "matchFields", field);
        wrong.extend(more);
        if wrong.is_empty() {
            Ok(Some(Self { labels: Selector::of_terms(labels), fields: Selector::of_terms(fields) }))
        } else {
            Err(wrong)
        }
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

/// Parses the requirements of a list; what is wrong with the others begins with the path in the term.
fn all_of(
    list: &[NodeSelectorRequirement],
    name: &str,
    parse: fn(&NodeSelectorRequirement) -> Result<Term, Vec<String>>,
) -> (Vec<Term>, Vec<String>) {
    let (mut terms, mut wrong) = (Vec::new(), Vec::new());
    for (index, requirement) in list.iter().enumerate() {
        match parse(requirement) {
            Ok(term) => terms.push(term),
            Err(errors) => wrong.extend(errors.iter().map(|error| format!("{name}[{index}].{error}"))),
        }
    }
    (terms, wrong)
}

/// A test of a label. What no label can be or have makes the term hold for no node.
fn requirement(requirement: &NodeSelectorRequirement) -> Result<Term, Vec<String>> {
    const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let operator = requirement.operator.as_str();
    if !OPERATORS.contains(&operator) {
        // That is all that is said.
        return Err(vec![unsupported(operator, &OPERATORS)]);
    }
    let (key, test) = (check_key(&requirement.key).err(), test(requirement));
    let values = requirement.values.iter().flatten().enumerate();
    let of_values = values.filter_map(|(index, value)| check_value(&requirement.key, index, value).err());
    let wrong: Vec<String> = key
        .iter()
        .chain(test.as_ref().err().into_iter().flatten())
        .map(ToString::to_string)
        .chain(of_values.map(|error| error.to_string()))
        .collect();
    match test {
        Ok(test) if wrong.is_empty() => Ok(Term { key: requirement.key.clone(), test }),
        _ => Err(wrong),
    }
}

/// The test of an operator that exists.
fn test(requirement: &NodeSelectorRequirement) -> Result<Test, Vec<SelectorError>> {
    let values = requirement.values.as_deref();
    check_values(&requirement.operator, values).map_err(|error| vec![error])?;
    let values = || values.unwrap_or_default().to_vec();
    Ok(match requirement.operator.as_str() {
        "In" => Test::In(values()),
        "NotIn" => Test::NotIn(values()),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        "Gt" => Test::Above(bound(requirement.values.as_deref())?),
        _ => Test::Below(bound(requirement.values.as_deref())?),
    })
}

/// The number that others are compared with.
fn bound(values: Option<&[String]>) -> Result<i64, Vec<SelectorError>> {
    let (mut bounds, mut wrong) = (Vec::new(), Vec::new());
    let numbered = values.unwrap_or_default();
    if numbered.len() != 1 {
        wrong.push(SelectorError::of_values(values, "for 'Gt', 'Lt' operators, exactly one value is required"));
    }
    for (index, value) in numbered.iter().enumerate() {
        match value.parse::<i64>() {
            Ok(bound) => bounds.push(bound),
            Err(_) => wrong.push(SelectorError::Invalid {
                field: format!("values[{index}]"),
                value: quote(value),
                detail: "for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
            }),
        }
    }
    match (bounds.first(), wrong.is_empty()) {
        (Some(bound), true) => Ok(*bound),
        _ => Err(wrong),
    }
}

/// Of fields only the name is known, and it is compared with one value.
fn field(field: &NodeSelectorRequirement) -> Result<Term, Vec<String>> {
    let wrong = match (field.operator.as_str(), field.values.as_deref().unwrap_or_default()) {
        ("In", [name]) if field.key == NAME => {
            return Ok(Term { key: field.key.clone(), test: Test::In(vec![name.clone()]) });
        }
        ("NotIn", [name]) if field.key == NAME => {
            return Ok(Term { key: field.key.clone(), test: Test::NotIn(vec![name.clone()]) });
        }
        ("In" | "NotIn", [_]) => format!("key: Invalid value: {}: not a valid field selector key", quote(&field.key)),
        ("In" | "NotIn", values) => SelectorError::of_values(Some(values), "must have one element").to_string(),
        (other, _) => unsupported(other, &["In", "NotIn"]),
    };
    Err(vec![wrong])
}

fn unsupported(operator: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|operator| quote(operator)).collect();
    format!("operator: Unsupported value: {}: supported values: {}", quote(operator), known.join(", "))
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
    fn what_cannot_be_parsed_is_named_with_its_path() {
        let parsed = |terms: Value| {
            let terms: Vec<NodeSelectorTerm> = serde_json::from_value(terms).unwrap();
            NodeTerm::all(&terms).map(|terms| terms.len())
        };
        let labels = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let fields = |key: &str, operator: &str, values: &[&str]| json!({"matchFields": [{"key": key, "operator": operator, "values": values}]});
        assert_eq!(parsed(json!([{}, labels("k", "In", &["v"])])), Ok(1));
        let path = "nodeSelectorTerms[0].matchExpressions[0]";
        for (term, expected) in [
            (
                labels("k", "Foo", &["v"]),
                r#"operator: Unsupported value: "Foo": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#,
            ),
            (
                labels("k", "In", &[]),
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                labels("k", "Exists", &["v"]),
                r#"values: Invalid value: ["v"]: values set must be empty for exists and does not exist"#,
            ),
            (
                labels("k", "Gt", &["1", "2"]),
                r#"values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, exactly one value is required"#,
            ),
            (
                labels("k", "Lt", &["x"]),
                r#"values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#,
            ),
        ] {
            assert_eq!(parsed(json!([term])), Err(format!("{path}.{expected}")));
        }
        let both = parsed(json!([labels("k", "Gt", &["1", "x"])])).unwrap_err();
        let number = r#"values: Invalid value: ["1","x"]: for 'Gt', 'Lt' operators, exactly one value is required"#;
        let integer = r#"values[1]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#;
        assert_eq!(both, format!("[{path}.{number}, {path}.{integer}]"));
        let value = parsed(json!([labels("k", "In", &["-"])])).unwrap_err();
        assert!(
            value.starts_with(&format!("{path}.values[0][k]: Invalid value: \"-\": a valid label must be")),
            "{value}"
        );
        let path = "nodeSelectorTerms[0].matchFields[0]";
        for (term, expected) in [
            (fields("metadata.name", "In", &[]), "values: Invalid value: []: must have one element"),
            (
                fields("metadata.name", "Gt", &["1"]),
                r#"operator: Unsupported value: "Gt": supported values: "In", "NotIn""#,
            ),
        ] {
            assert_eq!(parsed(json!([term])), Err(format!("{path}.{expected}")));
        }
        let both = parsed(json!([labels("k", "In", &[]), {}, labels("k", "Foo", &[])])).unwrap_err();
        assert!(both.starts_with("[nodeSelectorTerms[0].") && both.contains(", nodeSelectorTerms[2]."), "{both}");
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
