//! Selecting objects by their labels, as `metav1.LabelSelectorAsSelector` does.

mod structured;
mod text;

use std::{collections::BTreeMap, fmt, slice};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_schema::{go_text::quote, names};

/// Why a selector is refused.
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
    /// Several mistakes in one term.
    #[error("[{}]", joined(.0))]
    Several(Vec<SelectorError>),
}

fn joined(errors: &[SelectorError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl SelectorError {
    /// What is wrong with a list of values.
    pub(crate) fn of_values(values: Option<&[String]>, detail: &str) -> Self {
        let list = |values: &[String]| {
            let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
            format!("[{}]", quoted.join(","))
        };
        let value = values.map_or_else(|| "null".to_owned(), list);
        Self::Invalid { field: "values".to_owned(), value, detail: detail.to_owned() }
    }
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

/// A parsed selector, ready to be evaluated for many objects without copying their labels.
///
/// It is the one engine for labels: of objects that users write ([`Selector::new`]), of objects that are stored
/// already ([`Selector::stored`]), and of the text form of requests ([`Selector::parse`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// All of them must hold.
    terms: Box<[Term]>,
}

/// What a selector says about one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) key: String,
    pub(crate) test: Test,
}

/// What must be so of a label. Lists of values are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    In(Vec<String>),
    /// Also where there is no such label.
    NotIn(Vec<String>),
    Exists,
    Absent,
    /// An integer above this one.
    Above(i64),
    /// An integer below this one.
    Below(i64),
}

impl Selector {
    /// Parses a selector; one that the API server would refuse is refused.
    pub fn new(selector: &LabelSelector) -> Result<Self, SelectorError> {
        check(selector)?;
        Ok(Self::of_terms(terms(selector).collect::<Option<Vec<Term>>>().unwrap_or_default()))
    }

    /// Parses a selector as Koordinator parses those of profiles: labels that stand alone are not checked, and a value that
    /// no label can have selects nothing. One with expressions is refused where the API server would refuse it.
    pub fn lenient(selector: &LabelSelector) -> Result<Self, SelectorError> {
        if selector.match_expressions.iter().flatten().next().is_some() {
            return Self::new(selector);
        }
        Ok(Self::of_terms(terms(selector).flatten().collect()))
    }

    /// Parses a selector of a stored object, which may be older than the rules for keys and values. None where an
    /// operator is unknown: such a selector selects nothing.
    ///
    /// The terms are in the order of their keys, as the API server shows selectors.
    pub fn stored(selector: &LabelSelector) -> Option<Self> {
        let mut terms = terms(selector).collect::<Option<Vec<Term>>>()?;
        terms.sort_by(|one, other| one.key.cmp(&other.key));
        Some(Self::of_terms(terms))
    }

    /// Parses the text form of requests, such as `a=b,c in (d,e),!f`, with the API server's grammar and messages.
    pub fn parse(text: &str) -> Result<Self, String> {
        text::parse(text).map(Self::of_terms)
    }

    pub(crate) fn of_terms(terms: Vec<Term>) -> Self {
        Self { terms: terms.into() }
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// A label that every selected object has, with its value; `None` where no term demands exactly one value. Who keeps objects by labels need not evaluate
    /// the selector for all of them.
    pub fn required_label(&self) -> Option<(&str, &str)> {
        self.terms.iter().find_map(|term| match &term.test {
            Test::In(values) => values.first().filter(|_| values.len() == 1).map(|value| (&*term.key, &**value)),
            _ => None,
        })
    }

    /// Whether an object with these labels is selected.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| term.holds(label(&term.key)))
    }

    /// The same, term by term, for explanations.
    pub fn outcomes<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> Vec<Outcome> {
        let outcome = |term: &Term| {
            let found = label(&term.key);
            let (key, found, holds) = (term.key.clone(), found.map(str::to_owned), term.holds(found));
            Outcome { term: term.to_string(), key, found, holds }
        };
        self.terms.iter().map(outcome).collect()
    }
}

