//! NodeVolumeLimits: a node attaches so many volumes of a CSI driver, and no more.

mod audit;
mod csi;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSINode, StorageClass, VolumeAttachment},
};
use koord_core::key::ObjectKey;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, Plugin, PluginState, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Request, SchedulingSignature,
    cluster::{Cluster, Mismatch, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    object::ObjectChange,
    pod::Pod,
    volume::Disk,
};

use self::csi::CsiVolume;
use super::storage::is_claim_of;

/// Refuses nodes that would have to attach more volumes of a driver than its CSINode allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeVolumeLimits;

/// What is attached to nodes, by the pods there and by the objects that say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Attached {
    rows: BTreeMap<Row, OnRow>,
    /// The names of the VolumeAttachments of each node.
    attachments: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
}

/// The volumes of the pods of a row, each with the number of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OnRow {
    claims: BTreeMap<ObjectKey, u32>,
    disks: BTreeMap<Disk, u32>,
}

/// The volumes that a pod brings.
struct Brought(Vec<CsiVolume>);

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(
                const {
                    &[
                        ResourceKind::typed::<PersistentVolumeClaim>(),
                        ResourceKind::typed::<PersistentVolume>(),
                        ResourceKind::typed::<StorageClass>(),
                        ResourceKind::typed::<CSINode>(),
                        ResourceKind::typed::<VolumeAttachment>(),
                    ]
                },
            )
            .enqueue_extensions(&self)
            .filter(&self)
            .state(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeVolumeLimits {
    fn events_to_register(&self) -> Events {
        Events::POD_REMOVED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            Event::PodRemoved(gone) => gone.has_claims() || has_attachable_disks(gone),
            Event::Object(change) => {
                if let Some((old, new)) = change.of::<CSINode>() {
                    return new.is_some_and(|new| old.is_none_or(|old| raises_a_limit(old, new)));
                }
                matches!(change.of::<VolumeAttachment>(), Some((Some(_), None))) || is_claim_of(pod, event, true)
            }
            _ => true,
        }
    }
}

impl Filter for NodeVolumeLimits {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let claims = request.pod.claims().into_iter();
        let mut volumes: Vec<CsiVolume> =
            claims.filter_map(|claim| CsiVolume::of_claim(&claim.key, cluster.objects())).collect();
        volumes.extend(request.pod.disks().filter_map(CsiVolume::of_disk));
        volumes.sort();
        volumes.dedup();
        if volumes.is_empty() { PreparedFilter::Skip } else { PreparedFilter::Nodes(Box::new(Brought(volumes))) }
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::VolumeLimitExceeded.reason("node(s) exceed max volume count").into()
    }
}

impl PluginState for NodeVolumeLimits {
    fn state(&self) -> Box<dyn State> {
        Box::new(Attached::default())
    }
}

impl SchedulingSignature for NodeVolumeLimits {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.has_claims() || has_attachable_disks(pod)
    }
}

impl NodeFilter for Brought {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node) = cluster.node(row) else { return Ok(()) };
        let Some(csi_node) = cluster.objects().get::<CSINode>(&node.name) else { return Ok(()) };
        let limits = limits(csi_node);
        let counts = |volume: &CsiVolume| limits.contains_key(&*volume.driver) && volume.counts_on(csi_node);
        let brought: Vec<&CsiVolume> = self.0.iter().filter(|volume| counts(volume)).collect();
        if brought.is_empty() {
            return Ok(());
        }
        let attached = cluster.state::<Attached>().map(|state| state.on(cluster, row, &node.name));
        let mut attached = attached.unwrap_or_default();
        attached.retain(counts);
        let mut drivers = BTreeSet::new();
        for volume in brought {
            // A volume that is there already is not attached again.
            if attached.insert(volume.clone()) {
                drivers.insert(&*volume.driver);
            }
        }
        let of = |driver: &str| attached.iter().filter(|volume| *volume.driver == *driver).count();
        let exceeds = |driver: &&str| {
            let limit = limits.get(*driver).copied().unwrap_or(i32::MAX);
            i32::try_from(of(driver)).is_ok_and(|count| count > limit)
        };
        if drivers.iter().any(exceeds) { Err(Refusal::resolvable(0, 0)) } else { Ok(()) }
    }
}

