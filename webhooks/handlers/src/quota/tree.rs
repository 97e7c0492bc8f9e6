//! The tree as it is shown, or as it will be.

use std::collections::BTreeMap;

use koord_resource::ResourceList;
use koord_runtime::cache::Cache;

use super::{
    Quota,
    admitted::{Change, Pending},
};

/// Which of the admitted changes that are not shown yet are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    /// None.
    Shown,
    /// All.
    Expected,
    /// What takes room is believed, what makes room is not: a quota counts where it was and where it goes.
    Crowded,
}

impl World {
    /// Every world. A change that all of them admit breaks no rule, whatever becomes of the others.
    pub(crate) const ALL: [Self; 3] = [Self::Expected, Self::Shown, Self::Crowded];
}

/// The quotas of one world.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'a> {
    shown: &'a Cache<Quota>,
    pending: &'a [&'a Pending],
    world: World,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(shown: &'a Cache<Quota>, pending: &'a [&'a Pending], world: World) -> Self {
        let pending = if world == World::Shown { &[] } else { pending };
        Self { shown, pending, world }
    }

    /// The quota of a name, whatever its namespace.
    pub(crate) fn find(&self, name: &str) -> Option<&'a Quota> {
        match self.pending_change(name) {
            Some(Change::Put(quota)) => return Some(quota),
            Some(Change::Gone) if self.world == World::Expected => return None,
            _ => {}
        }
        let key = self.shown.index().named(name)?;
        self.shown.get(key.as_str()).map(|entry| &*entry.value)
    }

    /// Whether there is a quota of this key that cannot be read.
    pub(crate) fn is_unreadable(&self, key: &str) -> bool {
        self.shown.quarantined(key).is_some()
    }

    /// The quotas below another one, in the order of their names. In a crowded world one may be there twice: as it is
    /// and as it will be.
    pub(crate) fn below(&self, parent: &str) -> Vec<&'a Quota> {
        let shown = self.shown.index().below(parent).filter_map(|key| self.shown.get(key.as_str()));
        let shown = shown.map(|entry| &*entry.value).filter(|quota| self.is_believed(quota));
        let coming = self.coming().filter(|quota| quota.parent == parent);
        let mut below: Vec<_> = shown.chain(coming).collect();
        below.sort_by(|a, b| a.name.cmp(&b.name));
        below
    }

    /// The quota that a namespace is bound to.
    pub(crate) fn bound_to(&self, namespace: &str) -> Option<&'a str> {
        let coming = self.coming().find(|quota| quota.namespaces.iter().any(|bound| bound == namespace));
        let shown = || {
            let key = self.shown.index().bound_to(namespace)?;
            self.shown.get(key.as_str()).map(|entry| &*entry.value).filter(|quota| self.is_believed(quota))
        };
        coming.or_else(shown).map(|quota| quota.name.as_str())
    }

    /// All quotas, by name.
    pub(crate) fn all(&self) -> BTreeMap<&'a str, &'a Quota> {
        let shown = self.shown.iter().map(|(_, entry)| &*entry.value).filter(|quota| self.is_believed(quota));
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

    /// Whether what is shown of a quota counts.
    fn is_believed(&self, quota: &Quota) -> bool {
        self.world == World::Crowded || self.pending_change(&quota.name).is_none()
    }
}

/// The sum over quotas of what `amount` says of each. A quota that is there twice counts with the larger amounts.
pub(crate) fn sum<'q>(
    quotas: impl IntoIterator<Item = &'q Quota>,
    amount: impl Fn(&'q Quota) -> &'q ResourceList,
) -> ResourceList {
    let mut each: BTreeMap<&str, ResourceList> = BTreeMap::new();
    for quota in quotas {
        let amounts = each.entry(&quota.name).or_default();
        *amounts = amounts.max(amount(quota));
    }
    let mut sum = ResourceList::default();
    for amounts in each.values() {
        sum.add(amounts);
    }
    sum
}
