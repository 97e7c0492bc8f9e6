//! What came of the last attempts of a pod, for people.

use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::{Ending, Engine, NodeClass, Record};
use koord_scheduler_framework::{Reason, ReasonCode};
use serde_json::{Value, json};

/// The attempts of pods of this name, the newest first, and why the one that waits is not tried; none where nothing is known.
pub(super) fn of(engine: &Engine, namespace: &str, name: &str) -> Option<Value> {
    let key = ObjectKey::new(namespace, name);
    let records = engine.verdicts(&key);
    let attempts: Vec<Value> = records.iter().map(|record| attempt(engine, record)).collect();
    let pending = engine.cluster().pending().find(|pod| pod.key == key);
    let not_tried = pending.and_then(|pod| engine.not_tried(pod));
    if attempts.is_empty() && not_tried.is_none() {
        return None;
    }
    let mut answer = json!({"pod": key.as_str(), "attempts": attempts});
    if let Some((plugin, reason)) = not_tried {
        answer["notTried"] = json!({"plugin": plugin, "reason": reason.document()});
    }
    Some(answer)
}

fn attempt(engine: &Engine, record: &Record) -> Value {
    let mut attempt = json!({
        "time": record.time.to_string(), "uid": record.uid, "scheduler": &*record.scheduler, "attempt": record.attempt,
    });
    match &record.ending {
        Ending::Bound { node, score, ties } => {
            attempt["result"] = json!("placed");
            (attempt["node"], attempt["score"], attempt["alike"]) = (json!(&**node), json!(score), json!(ties));
        }
        Ending::Waiting { node } => {
            (attempt["result"], attempt["node"]) = (json!("waitingInPlace"), json!(&**node));
        }
        Ending::Elsewhere { node } => {
            let code = ReasonCode::BoundElsewhere;
            (attempt["result"], attempt["node"]) = (json!("boundElsewhere"), json!(&**node));
            (attempt["code"], attempt["remedy"]) = (json!(code.as_str()), json!(code.remedy()));
        }
        Ending::Refused { by, is_error, nominated, victims } => {
            attempt["result"] = json!(if *is_error { "error" } else { "refused" });
            attempt["refusedBy"] = by.iter().map(|class| refusal(engine, record, class)).collect();
            if let Some(nominated) = nominated {
                (attempt["nominatedNode"], attempt["victims"]) = (json!(&**nominated), json!(victims));
            }
        }
    }
    attempt
}

fn refusal(engine: &Engine, record: &Record, class: &NodeClass) -> Value {
    let reasons = class.reasons(engine.profile(&record.scheduler), engine.cluster());
    json!({
        "plugin": class.plugin, "nodes": class.nodes, "example": class.example.as_deref(),
        "inputAgeSeconds": class.input_age.map(|age| age.as_secs()),
        "reasons": reasons.iter().map(Reason::document).collect::<Vec<_>>(),
    })
}
