//! Reservations and what is used of them, counted anew.

use koord_core::uid::Uid;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Subject},
    columns::Row,
};
use koord_types::reservation::Reservation;

use super::{Allocated, Known, ReservationCache, ResourceAmounts, assumed_on, is_over, is_reservation_mode};

impl ReservationCache {
    /// Compares what counts twice on a node with the reservations there, and sets right what differs.
    pub fn audit_twice(&mut self, cluster: &Cluster, row: Row) -> Option<String> {
        let actual = self.twice_on(cluster, row);
        let counted = self.twice.get(&row).cloned().unwrap_or_default();
        (counted != actual).then(|| {
            self.count_twice(cluster, row);
            let [counted, actual] = [&counted, &actual].map(|twice| serde_json::json!(cluster.resources().list(twice)));
            format!("{counted} instead of {actual}")
        })
    }

    /// Compares the reservations, what is allocated of each and the indexes over them with the objects and the pods in their places,
    /// and sets right what differs.
    pub fn audit_reservations(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let actual = Self::recount(cluster);
        let added = actual.infos.keys().chain(actual.consumers.keys()).filter(|uid| !self.is_known(uid));
        let uids = self.infos.keys().chain(self.consumers.keys()).chain(added);
        let mut uids: Vec<&Uid> = uids.filter(|uid| !self.knows_as(&actual, uid)).collect();
        uids.sort_unstable();
        uids.dedup();
        let mismatch = |uid: &Uid| {
            let details = format!("{} instead of {}", self.words(uid), actual.words(uid));
            Mismatch::new(subject(cluster, uid), "reservations", details)
        };
        let mut wrong: Vec<Mismatch> = uids.into_iter().map(mismatch).collect();
        let indexes = |cache: &Self| {
            let sets = (cache.unmarked.clone(), cache.shared.clone());
            (cache.by_node.clone(), cache.by_mark.clone(), sets, cache.named, cache.pods)
        };
        if wrong.is_empty() && indexes(self) != indexes(&actual) {
            let details = "reservations are found by what they are not found by";
            wrong.push(Mismatch::new(Subject::Cluster, "reservation_indexes", details));
        }
        if !wrong.is_empty() {
            *self = Self { generation: self.generation + 1, ..actual };
        }
        wrong
    }

    fn is_known(&self, uid: &Uid) -> bool {
        self.infos.contains_key(uid) || self.consumers.contains_key(uid)
    }

    /// Whether the same is known of a reservation, and of who uses it.
    fn knows_as(&self, other: &Self, uid: &Uid) -> bool {
        let known = |cache: &Self| {
            cache.infos.get(uid).map(|known| (known.info.clone(), known.allocatable.clone(), known.placed))
        };
        known(self) == known(other) && self.consumers.get(uid) == other.consumers.get(uid)
    }

    fn words(&self, uid: &Uid) -> String {
        let consumers = self.consumers.get(uid).map_or(0, std::collections::BTreeMap::len);
        match self.infos.get(uid) {
            None => format!("{consumers} owners of {uid}, which is no reservation"),
            Some(Known { info, .. }) => {
                let allocated: Vec<String> =
                    info.allocated().iter().map(|(name, amount)| format!("{name}={amount}")).collect();
                let allocated = allocated.join(" ");
                format!(
                    "{consumers} owners of {} on {} with {} of {allocated}",
                    info.name,
                    info.node,
                    info.assigned_count()
                )
            }
        }
    }

    /// What the objects and the pods in their places amount to.
    fn recount(cluster: &Cluster) -> Self {
        let mut actual = Self::default();
        for placed in cluster.pods() {
            if let Some(Allocated { uid, .. }) = placed.holds.get() {
                let requests = ResourceAmounts::from(&placed.pod.template.requests);
                actual.consumers.entry(uid.clone()).or_default().insert(placed.pod.uid.clone(), requests);
            }
        }
        for (_, object) in cluster.objects().of::<Reservation>().filter(|(_, object)| !is_over(&object.status)) {
            let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
            let assumed = cluster.pod(&uid).and_then(|placed| assumed_on(placed, cluster));
            actual.know(cluster, object, assumed);
        }
        for placed in cluster.pods().filter(|placed| is_reservation_mode(&placed.pod)) {
            if let Some(node) = cluster.name(placed.row) {
                actual.know_pod(cluster, &placed.pod, node);
            }
        }
        actual
    }
}

