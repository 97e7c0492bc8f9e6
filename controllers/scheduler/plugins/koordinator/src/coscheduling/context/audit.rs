//! Gangs and the pods near to each other, counted anew.

use std::collections::{BTreeMap, BTreeSet};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::cluster::{Cluster, Mismatch, Subject};
use koord_types::pod_group::PodGroup;

use super::{Context, Declaration};

impl Context {
    /// Compares the gangs and their members with the pods and the PodGroups that are known, and sets right what differs.
    pub(super) fn audit(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut wrong: Vec<(ObjectKey, String)> = self.audit_members(cluster);
        wrong.extend(self.audit_pod_groups(cluster));
        for (gang, _) in &wrong {
            self.statuses.member_changed(gang, cluster.time());
        }
        let about = |gang: &ObjectKey| Subject::of::<PodGroup>(cluster, gang);
        let mut found: Vec<Mismatch> =
            wrong.into_iter().map(|(gang, details)| Mismatch::new(about(&gang), "gangs", details)).collect();
        found.extend(self.gangs.audit_groups().map(|details| Mismatch::new(Subject::Cluster, "gang_groups", details)));
        found.extend(
            self.network.audit(cluster).map(|details| Mismatch::new(Subject::Cluster, "gang_network", details)),
        );
        found
    }

    fn audit_members(&mut self, cluster: &Cluster) -> Vec<(ObjectKey, String)> {
        let mut wrong = BTreeMap::<ObjectKey, BTreeSet<ObjectKey>>::new();
        let mut known = BTreeSet::<&Uid>::new();
        for pod in cluster.known_pods() {
            let Some((member, declared)) = self.member(pod) else { continue };
            let is_placed = cluster.pod(&pod.uid).is_some();
            known.insert(&pod.uid);
            if !self.gangs.knows(&pod.uid, &member, is_placed) {
                wrong.entry(member.gang.clone()).or_default().insert(pod.key.clone());
                self.gangs.set(&pod.uid, member, declared, false);
                self.gangs.set_placed(&pod.uid, is_placed);
            }
        }
        let mut found: Vec<(ObjectKey, String)> = wrong
            .into_iter()
            .map(|(gang, pods)| {
                let pods: Vec<&str> = pods.iter().map(ObjectKey::as_str).collect();
                let details = format!("members of {gang} as they were instead of as they are: {}", pods.join(", "));
                (gang, details)
            })
            .collect();
        let gone = self.gangs.uids().filter(|uid| !known.contains(uid)).cloned().collect::<Vec<_>>();
        for uid in gone {
            if let Some(gang) = self.gangs.gang_of(&uid).cloned() {
                let details = format!("a member of {gang} that is gone: {uid}");
                found.push((gang, details));
            }
            self.forget(&uid);
            self.gangs.remove(&uid);
        }
        found
    }

