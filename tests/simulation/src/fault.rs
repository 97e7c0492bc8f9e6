//! What goes wrong, and how often.

use koord_runtime::random::Random;

/// One thing that goes wrong. The numbers are those of the fault catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// 1: a list is answered from the past.
    StaleList,
    /// 2: the program dies between two of its writes, or anywhere else, and starts with empty memory.
    Crash,
    /// 3: a watch is told that its revision has expired, and sees only the net result of what it missed.
    Expired,
    /// 4: a watch breaks in the middle of a line.
    Cut,
    /// 4: the server ends a watch.
    Closed,
    /// 4: an event is delivered twice, the second time after newer ones.
    Redelivery,
    /// 4: a bookmark comes where an event was due.
    Bookmark,
    /// 5: a write is refused with a conflict.
    Conflict,
    /// 5: a write is refused because there are too many.
    TooMany,
    /// 5: a write fails before it is carried out.
    ErrorBefore,
    /// 5: a write is carried out, and its answer is lost.
    ErrorAfter,
    /// 5: an admission webhook refuses a write.
    Refused,
    /// 6: a watch falls silent for a while.
    Slow,
    /// 12: a permission is taken away for a minute.
    Revoked,
}

impl Fault {
    /// What may befall a write.
    const OF_A_WRITE: [Fault; 5] =
        [Fault::Conflict, Fault::TooMany, Fault::ErrorBefore, Fault::ErrorAfter, Fault::Refused];
    /// What may befall a watch.
    const OF_A_WATCH: [Fault; 6] =
        [Fault::Expired, Fault::Cut, Fault::Closed, Fault::Redelivery, Fault::Bookmark, Fault::Slow];

    /// What befalls this write, if anything.
    pub(crate) fn of_write(random: &Random) -> Option<Fault> {
        pick(random, &Self::OF_A_WRITE, 8)
    }

    /// What befalls this delivery, if anything.
    pub(crate) fn of_watch(random: &Random) -> Option<Fault> {
        pick(random, &Self::OF_A_WATCH, 16)
    }
}

fn pick(random: &Random, faults: &[Fault], one_in: u64) -> Option<Fault> {
    if random.below(one_in) != 0 {
        return None;
    }
    let index = random.below(faults.len() as u64);
    faults.get(usize::try_from(index).ok()?).copied()
}
