//! Requests of watches that failed, one after the other: when they are worth a warning, and what readiness says of them.

use std::collections::BTreeMap;

use koord_resource::controller::ResourceKind;
use parking_lot::Mutex;

use crate::{
    api::excerpt,
    reflector::{Failure, ListError, Phase, Selection, WatchError},
};

/// A request of a watch that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestFailure {
    /// What the request was for.
    pub(crate) phase: Phase,
    /// The HTTP status that the API server answered or reported, where that is what is wrong.
    pub(crate) code: Option<u16>,
    /// Whether the API server answered at all.
    is_answered: bool,
    /// What is wrong.
    pub(crate) reason: String,
}

/// The streaks of failures of every watch: of its lists, and of watching itself.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<BTreeMap<(ResourceKind, Selection, Phase), Streak>>);

#[derive(Debug, Default)]
struct Streak {
    /// How many answers in a row were failures. Requests without an answer do not count: the client reports those.
    answers: u32,
    is_reported: bool,
    last: String,
}

// === impl RequestFailure ===

impl RequestFailure {
    /// The request was refused, or not answered.
    pub(crate) fn refused(phase: Phase, failure: Failure) -> Self {
        let Failure { code, message: reason, .. } = failure;
        Self { phase, code, is_answered: code.is_some(), reason }
    }

    /// The connection broke after the API server had begun to answer.
    pub(crate) fn broken(phase: Phase, failure: Failure) -> Self {
        Self { is_answered: true, ..Self::refused(phase, failure) }
    }

    /// The reflector did not take this page, which the API server had answered with this HTTP status.
    pub(crate) fn of_list(error: &ListError, code: u16, body: &str) -> Self {
        let (code, reason) = match error {
            ListError::Malformed(_) => (Some(code), unexpected("a list", body)),
            ListError::NoRevision => (Some(code), error.to_string()),
            ListError::Stale { .. } => (None, error.to_string()),
        };
        Self { phase: Phase::List, code, is_answered: true, reason }
    }

    /// The reflector ended the watch, at this line where there was one.
    pub(crate) fn of_watch(phase: Phase, error: &WatchError, line: &str) -> Self {
        let (code, reason) = match error {
            WatchError::Status { code, .. } => (Some(*code).filter(|code| *code != 0), error.to_string()),
            WatchError::Malformed(_) => (Some(200), unexpected("an event", line)),
            WatchError::Incomplete | WatchError::Short => (None, error.to_string()),
        };
        Self { phase, code, is_answered: true, reason }
    }
}

/// What is wrong with an answer that is not what was expected. Of objects nothing is shown: they may be Secrets.
fn unexpected(expected: &str, answer: &str) -> String {
    let begin = excerpt(answer);
    if begin.starts_with('{') {
        format!("{expected} that cannot be used")
    } else {
        format!("this is not {expected}: {begin}")
    }
}

// === impl Failures ===

impl Failures {
    /// So many failures in a row are more than a restart of the API server.
    const REPORTED_AT: u32 = 3;

    /// A request of a watch failed. Says whether that is to be reported: once for all watches of a kind, until they have recovered.
    pub(crate) fn add(&self, kind: ResourceKind, selection: &Selection, failure: &RequestFailure) -> bool {
        let mut streaks = self.0.lock();
        let phase = failure.phase;
        let is_known =
            streaks.iter().any(|((other, _, of), streak)| (*other, *of) == (kind, phase) && streak.is_reported);
        let streak = streaks.entry((kind, selection.clone(), phase)).or_default();
        streak.last = excerpt(&failure.reason);
        streak.answers += u32::from(failure.is_answered);
        let is_due = !is_known && streak.answers >= Self::REPORTED_AT;
        streak.is_reported |= is_due;
        is_due
    }

    /// A list is complete, or a watch works. Says whether its failures had been reported.
    pub(crate) fn end(&self, kind: ResourceKind, selection: &Selection, phase: Phase) -> bool {
        let mut streaks = self.0.lock();
        !streaks.is_empty()
            && streaks.remove(&(kind, selection.clone(), phase)).is_some_and(|streak| streak.is_reported)
    }

