//! What is written about an attempt: events and the condition of the pod, in kube-scheduler's words.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    write::{Action, Write},
};
use koord_scheduler_framework::pod::Pod;
use serde_json::{Value, json};

/// The longest note of an event.
const NOTE_MAX: usize = 1024;

/// What an event about a pod regards, and is written where it is not about the pod alone: the Reservation of a reserve pod.
pub(crate) fn subject(pod: &Pod) -> (ResourceKind, &ObjectKey) {
    pod.reservation.as_ref().map_or((ResourceKind::POD, &pod.key), |object| (object.kind, &object.key))
}

/// The pod was bound. Of a reserve pod this is reported of the object too.
pub(crate) fn scheduled(pod: &Pod, node: &str) -> Vec<Event> {
    let assigned = |kind: ResourceKind, key: &ObjectKey| {
        let about = Regarded { kind, key: key.clone(), uid: pod.uid.clone() };
        let message = format!("Successfully assigned {key} to {node}");
        let event = Event::new(about, EventType::Normal, "Binding", "Scheduled", message);
        Event { reporter: reporter(pod), ..event }
    };
    let mut events = vec![assigned(ResourceKind::POD, &pod.key)];
    events.extend(pod.reservation.as_ref().map(|object| assigned(object.kind, &object.key)));
    events
}

/// No node takes the pod, or its binding has failed.
pub(crate) fn failed(pod: &Pod, message: &str) -> Event {
    remark(pod, "FailedScheduling", message)
}

/// The pod is being deleted, and is not tried.
pub(crate) fn skipped(pod: &Pod) -> Event {
    failed(pod, &format!("skip schedule deleting pod: {}", pod.key))
}

/// Something else that is said of a pod that no node takes.
pub(crate) fn remark(pod: &Pod, reason: &'static str, message: &str) -> Event {
    let event = Event::new(regarded(pod), EventType::Warning, "Scheduling", reason, shortened(message));
    Event { reporter: reporter(pod), ..event }
}

/// The pod was preempted.
pub(crate) fn preempted(victim: &Pod, preemptor: &Pod, message: String) -> Event {
    let event = Event::new(regarded(victim), EventType::Normal, "Preempting", "Preempted", message);
    Event { related: Some(regarded(preemptor).into()), reporter: reporter(preemptor), ..event }
}

/// A scheduler reports by the name of the profile that decides about the pod.
fn reporter(pod: &Pod) -> Option<Arc<str>> {
    Some(Arc::clone(&pod.template.scheduler)).filter(|name| !name.is_empty())
}

fn regarded(pod: &Pod) -> Regarded {
    let (kind, key) = subject(pod);
    Regarded { kind, key: key.clone(), uid: pod.uid.clone() }
}

/// The condition that says why the pod of this generation has no node, and its nominated node; none any more without
/// one. `since` is when it came to have none; without it the time that the condition has stays.
pub(crate) fn unscheduled(
    (pod, generation): (&Pod, i64),
    (reason, message): (&str, &str),
    (known, nominated): (Option<&str>, Option<&str>),
    since: Option<jiff::Timestamp>,
) -> Write {
    let mut condition = json!({
        "type": "PodScheduled", "status": "False", "reason": reason, "message": message, "lastProbeTime": null,
    });
    if let Some(since) = since {
        condition["lastTransitionTime"] = json!(seconds(since));
    }
    observe(&mut condition, generation);
    let mut patch = json!({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}});
    if known != nominated {
        patch["status"]["nominatedNodeName"] = json!(nominated);
    }
    status(pod, patch)
}

/// The node on which a pod is expected, while its binding takes time.
pub(crate) fn expected(pod: &Pod, node: &str) -> Write {
    status(pod, json!({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}))
}

/// The condition of a victim of this generation of a pod, or of a job: the `preemptor` that the pod is part of.
pub(crate) fn condemned(
    (victim, generation): (&Pod, i64),
    pod: &Pod,
    preemptor: Option<&str>,
    now: jiff::Timestamp,
) -> Write {
    let whom = preemptor.map_or_else(
        || "a higher priority pod".to_owned(),
        |preemptor| format!("higher priority pods, preemptor: {preemptor}, triggerPod: {}", pod.key),
    );
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": format!("{}: preempting to accommodate {whom}", pod.template.scheduler),
        "lastProbeTime": null, "lastTransitionTime": seconds(now),
    });
    observe(&mut condition, generation);
    status(victim, json!({"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}))
}

/// The condition is about this generation of the pod. API servers that count none know no such field.
fn observe(condition: &mut Value, generation: i64) {
    if generation > 0 {
        condition["observedGeneration"] = json!(generation);
    }
}

fn status(pod: &Pod, patch: Value) -> Write {
    let action = Action::StrategicPatch { subresource: "status", patch };
    Write { kind: ResourceKind::POD, key: pod.key.clone(), action }
}

fn shortened(message: &str) -> String {
    const MORE: &str = " ...";
    if message.len() <= NOTE_MAX {
        return message.to_owned();
    }
    let mut end = NOTE_MAX - MORE.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MORE}", &message[..end])
}

fn seconds(now: jiff::Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_of_a_victim_names_the_job_that_evicts_it() {
        let pod = |name: &str| Pod { key: ObjectKey::new("ns", name), ..Pod::default() };
        let template =
            koord_scheduler_framework::pod::Template { scheduler: "koord-scheduler".into(), ..Default::default() };
        let trigger = Pod { template: template.into(), ..pod("p2") };
        let message = |preemptor: Option<&str>| {
            let write = condemned((&pod("l1"), 0), &trigger, preemptor, jiff::Timestamp::UNIX_EPOCH);
            let Action::StrategicPatch { patch, .. } = write.action else { unreachable!() };
            patch["status"]["conditions"][0]["message"].as_str().map(str::to_owned).unwrap()
        };
        assert_eq!(message(None), "koord-scheduler: preempting to accommodate a higher priority pod");
        assert_eq!(
            message(Some("ns/a,ns/b")),
            "koord-scheduler: preempting to accommodate higher priority pods, preemptor: ns/a,ns/b, triggerPod: ns/p2"
        );
    }

    #[test]
    fn conditions_name_the_generation_that_they_are_about_where_pods_have_one() {
        let pod = Pod { key: ObjectKey::new("ns", "p"), ..Pod::default() };
        let observed = |write: Write| {
            let Action::StrategicPatch { patch, .. } = write.action else { unreachable!() };
            patch["status"]["conditions"][0].get("observedGeneration").cloned()
        };
        for (generation, expected) in [(3, Some(json!(3))), (0, None)] {
            let write = unscheduled((&pod, generation), ("Unschedulable", "no"), (None, None), None);
            assert_eq!(observed(write), expected);
            let write = condemned((&pod, generation), &pod, None, jiff::Timestamp::UNIX_EPOCH);
            assert_eq!(observed(write), expected);
        }
    }

    #[test]
    fn a_long_note_ends_with_dots_and_within_a_letter_never() {
        let long = format!("{}ü and more", "x".repeat(NOTE_MAX - 5));
        let short = shortened(&long);
        assert!(short.len() <= NOTE_MAX && short.ends_with("x ..."), "{short}");
        assert_eq!(shortened("short"), "short");
        assert_eq!(seconds("2026-01-02T03:04:05.6Z".parse().unwrap()), "2026-01-02T03:04:05Z");
    }
}
