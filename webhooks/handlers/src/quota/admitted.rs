//! Changes that were admitted a moment ago and that the watch does not show yet.

use std::{sync::Arc, time::Duration};

use koord_runtime::{
    cache::{Cache, Entry, Revision},
    clock::Moment,
    key::ObjectKey,
    uid::Uid,
};

use super::{CachedQuota, Quota};

/// How long an admitted change is waited for. Then it has probably been refused by somebody else.
const KEPT_FOR: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// The quota is made, or becomes this.
    Put(Arc<Quota>),
    Gone,
}

/// One admitted change that is not shown yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) key: ObjectKey,
    pub(crate) change: Change,
    /// The object that was changed, removed or replaced, as its last state was known; none for a new one.
    before: Option<(Uid, Revision)>,
    since: Moment,
}

impl Pending {
    /// Whether the watch shows this change, or something later.
    fn is_shown(&self, shown: Option<&Entry<CachedQuota>>) -> bool {
        match (&self.change, shown, &self.before) {
            (Change::Gone, None, _) | (Change::Put(_), Some(_), None) => true,
            (Change::Put(_), None, _) | (Change::Gone, Some(_), None) => false,
            // A watch that is late may still show an object that was replaced before.
            (Change::Put(_), Some(entry), Some((_, revision))) => entry.revision > *revision,
            // With finalizers it stays for a while; that it goes is seen.
            (Change::Gone, Some(entry), Some((uid, revision))) => {
                if entry.uid == *uid {
                    entry.deleting
                } else {
                    entry.revision > *revision
                }
            }
        }
    }
}

/// All admitted changes that are not shown yet, at most one per quota.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pending: Vec<Pending>,
}

impl Admitted {
    /// Forgets what is shown by now and what was waited for too long.
    pub(crate) fn settle(&mut self, shown: &Cache<CachedQuota>, now: Moment) -> &[Pending] {
        self.pending.retain(|pending| {
            now.since(pending.since) < KEPT_FOR && !pending.is_shown(shown.get(pending.key.as_str()))
        });
        &self.pending
    }

    /// The object whose removal was admitted and is not shown yet.
    pub(crate) fn removed(&self, key: &ObjectKey) -> Option<&(Uid, Revision)> {
        let pending = self.pending.iter().find(|pending| pending.key == *key && pending.change == Change::Gone)?;
        pending.before.as_ref()
    }

    /// A change was admitted. `before`: uid and revision of the object that is changed, removed or replaced.
    pub(crate) fn add(&mut self, key: ObjectKey, change: Change, before: Option<(Uid, Revision)>, now: Moment) {
        self.pending.retain(|pending| pending.key != key);
        self.pending.push(Pending { key, change, before, since: now });
    }
}
