//! Requests of watches that failed, one after the other: when they are worth a warning, and what readiness says of them.

use std::collections::BTreeMap;

use koord_resource::controller::ResourceKind;
use parking_lot::Mutex;

use crate::{
    api::first_words,
    reflector::{Failure, Selection},
};

/// The watches whose last request failed.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<BTreeMap<(ResourceKind, Selection), Streak>>);

#[derive(Debug, Default)]
struct Streak {
    /// How many answers in a row were failures. Requests without an answer do not count: the client reports those.
    answers: u32,
    is_reported: bool,
    last: String,
}

// === impl Failures ===

impl Failures {
    /// So many failures in a row are more than a restart of the API server.
    const REPORTED_AT: u32 = 3;

    /// A request of a watch failed. Says whether that is to be reported: once for all watches of a kind, until they have recovered.
    pub(crate) fn add(&self, kind: ResourceKind, selection: &Selection, failure: &Failure) -> bool {
        let mut streaks = self.0.lock();
        let is_known = streaks.iter().any(|((other, _), streak)| *other == kind && streak.is_reported);
        let streak = streaks.entry((kind, selection.clone())).or_default();
        streak.last = first_words(&failure.message);
        streak.answers += u32::from(failure.code.is_some());
        let is_due = !is_known && streak.answers >= Self::REPORTED_AT;
        streak.is_reported |= is_due;
        is_due
    }

    /// A request of a watch succeeded. Says whether its failures had been reported.
    pub(crate) fn end(&self, kind: ResourceKind, selection: &Selection) -> bool {
        let mut streaks = self.0.lock();
        !streaks.is_empty() && streaks.remove(&(kind, selection.clone())).is_some_and(|streak| streak.is_reported)
    }

    /// The first words of the last failure; none where the last request succeeded.
    pub(crate) fn last(&self, kind: ResourceKind, selection: &Selection) -> Option<String> {
        self.0.lock().get(&(kind, selection.clone())).map(|streak| streak.last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: ResourceKind = ResourceKind::POD;

    fn answered(message: &str) -> Failure {
        Failure { code: Some(500), message: message.to_owned(), ..Failure::default() }
    }

    #[test]
    fn the_third_failure_in_a_row_is_reported_and_again_only_after_the_watch_has_recovered() {
        let (failures, all) = (Failures::default(), Selection::default());
        for _ in 0..2 {
            let reported: Vec<bool> = (0..5).map(|_| failures.add(KIND, &all, &answered("no"))).collect();
            assert_eq!(reported, [false, false, true, false, false]);
            assert_eq!(failures.last(KIND, &all).as_deref(), Some("no"));
            assert_eq!([(); 2].map(|()| failures.end(KIND, &all)), [true, false]);
            assert_eq!(failures.last(KIND, &all), None);
        }
    }

    #[test]
    fn two_watches_of_a_kind_are_reported_once() {
        let (failures, all) = (Failures::default(), Selection::default());
        let some = Selection { namespace: "some".to_owned(), ..Selection::default() };
        let reported =
            (0..5).flat_map(|_| [&all, &some].map(|selection| failures.add(KIND, selection, &answered("no"))));
        assert_eq!(reported.filter(|is_reported| *is_reported).count(), 1);
        let other = ResourceKind { kind: "Other", ..KIND };
        assert!((0..3).any(|_| failures.add(other, &all, &answered("no"))), "another kind");
    }

    #[test]
    fn requests_without_an_answer_are_not_reported_and_long_answers_are_cut() {
        let (failures, all) = (Failures::default(), Selection::default());
        assert!(!(0..9).any(|_| failures.add(KIND, &all, &Failure::local("connection refused"))));
        assert_eq!(failures.last(KIND, &all).as_deref(), Some("connection refused"));
        failures.add(KIND, &all, &answered(&"x".repeat(1000)));
        assert_eq!(failures.last(KIND, &all).map(|words| words.len()), Some(200));
    }
}
