//! VolumeZone: a volume with labels of a zone or region is reached from nodes of that zone or region.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, Plugin, PreFilter, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Rejection, Request, SchedulingSignature,
    cluster::Cluster,
    columns::Row,
    event::{Event, Events},
    pod::Pod,
};

use super::storage::{class_of_claim, is_claim_of, stored, volume_of, waits_for_consumer};

/// Refuses nodes outside of the zones and regions that the labels of the pod's volumes name.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeZone;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
/// The labels of places, the old names first, each with its name of today.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    (ZONE, ZONE),
    (REGION, REGION),
];

/// A label that a volume has, and the values of it that a node may have.
type Place = (&'static str, &'static str, BTreeSet<String>);

struct Places(Vec<Place>);

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(
                const {
                    &[
                        ResourceKind::typed::<PersistentVolumeClaim>(),
                        ResourceKind::typed::<PersistentVolume>(),
                        ResourceKind::typed::<StorageClass>(),
                    ]
                },
            )
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for VolumeZone {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        let Event::Object(change) = event else { return true };
        if let Some((None, Some(class))) = change.of::<StorageClass>() {
            return waits_for_consumer(class);
        }
        if let Some((old, Some(new))) = change.of::<PersistentVolume>() {
            return old.is_none_or(|old| places_of(old) != places_of(new));
        }
        is_claim_of(pod, event, false)
    }
}

impl PreFilter for VolumeZone {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        places(request.pod, cluster).map(drop)
    }
}

impl Filter for VolumeZone {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        match places(request.pod, cluster) {
            Ok(places) if !places.is_empty() => PreparedFilter::Nodes(Box::new(Places(places))),
            Ok(_) | Err(_) => PreparedFilter::Skip,
        }
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::VolumeZoneConflict.reason("node(s) had no available volume zone").into()
    }
}

impl SchedulingSignature for VolumeZone {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.has_claims()
    }
}

impl NodeFilter for Places {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node) = cluster.node(row) else { return Ok(()) };
        // In a cluster of one zone nodes need no labels.
        let has_place = LABELS.iter().any(|(label, _)| node.labels.get(label).is_some());
        let is_there = |(label, today, values): &Place| {
            let value = node.labels.get(label).or_else(|| node.labels.get(today));
            value.is_some_and(|value| values.contains(value))
        };
        if has_place && !self.0.iter().all(is_there) { Err(Refusal::unresolvable(0)) } else { Ok(()) }
    }
}

/// The places of the volumes to which the pod's claims are bound.
fn places(pod: &Pod, cluster: &Cluster) -> Result<Vec<Place>, Rejection> {
    let mut places = Vec::new();
    let objects = cluster.objects();
    let missing = |kind: &str, name: &str| {
        Rejection::unresolvable(ReasonCode::VolumeNotFound.reason(format!("{kind} {name:?} not found")))
    };
    // QUIRK: claims that are made for the pod are not looked at (`claims_that_are_made_for_the_pod_are_not_looked_at`).
    for claim in pod.claims().iter().filter(|claim| !claim.is_ephemeral) {
        let stored = stored(claim, objects).ok_or_else(|| missing("persistentvolumeclaim", claim.key.name()))?;
        if let Some(name) = volume_of(stored) {
            let volume = objects.get(name).ok_or_else(|| missing("persistentvolume", name))?;
            places.extend(places_of(volume));
            continue;
        }
        let class = class_of_claim(stored);
        if class.is_empty() {
            let message = "PersistentVolumeClaim had no pv name and storageClass name";
            return Err(Rejection::unresolvable(ReasonCode::VolumeInvalid.reason(message)));
        }
        let known = objects.get::<StorageClass>(class);
        let known = known.ok_or_else(|| missing("storageclass.storage.k8s.io", class))?;
        if !waits_for_consumer(known) {
            return Err(Rejection::unresolvable(ReasonCode::ClaimUnbound.reason("PersistentVolume had no name")));
        }
    }
    Ok(places)
}