impl Attached {
    /// The volumes that are attached to a node.
    fn on(&self, cluster: &Cluster, row: Row, node: &str) -> BTreeSet<CsiVolume> {
        let objects = cluster.objects();
        let of_pods = self.rows.get(&row);
        let claims = of_pods.into_iter().flat_map(|pods| pods.claims.keys());
        let disks = of_pods.into_iter().flat_map(|pods| pods.disks.keys());
        let attachments = self.attachments.get(node).into_iter().flatten();
        claims
            .filter_map(|claim| CsiVolume::of_claim(claim, objects))
            .chain(disks.filter_map(CsiVolume::of_disk))
            .chain(attachments.filter_map(|name| CsiVolume::of_attachment(objects.get(name.as_str())?, objects)))
            .collect()
    }
}

impl OnRow {
    fn add(&mut self, pod: &Pod) {
        for claim in pod.claims() {
            *self.claims.entry(claim.key).or_default() += 1;
        }
        for disk in pod.disks() {
            *self.disks.entry(disk.clone()).or_default() += 1;
        }
    }
}

impl State for Attached {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if !placed.pod.template.volumes.is_empty() {
            self.rows.entry(placed.row).or_default().add(&placed.pod);
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        let Some(row) = self.rows.get_mut(&placed.row).filter(|_| !placed.pod.template.volumes.is_empty()) else {
            return;
        };
        for claim in placed.pod.claims() {
            take_one(&mut row.claims, &claim.key);
        }
        for disk in placed.pod.disks() {
            take_one(&mut row.disks, disk);
        }
        if *row == OnRow::default() {
            self.rows.remove(&placed.row);
        }
    }

