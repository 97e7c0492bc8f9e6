//! The gangs as people see them, in the shape of the original's.

use std::collections::BTreeSet;

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{object::Objects, shown};
use koord_types::{gang::GangMode, pod_group::PodGroup};
use serde_json::{Map, Value, json};

use super::{Gang, GangGroup, Gangs, Group, Member, Stage};
use crate::coscheduling::MatchPolicy;

impl Gangs {
    /// All gangs, by name. `objects` are those of the cluster.
    pub fn summaries(&self, objects: &Objects) -> Value {
        let summaries = self.by_id.iter().map(|(id, gang)| (id.to_string(), self.summary_of(id, gang, objects)));
        summaries.collect::<Map<_, _>>().into()
    }

    /// A gang; none where there is no such gang.
    pub fn summary(&self, id: &ObjectKey, objects: &Objects) -> Option<Value> {
        self.by_id.get(id).map(|gang| self.summary_of(id, gang, objects))
    }

    /// How many groups have members that are in their places and not bound.
    pub fn waiting_groups(&self) -> usize {
        let waiting = self.by_id.values().filter(|gang| gang.waits());
        let groups: BTreeSet<&GangGroup> = waiting.map(|gang| &gang.group).collect();
        groups.len()
    }

    fn summary_of(&self, id: &ObjectKey, gang: &Gang, objects: &Objects) -> Value {
        let group = self.groups.get(&gang.group);
        let declared = gang.declaration.as_ref();
        json!({
            "name": id.to_string(),
            "waitTime": declared.map_or(0, |declared| declared.waiting_time.as_nanos()),
            "createTime": shown::time(gang.created(id, objects)),
            "mode": declared.map_or(GangMode::Strict, |declared| declared.mode.clone()).to_string(),
            "gangMatchPolicy": word(declared.map_or(MatchPolicy::OnceSatisfied, |declared| declared.policy)),
            "minRequiredNumber": declared.map_or(0, |declared| declared.min),
            "totalChildrenNum": declared.map_or(0, |declared| declared.total),
            "gangGroup": group.map_or_else(|| vec![id.to_string()], Group::names),
            "children": gang.keys(|_, _| true),
            "pendingChildren": gang.keys(|member, stage| !stage.is_placed && !member.is_bound),
            "waitingForBindChildren": gang.keys(|member, stage| stage.is_placed && !member.is_bound),
            "boundChildren": gang.keys(|member, _| member.is_bound),
            "onceResourceSatisfied": group.is_some_and(|group| group.is_satisfied),
            "gangGroupInfo": self.group_info(gang, group),
            "gangFrom": if gang.has_pod_group { "GangFromPodGroupCrd" } else { "GangFromPodAnnotation" },
            "hasGangInit": gang.declaration.is_some(),
        })
    }

    /// The group of a gang; it has none before it is declared.
    fn group_info(&self, gang: &Gang, group: Option<&Group>) -> Value {
        let Some(group) = group.filter(|_| gang.declaration.is_some()) else {
            return json!({
                "Initialized": false, "GangGroupId": "", "GangGroup": null, "OnceResourceSatisfied": false,
                "WaitingGangIDs": {}, "RepresentativePodKey": "", "BindingMemberPods": null,
            });
        };
        let gangs = || group.ids.iter().filter_map(|id| Some((id, self.by_id.get(id)?)));
        let waiting = gangs().filter(|(_, gang)| gang.waits()).map(|(id, _)| id.to_string());
        let members = gangs().flat_map(|(_, gang)| gang.members.values());
        let is_binding = |(member, stage): &&(Member, Stage)| stage.released_with > 0 && !member.is_bound;
        let binding: Vec<String> = members.filter(is_binding).map(|(member, _)| member.key.to_string()).collect();
        let first = self.representative(group).map(|(_, member)| member.key.to_string());
        json!({
            "Initialized": true,
            "GangGroupId": **gang.group.name(),
            "GangGroup": group.names(),
            "OnceResourceSatisfied": group.is_satisfied,
            "WaitingGangIDs": shown::set(waiting),
            "RepresentativePodKey": first.unwrap_or_default(),
            "BindingMemberPods": if binding.is_empty() { Value::Null } else { shown::set(binding) },
        })
    }
}

impl Gang {
    /// Whether members are in their places and not bound.
    fn waits(&self) -> bool {
        self.members.values().any(|(member, stage)| stage.is_placed && !member.is_bound)
    }

    fn keys(&self, is_one: fn(&Member, Stage) -> bool) -> Value {
        let members = self.members.values().filter(|(member, stage)| is_one(member, *stage));
        shown::set(members.map(|(member, _)| member.key.to_string()))
    }

    /// When its PodGroup was created, or the oldest of its members.
    fn created(&self, id: &ObjectKey, objects: &Objects) -> Option<i64> {
        let group = objects.get::<PodGroup>(id.as_str()).filter(|_| self.has_pod_group);
        let of_group =
            group.and_then(|group| group.metadata.creation_timestamp.as_ref()).map(|time| time.0.as_second());
        of_group.or_else(|| self.members.values().map(|(member, _)| member.created).min())
    }
}

