//! Which volumes that exist already may be bound to a claim, and which one is taken on a node.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use koord_core::key::ObjectKey;
use koord_resource::Quantity;
use koord_scheduler_framework::node::Node;
use koord_scheduling::Selector;

use super::storage::{Reach, capacity, class_of_claim, class_of_volume, host, hosts, requested};

/// The volumes that may be bound to a claim on some node.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    /// The volume that names the claim: no other is taken then.
    prebound: Option<Offer>,
    /// Volumes that name no claim, the smallest first.
    free: Vec<Offer>,
    /// Those of them that only nodes of some host names reach, by host name.
    by_host: BTreeMap<String, Vec<usize>>,
    anywhere: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Offer {
    name: Arc<str>,
    reach: Reach,
}

/// To which claim a volume belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Unclaimed,
    This,
    Other,
}

impl Offers {
    /// What these volumes, with the claims for which they are assumed, offer to a claim.
    pub(super) fn of<'a>(
        key: &ObjectKey,
        claim: &PersistentVolumeClaim,
        volumes: impl Iterator<Item = (&'a ObjectKey, &'a PersistentVolume, Option<&'a ObjectKey>)>,
    ) -> Self {
        // A selector that does not parse selects nothing; the API server stores none.
        let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let selector = selector.map(Selector::stored);
        let mut offers = Self::default();
        let mut free = BTreeMap::<(Quantity, &str), &PersistentVolume>::new();
        for (name, volume, assumed) in volumes.filter(|(_, volume, _)| suits(claim, volume)) {
            match owner(volume, assumed, key, claim) {
                Owner::This => {
                    let offer = || Offer { name: name.name().into(), reach: Reach::of(volume) };
                    offers.prebound.get_or_insert_with(offer);
                }
                Owner::Unclaimed if is_free(claim, volume, selector.as_ref()) => {
                    free.insert((capacity(volume), name.name()), volume);
                }
                Owner::Unclaimed | Owner::Other => {}
            }
        }
        for (index, ((_, name), volume)) in free.into_iter().enumerate() {
            match hosts(volume) {
                Some(hosts) => {
                    for host in hosts {
                        offers.by_host.entry(host.to_owned()).or_default().push(index);
                    }
                }
                None => offers.anywhere.push(index),
            }
            offers.free.push(Offer { name: name.into(), reach: Reach::of(volume) });
        }
        offers
    }

    /// The volume that is bound to the claim if its pod runs on a node, beside those that are taken already.
    pub(super) fn on(&self, node: &Node, taken: &BTreeSet<Arc<str>>) -> Option<&Arc<str>> {
        let reaches = |offer: &&Offer| offer.reach.includes(&node.labels);
        if let Some(prebound) = &self.prebound {
            return Some(prebound).filter(reaches).map(|offer| &offer.name);
        }
        let is_right = |index: &&usize| {
            let offer = self.free.get(**index).filter(reaches);
            offer.is_some_and(|offer| !taken.contains(&offer.name))
        };
        let of_host = host(node).and_then(|host| self.by_host.get(host)?.iter().find(is_right));
        let index = of_host.into_iter().chain(self.anywhere.iter().find(is_right)).min()?;
        self.free.get(*index).map(|offer| &offer.name)
    }
}

/// Whether a volume is of the kind that the claim requests, be it free or not.
fn suits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let (Some(claimed), Some(offered)) = (&claim.spec, &volume.spec) else { return false };
    let mode = |mode: &Option<String>| mode.as_deref().unwrap_or("Filesystem").to_owned();
    let attributes = |class: &Option<String>| class.as_deref().unwrap_or_default().to_owned();
    class_of_volume(volume) == class_of_claim(claim)
        && volume.metadata.deletion_timestamp.is_none()
        && mode(&claimed.volume_mode) == mode(&offered.volume_mode)
        && attributes(&claimed.volume_attributes_class_name) == attributes(&offered.volume_attributes_class_name)
        && capacity(volume) >= requested(claim).unwrap_or_default()
}

/// Whether an unclaimed volume can be taken.
fn is_free(claim: &PersistentVolumeClaim, volume: &PersistentVolume, selector: Option<&Option<Selector>>) -> bool {
    let label = |key: &str| volume.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let modes = |modes: Option<&Vec<String>>| modes.into_iter().flatten().cloned().collect::<BTreeSet<String>>();
    let requested = modes(claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref()));
    let offered = modes(volume.spec.as_ref().and_then(|spec| spec.access_modes.as_ref()));
    volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available")
        && selector.is_none_or(|selector| selector.as_ref().is_some_and(|selector| selector.selects(label)))
        && requested.is_subset(&offered)
}

