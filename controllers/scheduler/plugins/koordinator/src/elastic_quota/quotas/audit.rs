//! What the pods of quotas request and use, counted anew.

use std::collections::{BTreeMap, BTreeSet};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::ResourceList;
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Subject},
    pod::Template,
};
use koord_types::elastic_quota::ElasticQuota;

use super::{Deleting, Quotas, Read, counted};
use crate::elastic_quota::{Ledger, ledger::Times};

impl Quotas {
    /// Compares the quotas, what their pods request and use, what nodes offer, and the sums of the trees with the objects, and sets
    /// right what differs.
    pub(super) fn audit_all(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut wrong = self.audit_objects(cluster);
        wrong.extend(
            self.audit_ending(cluster).map(|details| Mismatch::new(Subject::Cluster, "quota_pods_ending", details)),
        );
        let actual = self.recount(cluster);
        let groups = self.ledger.audit_groups(&actual);
        wrong.extend(groups.into_iter().map(|details| Mismatch::new(Subject::Cluster, "quota_pods", details)));
        let offered = self.ledger.audit_offered(&actual);
        wrong.extend(offered.map(|details| Mismatch::new(Subject::Cluster, "quota_total", details)));
        let trees = self.ledger.audit_forest(self.read.values().map(|read| &read.quota));
        let about = |name: &str| {
            let object = self.read.iter().find(|(_, read)| read.quota.name == name);
            object.map_or(Subject::Cluster, |(key, _)| Subject::of::<ElasticQuota>(cluster, key))
        };
        wrong.extend(trees.into_iter().map(|(name, details)| Mismatch::new(about(&name), "quota", details)));
        wrong
    }

    /// Compares what was read of quotas with their objects.
    fn audit_objects(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let read = |(key, object): (&ObjectKey, &ElasticQuota)| {
            let uid = cluster.objects().entry::<ElasticQuota>(key.as_str()).map(|entry| entry.uid.clone());
            (key.clone(), Read::of(uid.unwrap_or_default(), object))
        };
        let actual: BTreeMap<ObjectKey, Read> = cluster.objects().of::<ElasticQuota>().map(read).collect();
        if self.read == actual {
            return Vec::new();
        }
        let added = actual.keys().filter(|key| !self.read.contains_key(*key));
        let differs = |key: &&ObjectKey| self.read.get(*key) != actual.get(*key);
        let wrong = self.read.keys().chain(added).filter(differs).map(|key| {
            let details = format!("{key} as it was instead of as it is");
            Mismatch::new(Subject::of::<ElasticQuota>(cluster, key), "quota_objects", details)
        });
        let wrong = wrong.collect();
        self.read = actual;
        self.ledger.quotas_changed();
        wrong
    }

    /// Compares the pods whose time to end is awaited, and those of which it is over, with the pods that are known.
    fn audit_ending(&mut self, cluster: &Cluster) -> Option<String> {
        let follows = self.settings().deleting == Deleting::CountsForItsTime;
        let known = |uid: &Uid| cluster.pod(uid).is_some() || cluster.pending_pod(uid).is_some();
        let overdue: BTreeSet<Uid> = self.overdue.iter().filter(|uid| known(uid)).cloned().collect();
        let awaited = cluster.known_pods().filter(|pod| follows && !overdue.contains(&pod.uid));
        let ending: BTreeSet<(i64, Uid)> = awaited.filter_map(|pod| Some((pod.ends?, pod.uid.clone()))).collect();
        if (&self.ending, &self.overdue) == (&ending, &overdue) {
            return None;
        }
        let words = |ending: usize, overdue: usize| format!("{ending} pods that end and {overdue} overdue");
        let details = format!(
            "{} instead of {}",
            words(self.ending.len(), self.overdue.len()),
            words(ending.len(), overdue.len())
        );
        (self.ending, self.overdue) = (ending, overdue);
        Some(details)
    }

