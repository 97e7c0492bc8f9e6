//! What ScheduleExplanations ask: about pods that exist, or about one that does not.

use koord_core::clock::Moment;
use koord_scheduler_assembly::{amend, transformers};
use koord_scheduler_engine::Engine;
use koord_types::schedule_explanation::ScheduleExplanationSpec;
use serde_json::{Value, json};
use tokio::runtime;

use super::{cluster::cluster, engine, goes_on, switches};
use crate::in_time;

/// The name and the uid of the pod of a template.
const NAME: &str = "question-object";

/// The spec of a ScheduleExplanation is read and written again unchanged. What it asks is answered on copies: why the pods that it names, or
/// the one of its template, wait, and what would become of them. The engine goes on as if nobody had asked.
pub fn explanation(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(spec) = serde_json::from_str::<ScheduleExplanationSpec>(text) else { return };
    let written = serde_json::to_value(&spec).expect("a spec has JSON");
    let again: ScheduleExplanationSpec = serde_json::from_value(written).expect("a spec reads what it wrote");
    assert_eq!(again, spec);
    in_time(|| {
        let engine = engine(cluster(), &switches::SHIPPED).expect("the cluster can be read");
        let asked = match &spec.question_object_template {
            Some(template) => with_pod(&engine, template),
            None => Some(engine.copy()),
        };
        // A template that cannot be read asks nothing.
        if let Some(asked) = asked {
            let names = [NAME, spec.question_object_key.as_str()];
            let pods = asked.cluster().pending().filter(|pod| names.contains(&pod.key.name()));
            let uids: Vec<_> = pods.map(|pod| pod.uid.clone()).collect();
            for uid in &uids {
                assert!(asked.copy().why(uid, Moment::default()).is_some(), "{uid} is there");
                asked.copy().on_nodes(uid);
            }
            asked.would_all(&uids, Moment::default());
        }
        goes_on(engine);
    });
}

/// A copy that knows the pod of a template beside all others.
fn with_pod(engine: &Engine, template: &Value) -> Option<Engine> {
    let member = |name: &str| template["metadata"][name].clone();
    let metadata = json!({
        "name": NAME, "namespace": "default", "uid": NAME, "labels": member("labels"), "annotations": member("annotations"),
    });
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
    let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut copy = engine.copy();
    runtime.block_on(amend(&mut copy, vec![pod], transformers(&switches::SHIPPED.gates))).ok()?;
    Some(copy)
}
