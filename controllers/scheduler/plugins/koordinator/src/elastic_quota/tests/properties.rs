//! Sums and runtimes of trees that change, beside those of a tree that is built at once.

use std::collections::BTreeMap;

use koord_quota::{Demand, Snapshot};
use proptest::prelude::*;

use super::*;
use crate::elastic_quota::Kind;

proptest! {
    #[test]
    fn sums_follow_every_change_and_runtimes_are_those_of_the_whole_tree(
        quotas in proptest::collection::vec((0..6_usize, 0..30_i64, 0..60_i64, any::<bool>(), 0..3_i64), 1..6),
        steps in proptest::collection::vec((0..7_usize, 0..30_i64, any::<bool>(), 0..4_u8, any::<bool>()), 1..40),
        (scales_min, guarantees_usage) in any::<(bool, bool)>(),
    ) {
        let settings = || QuotaSettings { scales_min, guarantees_usage, ..QuotaSettings::default() };
        let name = |index: usize| format!("q{index}");
        // A quota's parent comes before it, or is the root.
        let quotas: Vec<Quota> = quotas.into_iter().enumerate().map(|(index, (parent, min, max, lends, weight))| {
            let mut labels = json!({"allow-lent-resource": lends.to_string()});
            if parent < index {
                labels["parent"] = json!(name(parent));
            }
            let weights = json!({"shared-weight": format!(r#"{{"cpu":"{weight}"}}"#)});
            let amounts = |cpu: i64| json!({"cpu": cpu.to_string(), "memory": "9Gi"});
            quota(&name(index), amounts(min.min(max)), amounts(max), labels, weights)
        }).collect();
        let mut world = World::new(settings(), quotas.clone());
        let mut pods = Vec::new();
        for (which, cpu, is_preemptible, action, changes) in steps {
            let claim = Claim { label: name(which).into(), namespace: "default".into() };
            let requests = list(json!({"cpu": cpu.to_string(), "memory": "1Gi"}));
            if action == 0 && !pods.is_empty() {
                let (claim, requests, is_preemptible): (Claim, ResourceList, bool) = pods.swap_remove(which % pods.len());
                let pod = Counted { claim: &claim, requests: &requests, is_preemptible };
                world.ledger.unplace(pod);
                world.ledger.unrequest(pod);
            } else {
                let pod = Counted { claim: &claim, requests: &requests, is_preemptible };
                world.ledger.request(pod);
                world.ledger.place(pod);
                pods.push((claim, requests, is_preemptible));
            }
            if changes {
                world.ledger.quotas_changed();
            }
            let forest = world.forest();
            let mut rebuilt = World::new(settings(), quotas.clone());
            for (claim, requests, is_preemptible) in &pods {
                let pod = Counted { claim, requests, is_preemptible: *is_preemptible };
                rebuilt.ledger.request(pod);
                rebuilt.ledger.place(pod);
            }
            let zero_free = |list: &ResourceList| list.filtered(|_, amount| !amount.is_zero());
            for (name, node) in forest.nodes() {
                let twin = rebuilt.forest().node(name).unwrap();
                for kind in Kind::ALL {
                    prop_assert_eq!(zero_free(node.sums.get(kind)), zero_free(twin.sums.get(kind)), "{} {:?}", name, kind);
                }
                prop_assert_eq!(forest.limit(name), rebuilt.forest().limit(name), "{}", name);
            }
            if guarantees_usage {
                continue;
            }
            let own: BTreeMap<String, ResourceList> = quotas.iter().map(|quota| {
                let mut sum = ResourceList::new();
                pods.iter().filter(|(claim, ..)| *claim.label == *quota.name).for_each(|(_, requests, _)| sum.add(requests));
                (quota.name.clone(), sum)
            }).collect();
            let default: i64 = pods.iter().filter(|(claim, ..)| world.forest().node(&claim.label).is_none())
                .map(|(_, requests, _)| requests.amount("cpu").value()).sum();
            let memory = pods.iter().filter(|(claim, ..)| world.forest().node(&claim.label).is_none()).count();
            let total = list(json!({"cpu": (100 - default).to_string(), "memory": format!("{}Gi", 400 - i64::try_from(memory).unwrap())}));
            let requests = own.iter().map(|(name, list)| (name.as_str(), list.clone())).collect();
            let tree: Snapshot = quotas.iter().cloned().collect();
            let demand = Demand { total: &total, requests: &requests, scale_min: scales_min, guarantee: false };
            for (name, runtime) in koord_quota::runtime(&tree, demand) {
                prop_assert_eq!(&*forest.limit(name), &runtime, "{}", name);
            }
        }
    }
}
