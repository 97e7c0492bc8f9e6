//! How many pods use each claim, counted anew.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use koord_scheduler_framework::cluster::{Cluster, Mismatch, Subject};

use super::ClaimsInUse;

impl ClaimsInUse {
    /// Compares how many pods use each claim with all pods that have their places, and sets right what differs.
    pub(super) fn audit(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut actual = Self::default();
        cluster.pods().for_each(|placed| actual.add(&placed.pod));
        let added = actual.0.keys().filter(|claim| !self.0.contains_key(*claim));
        let uses = |of: &Self, claim| of.0.get(claim).copied().unwrap_or(0);
        let wrong = self.0.keys().chain(added).filter_map(|claim| {
            let (cached, actual) = (uses(self, claim), uses(&actual, claim));
            let details = || format!("{cached} pods instead of {actual} use {claim}");
            let subject = || Subject::of::<PersistentVolumeClaim>(cluster, claim);
            (cached != actual).then(|| Mismatch::new(subject(), "claims_in_use", details()))
        });
        let wrong = wrong.collect();
        *self = actual;
        wrong
    }
}

#[cfg(test)]
mod tests {
    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_resource::controller::ResourceKind;
    use koord_scheduler_testing::node;
    use serde_json::json;

    use super::*;
    use crate::volumes::{
        VolumeRestrictions,
        testing::{cluster, place, with_claims},
    };

    #[test]
    fn claims_that_are_spoilt_are_found_and_counted_anew() {
        let claims = [("claim", "c1", json!({}))];
        let mut cluster = cluster(&VolumeRestrictions, &[node("a", &json!({}))], &claims);
        place(&mut cluster, "p", "a", &with_claims(&["c1", "c2"]));
        let right = cluster.state::<ClaimsInUse>().cloned();
        assert_eq!(cluster.audit_whole(1), []);
        let state = cluster.state_mut::<ClaimsInUse>().unwrap();
        state.0.values_mut().for_each(|uses| *uses = 2);
        state.0.remove("ns/c1");
        let object = Subject::Object {
            kind: ResourceKind::typed::<PersistentVolumeClaim>(),
            key: ObjectKey::new("ns", "c1"),
            uid: Uid::from("c1"),
        };
        let wrong = [
            Mismatch::new(Subject::Cluster, "claims_in_use", "2 pods instead of 1 use ns/c2"),
            Mismatch::new(object, "claims_in_use", "0 pods instead of 1 use ns/c1"),
        ];
        assert_eq!(cluster.audit_whole(1), wrong);
        assert_eq!(cluster.state::<ClaimsInUse>().cloned(), right);
    }
}
