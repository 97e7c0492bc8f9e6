//! `matchConditions`: CEL over the review.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::Value;

/// Deep expressions need more stack than a worker thread has.
const STACK_BYTES: usize = 16 * 1024 * 1024;
const EVALUATION_MAX: Duration = Duration::from_secs(2);

/// Whether every condition holds for the review's request.
///
/// A condition that is false decides, even where another one fails; a failure is told with the expression.
pub(super) fn hold(expressions: &[String], request: &Value) -> Result<bool, String> {
    if expressions.is_empty() {
        return Ok(true);
    }
    let (sender, receiver) = mpsc::channel();
    let (expressions, request) = (expressions.to_vec(), request.clone());
    let spawned = thread::Builder::new().name("match-conditions".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = sender.send(evaluate(&expressions, &request));
    });
    spawned.map_err(|error| error.to_string())?;
    receiver.recv_timeout(EVALUATION_MAX).unwrap_or_else(|_| Err("match conditions took too long".to_owned()))
}

fn evaluate(expressions: &[String], request: &Value) -> Result<bool, String> {
    let mut context = Context::default().with_all();
    for (name, value) in [("object", &request["object"]), ("oldObject", &request["oldObject"]), ("request", request)] {
        context.add_variable(name, value.clone()).map_err(|error| error.to_string())?;
    }
    let mut failure = None;
    for expression in expressions {
        let result = Program::compile(expression)
            .map_err(|error| error.to_string())
            .and_then(|program| program.execute(&context).map_err(|error| explain(&error)));
        match result {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => failure = Some(format!("expression '{expression}' must evaluate to bool")),
            Err(error) => failure = Some(format!("expression '{expression}' resulted in error: {error}")),
        }
    }
    failure.map_or(Ok(true), Err)
}

fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        other => other.to_string(),
    }
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
