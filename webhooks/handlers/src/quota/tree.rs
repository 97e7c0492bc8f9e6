//! The tree of quotas, with or without the admitted changes that the cache does not show yet.

use std::collections::BTreeMap;

use koord_quota::Quotas;
use koord_runtime::cache::Cache;

use super::{
    CachedQuota, Quota,
    admitted::{Change, Pending},
};

/// Which of the admitted changes that are not shown yet count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeView {
    /// None.
    Shown,
    /// All.
    Expected,
    /// Those that take resources, not those that give some back: a quota counts where it was and where it moves.
    Pessimistic,
}

impl TreeView {
    /// Every view. A change that is admitted on all of them breaks no rule, whichever changes are confirmed.
    pub(crate) const ALL: [Self; 3] = [Self::Expected, Self::Shown, Self::Pessimistic];
}

/// The quotas in one [`TreeView`].
#[derive(Clone, Copy)]
pub(crate) struct Tree<'a> {
    shown: &'a Cache<CachedQuota>,
    pending: &'a [&'a Pending],
    view: TreeView,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(shown: &'a Cache<CachedQuota>, pending: &'a [&'a Pending], view: TreeView) -> Self {
        let pending = if view == TreeView::Shown { &[] } else { pending };
        Self { shown, pending, view }
    }

    /// Whether there is a quota of this key that cannot be read.
    pub(crate) fn is_unreadable(&self, key: &str) -> bool {
        self.shown.quarantined(key).is_some()
    }

    /// All quotas, by name.
    pub(crate) fn all(&self) -> BTreeMap<&'a str, &'a Quota> {
        let shown = self.shown.iter().map(|(_, entry)| &entry.value.0).filter(|quota| self.counts(quota));
        shown.chain(self.coming()).map(|quota| (quota.name.as_str(), quota)).collect()
    }

    fn pending_change(&self, name: &str) -> Option<&'a Change> {
        self.pending.iter().find(|pending| pending.key.name() == name).map(|pending| &pending.change)
    }

    fn coming(&self) -> impl Iterator<Item = &'a Quota> + use<'a> {
        self.pending.iter().filter_map(|pending| match &pending.change {
            Change::Put(quota) => Some(&**quota),
            Change::Gone => None,
        })
    }

    /// Whether the shown state of a quota counts.
    fn counts(&self, quota: &Quota) -> bool {
        self.view == TreeView::Pessimistic || self.pending_change(&quota.name).is_none()
    }
}

impl<'a> Quotas<'a> for Tree<'a> {
    fn find(self, name: &str) -> Option<&'a Quota> {
        match self.pending_change(name) {
            Some(Change::Put(quota)) => return Some(quota),
            Some(Change::Gone) if self.view == TreeView::Expected => return None,
            _ => {}
        }
        let key = self.shown.index().named(name)?;
        self.shown.get(key.as_str()).map(|entry| &entry.value.0)
    }

    fn below(self, parent: &str) -> Vec<&'a Quota> {
        let shown = self.shown.index().below(parent).filter_map(|key| self.shown.get(key.as_str()));
        let shown = shown.map(|entry| &entry.value.0).filter(|quota| self.counts(quota));
        let coming = self.coming().filter(|quota| quota.parent == parent);
        let mut below: Vec<_> = shown.chain(coming).collect();
        below.sort_by(|a, b| a.name.cmp(&b.name));
        below
    }

    fn bound_to(self, namespace: &str) -> Option<&'a str> {
        let coming = self.coming().find(|quota| quota.namespaces.iter().any(|bound| bound == namespace));
        let shown = || {
            let key = self.shown.index().bound_to(namespace)?;
            self.shown.get(key.as_str()).map(|entry| &entry.value.0).filter(|quota| self.counts(quota))
        };
        coming.or_else(shown).map(|quota| quota.name.as_str())
    }
}
