//! Gangs that have not enough members.

use koord_resource::controller::ResourceKind;
use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::pod::Pod;
use koord_types::pod_group::PodGroup;
use serde_json::{Value, json};

use super::{
    change::{Change, Edit},
    requests::Subject,
};
use crate::service;

/// Smaller gangs that are tried.
const MEMBERS_MAX: usize = 16;

/// More members like the pod, or fewer that are needed, by the words that keep the pod from being tried.
pub(super) fn completed(subject: &Subject, reason: &str) -> Vec<Change> {
    let Some((gang, has, needs)) = incomplete(reason) else { return Vec::new() };
    let missing = needs.saturating_sub(has);
    let pods = if missing == 1 { "pod" } else { "pods" };
    let more = Change {
        added: (1..=missing).map(|number| member(&subject.pod, number)).collect(),
        ..Change::of(
            "gangMembers",
            format!("{missing} more {pods} like it were in gang {gang} ({has} of {needs} are)"),
            Vec::new(),
        )
    };
    vec![more, minimum(&gang, has, needs)]
}

/// Fewer members that are needed, for the gang of a pod: the most first.
pub(super) fn smaller(engine: &Engine, pod: &Pod) -> Vec<Change> {
    let gangs = service(engine, "Coscheduling", &["gangs"]).unwrap_or_default();
    let has_pod = |gang: &&Value| gang["children"].get(pod.key.as_str()).is_some();
    let gang = gangs.as_object().into_iter().flatten().map(|(_, gang)| gang).find(has_pod);
    let Some(gang) = gang.filter(|gang| gang["gangFrom"] == "GangFromPodGroupCrd") else { return Vec::new() };
    let Some((namespace, name)) = gang["name"].as_str().and_then(|name| name.split_once('/')) else {
        return Vec::new();
    };
    let needs = gang["minRequiredNumber"].as_u64().unwrap_or(0);
    (1..needs)
        .rev()
        .take(MEMBERS_MAX)
        .map(|members| minimum(&ObjectKey::new(namespace, name), members, needs))
        .collect()
}

fn minimum(gang: &ObjectKey, members: u64, needs: u64) -> Change {
    let edit = Edit {
        kind: ResourceKind::typed::<PodGroup>(),
        key: gang.clone(),
        path: "/spec/minMember".to_owned(),
        value: json!(members),
    };
    Change::of("gangMinimum", format!("the minMember of PodGroup {gang} were {members} (it is {needs})"), vec![edit])
}

/// `gang ns/name has 2 of 5 members`.
fn incomplete(reason: &str) -> Option<(ObjectKey, u64, u64)> {
    let (gang, rest) = reason.strip_prefix("gang ")?.split_once(" has ")?;
    let (has, rest) = rest.split_once(" of ")?;
    let (namespace, name) = gang.split_once('/')?;
    let needs = rest.strip_suffix(" members")?;
    Some((ObjectKey::new(namespace, name), has.parse().ok()?, needs.parse().ok()?))
}

fn member(pod: &Value, number: u64) -> Value {
    let mut member = pod.clone();
    let name = format!("{}-like-{number}", pod["metadata"]["name"].as_str().unwrap_or_default());
    member["metadata"]["uid"] = json!(name);
    member["metadata"]["name"] = json!(name);
    if let Some(members) = member.as_object_mut() {
        members.remove("status");
    }
    member
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_how_many_are_missing() {
        assert_eq!(incomplete("gang ns/train has 2 of 5 members"), Some((ObjectKey::new("ns", "train"), 2, 5)));
        assert_eq!(incomplete("gang ns/train does not exist"), None);
    }
}
