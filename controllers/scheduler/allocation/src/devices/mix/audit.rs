//! What pods request of GPUs, counted anew.

use std::collections::BTreeMap;

use koord_core::uid::Uid;
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};

use super::{Demand, Mix};

impl Mix {
    /// Compares the demands of pods, and how many pods each set of allowed nodes has, with all pods that are known. Where they differ,
    /// all is counted anew.
    pub fn audit(&mut self, cluster: &Cluster) -> Option<String> {
        let demanding = cluster.known_pods().filter(|pod| Demand::of(&pod.template).is_some());
        let pods: BTreeMap<&Uid, &Pod> = demanding.map(|pod| (&pod.uid, &**pod)).collect();
        let is_right = |uid: &Uid, pod: &Pod| {
            let known = self.pods.get(uid);
            known.is_some_and(|(demand, slot)| Some(*demand) == Demand::of(&pod.template) && self.serves(*slot, pod))
        };
        let wrong = pods.iter().filter(|(uid, pod)| !is_right(uid, pod)).count();
        let mut counts = vec![0; self.affinities.len()];
        for (_, slot) in self.pods.values() {
            counts[usize::from(*slot)] += 1;
        }
        let is_counted = self.affinities.iter().map(|(_, pods)| *pods).eq(counts);
        if wrong == 0 && self.pods.len() == pods.len() && is_counted {
            return None;
        }
        let details = format!("{} pods instead of {}, {wrong} of them as they were", self.pods.len(), pods.len());
        (self.pods, self.affinities) = (BTreeMap::new(), Vec::new());
        for (uid, pod) in pods {
            if let Some(demand) = Demand::of(&pod.template) {
                let slot = self.slot(&pod.template.affinity);
                self.pods.insert(uid.clone(), (demand, slot));
            }
        }
        self.adopt(cluster);
        Some(details)
    }

    /// Whether a pod may count with those of this place.
    fn serves(&self, slot: u8, pod: &Pod) -> bool {
        slot == 0 || self.affinities.get(usize::from(slot)).is_some_and(|(known, _)| *known == pod.template.affinity)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::devices::Devices;

    /// What makes a sum wrong.
    type Spoil = fn(&mut Mix);

    #[test]
    fn demands_that_are_spoilt_are_found_and_counted_anew() {
        let spoil: [Spoil; 3] = [
            |mix| _ = mix.pods.pop_first(),
            |mix| mix.affinities[0].1 += 1,
            |mix| mix.pods.values_mut().for_each(|(demand, _)| demand.count += 1),
        ];
        for spoil in spoil {
            let mut cluster = Cluster::default();
            cluster.add_state(Box::<Devices>::default());
            for (name, nodes) in [("p", json!({})), ("q", json!({"zone": "a"}))] {
                let requests = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"});
                let container = json!({"resources": {"requests": requests, "limits": requests}});
                cluster.know(&koord_scheduler_testing::pod(
                    name,
                    &json!({"containers": [container], "nodeSelector": nodes}),
                ));
            }
            let audit = |cluster: &mut Cluster| cluster.audit_whole(1).len();
            assert_eq!(audit(&mut cluster), 0);
            spoil(&mut cluster.state_mut::<Devices>().unwrap().mix);
            assert_eq!([(); 2].map(|()| audit(&mut cluster)), [1, 0]);
            assert_eq!(cluster.state::<Devices>().unwrap().mix.pods.len(), 2);
        }
    }
}
