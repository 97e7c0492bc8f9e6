//! The devices of claims and of pools, counted anew.

use std::collections::BTreeMap;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    DoubleAllocation,
    cluster::{Cluster, Mismatch, Subject},
    dynamic::{DeviceId, ResourceClaim},
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

    /// Devices that several claims have.
    pub(super) fn double_allocations(&self, cluster: &Cluster) -> Vec<DoubleAllocation> {
        let objects = cluster.objects();
        let twice = self.ledger.double_allocations().into_iter().filter_map(|(device, claims)| {
            let names: Vec<&str> = claims.keys().map(|key| key.as_str()).collect();
            let known = claims.keys().filter_map(|key| objects.get::<ResourceClaim>(key.as_str()));
            let users = known.flat_map(|claim| &claim.status.reserved_for).map(|user| Uid::from(&*user.uid));
            let pods = users.chain(claims.values().flatten().copied().cloned()).collect();
            let first = claims.keys().next()?;
            let DeviceId { driver, pool, device } = device;
            Some(DoubleAllocation {
                what: "claimed_device",
                details: format!("device {driver}/{pool}/{device} is given to the claims {}", names.join(", ")),
                pods,
                subject: Some(Subject::of::<ResourceClaim>(cluster, first)),
            })
        });
        twice.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use koord_core::uid::Uid;
    use koord_scheduler_framework::Audit as _;
    use serde_json::{Value, json};

    use crate::dynamic_resources::{
        Devices,
        testing::{DRIVER, World, claimed, pod, request},
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

    /// A claim that has this device of node a for a pod, with these further members of the result.
    fn having(device: &str, pod: &str, members: &Value) -> Value {
        let mut result = members.clone();
        for (member, value) in [("request", "r"), ("driver", DRIVER), ("pool", "a"), ("device", device)] {
            result[member] = json!(value);
        }
        let mut claim = claimed(&json!([request("r", 1, &[])]));
        let allocation = json!({"devices": {"results": [result]}});
        claim["status"] = json!({"allocation": allocation, "reservedFor": [{"resource": "pods", "uid": pod}]});
        claim
    }

    #[test]
    fn a_device_that_two_claims_have_is_found_with_these_claims_and_their_pods() {
        let mut world = World::of(&["a"]);
        world.plain("a", &["0", "1"]);
        let found = |world: &World| -> Vec<String> {
            let found = world.plugin.double_allocations(&world.cluster, None);
            let pods = |pods: &BTreeSet<Uid>| pods.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
            found.iter().map(|one| format!("{} by {}", one.details, pods(&one.pods))).collect()
        };
        world.claim("c", &having("0", "p", &json!({})));
        world.claim("d", &claimed(&json!([request("r", 1, &[])])));
        let second = pod("q", &["d"]);
        world.reserve(&second, "a").unwrap();
        assert_eq!(found(&world), [""; 0], "the pod is given another one");
        world.claim("c", &having("1", "p", &json!({})));
        let twice = "device gpu.example.com/a/1 is given to the claims ns/c, ns/d by p+q";
        assert_eq!(found(&world), [twice], "another scheduler has given it, and this one did not see it");
        world.claim("c", &having("1", "p", &json!({"shareID": "one"})));
        assert_eq!(found(&world), [""; 0], "a part of it");
        world.claim("c", &having("1", "p", &json!({"adminAccess": true})));
        assert_eq!(found(&world), [""; 0], "to look after it");
        world.claim("c", &having("1", "p", &json!({})));
        let row = world.cluster.row("a");
        assert!(world.plugin.double_allocations(&world.cluster, row).is_empty(), "it belongs to no single node");
        world.cluster.remove_pod(&second.uid);
        assert_eq!(found(&world), [""; 0]);
    }
}
