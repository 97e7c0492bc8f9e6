//! What goes wrong, and how often.

use koord_runtime::{panics::Place, random::Random};

/// One thing that goes wrong. It is counted when it has really happened: a list that merely could have been old is
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A list shows the past.
    StaleList,
    /// The first list of a new life is older than what the life before had seen.
    StaleStart,
    /// The program dies between two of its writes, or anywhere else, and starts with empty memory.
    Crash,
    /// A watch that had to begin anew shows only what came of several changes of one object.
    Missed,
    /// A watch breaks in the middle of a line.
    Cut,
    /// The server ends a watch.
    Closed,
    /// A watch ends with the error that its revision has expired.
    Expired,
    /// A list comes in another order.
    Reordered,
    /// An event is delivered twice in a row.
    Duplicate,
    /// An old event is delivered again, after newer ones.
    Redelivery,
    /// A watch that is to resume saw a bookmark last.
    Bookmark,
    /// A write is refused with a conflict, and those after it.
    Conflict,
    /// A write is refused because there are too many.
    TooMany,
    /// A write fails before it is carried out.
    ErrorBefore,
    /// A write is carried out, and an error is answered.
    ErrorAfter,
    /// A write is carried out, and nothing is answered.
    Lost,
    /// An admission webhook refuses a write.
    Refused,
    /// Nobody reaches the server.
    Outage,
    /// A watch falls silent for some seconds.
    Slow,
    /// A watch is an hour or more behind the others.
    Behind,
    /// The clock jumps by an hour, forwards or backwards.
    Jump,
    /// A replica's clock does not show the time that the others' show.
    Skew,
    /// A program stands still in the middle of its plan for so long that another leads meanwhile. It may start no other write.
    Deposed,
    /// An object is replaced by another of the same name.
    Recreated,
    /// An object is deleted and stays, because of a finalizer that nobody takes away for a while.
    Stuck,
    /// A namespace ends.
    Terminating,
    /// A person or a program writes nonsense.
    Malformed,
    /// A permission is taken away for a minute.
    Revoked,
    /// Somebody deletes or spoils the Secret with the certificates.
    Uncertified,
    /// Somebody resets the authorities or the entries of a webhook configuration.
    Unconfigured,
    /// Code of the program panics.
    Panic(Place),
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 40] = [
        Fault::StaleList,
        Fault::StaleStart,
        Fault::Crash,
        Fault::Missed,
        Fault::Cut,
        Fault::Closed,
        Fault::Expired,
        Fault::Reordered,
        Fault::Duplicate,
        Fault::Redelivery,
        Fault::Bookmark,
        Fault::Conflict,
        Fault::TooMany,
        Fault::ErrorBefore,
        Fault::ErrorAfter,
        Fault::Lost,
        Fault::Refused,
        Fault::Outage,
        Fault::Slow,
        Fault::Behind,
        Fault::Jump,
        Fault::Skew,
        Fault::Deposed,
        Fault::Recreated,
        Fault::Stuck,
        Fault::Terminating,
        Fault::Malformed,
        Fault::Revoked,
        Fault::Uncertified,
        Fault::Unconfigured,
        Fault::Panic(Place::Projection),
        Fault::Panic(Place::Listener),
        Fault::Panic(Place::Reconcile),
        Fault::Panic(Place::Written),
        Fault::Panic(Place::Failed),
        Fault::Panic(Place::Remember),
        Fault::Panic(Place::Execution),
        Fault::Panic(Place::Watch),
        Fault::Panic(Place::Election),
        Fault::Panic(Place::Events),
    ];

    /// The faults of a write.
    const OF_A_WRITE: [Fault; 6] =
        [Fault::Conflict, Fault::TooMany, Fault::ErrorBefore, Fault::ErrorAfter, Fault::Lost, Fault::Refused];
    /// The faults of a watch. Falling behind takes hours in which nothing else may happen to it, so it is drawn more often.
    const OF_A_WATCH: [Fault; 11] = [
        Fault::Missed,
        Fault::Expired,
        Fault::Cut,
        Fault::Closed,
        Fault::Duplicate,
        Fault::Redelivery,
        Fault::Bookmark,
        Fault::Slow,
        Fault::Behind,
        Fault::Behind,
        Fault::Behind,
    ];

    /// The number of its injector in the fault catalogue.
    pub const fn injector(self) -> u8 {
        match self {
            Fault::StaleList | Fault::StaleStart => 1,
            Fault::Crash | Fault::Panic(_) => 2,
            Fault::Missed => 3,
            Fault::Cut
            | Fault::Closed
            | Fault::Expired
            | Fault::Reordered
            | Fault::Duplicate
            | Fault::Redelivery
            | Fault::Bookmark => 4,
            Fault::Conflict
            | Fault::TooMany
            | Fault::ErrorBefore
            | Fault::ErrorAfter
            | Fault::Lost
            | Fault::Refused
            | Fault::Outage => 5,
            Fault::Slow | Fault::Behind => 6,
            Fault::Jump | Fault::Skew | Fault::Deposed => 7,
            Fault::Recreated | Fault::Stuck | Fault::Terminating => 8,
            Fault::Malformed => 9,
            Fault::Revoked | Fault::Uncertified | Fault::Unconfigured => 12,
        }
    }

    /// The fault for this write, if any.
    pub fn of_write(random: &Random) -> Option<Fault> {
        pick(random, &Self::OF_A_WRITE, 8)
    }

    /// The fault for this delivery, if any.
    pub(crate) fn of_watch(random: &Random) -> Option<Fault> {
        pick(random, &Self::OF_A_WATCH, 12)
    }
}

fn pick(random: &Random, faults: &[Fault], one_in: u64) -> Option<Fault> {
    if random.below(one_in) != 0 {
        return None;
    }
    let index = random.below(faults.len() as u64);
    faults.get(usize::try_from(index).ok()?).copied()
}
