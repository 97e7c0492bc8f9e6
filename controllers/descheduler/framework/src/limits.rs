//! How many pods a pass may evict.

use std::{collections::BTreeMap, sync::Arc};

use crate::{pod::Pod, reason::ReasonCode, refusal::Refusal};

/// Limits of one pass, over all profiles. `None` is no limit, and 0 lets nothing be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub per_node: Option<u32>,
    pub per_namespace: Option<u32>,
    pub total: Option<u32>,
}

/// What has been evicted of the limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evicted {
    by_node: BTreeMap<Arc<str>, u32>,
    by_namespace: BTreeMap<Box<str>, u32>,
    total: u32,
}

impl Evicted {
    /// Whether one more pod may be evicted.
    pub(crate) fn allows(&self, pod: &Pod, limits: &Limits) -> Result<(), Refusal> {
        let on_node = pod.node.as_ref().map(|node| self.by_node.get(node).copied().unwrap_or(0));
        let in_namespace = self.by_namespace.get(pod.namespace()).copied().unwrap_or(0);
        let checks = [
            (on_node, limits.per_node, ReasonCode::NodeLimit),
            (Some(in_namespace), limits.per_namespace, ReasonCode::NamespaceLimit),
            (Some(self.total), limits.total, ReasonCode::TotalLimit),
        ];
        for (evicted, limit, code) in checks {
            if let (Some(evicted), Some(limit)) = (evicted, limit)
                && evicted >= limit
            {
                return Err(Refusal::new(code).with("limit", i64::from(limit)));
            }
        }
        Ok(())
    }

    /// Whether no pod at all may be evicted any more.
    pub(crate) fn is_used_up(&self, limits: &Limits) -> bool {
        limits.total.is_some_and(|limit| self.total >= limit)
    }

    /// A pod is evicted.
    pub(crate) fn add(&mut self, pod: &Pod) {
        if let Some(node) = &pod.node {
            *self.by_node.entry(Arc::clone(node)).or_default() += 1;
        }
        *self.by_namespace.entry(pod.namespace().into()).or_default() += 1;
        self.total += 1;
    }
}

#[cfg(test)]
mod tests {
    use koord_core::key::ObjectKey;

    use super::*;

    /// Pods (namespace, node) one after the other: which are evicted.
    fn evicted(limits: Limits, pods: &[(&str, &str)]) -> Vec<bool> {
        let mut evicted = Evicted::default();
        let mut evict = |(namespace, node): &(&str, &str)| {
            let pod = Pod { key: ObjectKey::new(namespace, "p"), node: Some((*node).into()), ..Pod::default() };
            let is_allowed = evicted.allows(&pod, &limits).is_ok();
            if is_allowed {
                evicted.add(&pod);
            }
            is_allowed
        };
        pods.iter().map(&mut evict).collect()
    }

    #[test]
    fn pods_are_evicted_up_to_each_limit() {
        let limits = |per_node, per_namespace, total| Limits { per_node, per_namespace, total };
        let same = [("default", "n1"), ("default", "n1")];
        assert_eq!(evicted(limits(Some(1), None, None), &same), [true, false]);
        assert_eq!(evicted(limits(None, Some(1), None), &same), [true, false]);
        let three = [("default", "n1"), ("default", "n1"), ("default", "n2")];
        assert_eq!(evicted(limits(None, None, Some(2)), &three), [true, true, false]);
        let mixed = [("default", "n1"), ("default", "n1"), ("default", "n2"), ("kube-system", "n1")];
        assert_eq!(evicted(limits(Some(1), Some(1), Some(2)), &mixed), [true, false, false, false]);
        assert_eq!(evicted(Limits::default(), &mixed), [true; 4]);
        assert_eq!(evicted(limits(None, None, Some(0)), &same), [false, false], "0 is a limit");
    }
}
