//! `matchConditions`: CEL over the review.

use std::time::Duration;

use koord_schema::cel::Condition;
use serde_json::{Value, json};

/// How long one condition may take.
const EVALUATION_MAX: Duration = Duration::from_secs(2);

/// Whether every condition holds for the review's request.
///
/// A condition that is false decides, even where another one fails; an evaluation error names the expression.
pub(super) fn hold(expressions: &[String], request: &Value) -> Result<bool, String> {
    let variables = ["object", "oldObject"].map(|name| (name, request[name].clone()));
    // Nobody is asked what a user may do: an expression that needs the authorizer fails when it is evaluated.
    let variables: Vec<(&str, Value)> =
        variables.into_iter().chain([("request", request.clone()), ("authorizer", json!({}))]).collect();
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let mut failure = None;
    for expression in expressions {
        let holds = Condition::compile(expression.trim(), &names)
            .map_err(|error| format!("expression '{expression}' resulted in error: {error}"))
            .and_then(|condition| condition.holds(&variables, EVALUATION_MAX));
        match holds {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => failure = Some(why),
        }
    }
    failure.map_or(Ok(true), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_decide_or_fail_with_their_text() {
        let request = json!({"object": {"metadata": {"name": "hit"}}, "oldObject": null, "operation": "CREATE"});
        let hold =
            |expressions: &[&str]| hold(&expressions.iter().map(ToString::to_string).collect::<Vec<_>>(), &request);
        assert_eq!(hold(&[]), Ok(true));
        assert_eq!(hold(&["object.metadata.name.startsWith('hit')", "request.operation == 'CREATE'"]), Ok(true));
        assert_eq!(hold(&["object.data.x == '1'", "false"]), Ok(false));
        let error = hold(&["object.data.x == '1'"]).unwrap_err();
        assert_eq!(error, "expression 'object.data.x == '1'' resulted in error: no such key: data");
    }
}
