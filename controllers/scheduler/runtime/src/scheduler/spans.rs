//! The way of a pod as spans of a trace: its time in the queue, the scheduling cycle, the wait after Permit, and the binding cycle.
//!
//! Every attempt is a trace of its own. Without a tracer nothing is kept.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use koord_runtime::{
    clock::{Moment, SharedClock},
    trace::{Open, Role, Tracer},
    uid::Uid,
};
use koord_scheduler_engine::{Attempt, Outcome};

use crate::observer::{Ended, Observed, Observer, Occurrence};

/// Pods whose spans are open at one time; of further ones nothing is recorded.
const OPEN_MAX: usize = 4096;
/// How long they stay open for a pod that nothing more comes of, such as one that was deleted while it waited for its gang. A pod waits for 15 minutes
/// at most.
const OPEN_FOR: Duration = Duration::from_mins(20);

/// The spans of pods.
#[derive(Default)]
pub(super) struct Spans {
    tracer: Tracer,
    open: BTreeMap<Uid, Way>,
}

/// The spans of an attempt that are not over.
struct Way {
    since: Moment,
    attempt: Open,
    /// The part that lasts, after the scheduling cycle.
    part: Option<(&'static str, Open)>,
}

impl Spans {
    pub(super) fn by(tracer: Tracer) -> Self {
        Self { tracer, open: BTreeMap::new() }
    }

    /// The engine has made a decision, or the wait of a pod after Permit is over.
    fn decided(&mut self, attempt: &Attempt, clock: &SharedClock, decided: Moment) {
        if !self.tracer.is_on() {
            return;
        }
        if attempt.has_waited {
            self.end_part(attempt, refusal(attempt));
        } else {
            self.begin(attempt, clock.now(), decided);
        }
        let name = match &attempt.outcome {
            Outcome::Bind { .. } => "binding cycle",
            Outcome::Waiting { .. } => "permit wait",
            Outcome::Refused(_) | Outcome::ExtenderCall { .. } => return,
        };
        if let Some(way) = self.open.get_mut(&attempt.pod.uid) {
            way.part = self.tracer.open(Some(way.attempt.context())).map(|open| (name, open));
        }
    }

    /// An attempt has ended.
    fn ended(&mut self, attempt: &Attempt, how: Ended) {
        if !self.tracer.is_on() {
            return;
        }
        let error = match how {
            Ended::Scheduled => None,
            Ended::Unschedulable | Ended::Failed => {
                refusal(attempt).or_else(|| Some("the pod was not bound; its events say why".to_owned()))
            }
        };
        self.end_part(attempt, error.clone());
        if let Some(way) = self.open.remove(&attempt.pod.uid) {
            self.tracer.close(way.attempt, "schedule Pod".to_owned(), Role::Internal, about(attempt), error);
        }
    }

    /// What was decided does not count any more.
    fn clear(&mut self) {
        self.open.clear();
    }

    /// Records the time in the queue and the scheduling cycle, and opens the span of the attempt.
    fn begin(&mut self, attempt: &Attempt, now: Timestamp, decided: Moment) {
        if self.open.len() >= OPEN_MAX {
            self.open.retain(|_, way| decided.since(way.since) < OPEN_FOR);
            if self.open.len() >= OPEN_MAX {
                return;
            }
        }
        let began = now.checked_sub(decided.since(attempt.began)).unwrap_or(now);
        // The time is known in whole seconds.
        let created = Timestamp::from_second(attempt.pod.created).ok().filter(|_| attempt.pod.created > 0);
        let created = created.map_or(began, |created| created.min(began));
        let Some(root) = self.tracer.open_at(None, created) else { return };
        for (name, start, end, error) in
            [("queue", created, began, None), ("scheduling cycle", began, now, refusal(attempt))]
        {
            if let Some(open) = self.tracer.open_at(Some(root.context()), start) {
                self.tracer.close_at(open, end, name.to_owned(), Role::Internal, about(attempt), error);
            }
        }
        self.open.insert(attempt.pod.uid.clone(), Way { since: decided, attempt: root, part: None });
    }

    fn end_part(&mut self, attempt: &Attempt, error: Option<String>) {
        let part = self.open.get_mut(&attempt.pod.uid).and_then(|way| way.part.take());
        if let Some((name, open)) = part {
            self.tracer.close(open, name.to_owned(), Role::Internal, about(attempt), error);
        }
    }
}

impl Observer for Spans {
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>) {
        match occurrence {
            Occurrence::Decided { attempt, decided, .. } => self.decided(attempt, observed.clock, *decided),
            Occurrence::Ended { attempt, how } => self.ended(attempt, *how),
            Occurrence::Restarted => self.clear(),
            _ => {}
        }
    }
}

/// Why the pod was refused, if it was.
fn refusal(attempt: &Attempt) -> Option<String> {
    match &attempt.outcome {
        Outcome::Refused(refused) => Some(refused.message.clone()),
        Outcome::Bind { .. } | Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => None,
    }
}

