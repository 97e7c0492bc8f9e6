//! VolumeRestrictions: disks that pods of one node cannot share, and claims that only one pod of the cluster may use.

mod audit;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use koord_core::key::ObjectKey;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, Plugin, PluginState, PreFilter, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Rejection, Request, SchedulingSignature,
    cluster::{Cluster, Mismatch, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    pod::Pod,
};

use super::storage::{is_claim_of, stored};

/// Refuses nodes where a pod has a disk that this one cannot share, and all nodes while a pod uses a claim of this one that
/// is `ReadWriteOncePod`.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeRestrictions;

/// How many pods use a claim, wherever they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClaimsInUse(BTreeMap<ObjectKey, u32>);

/// A node has a disk of the pod.
const DISK: u16 = 0;
/// A pod has a claim of the pod.
const CLAIM: u16 = 1;

struct SharedVolumes {
    pod: Arc<Pod>,
    /// Claims that only one pod may use.
    exclusive: Vec<ObjectKey>,
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<PersistentVolumeClaim>()] })
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .state(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for VolumeRestrictions {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::POD_REMOVED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            Event::PodRemoved(gone) => {
                let claims = gone.claims();
                conflict(pod, gone) || pod.claims().iter().any(|claim| claims.contains(claim))
            }
            Event::Object(_) => is_claim_of(pod, event, true),
            _ => true,
        }
    }
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        for claim in request.pod.claims().iter().filter(|claim| !claim.is_ephemeral) {
            if stored(claim, cluster.objects()).is_none() {
                let words = format!("persistentvolumeclaim {:?} not found", claim.key.name());
                return Err(Rejection::unresolvable(ReasonCode::VolumeNotFound.reason(words)));
            }
        }
        Ok(())
    }
}

impl Filter for VolumeRestrictions {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let pod = request.pod;
        let is_exclusive = |claim: &PersistentVolumeClaim| {
            let mut modes = claim.spec.iter().filter_map(|spec| spec.access_modes.as_ref()).flatten();
            modes.any(|mode| mode == "ReadWriteOncePod")
        };
        let claims = pod.claims().into_iter();
        let exclusive = claims.filter(|claim| stored(claim, cluster.objects()).is_some_and(is_exclusive));
        let exclusive: Vec<ObjectKey> = exclusive.map(|claim| claim.key).collect();
        if exclusive.is_empty() && pod.disks().next().is_none() {
            return PreparedFilter::Skip;
        }
        PreparedFilter::Nodes(Box::new(SharedVolumes { pod: Arc::clone(pod), exclusive }))
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        let reason = match refusal.reason {
            DISK => "node(s) had no available disk",
            _ => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
        };
        ReasonCode::VolumeInUse.reason(reason).into()
    }
}

impl PluginState for VolumeRestrictions {
    fn state(&self) -> Box<dyn State> {
        Box::new(ClaimsInUse::default())
    }
}

impl SchedulingSignature for VolumeRestrictions {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.has_claims()
    }
}

impl NodeFilter for SharedVolumes {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        if cluster.pods_on(row).any(|placed| conflict(&self.pod, &placed.pod)) {
            return Err(Refusal::resolvable(DISK, 0));
        }
        let in_use =
            |claim: &ObjectKey| cluster.state::<ClaimsInUse>().is_some_and(|known| known.0.contains_key(claim));
        if self.exclusive.iter().any(in_use) {
            return Err(Refusal::resolvable(CLAIM, 0));
        }
        Ok(())
    }
}

impl ClaimsInUse {
    fn add(&mut self, pod: &Pod) {
        for claim in pod.claims() {
            *self.0.entry(claim.key).or_default() += 1;
        }
    }
}

impl State for ClaimsInUse {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        self.add(&placed.pod);
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit(cluster)
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        for claim in placed.pod.claims() {
            let uses = self.0.entry(claim.key.clone()).or_default();
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                self.0.remove(&claim.key);
            }
        }
    }
}

