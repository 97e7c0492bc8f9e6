//! Selecting objects by their labels, as `metav1.LabelSelectorAsSelector` does.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::schema::go_text::quote;

use crate::protocol::Labels;

/// Why a selector selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// An operator that does not exist.
    #[error("{} is not a valid label selector operator", quote(.0))]
    Operator(String),
    /// A key or value that cannot be a label's, or a list of values that does not go with the operator.
    #[error("{field}: Invalid value: {value}: {detail}")]
    Invalid {
        /// `key` or `values[0][key]`.
        field: String,
        /// The value as Kubernetes shows it.
        value: String,
        /// What would be right.
        detail: String,
    },
}

/// Whether a term of a selector holds for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The term, such as `tier in (web, db)`.
    pub term: String,
    /// The label's key.
    pub key: String,
    /// The label's value; none where the object has no such label.
    pub found: Option<String>,
    /// Whether the term holds.
    pub holds: bool,
}

/// A selector that was understood, ready to be evaluated for many objects without copying their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// All of them must hold.
    terms: Box<[Term]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// Understands a selector.
    pub fn new(selector: &LabelSelector) -> Result<Self, SelectorError> {
        check(selector)?;
        let labels = selector.match_labels.iter().flatten();
        let labels = labels.map(|(key, value)| Term::In(key.clone(), vec![value.clone()]));
        let expressions = selector.match_expressions.iter().flatten().map(|term| {
            let (key, values) = (term.key.clone(), term.values.clone().unwrap_or_default());
            match term.operator.as_str() {
                "In" => Term::In(key, values),
                "NotIn" => Term::NotIn(key, values),
                "Exists" => Term::Exists(key),
                _ => Term::Absent(key),
            }
        });
        Ok(Self { terms: labels.chain(expressions).collect() })
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object with these labels is selected. An object without a label is not in any set, so `NotIn`
    /// selects it.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| term.holds(label(term.key())))
    }

    /// The same, term by term, for whoever wants to know why.
    pub fn outcomes<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> Vec<Outcome> {
        let outcome = |term: &Term| {
            let found = label(term.key());
            let (key, found, holds) = (term.key().to_owned(), found.map(str::to_owned), term.holds(found));
            Outcome { term: term.to_string(), key, found, holds }
        };
        self.terms.iter().map(outcome).collect()
    }
}

impl Term {
    fn key(&self) -> &str {
        match self {
            Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::Absent(key) => key,
        }
    }

    /// Whether it holds for an object whose label of this key has this value.
    fn holds(&self, label: Option<&str>) -> bool {
        let among = |values: &[String]| label.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::In(_, values) => among(values),
            Self::NotIn(_, values) => !among(values),
            Self::Exists(_) => label.is_some(),
            Self::Absent(_) => label.is_none(),
        }
    }
}

/// As kubectl writes selectors.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Self::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(",")),
            Self::Exists(key) => f.write_str(key),
            Self::Absent(key) => write!(f, "!{key}"),
        }
    }
}

/// Whether a selector selects an object. An absent selector selects nothing, an empty one everything.
pub fn matches(selector: Option<&LabelSelector>, labels: &Labels) -> Result<bool, SelectorError> {
    let Some(selector) = selector else { return Ok(false) };
    Ok(Selector::new(selector)?.selects(|key| labels.get(key).map(String::as_str)))
}

/// Whether the API server would understand a selector.
pub fn check(selector: &LabelSelector) -> Result<(), SelectorError> {
    for (key, value) in selector.match_labels.iter().flatten() {
        check_key(key)?;
        check_value(key, 0, value)?;
    }
    for term in selector.match_expressions.iter().flatten() {
        let values = term.values.as_deref().unwrap_or_default();
        match term.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                return Err(SelectorError::Invalid {
                    field: "values".to_owned(),
                    value: if term.values.is_some() { "[]" } else { "null" }.to_owned(),
                    detail: "for 'in', 'notin' operators, values set can't be empty".to_owned(),
                });
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let shown: Vec<String> = values.iter().map(|value| quote(value)).collect();
                return Err(SelectorError::Invalid {
                    field: "values".to_owned(),
                    value: format!("[{}]", shown.join(",")),
                    detail: "values set must be empty for exists and does not exist".to_owned(),
                });
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => return Err(SelectorError::Operator(other.to_owned())),
        }
        check_key(&term.key)?;
        for (index, value) in values.iter().enumerate() {
            check_value(&term.key, index, value)?;
        }
    }
    Ok(())
}

