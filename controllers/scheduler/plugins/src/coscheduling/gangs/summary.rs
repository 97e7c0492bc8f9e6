//! The gangs as people see them, under the names of the original.

use std::collections::BTreeSet;

use koord_core::key::ObjectKey;
use serde_json::{Value, json};

use super::{Gang, Gangs, Member, Stage};
use crate::coscheduling::MatchPolicy;

impl Gangs {
    /// All gangs, by name.
    pub fn summaries(&self) -> Value {
        self.by_id
            .iter()
            .map(|(id, gang)| (id.to_string(), self.summary_of(id, gang)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// A gang; none where there is no such gang.
    pub fn summary(&self, id: &ObjectKey) -> Option<Value> {
        self.by_id.get(id).map(|gang| self.summary_of(id, gang))
    }

    /// How many groups have members that are in their places and not bound.
    pub fn waiting_groups(&self) -> usize {
        let waits = |gang: &Gang| gang.members.values().any(|(member, stage)| stage.is_placed && !member.is_bound);
        let groups: BTreeSet<&str> = self.by_id.values().filter(|gang| waits(gang)).map(|gang| &*gang.group).collect();
        groups.len()
    }

    fn summary_of(&self, id: &ObjectKey, gang: &Gang) -> Value {
        let members = |is_one: fn(&Member, Stage) -> bool| -> Vec<String> {
            let members = gang.members.values().filter(|(member, stage)| is_one(member, *stage));
            members.map(|(member, _)| member.key.to_string()).collect()
        };
        let group = self.groups.get(&gang.group);
        let mut summary = json!({
            "name": id.to_string(),
            "gangFrom": if gang.has_pod_group { "GangFromPodGroupCrd" } else { "GangFromPodAnnotation" },
            "gangGroup": group.map(|group| group.ids.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "onceResourceSatisfied": group.is_some_and(|group| group.is_satisfied),
            "hasGangInit": gang.declaration.is_some(),
            "children": members(|_, _| true),
            "waitingForBindChildren": members(|member, stage| stage.is_placed && !member.is_bound),
            "boundChildren": members(|member, _| member.is_bound),
        });
        if let Some(declaration) = &gang.declaration {
            summary["minRequiredNumber"] = declaration.min.into();
            summary["totalChildrenNum"] = declaration.total.into();
            summary["mode"] = declaration.mode.to_string().into();
            summary["gangMatchPolicy"] = match declaration.policy {
                MatchPolicy::OnlyWaiting => "only-waiting",
                MatchPolicy::WaitingAndRunning => "waiting-and-running",
                MatchPolicy::OnceSatisfied => "once-satisfied",
            }
            .into();
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use koord_api::gang::GangMode;
    use koord_core::uid::Uid;
    use koord_resource::Duration;

    use super::*;
    use crate::coscheduling::Declaration;

    #[test]
    fn a_gang_is_shown_with_where_its_members_are() {
        let id = ObjectKey::new("ns", "train");
        let declaration = Declaration {
            min: 2,
            total: 3,
            mode: GangMode::Strict,
            policy: MatchPolicy::WaitingAndRunning,
            group: vec![id.clone()],
            waiting_time: Duration::from_secs(600),
            topology: None,
        };
        let mut gangs = Gangs::default();
        assert_eq!(gangs.waiting_groups(), 0);
        for (name, is_bound) in [("a", true), ("b", false)] {
            let member = Member {
                key: ObjectKey::new("ns", name),
                gang: id.clone(),
                scheduler: "koord-scheduler".into(),
                is_ready: true,
                is_bound,
                priority: 0,
                index: None,
            };
            gangs.set(&Uid::from(name), member, Some(declaration.clone()), false);
        }
        let summary = gangs.summary(&id).unwrap();
        assert_eq!((&summary["children"], &summary["boundChildren"]), (&json!(["ns/a", "ns/b"]), &json!(["ns/a"])));
        assert_eq!((&summary["minRequiredNumber"], &summary["totalChildrenNum"]), (&json!(2), &json!(3)));
        assert_eq!(
            (&summary["mode"], &summary["gangMatchPolicy"], &summary["gangGroup"]),
            (&json!("Strict"), &json!("waiting-and-running"), &json!(["ns/train"]))
        );
        gangs.set_placed(&Uid::from("a"), true);
        assert_eq!(gangs.waiting_groups(), 0, "a is bound");
        gangs.set_placed(&Uid::from("b"), true);
        assert_eq!(gangs.waiting_groups(), 1);
        gangs.set_placed(&Uid::from("b"), false);
        assert_eq!(gangs.summaries(), json!({"ns/train": summary}));
        assert_eq!(gangs.summary(&ObjectKey::new("ns", "none")), None);
    }
}