/// The object or the pod that is the reservation of this uid.
fn subject(cluster: &Cluster, uid: &Uid) -> Subject {
    let pod = cluster.pod(uid).map(|placed| &placed.pod);
    let key = pod.and_then(|pod| pod.reservation.as_ref()).map(|reference| &reference.key);
    match (key, pod) {
        (Some(key), _) => Subject::of::<Reservation>(cluster, key),
        (None, Some(pod)) => Subject::Object { kind: ResourceKind::POD, key: pod.key.clone(), uid: uid.clone() },
        (None, None) => Subject::Cluster,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::key::ObjectKey;
    use koord_scheduler_framework::{hold::Holds, object::Object, pod::Pod};
    use koord_scheduler_testing::{labelled, node};
    use serde_json::{Value, json};

    use super::*;

    /// What makes a sum wrong.
    type Spoil = fn(&mut ReservationCache);

    const REQUESTS: fn() -> Value = || json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});

    fn empty() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::<ReservationCache>::default());
        cluster
    }

    /// A reservation of two cores on a node, one of which a pod has.
    fn stage() -> Cluster {
        let mut cluster = empty();
        cluster.set_node(node("n", &json!({"status": {"allocatable": {"cpu": "9", "pods": "9"}}})));
        let owner = json!({"labelSelector": {"matchLabels": {"app": "a"}}});
        let template = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}});
        let object: Reservation = serde_json::from_value(json!({
            "metadata": {"name": "r", "uid": "r"},
            "spec": {"owners": [owner], "template": template, "allocateOnce": false},
            "status": {"phase": "Available", "nodeName": "n"},
        }))
        .unwrap();
        let reserve_pod = crate::ReservePod::new(&object).unwrap().pod;
        cluster.set_object(Object::new(ObjectKey::cluster("r"), Uid::from("r"), false, Arc::new(object)));
        cluster.place(Arc::new(reserve_pod), &"n".into(), Holds::default());
        let mut holds = Holds::default();
        holds.set(Allocated { name: "r".into(), uid: Uid::from("r") });
        cluster.place(labelled("ns", "p", &[("app", "a")], &REQUESTS()), &"n".into(), holds);
        cluster
    }

    fn shown(cluster: &Cluster) -> String {
        let ReservationCache { infos, by_node, twice, by_mark, unmarked, shared, named, pods, consumers, .. } =
            cluster.state().unwrap();
        format!("{infos:?} {by_node:?} {twice:?} {by_mark:?} {unmarked:?} {shared:?} {named} {pods} {consumers:?}")
    }

    #[test]
    fn reservations_that_are_spoilt_are_found_and_counted_anew() {
        let uid = || Uid::from("r");
        let one = "1 owners of r on n with 1 of cpu=1000";
        let spoil: [(&str, String, Spoil); 6] = [
            ("reservations", format!("1 owners of r, which is no reservation instead of {one}"), |cache| {
                cache.infos.clear();
            }),
            ("reservations", format!("1 owners of r on n with 0 of  instead of {one}"), |cache| {
                cache.infos.values_mut().for_each(|known| known.info.unassign(&Uid::from("p")));
            }),
            ("reservations", format!("0 owners of r on n with 1 of cpu=1000 instead of {one}"), |cache| {
                cache.consumers.clear();
            }),
            ("reservation_indexes", "reservations are found by what they are not found by".to_owned(), |cache| {
                cache.by_mark.clear();
            }),
            ("reservation_indexes", "reservations are found by what they are not found by".to_owned(), |cache| {
                cache.shared.clear();
            }),
            ("reserved_twice", r#"{} instead of {"cpu":"1"}"#.to_owned(), |cache| cache.twice.clear()),
        ];
        for (sum, details, spoil) in spoil {
            let mut cluster = stage();
            let audit = |cluster: &mut Cluster| {
                let mut found = cluster.audit(cluster.row("n").unwrap());
                found.extend(cluster.audit_whole(1));
                found
            };
            assert_eq!(audit(&mut cluster), []);
            let right = shown(&cluster);
            spoil(cluster.state_mut::<ReservationCache>().unwrap());
            let found = audit(&mut cluster);
            assert!(found.iter().any(|found| (found.sum, &found.details) == (sum, &details)), "{sum}: {found:#?}");
            let object = |subject: &Subject| matches!(subject, Subject::Object { uid: of, .. } if *of == uid());
            assert!(found.iter().all(|found| found.sum != "reservations" || object(&found.subject)));
            assert_eq!((shown(&cluster), audit(&mut cluster)), (right, vec![]));
        }
    }

    fn holder(annotations: &[(&str, &str)]) -> Arc<Pod> {
        let labels = [("scheduling.koordinator.sh/operating-mode", "Reservation")];
        let pod = labelled("ns", "keeper", &labels, &REQUESTS());
        let given = annotations.iter().copied().collect();
        Arc::new(Pod { node: Some("n".into()), is_running: true, is_ready: true, given, ..Pod::clone(&pod) })
    }

    #[test]
    fn a_pod_that_is_a_reservation_may_be_added_before_its_node() {
        let mut cluster = empty();
        cluster.place(holder(&[]), &"n".into(), Holds::default());
        cluster.set_node(node("n", &json!({})));
        let cache = cluster.state::<ReservationCache>().unwrap();
        assert_eq!(cache.on_node("n").map(|info| &*info.name).collect::<Vec<_>>(), ["keeper"]);
    }

    #[test]
    fn the_owner_that_a_pod_names_remains_its_owner() {
        let mut cluster = empty();
        cluster.set_node(node("n", &json!({})));
        let owner = ("scheduling.koordinator.sh/reservation-current-owner", r#"{"name":"p","uid":"p"}"#);
        cluster.place(holder(&[owner]), &"n".into(), Holds::default());
        let mut holds = Holds::default();
        holds.set(Allocated { name: "keeper".into(), uid: Uid::from("keeper") });
        cluster.place(labelled("ns", "p", &[], &REQUESTS()), &"n".into(), holds);
        let owners = |cluster: &Cluster| {
            let info = cluster.state::<ReservationCache>().unwrap().info(&Uid::from("keeper")).unwrap();
            (info.assigned_count(), info.allocated().get("cpu"))
        };
        assert_eq!(owners(&cluster), (1, 1000));
        cluster.remove_pod(&Uid::from("p"));
        assert_eq!(owners(&cluster), (1, 0));
        cluster.place(holder(&[]), &"n".into(), Holds::default());
        assert_eq!(owners(&cluster), (0, 0));
    }

    #[test]
    fn reservations_that_are_gone_leave_nothing_by_which_they_were_found() {
        let mut cluster = stage();
        cluster.remove_pod(&Uid::from("p"));
        cluster.remove_pod(&Uid::from("r"));
        cluster.remove_object(std::any::TypeId::of::<Reservation>(), "r");
        assert_eq!(shown(&cluster), shown(&empty()));
    }
}