const NAME_DETAIL: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX_DETAIL: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_DETAIL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check_key(key: &str) -> Result<(), SelectorError> {
    let details = qualified_name_errors(key);
    if details.is_empty() {
        return Ok(());
    }
    Err(SelectorError::Invalid { field: "key".to_owned(), value: quote(key), detail: details.join("; ") })
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), SelectorError> {
    let mut details = Vec::new();
    if value.len() > 63 {
        details.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        details.push(VALUE_DETAIL.to_owned());
    }
    if details.is_empty() {
        return Ok(());
    }
    Err(SelectorError::Invalid {
        field: format!("values[{index}][{key}]"),
        value: quote(value),
        detail: details.join("; "),
    })
}

/// What is wrong with the key of a label or annotation.
pub fn qualified_name_errors(key: &str) -> Vec<String> {
    let mut details = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            details.push("a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')".to_owned());
            return details;
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                details.push("prefix part must be non-empty".to_owned());
            } else if !is_subdomain(prefix) {
                details.push(PREFIX_DETAIL.to_owned());
            }
            name
        }
    };
    if name.is_empty() {
        details.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        details.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        details.push(NAME_DETAIL.to_owned());
    }
    details
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inner)
}

fn is_subdomain(text: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let ends = |byte: Option<&u8>| byte.is_some_and(|byte| lower(*byte));
        ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|byte| lower(*byte) || *byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(json: Value) -> LabelSelector {
        serde_json::from_value(json).unwrap()
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn absent_selects_nothing_and_empty_everything() {
        assert_eq!(matches(None, &labels(&[])), Ok(false));
        assert_eq!(matches(Some(&selector(json!({}))), &labels(&[("a", "b")])), Ok(true));
    }

    #[test]
    fn every_condition_must_hold() {
        let node = labels(&[("pool", "a"), ("rack", "1")]);
        for (json, expected) in [
            (json!({"matchLabels": {"pool": "a"}}), true),
            (json!({"matchLabels": {"pool": "b"}}), false),
            (json!({"matchLabels": {"pool": "a", "zone": "x"}}), false),
            (json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b", "a"]}]}), true),
            (json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x"]}]}), true),
            (json!({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}), false),
            (
                json!({"matchExpressions": [{"key": "rack", "operator": "Exists"}, {"key": "zone", "operator": "DoesNotExist"}]}),
                true,
            ),
            (json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), false),
        ] {
            assert_eq!(matches(Some(&selector(json.clone())), &node), Ok(expected), "{json}");
        }
    }

    #[test]
    fn wrong_selectors_are_refused() {
        for (json, error) in [
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Nope"}]}),
                "\"Nope\" is not a valid label selector operator",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]}),
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (json!({"matchLabels": {"": "x"}}), "key: Invalid value: \"\": name part must be non-empty"),
            (json!({"matchLabels": {"a": "-"}}), "values[0][a]: Invalid value: \"-\": a valid label must be"),
            (
                json!({"matchLabels": {"A/b": "c"}}),
                "key: Invalid value: \"A/b\": prefix part a lowercase RFC 1123 subdomain",
            ),
        ] {
            let text = matches(Some(&selector(json)), &labels(&[])).unwrap_err().to_string();
            assert!(text.starts_with(error), "{text}");
        }
    }

    #[test]
    fn every_term_says_what_it_found() {
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["x", "y"]}, {"key": "c", "operator": "NotIn", "values": ["z"]},
            {"key": "d", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"},
        ]});
        let selector = Selector::new(&serde_json::from_value(selector).unwrap()).unwrap();
        let labels = [("a", "2"), ("b", "y")];
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let outcomes = selector.outcomes(label);
        let told: Vec<_> = outcomes.iter().map(|one| (one.term.as_str(), one.found.as_deref(), one.holds)).collect();
        assert_eq!(
            told,
            [
                ("a=1", Some("2"), false),
                ("b in (x,y)", Some("y"), true),
                ("c notin (z)", None, true),
                ("d", None, false),
                ("!a", Some("2"), false),
            ]
        );
        assert!(!selector.selects(label));
    }
}
