//! Selectors of fields, with the API server's grammar and messages.

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
            let value = unescape(value).map_err(|why| format!("invalid field selector: {why}"))?;
            requirements.push(FieldRequirement { field: field.to_owned(), value, equal: operator != "!=" });
        }
        Ok(Self { requirements })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object matches whose fields `field` returns; an unknown field reads as empty.
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

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    return Err(format!("invalid escape sequence: \\{}", other.map_or(String::new(), String::from)));
                }
            },
            // Go names the character by its number.
            ',' | '=' => return Err(format!("unescaped character in value: {}", u32::from(c))),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_selectors_know_three_operators_and_escapes() {
        let selector = FieldSelector::parse(r"a=1,b!=2,c==x\,y").unwrap();
        assert!(selector.matches(|field| match field {
            "a" => "1",
            "c" => "x,y",
            _ => "",
        }));
        assert_eq!(selector.exact("a"), Some("1"));
        assert_eq!(
            FieldSelector::parse("a=b=c").unwrap_err(),
            "invalid field selector: unescaped character in value: 61"
        );
        assert_eq!(FieldSelector::parse(r"a=\b").unwrap_err(), r"invalid field selector: invalid escape sequence: \b");
        let error = FieldSelector::parse("metadata.name>1").unwrap_err();
        assert_eq!(error, "invalid selector: 'metadata.name>1'; can't understand 'metadata.name>1'");
    }
}
