//! The rules of preemption that most plugins begin with: pods of a lower priority may be victims.

use std::collections::BTreeSet;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use koord_core::uid::Uid;
use koord_scheduling::Selector;

use super::Rules;
use crate::cluster::{Cluster, Placed};

/// Pods of a lower priority may be victims; those whose eviction a PodDisruptionBudget does not allow are taken last.
#[derive(Clone, Copy, Debug)]
pub struct LowerPriority {
    /// The priority of the preemptor.
    pub priority: i32,
}

impl Rules for LowerPriority {
    fn may_evict(&self, placed: &Placed, _: &Cluster) -> bool {
        placed.pod.template.priority < self.priority
    }

    fn has_victims(&self, cluster: &Cluster) -> bool {
        cluster.classes().flatten().any(|class| class.template().priority < self.priority)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        let mut budgets: Vec<(&str, Selector, i32, &PodDisruptionBudget)> = cluster
            .objects()
            .of::<PodDisruptionBudget>()
            .filter_map(|(key, budget)| {
                // Without a selector, or with an empty one, it is about no pod.
                let selector = Selector::stored(budget.spec.as_ref()?.selector.as_ref()?)?;
                let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
                (!selector.is_everything()).then_some((key.namespace(), selector, allowed, budget))
            })
            .collect();
        let mut protected = BTreeSet::new();
        for placed in pods {
            let (template, name) = (&placed.pod.template, placed.pod.key.name());
            if template.labels.iter().next().is_none() {
                continue;
            }
            for (namespace, selector, allowed, budget) in &mut budgets {
                let is_counted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
                let is_counted = is_counted.is_some_and(|pods| pods.contains_key(name));
                if *namespace != &*template.namespace || is_counted || !selector.selects(|key| template.labels.get(key))
                {
                    continue;
                }
                *allowed = allowed.saturating_sub(1);
                if *allowed < 0 {
                    protected.insert(placed.pod.uid.clone());
                }
            }
        }
        protected
    }

    fn no_victims(&self, _node: &str) -> String {
        "No preemption victims found for incoming pod".to_owned()
    }
}
