//! The devices of claims and of pools, counted anew.

use std::collections::BTreeMap;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_engine::{
    cluster::{Cluster, Mismatch, Subject},
    dynamic::ResourceClaim,
};

use super::{
    Devices,
    ledger::{ClaimHeld, ClaimsHeld},
    pools::Pools,
};

impl Devices {
    /// Compares which devices there are and which are given with the slices, the claims and the pods in their places, and sets right
    /// what differs.
    pub(super) fn audit(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut held: BTreeMap<ObjectKey, BTreeMap<Uid, ClaimHeld>> = BTreeMap::new();
        for placed in cluster.pods() {
            for claim in placed.holds.get::<ClaimsHeld>().into_iter().flat_map(|held| &held.0) {
                held.entry(claim.key.clone()).or_default().insert(placed.pod.uid.clone(), claim.clone());
            }
        }
        let mut wrong: Vec<Mismatch> = self
            .ledger
            .audit_claims(cluster.objects(), held)
            .into_iter()
            .map(|(claim, details)| Mismatch::new(Subject::of::<ResourceClaim>(cluster, &claim), "claims", details))
            .collect();
        let used = self.ledger.audit_used();
        wrong.extend(used.map(|details| Mismatch::new(Subject::Cluster, "claimed_devices", details)));
        let pools = Pools::of(cluster.objects());
        if self.pools != pools {
            let details = format!("{} instead of {}", self.pools.words(), pools.words());
            wrong.push(Mismatch::new(Subject::Cluster, "device_pools", details));
            self.pools = pools;
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::dynamic_resources::{
        Devices,
        testing::{World, claimed, pod, request},
    };

    /// What makes a sum wrong.
    type Spoil = fn(&mut Devices);

    #[test]
    fn devices_that_are_spoilt_are_found_and_counted_anew() {
        let mut world = World::of(&["a"]);
        world.plain("a", &["0", "1"]);
        world.claim("c", &claimed(&json!([request("r", 1, &[])])));
        world.claim("d", &claimed(&json!([request("r", 1, &[])])));
        world.reserve(&pod("p", &["c"]), "a").unwrap();
        let right = format!("{:?}", world.cluster.state::<Devices>());
        let spoil: [(&[(&str, &str)], Spoil); 3] = [
            (
                &[
                    ("claims", "0 pods instead of 1 hold devices for ns/c"),
                    ("claims", "ns/d as it was instead of as it is"),
                ],
                |devices| devices.ledger = crate::dynamic_resources::ledger::Ledger::default(),
            ),
            (&[("claimed_devices", "0 devices instead of 1")], |devices| devices.ledger.lose_count()),
            (&[("device_pools", "0 pools with 0 slices instead of 1 pools with 1 slices")], |devices| {
                devices.pools = crate::dynamic_resources::pools::Pools::default();
            }),
        ];
        for (wrong, spoil) in spoil {
            assert_eq!(world.cluster.audit_whole(1), []);
            spoil(world.cluster.state_mut::<Devices>().unwrap());
            let found = world.cluster.audit_whole(1);
            assert_eq!(found.iter().map(|found| (found.sum, &*found.details)).collect::<Vec<_>>(), wrong);
            assert_eq!(format!("{:?}", world.cluster.state::<Devices>()), right);
        }
    }
}