    fn object(&mut self, _: &Cluster, change: &ObjectChange) -> Vec<Row> {
        let (Some((old, new)), Some(key)) = (change.of::<VolumeAttachment>(), change.key()) else { return Vec::new() };
        if let Some(old) = old
            && let Some(names) = self.attachments.get_mut(&*old.spec.node_name)
        {
            names.remove(key);
            if names.is_empty() {
                self.attachments.remove(&*old.spec.node_name);
            }
        }
        if let Some(new) = new {
            self.attachments.entry(new.spec.node_name.as_str().into()).or_default().insert(key.clone());
        }
        // Pods that bring volumes are asked anew in each attempt.
        Vec::new()
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        self.audit_row(cluster, row).map(|details| ("volumes", details)).into_iter().collect()
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit_attachments(cluster)
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn has_attachable_disks(pod: &Pod) -> bool {
    pod.disks().any(|disk| CsiVolume::of_disk(disk).is_some())
}

/// How many volumes a node attaches, by driver; a driver that is not there has no limit.
fn limits(node: &CSINode) -> BTreeMap<&str, i32> {
    let limited = node.spec.drivers.iter();
    limited.filter_map(|driver| Some((driver.name.as_str(), driver.allocatable.as_ref()?.count?))).collect()
}

fn raises_a_limit(old: &CSINode, new: &CSINode) -> bool {
    let (old, new) = (limits(old), limits(new));
    old.iter().any(|(driver, limit)| new.get(driver).is_none_or(|new| new > limit))
}

#[cfg(test)]
mod tests {
    use koord_scheduler_framework::{hold::Holds, node::Node};
    use koord_scheduler_testing::{node, pod};
    use serde_json::{Value, json};

    use super::*;
    use crate::volumes::testing::{answers, change, cluster, place, with_claims};

    const REFUSED: &str = "U node(s) exceed max volume count";

    fn nodes() -> Vec<Arc<Node>> {
        vec![node("a", &json!({})), node("unlimited", &json!({}))]
    }

    fn limit(driver: &str, count: u32) -> Value {
        json!({"spec": {"drivers": [{"name": driver, "nodeID": "n", "allocatable": {"count": count}}]}})
    }

    /// A cluster where `a` attaches two volumes, with claims that are bound and one that is not.
    fn stage() -> Cluster {
        let mut objects = vec![
            ("csinode", "a", limit("d", 2)),
            ("class", "wait", json!({"provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"})),
            ("class", "elsewhere", json!({"provisioner": "other"})),
            ("claim", "new", json!({"spec": {"storageClassName": "wait"}})),
            ("claim", "other", json!({"spec": {"storageClassName": "elsewhere"}})),
        ];
        for (claim, volume) in [("c1", "v1"), ("c2", "v2"), ("c3", "v3")] {
            objects.push(("claim", claim, json!({"spec": {"volumeName": volume}})));
            objects.push(("volume", volume, json!({"spec": {"csi": {"driver": "d", "volumeHandle": volume}}})));
        }
        cluster(&NodeVolumeLimits, &nodes(), &objects)
    }

    fn filter_answers(cluster: &mut Cluster, claims: &[&str]) -> Vec<String> {
        answers(&NodeVolumeLimits, cluster, &with_claims(claims))
    }

    #[test]
    fn a_node_attaches_so_many_volumes_and_no_more() {
        let mut cluster = stage();
        assert_eq!(filter_answers(&mut cluster, &["c1", "c2"]), ["", ""]);
        assert_eq!(filter_answers(&mut cluster, &["c1", "c2", "c3"]), [REFUSED, ""]);
        assert_eq!(filter_answers(&mut cluster, &["c1", "new", "other"]), ["", ""]);
        assert_eq!(filter_answers(&mut cluster, &["c1", "c2", "new"]), [REFUSED, ""]);
        place(&mut cluster, "first", "a", &with_claims(&["c1", "c2"]));
        assert_eq!(filter_answers(&mut cluster, &["c1"]), ["", ""], "it is attached already");
        assert_eq!(filter_answers(&mut cluster, &["c3"]), [REFUSED, ""]);
        assert_eq!(filter_answers(&mut cluster, &["other"]), ["", ""]);
        cluster.remove_pod(&"first".into());
        assert_eq!(filter_answers(&mut cluster, &["c3"]), ["", ""]);
    }

    #[test]
    fn volumes_that_attachments_name_are_counted_once() {
        let attachment = |volume: &str| json!({"spec": {"attacher": "d", "nodeName": "a", "source": {"persistentVolumeName": volume}}});
        let mut cluster = stage();
        let (v1, v2) = (attachment("v1"), attachment("v2"));
        change(&mut cluster, "attachment", "x", [None, Some(&v1)]);
        change(&mut cluster, "attachment", "y", [None, Some(&v2)]);
        assert_eq!(filter_answers(&mut cluster, &["c3"]), [REFUSED, ""]);
        assert_eq!(filter_answers(&mut cluster, &["c2"]), ["", ""], "its volume is still attached");
        let gone = change(&mut cluster, "attachment", "x", [Some(&v1), None]);
        assert_eq!(filter_answers(&mut cluster, &["c3"]), ["", ""]);
        assert!(NodeVolumeLimits.is_helped_by(&pod("p", &with_claims(&["c3"])), &gone, &cluster));
    }

    #[test]
    fn disks_of_providers_belong_to_their_drivers() {
        let mut cluster = cluster(&NodeVolumeLimits, &nodes(), &[("csinode", "a", limit("ebs.csi.aws.com", 1))]);
        let disk = |id: &str| json!({"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": id}}]});
        place(&mut cluster, "first", "a", &disk("vol-1"));
        assert_eq!(answers(&NodeVolumeLimits, &mut cluster, &disk("aws://zone/vol-1")), ["", ""]);
        assert_eq!(answers(&NodeVolumeLimits, &mut cluster, &disk("vol-2")), [REFUSED, ""]);
        let iscsi = json!({"volumes": [{"name": "v", "iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}}]});
        assert_eq!(answers(&NodeVolumeLimits, &mut cluster, &iscsi), ["", ""]);
    }

    #[test]
    fn what_is_counted_is_what_is_there_whatever_came_before() {
        let mut cluster = stage();
        let empty = cluster.state::<Attached>().cloned();
        for round in 0..2 {
            for (name, claims) in [("p", vec!["c1"]), ("q", vec!["c1", "c2"]), ("r", vec![])] {
                let pod = pod(name, &with_claims(&claims));
                cluster.place(pod, &if round == 0 { "a" } else { "unlimited" }.into(), Holds::default());
            }
        }
        for name in ["p", "q", "r"] {
            cluster.remove_pod(&name.into());
        }
        assert_eq!(cluster.state::<Attached>().cloned(), empty);
    }

    #[test]
    fn higher_limits_and_pods_that_go_help() {
        let mut cluster = stage();
        let waiting = pod("p", &with_claims(&["c1"]));
        let helps = |event: &Event| NodeVolumeLimits.is_helped_by(&waiting, event, &Cluster::default());
        let mut changed = |old: &Value, new: &Value| change(&mut cluster, "csinode", "a", [Some(old), Some(new)]);
        assert!(helps(&changed(&limit("d", 2), &limit("d", 3))) && !helps(&changed(&limit("d", 3), &limit("d", 2))));
        assert!(helps(&changed(&limit("d", 2), &json!({"spec": {"drivers": []}}))));
        assert!(helps(&Event::PodRemoved(pod("gone", &with_claims(&["x"])))));
        assert!(!helps(&Event::PodRemoved(pod("gone", &json!({})))));
    }
}
