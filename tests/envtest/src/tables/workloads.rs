//! The columns of what makes pods: deployments, sets, jobs, autoscalers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::human::{self, NONE, age, integer, items, name, or_none, selector, text};

const TEMPLATE: &str = "/spec/template/spec/containers";

fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    [human::join(object, pointer, "name").into(), human::join(object, pointer, "image").into()]
}

fn desired(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or(Value::Null)
}

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", integer(object, "/status/readyReplicas"), integer(object, "/spec/replicas"));
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        ready.into(),
        integer(object, "/status/updatedReplicas").into(),
        integer(object, "/status/availableReplicas").into(),
        age(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")).into(),
    ]
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        desired(object, "/spec/replicas"),
        integer(object, "/status/replicas").into(),
        integer(object, "/status/readyReplicas").into(),
        age(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")).into(),
    ]
}

pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = replica_set(object, now);
    cells.pop();
    cells.push(or_none(human::labels(&object["spec"]["selector"]).join(",")).into());
    cells
}

pub(super) fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    let replicas = |path| integer(object, path).into();
    vec![name(object), replicas("/spec/replicas"), replicas("/status/replicas"), age(object, now)]
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", integer(object, "/status/readyReplicas"), integer(object, "/spec/replicas"));
    let [names, images] = containers(object, TEMPLATE);
    vec![name(object), ready.into(), age(object, now), names, images]
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    let node_selector = or_none(human::labels(&object["spec"]["template"]["spec"]["nodeSelector"]).join(","));
    vec![
        name(object),
        integer(object, "/status/desiredNumberScheduled").into(),
        integer(object, "/status/currentNumberScheduled").into(),
        integer(object, "/status/numberReady").into(),
        integer(object, "/status/updatedNumberScheduled").into(),
        integer(object, "/status/numberAvailable").into(),
        node_selector.into(),
        age(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")).into(),
    ]
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = integer(object, "/status/succeeded");
    let completions = match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None => match integer(object, "/spec/parallelism") {
            parallelism if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let moment = |pointer: &str| object.pointer(pointer).and_then(Value::as_str)?.parse::<Timestamp>().ok();
    let duration = match (moment("/status/startTime"), moment("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human::duration(end.unwrap_or(now).as_second() - start.as_second()),
    };
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        job_status(object).into(),
        completions.into(),
        duration.into(),
        age(object, now),
        names,
        images,
        selector(object.pointer("/spec/selector")).into(),
    ]
}

fn job_status(job: &Value) -> &'static str {
    let is = |type_: &str| {
        items(job, "/status/conditions").any(|condition| condition["type"] == type_ && condition["status"] == "True")
    };
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if job.pointer("/metadata/deletionTimestamp").is_some() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let last = match object.pointer("/status/lastScheduleTime") {
        None => NONE.to_owned(),
        time => human::since(time, now),
    };
    let [names, images] = containers(object, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(object),
        text(object, "/spec/schedule", "").into(),
        text(object, "/spec/timeZone", NONE).into(),
        (if object["spec"]["suspend"] == true { "True" } else { "False" }).into(),
        items(object, "/status/active").len().into(),
        last.into(),
        age(object, now),
        names,
        images,
        selector(object.pointer("/spec/jobTemplate/spec/selector")).into(),
    ]
}

pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let target = &object["spec"]["scaleTargetRef"];
    let reference = format!("{}/{}", text(target, "/kind", ""), text(target, "/name", ""));
    let minimum = object.pointer("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string);
    vec![
        name(object),
        reference.into(),
        autoscaler_targets(object).into(),
        minimum.into(),
        desired(object, "/spec/maxReplicas"),
        integer(object, "/status/currentReplicas").into(),
        age(object, now),
    ]
}

fn autoscaler_targets(object: &Value) -> String {
    let current: Vec<&Value> = items(object, "/status/currentMetrics").collect();
    let mut shown = Vec::new();
    for (index, metric) in items(object, "/spec/metrics").enumerate() {
        let field = match metric["type"].as_str() {
            Some("Resource") => "resource",
            Some("ContainerResource") => "containerResource",
            Some("Pods") => "pods",
            Some("Object") => "object",
            Some("External") => "external",
            _ => continue,
        };
        let (source, status) = (&metric[field], current.get(index).map(|metric| &metric[field]["current"]));
        let label = source["name"]
            .as_str()
            .filter(|_| field == "resource")
            .map_or_else(String::new, |name| format!("{name}: "));
        let value = |name: &str, unit: &str| {
            let wanted = source["target"].get(name)?;
            let found = status.and_then(|status| status.get(name));
            let print = |value: &Value| {
                format!("{}{unit}", value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
            };
            Some(format!("{label}{}/{}", found.map_or_else(|| human::UNKNOWN.to_owned(), print), print(wanted)))
        };
        shown.extend(
            value("averageUtilization", "%").or_else(|| value("averageValue", "")).or_else(|| value("value", "")),
        );
    }
    or_none(shown.join(", "))
}

pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = items(object, "/metadata/ownerReferences").find(|owner| owner["controller"] == true);
    let controller = owner.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(owner, "/kind", "").to_lowercase();
            let version = text(owner, "/apiVersion", "");
            let group = version.rsplit_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
            format!("{kind}{group}/{}", text(owner, "/name", ""))
        },
    );
    vec![name(object), controller.into(), json!(integer(object, "/revision")), age(object, now)]
}

pub(super) fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let limit = |pointer: &str| match object.pointer(pointer) {
        None => "N/A".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(number) => number.to_string(),
    };
    vec![
        name(object),
        limit("/spec/minAvailable").into(),
        limit("/spec/maxUnavailable").into(),
        integer(object, "/status/disruptionsAllowed").into(),
        age(object, now),
    ]
}
