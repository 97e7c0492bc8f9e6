//! What is written about a quota into its object (`spec/scheduler.md` 3D.8).

use std::collections::BTreeMap;

use koord_api::{
    protocol::Key,
    quota::{
        CHILD_REQUEST, DEFAULT_QUOTA, NON_PREEMPTIBLE_REQUEST, NON_PREEMPTIBLE_USED, REQUEST, ROOT_QUOTA, RUNTIME,
        SYSTEM_QUOTA,
    },
};
use koord_resource::ResourceList;

use super::{Forest, Settings};

/// The observed part of a quota: its status, and the annotations that the scheduler writes. Lists without a resource are
/// not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaStatus {
    /// `status.used`.
    pub used: ResourceList,
    /// Annotations, by name.
    pub annotations: BTreeMap<&'static str, ResourceList>,
}

impl QuotaStatus {
    /// The annotations that the scheduler writes.
    const KEYS: [&'static Key<ResourceList>; 5] =
        [&RUNTIME, &REQUEST, &CHILD_REQUEST, &NON_PREEMPTIBLE_REQUEST, &NON_PREEMPTIBLE_USED];

    /// What is to be written about a quota; none where there is no such quota.
    pub fn of(forest: &Forest, settings: &Settings, name: &str) -> Option<Self> {
        if name == ROOT_QUOTA {
            let sums = forest.root()?;
            let annotations = [
                (REQUEST.name(), sums.request.clone()),
                (NON_PREEMPTIBLE_REQUEST.name(), sums.non_preemptible_request.clone()),
                (NON_PREEMPTIBLE_USED.name(), sums.non_preemptible_used.clone()),
            ];
            return Some(Self { used: sums.used.clone(), annotations: annotations.into() });
        }
        let node = forest.node(name)?;
        let is_divided = settings.uses_runtime && !matches!(name, SYSTEM_QUOTA | DEFAULT_QUOTA);
        let annotations = [
            (RUNTIME.name(), if is_divided { forest.limit(name).into_owned() } else { ResourceList::new() }),
            (REQUEST.name(), node.request.clone()),
            (CHILD_REQUEST.name(), node.sums.request.clone()),
            (NON_PREEMPTIBLE_REQUEST.name(), node.sums.non_preemptible_request.clone()),
            (NON_PREEMPTIBLE_USED.name(), node.sums.non_preemptible_used.clone()),
        ];
        Some(Self { used: node.sums.used.clone(), annotations: annotations.into() })
    }

    /// What an object says.
    pub fn written<'t>(used: &ResourceList, annotation: impl Fn(&str) -> Option<&'t str>) -> Self {
        let read = |key: &'static Key<ResourceList>| {
            let text = annotation(key.name())?;
            Some((key.name(), key.read(text).unwrap_or_default()))
        };
        Self { used: used.clone(), annotations: Self::KEYS.into_iter().filter_map(read).collect() }
    }

    /// What is to be written instead of what an object says; none where both mean the same. A resource that is not listed
    /// any more is listed as 0, so that a reader does not take it for unknown.
    pub fn instead_of(&self, written: &Self) -> Option<Self> {
        let is_same = Self::KEYS.into_iter().all(|key| is_same(self.list(key), written.list(key)));
        if is_same && self::is_same(&self.used, &written.used) {
            return None;
        }
        let annotations = Self::KEYS.into_iter().map(|key| (key.name(), over(self.list(key), written.list(key))));
        let annotations = annotations.filter(|(_, list)| !list.is_empty()).collect();
        Some(Self { used: over(&self.used, &written.used), annotations })
    }

    fn list(&self, key: &Key<ResourceList>) -> &ResourceList {
        const NOTHING: &ResourceList = &ResourceList::new();
        self.annotations.get(key.name()).unwrap_or(NOTHING)
    }
}

/// Whether two lists mean the same: what is not listed is 0.
fn is_same(one: &ResourceList, another: &ResourceList) -> bool {
    one.minus(another).is_zero()
}

fn over(new: &ResourceList, old: &ResourceList) -> ResourceList {
    let zeros = old.minus(old);
    new.plus(&zeros)
}
