//! What is written about a quota into its object (`spec/scheduler.md` 3D.8).

use std::collections::BTreeMap;

use koord_core::uid::Uid;
use koord_resource::ResourceList;
use koord_types::{
    elastic_quota::ElasticQuota,
    protocol::Key,
    quota::{
        ALLOCATED, CHILD_REQUEST, DEFAULT_QUOTA, GUARANTEED, NON_PREEMPTIBLE_REQUEST, NON_PREEMPTIBLE_USED, REQUEST,
        ROOT_QUOTA, RUNTIME, SYSTEM_QUOTA,
    },
};
use serde_json::{Value, json};

use super::{Forest, QuotaSettings};

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
    const KEYS: [&'static Key<ResourceList>; 7] =
        [&RUNTIME, &REQUEST, &CHILD_REQUEST, &NON_PREEMPTIBLE_REQUEST, &NON_PREEMPTIBLE_USED, &ALLOCATED, &GUARANTEED];

    /// What is to be written about a quota; none where there is no such quota.
    pub fn of(forest: &Forest, settings: &QuotaSettings, name: &str) -> Option<Self> {
        if name == ROOT_QUOTA {
            let sums = forest.root()?;
            let mut annotations = BTreeMap::from([
                (REQUEST.name(), sums.request.clone()),
                (NON_PREEMPTIBLE_REQUEST.name(), sums.non_preemptible_request.clone()),
                (NON_PREEMPTIBLE_USED.name(), sums.non_preemptible_used.clone()),
            ]);
            if settings.guarantees_usage {
                annotations.insert(ALLOCATED.name(), forest.guaranteed_to_all()?.clone());
            }
            return Some(Self { used: sums.used.clone(), annotations });
        }
        let node = forest.node(name)?;
        let is_special = matches!(name, SYSTEM_QUOTA | DEFAULT_QUOTA);
        let mut annotations = BTreeMap::from([
            (REQUEST.name(), node.request.clone()),
            (CHILD_REQUEST.name(), node.sums.request.clone()),
            (NON_PREEMPTIBLE_REQUEST.name(), node.sums.non_preemptible_request.clone()),
            (NON_PREEMPTIBLE_USED.name(), node.sums.non_preemptible_used.clone()),
        ]);
        if settings.uses_runtime && !is_special && forest.is_divided_to(name) {
            annotations.insert(RUNTIME.name(), forest.shown_limit(name).into_owned());
        }
        if settings.guarantees_usage {
            annotations.insert(ALLOCATED.name(), node.allocated.clone());
            annotations.insert(GUARANTEED.name(), node.guaranteed.clone());
        }
        Some(Self { used: node.sums.used.clone(), annotations })
    }

    /// What an object says.
    pub fn written(object: &ElasticQuota) -> Self {
        let read = |key: &'static Key<ResourceList>| {
            let text = object.metadata.annotations.as_ref()?.get(key.name())?;
            Some((key.name(), key.read(text).unwrap_or_default()))
        };
        let annotations = Self::KEYS.into_iter().filter_map(read).collect();
        Self { used: object.status.used.clone(), annotations }
    }

    /// What is to be written instead of what an object says; none where both mean the same. A resource that is not listed
    /// any more is listed as 0, so that a reader does not take it for unknown. Annotations that say the same stay as they are.
    pub fn instead_of(&self, written: &Self) -> Option<Self> {
        const NOTHING: &ResourceList = &ResourceList::new();
        let old = |name: &str| written.annotations.get(name).unwrap_or(NOTHING);
        let is_said = self.annotations.iter().all(|(name, list)| is_same(list, old(name)));
        if is_said && is_same(&self.used, &written.used) {
            return None;
        }
        let news = self.annotations.iter().filter(|(name, list)| !is_same(list, old(name)));
        let annotations = news.map(|(name, list)| (*name, over(list, old(name)))).collect();
        Some(Self { used: over(&self.used, &written.used), annotations })
    }

    /// As a merge patch of the object.
    pub fn patch(&self, uid: &Uid) -> Value {
        let texts = self.annotations.iter().map(|(name, list)| ((*name).to_owned(), json!(json!(list).to_string())));
        let annotations: Value = texts.collect();
        let mut patch = json!({"metadata": {"uid": uid, "annotations": annotations}});
        if !self.used.is_empty() {
            patch["status"] = json!({ "used": self.used });
        }
        patch
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