fn places_of(volume: &PersistentVolume) -> Vec<Place> {
    let labelled = LABELS.iter().filter_map(|(label, today)| {
        let values = volume.metadata.labels.as_ref()?.get(*label)?;
        let values: BTreeSet<String> = values.split("__").map(|value| value.trim().to_owned()).collect();
        // A list with an empty value is not understood, and counts nothing.
        (!values.contains("")).then_some((*label, *today, values))
    });
    labelled.collect()
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{node, pod};
    use serde_json::{Value, json};

    use super::*;
    use crate::volumes::testing::{answers, change, cluster, with_claims};

    const REFUSED: &str = "UU node(s) had no available volume zone";

    fn volume(label: &str, value: &str) -> Value {
        json!({"metadata": {"labels": {label: value}}})
    }

    fn in_zones(label: &str, value: &str) -> Vec<String> {
        let nodes = [
            node("anywhere", &json!({})),
            node("a", &json!({"metadata": {"labels": {ZONE: "a", REGION: "r"}}})),
            node("old", &json!({"metadata": {"labels": {"failure-domain.beta.kubernetes.io/zone": "a"}}})),
        ];
        let claim = json!({"spec": {"volumeName": "v"}});
        let mut cluster = cluster(&VolumeZone, &nodes, &[("claim", "c", claim), ("volume", "v", volume(label, value))]);
        answers(&VolumeZone, &mut cluster, &with_claims(&["c"]))
    }

    #[test]
    fn a_node_with_a_place_is_in_that_of_the_volume() {
        assert_eq!(in_zones(ZONE, "a"), ["", "", REFUSED]);
        assert_eq!(in_zones(ZONE, "b__ a"), ["", "", REFUSED]);
        assert_eq!(in_zones(ZONE, "b"), ["", REFUSED, REFUSED]);
        assert_eq!(in_zones("failure-domain.beta.kubernetes.io/zone", "a"), ["", "", ""]);
        assert_eq!(in_zones(REGION, "r"), ["", "", REFUSED]);
        assert_eq!(in_zones(ZONE, "b__"), ["", "", ""], "a list that is not understood");
        assert_eq!(in_zones("disk", "b"), ["", "", ""]);
    }

    #[test]
    fn claims_that_are_made_for_the_pod_are_not_looked_at() {
        let nodes = [node("a", &json!({"metadata": {"labels": {ZONE: "a"}}}))];
        let claim = json!({"spec": {"volumeName": "v"}});
        let objects = [("claim", "tried-own", claim), ("volume", "v", volume(ZONE, "b"))];
        let mut cluster = cluster(&VolumeZone, &nodes, &objects);
        let own = json!({"volumes": [{"name": "own", "ephemeral": {}}]});
        assert_eq!(answers(&VolumeZone, &mut cluster, &own), [""]);
        assert_eq!(answers(&VolumeZone, &mut cluster, &with_claims(&["tried-own"])), [REFUSED]);
    }

    #[test]
    fn what_a_claim_names_exists_or_the_claim_waits_for_its_pod() {
        let class = |mode: &str| json!({"provisioner": "p", "volumeBindingMode": mode});
        let objects = [
            ("class", "wait", class("WaitForFirstConsumer")),
            ("class", "now", class("Immediate")),
            ("claim", "waits", json!({"spec": {"storageClassName": "wait"}})),
            ("claim", "unbound", json!({"spec": {"storageClassName": "now"}})),
            ("claim", "classless", json!({"spec": {}})),
            ("claim", "lost", json!({"spec": {"volumeName": "v"}})),
            ("claim", "strange", json!({"spec": {"storageClassName": "gone"}})),
        ];
        let mut cluster = cluster(&VolumeZone, &[node("a", &json!({}))], &objects);
        for (claim, answer) in [
            ("waits", ""),
            ("unbound", "Unresolvable: PersistentVolume had no name"),
            ("classless", "Unresolvable: PersistentVolumeClaim had no pv name and storageClass name"),
            ("lost", r#"Unresolvable: persistentvolume "v" not found"#),
            ("strange", r#"Unresolvable: storageclass.storage.k8s.io "gone" not found"#),
            ("none", r#"Unresolvable: persistentvolumeclaim "none" not found"#),
        ] {
            assert_eq!(answers(&VolumeZone, &mut cluster, &with_claims(&[claim])), [answer], "{claim}");
        }
    }

    #[test]
    fn changes_of_places_and_of_the_pods_claims_help() {
        let mut cluster = cluster(&VolumeZone, &[], &[]);
        let waiting = pod("p", &with_claims(&["c"]));
        let mut helps = |kind: &str, name: &str, versions: [Option<&Value>; 2]| {
            let event = change(&mut cluster, kind, name, versions);
            VolumeZone.is_helped_by(&waiting, &event, &Cluster::default())
        };
        let (a, b, other) = (volume(ZONE, "a"), volume(ZONE, "b"), volume("disk", "b"));
        assert!(helps("volume", "v", [None, Some(&a)]) && helps("volume", "v", [Some(&a), Some(&b)]));
        assert!(!helps("volume", "v", [Some(&a), Some(&a)]) && !helps("volume", "w", [Some(&other), Some(&json!({}))]));
        let claim = json!({"spec": {}});
        assert!(helps("claim", "c", [Some(&claim), Some(&claim)]) && !helps("claim", "d", [None, Some(&claim)]));
        let class = |mode: &str| json!({"provisioner": "p", "volumeBindingMode": mode});
        assert!(helps("class", "s", [None, Some(&class("WaitForFirstConsumer"))]));
        assert!(!helps("class", "t", [None, Some(&class("Immediate"))]));
    }
}
