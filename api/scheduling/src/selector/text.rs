//! The text form of label selectors, by the API server's grammar and with its messages.

use std::collections::BTreeSet;

use koord_schema::names;

use super::{Term, Test};

/// The terms of a text, in their order.
pub(super) fn parse(text: &str) -> Result<Vec<Term>, String> {
    Parser { tokens: lex(text), at: 0 }.requirements()
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

    fn requirements(&mut self) -> Result<Vec<Term>, String> {
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

    fn requirement(&mut self) -> Result<Term, String> {
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
            return Ok(Term { key, test: Test::Absent });
        }
        let test = match self.peek().clone() {
            Token::End | Token::Symbol(",") => Test::Exists,
            Token::Symbol("=" | "==") => {
                self.at += 1;
                Test::In(vec![self.exact_value()?])
            }
            Token::Symbol("!=") => {
                self.at += 1;
                Test::NotIn(vec![self.exact_value()?])
            }
            Token::Symbol(symbol @ (">" | "<")) => {
                self.at += 1;
                let value = self.exact_value()?;
                let bound = value.parse().map_err(|_| {
                    format!(
                        "values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                })?;
                if symbol == ">" { Test::Above(bound) } else { Test::Below(bound) }
            }
            Token::Word(word) if word == "in" || word == "notin" => {
                self.at += 1;
                let values = self.values()?.into_iter().collect();
                if word == "in" { Test::In(values) } else { Test::NotIn(values) }
            }
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.literal()));
            }
        };
        let values = match &test {
            Test::In(values) | Test::NotIn(values) => values.as_slice(),
            _ => &[],
        };
        for (index, value) in values.iter().enumerate() {
            check_value(&key, index, value)?;
        }
        Ok(Term { key, test })
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
    let errors = names::qualified_name(key);
    if errors.is_empty() { Ok(()) } else { Err(format!("<nil>: Invalid value: \"{key}\": {}", errors.join("; "))) }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    let errors = names::label_value(value);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(format!("values[{index}][{key}]: Invalid value: \"{value}\": {}", errors.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Selector;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        Selector::parse(selector)
            .unwrap()
            .selects(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
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
    fn a_selector_is_shown_as_it_may_be_written() {
        for text in ["a=1", "a in (1,2)", "a notin (3)", "b", "!c", "a>0,b<2", ""] {
            assert_eq!(Selector::parse(text).unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[ab1=!,()<> in-]{0,24}") {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(Selector::parse(&selector.to_string()).map(|again| again.to_string()), Ok(selector.to_string()));
            }
        }
    }
}
