//! How many pods PodDisruptionBudgets let go.

use std::collections::BTreeMap;

use koord_core::key::ObjectKey;
use koord_descheduler_framework::{Cluster, Pod, objects::DisruptionBudget};
use koord_scheduling::Selector;

/// The budgets of a cluster, with what is left of them.
pub(crate) struct Budgets<'a> {
    by_namespace: BTreeMap<&'a str, Vec<Budget<'a>>>,
}

struct Budget<'a> {
    key: &'a ObjectKey,
    selector: &'a Selector,
    left: i32,
}

impl<'a> Budgets<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Self {
        let mut by_namespace = BTreeMap::<&str, Vec<Budget<'_>>>::new();
        for (key, budget) in cluster.objects().of::<DisruptionBudget>() {
            let left = budget.disruptions_allowed;
            let selector = budget.selector.as_ref();
            by_namespace.entry(key.namespace()).or_default().extend(selector.map(|selector| Budget {
                key,
                selector,
                left,
            }));
        }
        Self { by_namespace }
    }

    /// Takes a pod out of its budgets, or names the one that forbids it.
    pub(crate) fn take(&mut self, pod: &Pod) -> Result<(), ObjectKey> {
        // A pod that has ended or does not run counts for no budget.
        if !pod.is_active() || !pod.is_ready() {
            return Ok(());
        }
        let Some(budgets) = self.by_namespace.get_mut(pod.namespace()) else { return Ok(()) };
        let selects = |budget: &Budget<'_>| budget.selector.selects(|key| pod.label(key));
        if let Some(empty) = budgets.iter().find(|budget| budget.left <= 0 && selects(budget)) {
            return Err(empty.key.clone());
        }
        for budget in budgets.iter_mut().filter(|budget| selects(budget)) {
            budget.left -= 1;
        }
        Ok(())
    }

    /// A pod stays after all.
    pub(crate) fn give_back(&mut self, pod: &Pod) {
        if !pod.is_active() || !pod.is_ready() {
            return;
        }
        let budgets = self.by_namespace.get_mut(pod.namespace()).into_iter().flatten();
        for budget in budgets.filter(|budget| budget.selector.selects(|key| pod.label(key))) {
            budget.left += 1;
        }
    }
}