    /// The begin of the reason of the last failure; none where nothing fails.
    pub(crate) fn last(&self, kind: ResourceKind, selection: &Selection) -> Option<String> {
        let streaks = self.0.lock();
        let mut of_phases = [Phase::List, Phase::Watch].map(|phase| (kind, selection.clone(), phase)).into_iter();
        of_phases.find_map(|key| Some(streaks.get(&key)?.last.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: ResourceKind = ResourceKind::POD;

    fn answered(reason: &str) -> RequestFailure {
        let failure = Failure { code: Some(500), message: reason.to_owned(), ..Failure::default() };
        RequestFailure::refused(Phase::List, failure)
    }

    #[test]
    fn the_third_failure_in_a_row_is_reported_and_again_only_after_the_watch_has_recovered() {
        let (failures, all) = (Failures::default(), Selection::default());
        for _ in 0..2 {
            let reported: Vec<bool> = (0..5).map(|_| failures.add(KIND, &all, &answered("no"))).collect();
            assert_eq!(reported, [false, false, true, false, false]);
            assert_eq!(failures.last(KIND, &all).as_deref(), Some("no"));
            assert_eq!([(); 2].map(|()| failures.end(KIND, &all, Phase::List)), [true, false]);
            assert_eq!(failures.last(KIND, &all), None);
        }
    }

    #[test]
    fn lists_that_succeed_do_not_end_the_streak_of_watches_that_fail() {
        let (failures, all) = (Failures::default(), Selection::default());
        let watch = RequestFailure { phase: Phase::Watch, ..answered("gateway timeout") };
        let reported: Vec<bool> = (0..4)
            .map(|_| {
                assert!(!failures.end(KIND, &all, Phase::List));
                failures.add(KIND, &all, &watch)
            })
            .collect();
        assert_eq!(reported, [false, false, true, false]);
        assert_eq!(failures.last(KIND, &all).as_deref(), Some("gateway timeout"));
        failures.add(KIND, &all, &answered("no"));
        assert_eq!(failures.last(KIND, &all).as_deref(), Some("no"), "without the list there is nothing to watch");
        assert!(failures.end(KIND, &all, Phase::Watch));
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
        let refused = RequestFailure::refused(Phase::List, Failure::local("connection refused"));
        assert!(!(0..9).any(|_| failures.add(KIND, &all, &refused)));
        assert_eq!(failures.last(KIND, &all).as_deref(), Some("connection refused"));
        failures.add(KIND, &all, &answered(&"x".repeat(1000)));
        assert_eq!(failures.last(KIND, &all).map(|reason| reason.len()), Some(200));
    }

    #[test]
    fn the_code_is_the_one_that_the_api_server_answered_or_reported() {
        let list = |error: &ListError, body: &str| {
            let RequestFailure { code, is_answered, reason, .. } = RequestFailure::of_list(error, 203, body);
            assert!(is_answered);
            (code, reason)
        };
        let malformed = ListError::Malformed("expected value".to_owned());
        assert_eq!(list(&malformed, "<html>\nno"), (Some(203), "this is not a list: <html> no".to_owned()));
        let secret = r#"{"metadata":"password"}"#;
        assert_eq!(list(&malformed, secret), (Some(203), "a list that cannot be used".to_owned()));
        let stale = ListError::Stale { listed: 5, seen: 9 };
        assert_eq!(list(&stale, "{}"), (None, "a list of revision 5 while 9 was seen".to_owned()));

        let watch = |error: WatchError| RequestFailure::of_watch(Phase::Watch, &error, "no").code;
        assert_eq!(watch(WatchError::Status { code: 504, message: String::new() }), Some(504));
        assert_eq!(watch(WatchError::Status { code: 0, message: String::new() }), None);
        assert_eq!(watch(WatchError::Malformed(String::new())), Some(200));
        assert_eq!(watch(WatchError::Incomplete), None);

        let broken = RequestFailure::broken(Phase::List, Failure::local("connection reset"));
        assert_eq!((broken.code, broken.is_answered), (None, true), "the client does not report it");
    }
}
