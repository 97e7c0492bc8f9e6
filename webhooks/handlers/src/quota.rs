//! ElasticQuotas: their two handlers, and the tree of quotas while admitted changes are not confirmed by the watch.
//!
//! A decision must count a change that was admitted a moment ago, although the watch does not show it yet, and must not
//! rely on it either: a later webhook may have refused it. So the rules of `koord-quota` are evaluated on three
//! views of the tree: as the cache shows it, as it is expected, and a pessimistic one. Where the views differ, the decision
//! waits for the cache.

mod admitted;
mod debug;
mod fact;
mod manifest;
pub mod mutate;
mod tree;
pub mod validate;
mod warnings;

use koord_resource::admission::{Denial, Verdict};
use koord_runtime::{cache::Cache, clock::SharedClock, key::ObjectKey, store::Store};
use parking_lot::Mutex;

pub(crate) use koord_quota::{Proposal, Quota, Quotas, Refusal, Rules, advice};

use self::admitted::Pending;
pub(crate) use self::{
    admitted::{Admitted, Change},
    debug::page as debug_page,
    fact::{CachedQuota, PlacedPod, Pods, QuotaProfile, key_of, read},
    tree::{Tree, TreeView},
};
use crate::{settings::Declared, switches::Switches};

/// The caches and switches of decisions about quotas.
#[derive(Clone, Copy)]
pub struct QuotaView<'c> {
    pub(crate) quotas: &'c Store<CachedQuota>,
    pub(crate) quota_profiles: &'c Store<QuotaProfile>,
    pub(crate) pods: &'c Store<PlacedPod>,
    /// Changes that were admitted and that the cache does not show yet.
    pub(crate) admitted: &'c Mutex<Admitted>,
    pub(crate) clock: &'c SharedClock,
    pub(crate) switches: &'c Switches,
    /// Whether users are warned about what has no effect.
    pub(crate) warns: bool,
    /// What becomes of requests that break rules of the type which the original never enforced.
    pub(crate) declared: Declared,
}

/// What decisions about quotas see.
pub(crate) struct Forest<'a> {
    shown: &'a Cache<CachedQuota>,
    pending: Vec<&'a Pending>,
}

impl<'a> Forest<'a> {
    /// What is shown, and what was admitted and is not shown yet.
    pub(crate) fn new(shown: &'a Cache<CachedQuota>, pending: &'a [Pending]) -> Self {
        Self { shown, pending: pending.iter().collect() }
    }

    /// What was admitted for a quota and is not shown yet.
    pub(crate) fn pending_change(&self, key: &ObjectKey) -> Option<&'a Change> {
        self.pending.iter().find(|pending| pending.key == *key).map(|pending| &pending.change)
    }

    /// Without what was admitted for one quota: a further request about it takes that one's place.
    pub(crate) fn without_changes_of(mut self, key: &ObjectKey) -> Self {
        self.pending.retain(|pending| pending.key != *key);
        self
    }

    /// Without a new quota that was admitted under this key: when it is created again, the first did not come to be.
    pub(crate) fn without_creation_of(mut self, key: &ObjectKey) -> Self {
        self.pending.retain(|pending| pending.key != *key || pending.change == Change::Gone);
        self
    }

    /// The quotas in one view.
    pub(crate) fn tree(&self, view: TreeView) -> Tree<'_> {
        Tree::new(self.shown, &self.pending, view)
    }

    /// Checks a rule on every view. What holds on all is admitted; what fails on both the shown and the expected tree is
    /// denied at once; and where the views differ, or an object is missing, the denial is provisional.
    pub(crate) fn check(&self, check: impl Fn(Tree<'_>) -> Result<(), Refusal>) -> Result<(), Refused> {
        if self.pending.is_empty() {
            return check(self.tree(TreeView::Shown)).map_err(|refusal| match refusal {
                Refusal::Broken(denial) => denial.into(),
                Refusal::Missing(denial) => Refused::missing(denial),
            });
        }
        let answers = TreeView::ALL.map(|view| check(self.tree(view)));
        let is_final = answers[..2].iter().all(|answer| matches!(answer, Err(Refusal::Broken(_))));
        let Some(refusal) = answers.into_iter().find_map(Result::err) else { return Ok(()) };
        let (Refusal::Broken(denial) | Refusal::Missing(denial)) = refusal;
        Err(Refused { denial, provisional: !is_final })
    }
}

/// What becomes of a refused request.
#[derive(Debug)]
pub(crate) struct Refused {
    denial: Denial,
    provisional: bool,
}

impl Refused {
    /// The refusal of a request that misses something that may be on its way.
    pub(crate) fn missing(denial: Denial) -> Self {
        Self { denial, provisional: true }
    }
}

impl From<Denial> for Refused {
    fn from(denial: Denial) -> Self {
        Self { denial, provisional: false }
    }
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Denial::from(error).into()
    }
}

impl From<Refused> for Verdict {
    fn from(refused: Refused) -> Self {
        if refused.provisional { Verdict::deny_provisionally(refused.denial) } else { Verdict::deny(refused.denial) }
    }
}