fn about(attempt: &Attempt) -> Vec<(&'static str, String)> {
    let pod = &attempt.pod;
    let mut attributes = vec![
        ("k8s.object.kind", "Pod".to_owned()),
        ("k8s.object.key", pod.key.to_string()),
        ("k8s.object.uid", pod.uid.to_string()),
        ("koord.profile", pod.template.scheduler.to_string()),
        ("koord.attempts", attempt.tried.attempts.to_string()),
    ];
    if let Outcome::Bind { node, .. } | Outcome::Waiting { node } = &attempt.outcome {
        attributes.push(("koord.node", node.to_string()));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_runtime::{
        clock::{Clock as _, ManualClock},
        key::ObjectKey,
        metrics::Metrics,
        random::Random,
        trace::Span,
    };
    use koord_scheduler_engine::{Refused, queue::Tried};
    use koord_scheduler_framework::{Patch, pod::Pod};

    use super::*;

    const CREATED: i64 = 1_800_000_000;

    fn attempt(began: Moment, has_waited: bool, outcome: Outcome) -> Attempt {
        let pod = Pod { key: ObjectKey::new("ns", "a"), uid: Uid::from("a"), created: CREATED, ..Pod::default() };
        let tried = Tried { attempts: 1, ..Tried::default() };
        Attempt { pod: Arc::new(pod), tried, began, has_waited, searched: None, outcome }
    }

    fn bind() -> Outcome {
        Outcome::Bind { node: "n1".into(), score: 0, ties: 1, patch: Patch::default(), instead: None }
    }

    /// Each span: its name, when it began and ended after the pod was created, and its error.
    fn shown(spans: &[Span]) -> Vec<String> {
        let seconds = |time: Timestamp| time.as_second() - CREATED;
        let of = |span: &Span| {
            let error = span.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{} {}–{}{error}", span.name, seconds(span.start), seconds(span.end))
        };
        spans.iter().map(of).collect()
    }

    #[test]
    fn the_way_of_a_pod_is_one_trace() {
        let clock = ManualClock::new(Timestamp::from_second(CREATED + 5).unwrap());
        let metrics = Metrics::new().unwrap();
        let (tracer, mut recorded) = Tracer::new(clock.clone(), Random::seeded(1), &metrics);
        let shared: SharedClock = clock.clone();
        let mut spans = Spans::by(tracer);
        let began = clock.moment();
        clock.advance(Duration::from_secs(1));
        spans.decided(&attempt(began, false, Outcome::Waiting { node: "n1".into() }), &shared, clock.moment());
        clock.advance(Duration::from_secs(10));
        let allowed = attempt(began, true, bind());
        spans.decided(&allowed, &shared, clock.moment());
        clock.advance(Duration::from_secs(2));
        spans.ended(&allowed, Ended::Scheduled);
        let way = recorded.drain();
        let expected =
            ["queue 0–5", "scheduling cycle 5–6", "permit wait 6–16", "binding cycle 16–18", "schedule Pod 0–18"];
        assert_eq!(shown(&way), expected);
        let root = &way[4];
        assert!(way[..4].iter().all(|span| span.parent == Some(root.context.span)));
        assert!(way.iter().all(|span| span.context.trace == root.context.trace), "one trace");
        assert!(root.attributes.contains(&("koord.node", "n1".to_owned())), "{root:?}");

        let message = "0/1 nodes are available".to_owned();
        let refused = attempt(clock.moment(), false, Outcome::Refused(Refused { message, ..Refused::default() }));
        spans.decided(&refused, &shared, clock.moment());
        spans.ended(&refused, Ended::Unschedulable);
        let expected = [
            "queue 0–18",
            "scheduling cycle 18–18: 0/1 nodes are available",
            "schedule Pod 0–18: 0/1 nodes are available",
        ];
        assert_eq!(shown(&recorded.drain()), expected);
        assert!(spans.open.is_empty());
    }

    #[test]
    fn open_spans_are_bounded_and_there_are_none_without_a_tracer() {
        let clock = ManualClock::new(Timestamp::from_second(CREATED).unwrap());
        let shared: SharedClock = clock.clone();
        let of = |index: usize| {
            let mut attempt = attempt(clock.moment(), false, Outcome::Waiting { node: "n1".into() });
            let pod = Pod { uid: Uid::from(index.to_string().as_str()), ..Pod::clone(&attempt.pod) };
            attempt.pod = Arc::new(pod);
            attempt
        };
        let mut off = Spans::default();
        off.decided(&of(0), &shared, clock.moment());
        assert!(off.open.is_empty());
        let (tracer, _recorded) = Tracer::new(clock.clone(), Random::seeded(1), &Metrics::new().unwrap());
        let mut spans = Spans::by(tracer);
        for index in 0..OPEN_MAX + 5 {
            spans.decided(&of(index), &shared, clock.moment());
        }
        assert_eq!(spans.open.len(), OPEN_MAX);
        clock.advance(OPEN_FOR);
        spans.decided(&of(OPEN_MAX + 5), &shared, clock.moment());
        assert_eq!(spans.open.len(), 1, "those of pods that nothing more comes of are given up");
    }
}
