//! A selector as the object that specs hold.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{Selector, Term, Test};

impl Selector {
    /// The selector as a `LabelSelector`: a term for one value is a label, every other term an expression.
    ///
    /// # Errors
    ///
    /// The first term that compares numbers, such as `rank>3`: only the text form has those.
    pub fn to_label_selector(&self) -> Result<LabelSelector, String> {
        let mut selector = LabelSelector::default();
        for term in &self.terms {
            let Term { key, test } = term;
            let (operator, values) = match test {
                Test::In(values) => match values.as_slice() {
                    [value] if !selector.match_labels.as_ref().is_some_and(|labels| labels.contains_key(key)) => {
                        selector.match_labels.get_or_insert_default().insert(key.clone(), value.clone());
                        continue;
                    }
                    values => ("In", Some(values.to_vec())),
                },
                Test::NotIn(values) => ("NotIn", Some(values.clone())),
                Test::Exists => ("Exists", None),
                Test::Absent => ("DoesNotExist", None),
                Test::Above(_) | Test::Below(_) => return Err(term.to_string()),
            };
            let expression = LabelSelectorRequirement { key: key.clone(), operator: operator.to_owned(), values };
            selector.match_expressions.get_or_insert_default().push(expression);
        }
        Ok(selector)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_term_but_a_comparison_has_its_form_in_an_object() {
        let object = |text: &str| {
            Selector::parse(text).unwrap().to_label_selector().map(|selector| serde_json::to_value(selector).unwrap())
        };
        assert_eq!(object(""), Ok(json!({})));
        assert_eq!(object("a=b,c==d"), Ok(json!({"matchLabels": {"a": "b", "c": "d"}})));
        assert_eq!(
            object("a!=b,c in (d,e),f notin (g),h,!i"),
            Ok(json!({"matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["b"]},
                {"key": "c", "operator": "In", "values": ["d", "e"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"},
                {"key": "i", "operator": "DoesNotExist"},
            ]}))
        );
        assert_eq!(
            object("a=b,a=c"),
            Ok(
                json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["c"]}]})
            ),
            "a label with two values is there, and selects nothing"
        );
        assert_eq!(object("a,rank>3"), Err("rank>3".to_owned()));
    }

    #[test]
    fn both_forms_select_the_same() {
        for text in ["a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a=b,a=c"] {
            let text = Selector::parse(text).unwrap();
            let object = Selector::new(&text.to_label_selector().unwrap()).unwrap();
            for value in [None, Some("b"), Some("c"), Some("d")] {
                let label = |key: &str| value.filter(|_| key == "a");
                assert_eq!(text.selects(label), object.selects(label), "{text} {value:?}");
            }
        }
    }
}
