//! What pods in their places hold of volumes, counted anew.

use koord_scheduler_framework::cluster::{Cluster, Mismatch, Subject};

use super::{Assumed, Counts};

impl Assumed {
    /// Compares what is held with what all pods in their places hold, and sets right what differs.
    pub(super) fn audit(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut actual = Self::default();
        cluster.pods().filter_map(|placed| placed.holds.get()).for_each(|held| actual.hold(held));
        if *self == actual {
            return Vec::new();
        }
        let details = format!("{} instead of {}", self.words(), actual.words());
        *self = actual;
        vec![Mismatch::new(Subject::Cluster, "assumed_volumes", details)]
    }

    fn words(&self) -> String {
        let [bound, provisioned] = [holders(&self.bindings), holders(&self.provisions)];
        format!(
            "{bound} pods with {} volumes and {provisioned} with {} claims",
            self.bindings.len(),
            self.provisions.len()
        )
    }
}

fn holders<K>(counts: &Counts<K>) -> u32 {
    counts.values().flat_map(|of| of.values()).sum()
}

#[cfg(test)]
mod tests {
    use koord_config::scheduler::VolumeBindingArgs;
    use koord_core::key::ObjectKey;
    use koord_scheduler_framework::hold::Holds;
    use koord_scheduler_testing::{node, pod};
    use serde_json::json;

    use super::*;
    use crate::volumes::{
        binding::assumed::{Binding, Provision, VolumesHeld},
        testing::cluster,
    };

    #[test]
    fn what_is_assumed_and_spoilt_is_found_and_counted_anew() {
        let mut cluster =
            cluster(&crate::VolumeBinding::new(&VolumeBindingArgs::default()), &[node("a", &json!({}))], &[]);
        let (claim, revision) = (ObjectKey::new("ns", "c"), "1".to_owned());
        let binding = Binding { volume: ObjectKey::cluster("v"), revision: revision.clone(), claim: claim.clone() };
        let held =
            VolumesHeld { node: "a".into(), bindings: vec![binding], provisions: vec![Provision { claim, revision }] };
        let mut holds = Holds::default();
        holds.set(held);
        cluster.place(pod("p", &json!({})), &"a".into(), holds);
        let right = cluster.state::<Assumed>().cloned();
        assert_eq!(cluster.audit_whole(1), []);
        cluster.state_mut::<Assumed>().unwrap().bindings.clear();
        let details = "0 pods with 0 volumes and 1 with 1 claims instead of 1 pods with 1 volumes and 1 with 1 claims";
        assert_eq!(cluster.audit_whole(1), [Mismatch::new(Subject::Cluster, "assumed_volumes", details)]);
        assert_eq!(cluster.state::<Assumed>().cloned(), right);
    }
}