/// The terms of a selector; none in the place of one with an unknown operator.
fn terms(selector: &LabelSelector) -> impl Iterator<Item = Option<Term>> {
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| Some(Term { key: key.clone(), test: Test::In(vec![value.clone()]) }));
    let expressions = selector.match_expressions.iter().flatten().map(|term| {
        let values = || {
            let mut values = term.values.clone().unwrap_or_default();
            values.sort_unstable();
            values.dedup();
            values
        };
        let test = match term.operator.as_str() {
            "In" => Test::In(values()),
            "NotIn" => Test::NotIn(values()),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::Absent,
            _ => return None,
        };
        Some(Term { key: term.key.clone(), test })
    });
    labels.chain(expressions)
}

impl Term {
    /// Whether it holds for an object whose label of this key has this value.
    fn holds(&self, label: Option<&str>) -> bool {
        let among = |values: &[String]| label.is_some_and(|value| values.iter().any(|one| one == value));
        let number = || label.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => among(values),
            Test::NotIn(values) => !among(values),
            Test::Exists => label.is_some(),
            Test::Absent => label.is_none(),
            Test::Above(bound) => number().is_some_and(|value| value > *bound),
            Test::Below(bound) => number().is_some_and(|value| value < *bound),
        }
    }
}

/// As the API server and kubectl write selectors.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::In(values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Test::Exists => f.write_str(key),
            Test::Absent => write!(f, "!{key}"),
            Test::Above(bound) => write!(f, "{key}>{bound}"),
            Test::Below(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// Whether a selector selects an object. An absent selector selects nothing, an empty one everything.
pub fn matches(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> Result<bool, SelectorError> {
    let Some(selector) = selector else { return Ok(false) };
    Ok(Selector::new(selector)?.selects(|key| labels.get(key).map(String::as_str)))
}

/// Refuses a selector that the API server would refuse, with all mistakes of the first term that has any.
pub fn check(selector: &LabelSelector) -> Result<(), SelectorError> {
    for (key, value) in selector.match_labels.iter().flatten() {
        check_term(key, "In", slice::from_ref(value))?;
    }
    for term in selector.match_expressions.iter().flatten() {
        if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&term.operator.as_str()) {
            return Err(SelectorError::Operator(term.operator.clone()));
        }
        check_term(&term.key, &term.operator, term.values.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// Refuses a term for its key, its number of values, and each of them, in this order.
fn check_term(key: &str, operator: &str, values: &[String]) -> Result<(), SelectorError> {
    // The API server's copy of an empty list is absent, and is shown so.
    let list = Some(values).filter(|values| !values.is_empty());
    let values = values.iter().enumerate().filter_map(|(index, value)| check_value(key, index, value).err());
    let whole = check_key(key).err().into_iter().chain(check_values(operator, list).err());
    let mut mistakes: Vec<SelectorError> = whole.chain(values).collect();
    if mistakes.len() > 1 {
        return Err(SelectorError::Several(mistakes));
    }
    mistakes.pop().map_or(Ok(()), Err)
}

/// Refuses a list of values that does not go with the operator.
pub(crate) fn check_values(operator: &str, values: Option<&[String]>) -> Result<(), SelectorError> {
    let is_empty = values.is_none_or(<[String]>::is_empty);
    let detail = match operator {
        "In" | "NotIn" if is_empty => "for 'in', 'notin' operators, values set can't be empty",
        "Exists" | "DoesNotExist" if !is_empty => "values set must be empty for exists and does not exist",
        _ => return Ok(()),
    };
    Err(SelectorError::of_values(values, detail))
}

pub(crate) fn check_key(key: &str) -> Result<(), SelectorError> {
    let details = names::qualified_name(key);
    if details.is_empty() {
        return Ok(());
    }
    Err(SelectorError::Invalid { field: "key".to_owned(), value: quote(key), detail: details.join("; ") })
}

pub(crate) fn check_value(key: &str, index: usize, value: &str) -> Result<(), SelectorError> {
    let details = names::label_value(value);
    if details.is_empty() {
        return Ok(());
    }
    let field = format!("values[{index}][{key}]");
    Err(SelectorError::Invalid { field, value: quote(value), detail: details.join("; ") })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(json: Value) -> LabelSelector {
        serde_json::from_value(json).unwrap()
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
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
    fn a_stored_selector_is_older_than_the_rules_for_values() {
        let stored = |json: Value| Selector::stored(&selector(json)).map(|selector| selector.to_string());
        let odd = json!({"matchExpressions": [{"key": "b", "operator": "In", "values": ["y", "-", "y"]}, {"key": "a", "operator": "Exists"}]});
        assert_eq!(stored(odd.clone()).as_deref(), Some("a,b in (-,y)"));
        assert!(Selector::new(&selector(odd)).is_err());
        assert_eq!(stored(json!({"matchExpressions": [{"key": "a", "operator": "Nope"}]})), None);
        assert!(Selector::stored(&LabelSelector::default()).is_some_and(|selector| selector.is_everything()));
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
                "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
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
    fn all_mistakes_of_a_term_are_named_and_those_of_later_terms_are_not() {
        const KEY: &str = "key: Invalid value: \"-\": name part must consist of";
        const EMPTY: &str = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty";
        const FULL: &str = r#"values: Invalid value: ["_"]: values set must be empty for exists and does not exist"#;
        const VALUE: &str = "values[0][-]: Invalid value: \"_\": a valid label must be";
        const LAST: &str = "values[2][a]: Invalid value: \"-\": a valid label must be";
        let expression = |key: &str, operator: &str, values: &[&str]| {
            let terms =
                [json!({"key": key, "operator": operator, "values": values}), json!({"key": "", "operator": "In"})];
            json!({ "matchExpressions": terms })
        };
        for (json, expected) in [
            (expression("-", "In", &[]), &[KEY, EMPTY][..]),
            (expression("-", "Exists", &["_"]), &[KEY, FULL, VALUE]),
            (expression("-", "NotIn", &["_", "a"]), &[KEY, VALUE]),
            (expression("a", "DoesNotExist", &["", "b", "-"]), &["values: Invalid value: [", LAST]),
            (json!({"matchLabels": {"-": "_", "a": "-"}}), &[KEY, VALUE]),
        ] {
            let error = check(&selector(json)).unwrap_err();
            let SelectorError::Several(mistakes) = &error else { panic!("{error}") };
            let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            assert_eq!(texts.len(), expected.len(), "{error}");
            assert!(texts.iter().zip(expected).all(|(text, start)| text.starts_with(start)), "{error}");
            assert_eq!(error.to_string(), format!("[{}]", texts.join(", ")));
        }
        let unknown = check(&selector(expression("-", "Nope", &["_"])));
        assert_eq!(unknown, Err(SelectorError::Operator("Nope".to_owned())), "nothing else is said of such a term");
    }

    #[test]
    fn labels_that_stand_alone_are_not_checked_where_a_selector_is_parsed_leniently() {
        let odd = json!({"matchLabels": {"a": "no label: @", "-": "x"}});
        let lenient = Selector::lenient(&selector(odd.clone())).unwrap();
        assert_eq!(lenient.to_string(), "-=x,a=no label: @");
        assert!(!lenient.selects(|_| Some("x")));
        let mut beside_expressions = odd;
        beside_expressions["matchExpressions"] = json!([{"key": "b", "operator": "Exists"}]);
        assert!(Selector::lenient(&selector(beside_expressions)).is_err());
        assert!(Selector::lenient(&LabelSelector::default()).is_ok_and(|selector| selector.is_everything()));
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
        let reported: Vec<_> =
            outcomes.iter().map(|one| (one.term.as_str(), one.found.as_deref(), one.holds)).collect();
        assert_eq!(
            reported,
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
