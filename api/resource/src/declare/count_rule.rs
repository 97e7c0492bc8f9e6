//! The CEL rule of `exactly_one_of`, `at_most_one_of` and `at_least_one_of`.

use koord_schema::{Rule, cel_name};

use crate::rule::HowMany;

/// The rule that so many of these fields are set, which are named as in JSON.
pub fn count_rule(how_many: HowMany, fields: &[&str]) -> Rule {
    let comparison = match how_many {
        HowMany::Exactly => "== 1",
        HowMany::AtMost => "<= 1",
        HowMany::AtLeast => ">= 1",
    };
    let set: Vec<String> = fields.iter().map(|field| format!("has(self.{})", escaped(field))).collect();
    Rule {
        rule: format!("[{}].filter(set, set).size() {comparison}", set.join(", ")),
        message: Some(how_many.message(fields)),
        ..Rule::default()
    }
}

/// A property's name as CEL accepts it.
pub(crate) fn escaped(name: &str) -> String {
    // What CEL cannot write stays as it is: the API server says so of the rule.
    cel_name::escape(name).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_by_the_names_that_cel_has_for_them() {
        for (how_many, rule, message) in [
            (HowMany::Exactly, "== 1", "exactly one of namespace, by-name must be set"),
            (HowMany::AtMost, "<= 1", "at most one of namespace, by-name must be set"),
            (HowMany::AtLeast, ">= 1", "at least one of namespace, by-name must be set"),
        ] {
            let counted = count_rule(how_many, &["namespace", "by-name"]);
            let expected =
                format!("[has(self.__namespace__), has(self.by__dash__name)].filter(set, set).size() {rule}");
            assert_eq!((counted.rule, counted.message.as_deref()), (expected, Some(message)));
        }
    }
}