fn conflict(pod: &Pod, other: &Pod) -> bool {
    pod.disks().any(|disk| other.disks().any(|taken| disk.conflicts(taken)))
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{node, pod};
    use serde_json::{Value, json};

    use super::*;
    use crate::volumes::testing::{answers, change, cluster, place, with_claims};

    fn nodes() -> Vec<Arc<koord_scheduler_framework::node::Node>> {
        vec![node("a", &json!({})), node("b", &json!({}))]
    }

    fn disk(name: &str) -> Value {
        json!({"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": name}}]})
    }

    #[test]
    fn a_disk_is_used_by_one_pod_of_a_node() {
        let mut cluster = cluster(&VolumeRestrictions, &nodes(), &[]);
        place(&mut cluster, "first", "a", &disk("d"));
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &disk("d")), ["U node(s) had no available disk", ""]);
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &disk("e")), ["", ""]);
        assert!(!VolumeRestrictions.is_individual(&pod("p", &disk("d")), &cluster));
    }

    #[test]
    fn a_claim_for_one_pod_is_used_by_one_pod_of_the_cluster() {
        let modes = |mode: &str| json!({"spec": {"accessModes": [mode]}});
        let claims = [("claim", "one", modes("ReadWriteOncePod")), ("claim", "many", modes("ReadWriteMany"))];
        let mut cluster = cluster(&VolumeRestrictions, &nodes(), &claims);
        let spec = with_claims(&["one"]);
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &spec), ["", ""]);
        place(&mut cluster, "first", "a", &with_claims(&["one", "many"]));
        let refused = "U node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use \
                       by another pod";
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &spec), [refused, refused]);
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &with_claims(&["many"])), ["", ""]);
        {
            let mut trial = cluster.trial();
            trial.remove(&"first".into());
            assert_eq!(trial.state::<ClaimsInUse>(), Some(&ClaimsInUse::default()));
        }
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &spec), [refused, refused]);
        cluster.remove_pod(&"first".into());
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &spec), ["", ""]);
    }

    #[test]
    fn a_claim_of_the_same_name_elsewhere_is_another_claim() {
        let claims = [("claim", "one", json!({"spec": {"accessModes": ["ReadWriteOncePod"]}}))];
        let mut cluster = cluster(&VolumeRestrictions, &nodes(), &claims);
        let first = pod("first", &with_claims(&["one"]));
        let elsewhere = Pod { key: ObjectKey::new("elsewhere", "first"), ..Pod::clone(&first) };
        cluster.place(Arc::new(elsewhere), &"a".into(), koord_scheduler_framework::hold::Holds::default());
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &with_claims(&["one"])), ["", ""]);
    }

    #[test]
    fn a_pod_waits_for_its_claim_and_for_the_users_of_its_volumes() {
        let mut cluster = cluster(&VolumeRestrictions, &nodes(), &[]);
        let refused = r#"Unresolvable: persistentvolumeclaim "c" not found"#;
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &with_claims(&["c"])), [refused]);
        let waiting = pod("waiting", &with_claims(&["c"]));
        let helps = |pod: &Pod, event: &Event| VolumeRestrictions.is_helped_by(pod, event, &Cluster::default());
        let there = json!({});
        assert!(helps(&waiting, &change(&mut cluster, "claim", "c", [None, Some(&there)])));
        assert!(!helps(&waiting, &change(&mut cluster, "claim", "d", [None, Some(&there)])));
        assert!(!helps(&waiting, &change(&mut cluster, "claim", "c", [Some(&there), Some(&there)])));
        assert!(helps(&waiting, &Event::PodRemoved(pod("gone", &with_claims(&["c"])))));
        assert!(!helps(&waiting, &Event::PodRemoved(pod("gone", &with_claims(&["d"])))));
        assert!(helps(&pod("p", &disk("d")), &Event::PodRemoved(pod("gone", &disk("d")))));
    }
}