    /// The pods and nodes of the cluster, counted anew.
    fn recount(&self, cluster: &Cluster) -> Ledger {
        let settings = self.settings();
        let mut ledger = Ledger::new(settings.as_ref().clone());
        // Pods of one workload share their template.
        let mut templates: BTreeMap<*const Template, (&Template, [usize; 2])> = BTreeMap::new();
        let known = cluster.known_pods().map(|pod| (pod, 0)).chain(cluster.pods().map(|placed| (&placed.pod, 1)));
        for (pod, place) in known.filter(|(pod, _)| self.counts(pod)) {
            let template = &*pod.template;
            templates.entry(std::ptr::from_ref(template)).or_insert((template, [0; 2])).1[place] += 1;
        }
        for (template, [known, placed]) in templates.into_values() {
            counted(template, settings, |pod| ledger.count_all(pod, Times { known, placed }));
        }
        let offered = cluster.rows().fold(ResourceList::new(), |mut sum, (_, node)| {
            sum.add(&node.allocatable);
            sum
        });
        ledger.offer(None, Some(&offered));
        ledger
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_scheduler_framework::{hold::Holds, object::Object, pod::Pod};
    use serde_json::json;

    use super::*;
    use crate::elastic_quota::QuotaSettings;

    /// What makes a sum wrong.
    type Spoil = fn(&mut Quotas);

    fn stage() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::new(Quotas::new(QuotaSettings::default())));
        cluster.set_node(koord_scheduler_testing::node(
            "n",
            &json!({"status": {"allocatable": {"cpu": "9", "pods": "10"}}}),
        ));
        let quotas = [("above", "koordinator-root-quota", "true"), ("below", "above", "false")];
        for (name, parent, is_parent) in quotas {
            let labels = json!({"quota.scheduling.koordinator.sh/parent": parent, "quota.scheduling.koordinator.sh/is-parent": is_parent});
            let spec = json!({"max": {"cpu": "8"}, "min": {"cpu": "4"}});
            let object =
                json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels}, "spec": spec});
            let object: ElasticQuota = serde_json::from_value(object).unwrap();
            cluster.set_object(Object::new(ObjectKey::new("ns", name), Uid::from(name), false, Arc::new(object)));
        }
        let container = json!({"resources": {"requests": {"cpu": "1"}}});
        let labels = [("quota.scheduling.koordinator.sh/name", "below")];
        for (name, node) in [("waits", None), ("runs", Some("n"))] {
            let pod =
                koord_scheduler_testing::labelled("ns", name, &labels, &json!({"containers": [container.clone()]}));
            let pod = Arc::new(Pod { node: node.map(Arc::from), ..Pod::clone(&pod) });
            cluster.know(&pod);
            if let Some(node) = node {
                cluster.place(pod, &node.into(), Holds::default());
            }
        }
        cluster.state::<Quotas>().unwrap().forest();
        cluster
    }

    #[test]
    fn quotas_that_are_spoilt_are_found_and_counted_anew() {
        let spoil: [(&str, &str, Spoil); 6] = [
            ("quota_objects", "ns/below as it was instead of as it is", |quotas| _ = quotas.read.pop_last()),
            (
                "quota_pods",
                "ns/below: 2 pods, request {} and use {}, not preemptible {} and {} instead of 3 pods",
                |quotas| quotas.ledger.spoil_groups(),
            ),
            ("quota_total", "{\"cpu\":\"18\"", |quotas| {
                let more = [("cpu", "9".parse().unwrap())].into_iter().collect();
                quotas.ledger.offer(None, Some(&more));
            }),
            ("quota", "request {\"cpu\":\"3\"}", |quotas| quotas.ledger.spoil_forest("below")),
            ("quota", "request {\"cpu\":\"3\"}", |quotas| quotas.ledger.spoil_forest("above")),
            ("quota_pods_ending", "1 pods that end and 0 overdue instead of 0", |quotas| {
                quotas.ending.insert((7, Uid::from("gone")));
            }),
        ];
        for (sum, details, spoil) in spoil {
            let mut cluster = stage();
            assert_eq!(cluster.audit_whole(1), []);
            let right = shown(&cluster);
            spoil(cluster.state_mut::<Quotas>().unwrap());
            let found = cluster.audit_whole(1);
            assert!(found.iter().any(|found| found.sum == sum && found.details.contains(details)), "{sum}: {found:?}");
            assert_eq!((shown(&cluster), cluster.audit_whole(1)), (right, vec![]));
        }
    }

    fn shown(cluster: &Cluster) -> Vec<String> {
        let quotas = cluster.state::<Quotas>().unwrap();
        let forest = quotas.forest();
        forest.nodes().map(|(name, node)| format!("{name} {:?} {:?}", node.sums, forest.limit(name))).collect()
    }
}
