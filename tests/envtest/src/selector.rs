//! Label and field selectors, parsed with the API server's grammar and messages.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use crate::store::Record;

/// A parsed label selector; the empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<LabelRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    operator: LabelOperator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelOperator {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

/// A parsed field selector; the empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Field, value, and whether the value must be equal (or must not).
    pub requirements: Vec<FieldRequirement>,
}

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path of the field, such as `spec.nodeName`.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// Whether the field must be equal, or must differ.
    pub equal: bool,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Reads the text form, such as `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: lex(text), at: 0 };
        let requirements = parser.requirements()?;
        Ok(Self { requirements })
    }

    /// Reads the object form: `matchLabels` and `matchExpressions`. None when an operator is unknown, or when there is no
    /// selector at all, which matches nothing.
    pub fn from_object(object: &Value) -> Option<Self> {
        object.as_object()?;
        let mut requirements = Vec::new();
        for (key, value) in object["matchLabels"].as_object().into_iter().flatten() {
            let values = BTreeSet::from([value.as_str()?.to_owned()]);
            requirements.push(LabelRequirement { key: key.clone(), operator: LabelOperator::In(values) });
        }
        for term in object["matchExpressions"].as_array().into_iter().flatten() {
            let values: BTreeSet<String> = term["values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect();
            let operator = match term["operator"].as_str()? {
                "In" => LabelOperator::In(values),
                "NotIn" => LabelOperator::NotIn(values),
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                _ => return None,
            };
            requirements.push(LabelRequirement { key: term["key"].as_str()?.to_owned(), operator });
        }
        requirements.sort_by(|one, two| one.key.cmp(&two.key));
        Some(Self { requirements })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels matches.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = label(&requirement.key);
            match &requirement.operator {
                LabelOperator::In(values) => value.is_some_and(|value| values.contains(value)),
                LabelOperator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
                LabelOperator::GreaterThan(bound) => {
                    value.and_then(|value| value.parse::<i64>().ok()).is_some_and(|value| value > *bound)
                }
                LabelOperator::LessThan(bound) => {
                    value.and_then(|value| value.parse::<i64>().ok()).is_some_and(|value| value < *bound)
                }
            }
        })
    }

    /// Whether a stored object matches.
    pub fn matches_record(&self, record: &Record) -> bool {
        self.is_empty()
            || self.matches(|key| {
                let index = record.labels.binary_search_by(|(known, _)| known.as_ref().cmp(key)).ok()?;
                Some(&*record.labels[index].1)
            })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, LabelRequirement { key, operator }) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
            match operator {
                LabelOperator::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
                LabelOperator::In(values) => write!(f, "{key} in ({})", list(values)),
                LabelOperator::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
                LabelOperator::Exists => f.write_str(key),
                LabelOperator::DoesNotExist => write!(f, "!{key}"),
                LabelOperator::GreaterThan(bound) => write!(f, "{key}>{bound}"),
                LabelOperator::LessThan(bound) => write!(f, "{key}<{bound}"),
            }?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn literal(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Symbol(symbol) => symbol,
            Token::End => "",
        }
    }
}

fn lex(text: &str) -> Vec<Token> {
    const SYMBOLS: [&str; 10] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<", ""];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| !symbol.is_empty() && rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "=!(),><".contains(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        if *self.peek() == Token::End {
            return Ok(requirements);
        }
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {
                    requirements
                        .push(self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?);
                    match self.next() {
                        Token::End => return Ok(requirements),
                        Token::Symbol(",") => {
                            if !matches!(self.peek(), Token::Word(_) | Token::Symbol("!")) {
                                return Err(format!(
                                    "found '{}', expected: identifier after ','",
                                    self.peek().literal()
                                ));
                            }
                        }
                        other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.literal())),
                    }
                }
                Token::End => return Ok(requirements),
                other @ Token::Symbol(_) => {
                    return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.literal()));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let negated = *self.peek() == Token::Symbol("!");
        if negated {
            self.at += 1;
        }
        let key = match self.next() {
            Token::Word(word) => word,
            other => return Err(format!("found '{}', expected: identifier", other.literal())),
        };
        check_key(&key)?;
        if negated {
            return Ok(LabelRequirement { key, operator: LabelOperator::DoesNotExist });
        }
        let operator = match self.peek().clone() {
            Token::End | Token::Symbol(",") => LabelOperator::Exists,
            Token::Symbol("=" | "==") => {
                self.at += 1;
                LabelOperator::In(BTreeSet::from([self.exact_value()?]))
            }
            Token::Symbol("!=") => {
                self.at += 1;
                LabelOperator::NotIn(BTreeSet::from([self.exact_value()?]))
            }
            Token::Symbol(symbol @ (">" | "<")) => {
                self.at += 1;
                let value = self.exact_value()?;
                let bound = value.parse().map_err(|_| {
                    format!(
                        "values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                })?;
                if symbol == ">" { LabelOperator::GreaterThan(bound) } else { LabelOperator::LessThan(bound) }
            }
            Token::Word(word) if word == "in" || word == "notin" => {
                self.at += 1;
                let values = self.values()?;
                if word == "in" { LabelOperator::In(values) } else { LabelOperator::NotIn(values) }
            }
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.literal()));
            }
        };
        let values = match &operator {
            LabelOperator::In(values) | LabelOperator::NotIn(values) => values.iter().collect(),
            _ => Vec::new(),
        };
        for (index, value) in values.into_iter().enumerate() {
            check_value(&key, index, value)?;
        }
        Ok(LabelRequirement { key, operator })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek().clone() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            other @ Token::Symbol(_) => Err(format!("found '{}', expected: identifier", other.literal())),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.literal())),
        }
        let mut values = BTreeSet::new();
        if *self.peek() == Token::Symbol(")") {
            self.at += 1;
            values.insert(String::new());
            return Ok(values);
        }
        if !matches!(self.peek(), Token::Word(_) | Token::Symbol(",")) {
            return Err(format!("found '{}', expected: ',', ')' or identifier", self.peek().literal()));
        }
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(word);
                    match self.next() {
                        Token::Symbol(",") if *self.peek() == Token::Symbol(")") => {
                            self.at += 1;
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.literal())),
                    }
                }
                Token::Symbol(",") => {
                    values.insert(String::new());
                    if *self.peek() == Token::Symbol(")") {
                        self.at += 1;
                        return Ok(values);
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.literal())),
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let errors = koord_schema::names::qualified_name(key);
    if errors.is_empty() { Ok(()) } else { Err(format!("<nil>: Invalid value: \"{key}\": {}", errors.join("; "))) }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    let errors = koord_schema::names::label_value(value);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(format!("values[{index}][{key}]: Invalid value: \"{value}\": {}", errors.join("; ")))
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Reads the text form, such as `spec.nodeName=n,status.phase!=Running`; `\` escapes `,`, `=` and itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let (field, operator, value) =
                split_term(term).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
            let value = unescape(value)
                .ok_or_else(|| format!("invalid field selector: invalid escape sequence in '{value}'"))?;
            requirements.push(FieldRequirement { field: field.to_owned(), value, equal: operator != "!=" });
        }
        Ok(Self { requirements })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object matches whose fields `field` tells; an unknown field reads as empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }

    /// The one name that can match, when the selector says so.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.requirements.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    (0..term.len()).filter(|at| term.is_char_boundary(*at)).find_map(|at| {
        let operator = ["!=", "==", "="].into_iter().find(|operator| term[at..].starts_with(operator))?;
        Some((&term[..at], operator, &term[at + operator.len()..]))
    })
}

fn unescape(value: &str) -> Option<String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('\\' | ',' | '=') => out.push(escaped),
                _ => return None,
            },
            ',' | '=' => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        LabelSelector::parse(selector)
            .unwrap()
            .matches(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
    }

    #[test]
    fn every_operator_selects() {
        let labels = [("a", "1"), ("b", "x"), ("empty", "")];
        for selector in [
            "a=1",
            "a==1",
            "a!=2",
            "a in (1, 2)",
            "a notin (3)",
            "b",
            "!c",
            "a>0",
            "a<2",
            "empty=",
            "c!=1",
            "c notin (x)",
            "a=1,b in (x)",
            "",
        ] {
            assert!(matches(selector, &labels), "{selector}");
        }
        for selector in ["a=2", "a!=1", "c", "!a", "a>1", "b>0", "a in ()", "c=1"] {
            assert!(!matches(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn field_selectors_know_three_operators_and_escapes() {
        let selector = FieldSelector::parse(r"a=1,b!=2,c==x\,y").unwrap();
        assert!(selector.matches(|field| match field {
            "a" => "1",
            "c" => "x,y",
            _ => "",
        }));
        assert_eq!(selector.exact("a"), Some("1"));
        let error = FieldSelector::parse("metadata.name>1").unwrap_err();
        assert_eq!(error, "invalid selector: 'metadata.name>1'; can't understand 'metadata.name>1'");
    }
}