impl Group {
    fn names(&self) -> Vec<String> {
        self.ids.iter().map(ToString::to_string).collect()
    }
}

fn word(policy: MatchPolicy) -> &'static str {
    match policy {
        MatchPolicy::OnlyWaiting => "only-waiting",
        MatchPolicy::WaitingAndRunning => "waiting-and-running",
        MatchPolicy::OnceSatisfied => "once-satisfied",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::uid::Uid;
    use koord_resource::Duration;
    use koord_scheduler_framework::{cluster::Cluster, object::Object};

    use super::*;
    use crate::coscheduling::Declaration;

    fn member(name: &str, is_bound: bool) -> Member {
        Member {
            key: ObjectKey::new("ns", name),
            gang: ObjectKey::new("ns", "train"),
            scheduler: "koord-scheduler".into(),
            is_ready: true,
            is_bound,
            priority: 0,
            created: 120,
            index: None,
        }
    }

    #[test]
    fn a_gang_is_shown_as_the_original_shows_it() {
        let id = ObjectKey::new("ns", "train");
        let declaration = Declaration {
            min: 2,
            total: 3,
            mode: GangMode::Strict,
            policy: MatchPolicy::WaitingAndRunning,
            group: GangGroup::new(vec![id.clone()]),
            waiting_time: Duration::from_secs(600),
            topology: None,
        };
        let (mut gangs, mut cluster) = (Gangs::default(), Cluster::default());
        assert_eq!(gangs.waiting_groups(), 0);
        for (name, is_bound) in [("a", true), ("b", false), ("c", false)] {
            gangs.set(&Uid::from(name), member(name, is_bound), Some(declaration.clone()), false);
        }
        gangs.set_placed(&Uid::from("b"), true);
        let info = json!({
            "Initialized": true, "GangGroupId": "ns/train", "GangGroup": ["ns/train"], "OnceResourceSatisfied": true,
            "WaitingGangIDs": {"ns/train": {}}, "RepresentativePodKey": "ns/c", "BindingMemberPods": null,
        });
        let expected = json!({
            "name": "ns/train", "waitTime": 600_000_000_000_i64, "createTime": "1970-01-01T00:02:00Z",
            "mode": "Strict", "gangMatchPolicy": "waiting-and-running", "minRequiredNumber": 2, "totalChildrenNum": 3,
            "gangGroup": ["ns/train"], "children": {"ns/a": {}, "ns/b": {}, "ns/c": {}},
            "pendingChildren": {"ns/c": {}}, "waitingForBindChildren": {"ns/b": {}}, "boundChildren": {"ns/a": {}},
            "onceResourceSatisfied": true, "gangGroupInfo": info, "gangFrom": "GangFromPodAnnotation",
            "hasGangInit": true,
        });
        assert_eq!(gangs.summary(&id, cluster.objects()), Some(expected.clone()));
        assert_eq!(gangs.summaries(cluster.objects()), json!({"ns/train": expected}));
        assert_eq!(
            (gangs.summary(&ObjectKey::new("ns", "none"), cluster.objects()), gangs.waiting_groups()),
            (None, 1)
        );
        gangs.declare(&id, declaration);
        let metadata = json!({"namespace": "ns", "name": "train", "creationTimestamp": "2024-02-03T04:05:06Z"});
        let group: PodGroup = serde_json::from_value(json!({"metadata": metadata, "spec": {"minMember": 2}})).unwrap();
        cluster.set_object(Object::new(id.clone(), Uid::from("train"), false, Arc::new(group)));
        let summary = gangs.summary(&id, cluster.objects()).unwrap();
        assert_eq!(
            (&summary["createTime"], &summary["gangFrom"]),
            (&json!("2024-02-03T04:05:06Z"), &json!("GangFromPodGroupCrd"))
        );
    }

    #[test]
    fn a_gang_that_is_not_declared_has_every_field_too() {
        let mut gangs = Gangs::default();
        gangs.set(&Uid::from("a"), member("a", false), None, false);
        let info = json!({
            "Initialized": false, "GangGroupId": "", "GangGroup": null, "OnceResourceSatisfied": false,
            "WaitingGangIDs": {}, "RepresentativePodKey": "", "BindingMemberPods": null,
        });
        let expected = json!({
            "name": "ns/train", "waitTime": 0, "createTime": "1970-01-01T00:02:00Z", "mode": "Strict",
            "gangMatchPolicy": "once-satisfied", "minRequiredNumber": 0, "totalChildrenNum": 0,
            "gangGroup": ["ns/train"], "children": {"ns/a": {}}, "pendingChildren": {"ns/a": {}},
            "waitingForBindChildren": {}, "boundChildren": {}, "onceResourceSatisfied": false, "gangGroupInfo": info,
            "gangFrom": "GangFromPodAnnotation", "hasGangInit": false,
        });
        assert_eq!(gangs.summary(&ObjectKey::new("ns", "train"), &Objects::default()), Some(expected));
    }
}