    fn audit_pod_groups(&mut self, cluster: &Cluster) -> Vec<(ObjectKey, String)> {
        let declared = |(key, group): (&ObjectKey, &PodGroup)| {
            (key.clone(), Declaration::of_pod_group(key, group, &self.defaults))
        };
        let actual: BTreeMap<ObjectKey, Declaration> = cluster.objects().of::<PodGroup>().map(declared).collect();
        let mut wrong = Vec::new();
        for gang in self.gangs.with_pod_groups().filter(|gang| !actual.contains_key(*gang)).cloned().collect::<Vec<_>>()
        {
            self.gangs.undeclare(&gang);
            wrong.push((gang.clone(), format!("a PodGroup {gang} that is gone")));
        }
        for (gang, declaration) in actual {
            if !self.gangs.has_pod_group(&gang) || self.gangs.declaration(&gang) != Some(&declaration) {
                self.gangs.declare(&gang, declaration);
                wrong.push((gang.clone(), format!("PodGroup {gang} as it was instead of as it is")));
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_scheduler_framework::{hold::Holds, object::Object, pod::Pod};
    use koord_scheduler_testing::{labelled, node};
    use serde_json::json;

    use super::*;

    /// What makes a sum wrong.
    type Spoil = fn(&mut Context);

    const GROUP: &str = "pod-group.scheduling.sigs.k8s.io";

    fn member(name: &str, gang: &str, is_bound: bool) -> Arc<Pod> {
        let pod = labelled("ns", name, &[(GROUP, gang)], &json!({}));
        let template = koord_scheduler_framework::pod::Template {
            annotations: [("scheduling.koordinator.sh/network-topology-selector", "s")].into_iter().collect(),
            ..koord_scheduler_framework::pod::Template::clone(&pod.template)
        };
        let node = is_bound.then(|| "n".into());
        Arc::new(Pod { node, template: Arc::new(template), ..Pod::clone(&pod) })
    }

    fn stage() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::<Context>::default());
        cluster.set_node(node("n", &json!({})));
        for gang in ["g", "h"] {
            let group: PodGroup = serde_json::from_value(
                json!({"metadata": {"name": gang, "namespace": "ns"}, "spec": {"minMember": 2}}),
            )
            .unwrap();
            cluster.set_object(Object::new(ObjectKey::new("ns", gang), Uid::from(gang), false, Arc::new(group)));
        }
        for (name, is_bound, is_placed) in [("waits", false, false), ("assumed", false, true), ("runs", true, true)] {
            let pod = member(name, "g", is_bound);
            cluster.know(&pod);
            if is_placed {
                cluster.place(pod, &"n".into(), Holds::default());
            }
        }
        cluster
    }

    fn shown(cluster: &Cluster) -> String {
        let Context { gangs, network, .. } = cluster.state().unwrap();
        format!("{} {}", gangs.summaries(cluster.objects()), network.near(Some("s"), cluster.row("n").unwrap()))
    }

    #[test]
    fn gangs_that_are_spoilt_are_found_and_counted_anew() {
        let spoil: [(&str, &str, Spoil); 7] = [
            ("gangs", "members of ns/g as they were instead of as they are: ns/assumed", |context| {
                context.gangs.set_placed(&Uid::from("assumed"), false);
            }),
            ("gangs", "members of ns/g as they were instead of as they are: ns/waits", |context| {
                context.gangs.remove(&Uid::from("waits"));
            }),
            ("gangs", "a member of ns/g that is gone: ghost", |context| {
                let (_, member) = context.gangs.members(&ObjectKey::new("ns", "g")).next().unwrap();
                let member = member.clone();
                context.gangs.set(&Uid::from("ghost"), member, None, false);
            }),
            ("gangs", "PodGroup ns/h as it was instead of as it is", |context| {
                context.gangs.undeclare(&ObjectKey::new("ns", "h"));
            }),
            ("gangs", "a PodGroup ns/old that is gone", |context| {
                let declaration = context.gangs.declaration(&ObjectKey::new("ns", "h")).unwrap().clone();
                context.gangs.declare(&ObjectKey::new("ns", "old"), declaration);
            }),
            ("gang_groups", "0 groups with 0 names instead of 2 with 2, 1 not known", |context| {
                context.gangs.forget_groups();
            }),
            ("gang_network", "0 pods with 0 selectors instead of 2 pods with 1 selectors", |context| {
                context.network = crate::coscheduling::network::Network::default();
            }),
        ];
        for (sum, details, spoil) in spoil {
            let mut cluster = stage();
            assert_eq!(cluster.audit_whole(1), []);
            let right = shown(&cluster);
            spoil(cluster.state_mut::<Context>().unwrap());
            let found = cluster.audit_whole(1);
            let is_found = |found: &Mismatch| found.sum == sum && found.details.starts_with(details);
            assert!(found.iter().any(is_found), "{sum}: {found:#?}");
            assert_eq!((shown(&cluster), cluster.audit_whole(1)), (right, vec![]));
        }
    }

    #[test]
    fn a_pod_that_joins_a_gang_in_its_place_is_there_for_it() {
        let mut cluster = stage();
        cluster.know(&member("assumed", "h", false));
        let waiting = |gang: &str| {
            let (gangs, objects) = (&cluster.state::<Context>().unwrap().gangs, cluster.objects());
            let summary = gangs.summary(&ObjectKey::new("ns", gang), objects).unwrap();
            summary["waitingForBindChildren"].clone()
        };
        assert_eq!([waiting("g"), waiting("h")], [json!({}), json!({"ns/assumed": {}})]);
    }
}
