//! Single expressions over untyped variables, as admission has them: match conditions of webhooks, validations of
//! policies.

use std::time::Duration;

use kube_cel::cel::{IdedExpr, Value as CelValue};
use serde_json::Value;

use super::{
    check::Parsed,
    evaluate::reason,
    executor::{self, ServiceError},
    macros::Macros,
    types::Type,
    value,
};

/// A checked expression that is true or false.
///
/// ```
/// use koord_schema::cel::Condition;
/// use serde_json::json;
/// let condition = Condition::compile("object.n > oldObject.n", &["object", "oldObject"]).unwrap();
/// let variables = [("object", json!({"n": 2})), ("oldObject", json!({"n": 1}))];
/// assert_eq!(condition.holds(&variables, std::time::Duration::from_secs(1)), Ok(true));
/// assert_eq!(Condition::compile("'text'", &[]).unwrap_err(), "must evaluate to bool but got string");
/// ```
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    expression: IdedExpr,
}

impl Condition {
    /// Compiles an expression that may use these variables. The mistake is worded as the API server words it.
    pub fn compile(text: &str, variables: &[&str]) -> Result<Self, String> {
        let variables = variables.iter().map(|name| ((*name).to_owned(), Type::Dyn)).collect();
        let parsed = Parsed::of(text, variables, Macros::Standard)
            .map_err(|mistakes| format!("compilation failed: {mistakes}"))?;
        parsed.check_constants().map_err(|why| format!("program instantiation failed: {why}"))?;
        match &parsed.typing.type_ {
            Type::Bool | Type::Dyn => Ok(Self { text: text.to_owned(), expression: parsed.evaluated() }),
            other => Err(format!("must evaluate to bool but got {}", other.name())),
        }
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression; an evaluation error has the text of the API server.
    pub fn holds(&self, variables: &[(&str, Value)], limit: Duration) -> Result<bool, String> {
        let variables: Vec<(String, Value)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let expression = self.expression.clone();
        let answer = executor::SHARED.run(limit, move |context| {
            let mut scope = context.new_inner_scope();
            for (name, value) in &variables {
                scope.add_variable_from_value(name.as_str(), value::untyped(value));
            }
            match CelValue::resolve(&expression, &scope) {
                Ok(CelValue::Bool(holds)) => Ok(holds),
                Ok(_) => Err("must evaluate to bool".to_owned()),
                Err(failure) => Err(reason(&failure)),
            }
        });
        match answer {
            Ok(Ok(holds)) => Ok(holds),
            Ok(Err(why)) => Err(format!("expression '{}' resulted in error: {why}", self.text)),
            Err(ServiceError::OutOfTime) => Err(format!("expression '{}' took too long", self.text)),
            Err(ServiceError::Broken) => Err(format!("expression '{}' could not be evaluated", self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Thirty of them took minutes.
    #[test]
    fn repeated_unary_operators_are_limited() {
        let nested = |times: usize| format!("{}1{}", "--(".repeat(times), ")".repeat(times));
        assert_eq!(Condition::compile(&nested(12), &[]).unwrap_err(), "must evaluate to bool but got int");
        let error = Condition::compile(&nested(30), &[]).unwrap_err();
        let message = "more than 12 unary operators are repeated, as in --x or !!x; leave out the pairs";
        assert!(error.contains(&format!("ERROR: <input>:1:37: {message}\n | --(--(")), "{error}");
    }

    #[test]
    fn mistakes_have_the_text_of_the_api_server() {
        assert_eq!(
            Condition::compile("object.metadata.", &["object"]).unwrap_err(),
            "compilation failed: ERROR: <input>:1:17: Syntax error: no viable alternative at input '.'\n | object.metadata.\n | ................^"
        );
        assert_eq!(
            Condition::compile("nobody.x", &["object"]).unwrap_err(),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nobody' (in container '')\n | nobody.x\n | ^"
        );
        assert_eq!(Condition::compile("1 + 1", &[]).unwrap_err(), "must evaluate to bool but got int");
    }

    #[test]
    fn an_absent_field_is_an_error_with_the_text_of_the_expression() {
        let condition = Condition::compile("object.data.x == '1'", &["object"]).unwrap();
        let variables = [("object", json!({"metadata": {}}))];
        let error = condition.holds(&variables, SECOND).unwrap_err();
        assert_eq!(error, "expression 'object.data.x == '1'' resulted in error: no such key: data");
    }
}