fn owner(
    volume: &PersistentVolume,
    assumed: Option<&ObjectKey>,
    key: &ObjectKey,
    claim: &PersistentVolumeClaim,
) -> Owner {
    let named = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_this = match (assumed, named) {
        (Some(assumed), _) => assumed == key,
        (None, None) => return Owner::Unclaimed,
        (None, Some(named)) => {
            let same_uid = |uid: &str| uid.is_empty() || Some(uid) == claim.metadata.uid.as_deref();
            named.namespace.as_deref().unwrap_or_default() == key.namespace()
                && named.name.as_deref() == Some(key.name())
                && same_uid(named.uid.as_deref().unwrap_or_default())
        }
    };
    if is_this { Owner::This } else { Owner::Other }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::node;
    use serde_json::{Value, json};

    use super::*;
    use crate::volumes::testing::merged;

    fn on(volumes: &[(&str, Value)], claim: &Value, host: &str, taken: &[&str]) -> Option<String> {
        let claim = merged(
            json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u"}, "spec": {
                "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "5Gi"}},
            }}),
            claim,
        );
        let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
        let volumes: Vec<(ObjectKey, PersistentVolume)> = volumes
            .iter()
            .map(|(name, volume)| {
                let full = json!({"spec": {
                    "storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"},
                }, "status": {"phase": "Available"}});
                (ObjectKey::cluster(name), serde_json::from_value(merged(full, volume)).unwrap())
            })
            .collect();
        let offered = volumes.iter().map(|(key, volume)| (key, volume, None));
        let offers = Offers::of(&ObjectKey::new("ns", "c"), &claim, offered);
        let node = node("n", &json!({"metadata": {"labels": {"kubernetes.io/hostname": host}}}));
        let taken = taken.iter().map(|name| Arc::from(*name)).collect();
        offers.on(&node, &taken).map(ToString::to_string)
    }

    fn local(host: &str) -> Value {
        let hosts = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]);
        json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": hosts}]}}}})
    }

    #[test]
    fn the_smallest_volume_that_is_large_enough_and_in_reach_is_taken() {
        let size = |size: &str| json!({"spec": {"capacity": {"storage": size}}});
        let volumes = [("a", size("20Gi")), ("b", size("5Gi")), ("c", size("4Gi")), ("d", local("h1"))];
        assert_eq!(on(&volumes, &json!({}), "h2", &[]).as_deref(), Some("b"));
        assert_eq!(on(&volumes, &json!({}), "h2", &["b"]).as_deref(), Some("a"));
        assert_eq!(on(&volumes, &json!({}), "h1", &["b"]).as_deref(), Some("d"));
        assert_eq!(on(&volumes[2..], &json!({}), "h2", &[]), None);
    }

    #[test]
    fn a_volume_that_names_the_claim_is_taken_before_all_others_or_none_is() {
        let named = |reference: Value, host: &str| merged(local(host), &json!({"spec": {"claimRef": reference}}));
        let this = json!({"namespace": "ns", "name": "c"});
        let volumes = |reference: &Value| [("a", json!({})), ("b", named(reference.clone(), "h1"))];
        assert_eq!(on(&volumes(&this), &json!({}), "h1", &[]).as_deref(), Some("b"));
        assert_eq!(on(&volumes(&this), &json!({}), "h2", &[]), None);
        let same = json!({"namespace": "ns", "name": "c", "uid": "u"});
        assert_eq!(on(&volumes(&same), &json!({}), "h1", &[]).as_deref(), Some("b"));
        let earlier = json!({"namespace": "ns", "name": "c", "uid": "another"});
        assert_eq!(on(&volumes(&earlier), &json!({}), "h1", &[]).as_deref(), Some("a"));
    }

    #[test]
    fn a_volume_must_be_of_the_kind_that_the_claim_requests() {
        let taken = |claim: Value, volume: Value| on(&[("v", volume)], &claim, "h", &[]).is_some();
        assert!(taken(json!({}), json!({})));
        for (claim, volume) in [
            (json!({"spec": {"accessModes": ["ReadWriteMany"]}}), json!({})),
            (json!({"spec": {"volumeMode": "Block"}}), json!({})),
            (json!({"spec": {"storageClassName": "other"}}), json!({})),
            (json!({"spec": {"volumeAttributesClassName": "fast"}}), json!({})),
            (json!({"spec": {"selector": {"matchLabels": {"tier": "fast"}}}}), json!({})),
            (json!({"spec": {"selector": {"matchExpressions": [{"key": "tier", "operator": "Near"}]}}}), json!({})),
            (json!({}), json!({"status": {"phase": "Released"}})),
            (json!({}), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        ] {
            assert!(!taken(claim.clone(), volume.clone()), "{claim} {volume}");
        }
        let selector = json!({"spec": {"selector": {"matchLabels": {"tier": "fast"}}}});
        assert!(taken(selector, json!({"metadata": {"labels": {"tier": "fast"}}})));
        let beta = json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "other"}}});
        assert!(taken(beta.clone(), beta));
    }
}
