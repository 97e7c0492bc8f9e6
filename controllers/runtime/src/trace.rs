//! One trace from an admission review to the writes that follow: spans as data, kept in order by a state machine.
//!
//! Nothing that Kubernetes stores says which request made it. What ties a review to its consequences is the object's
//! uid: a review that admits a change is remembered by it for a minute; the first revision of that uid that a watch
//! shows is the change that was admitted; the keys that it enqueues are reconciled because of it; and what those decisions
//! write is caused by them. Writes carry the W3C header `traceparent`, so that an API server with tracing passes it on
//! to the webhooks that its request calls.
//!
//! Off, a tracer is an empty option: nothing is read, allocated or locked. On, finished spans go through a bounded queue
//! that drops what does not fit, so that a collector that is slow or gone hinders nobody.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
pub use koord_core::trace_context::TraceContext;
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use tokio::sync::mpsc;

use crate::{
    cache::Revision,
    clock::{Moment, SharedClock},
    metrics::Metrics,
    random::Random,
};

/// Finished spans that may wait for the exporter.
pub const WAITING_MAX: usize = 4096;
/// Reviews that are remembered, and for how long.
const REMEMBERED_MAX: usize = 1024;
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// Which end of a conversation a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers a request.
    Server,
    /// Makes a request.
    Client,
    /// Receives the event of a watch.
    Consumer,
    /// None.
    Internal,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What was done.
    pub name: String,
    /// Where it belongs.
    pub context: TraceContext,
    /// The span that it follows from.
    pub parent: Option<u64>,
    /// Which end of a conversation it is.
    pub role: Role,
    /// When it began.
    pub start: Timestamp,
    /// When it was over.
    pub end: Timestamp,
    /// What it was about.
    pub attributes: Vec<(&'static str, String)>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A span that is not over.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    context: TraceContext,
    parent: Option<u64>,
    start: Timestamp,
}

impl Open {
    /// Itself, for those that follow from it.
    pub fn context(&self) -> TraceContext {
        self.context
    }

    /// Makes it follow from another; what already follows from it must not exist yet.
    pub fn follow(&mut self, parent: TraceContext) {
        self.context.trace = parent.trace;
        self.parent = Some(parent.span);
    }
}

/// Records spans; by default it records nothing. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

/// Where finished spans come out.
pub struct Spans(mpsc::Receiver<Span>);

struct Inner {
    clock: SharedClock,
    random: Random,
    finished: mpsc::Sender<Span>,
    counts: IntCounterVec,
    admitted: Mutex<Admitted>,
}

/// Reviews that admitted a change, by the uid of its object.
#[derive(Default)]
struct Admitted {
    by_uid: BTreeMap<Arc<str>, Consequence>,
    order: VecDeque<(Arc<str>, Moment)>,
}

struct Consequence {
    context: TraceContext,
    since: Moment,
    /// The revision that the review admitted, once a watch has shown it, and the span of that event.
    seen: Option<(Revision, TraceContext)>,
}

impl Admitted {
    fn put(&mut self, uid: Arc<str>, context: TraceContext, now: Moment) {
        while self
            .order
            .front()
            .is_some_and(|(_, since)| self.order.len() >= REMEMBERED_MAX || now.since(*since) >= REMEMBERED_FOR)
        {
            let Some((uid, since)) = self.order.pop_front() else { break };
            // A later review of the same object stands further behind.
            if self.by_uid.get(&uid).is_some_and(|known| known.since == since) {
                self.by_uid.remove(&uid);
            }
        }
        self.order.push_back((Arc::clone(&uid), now));
        self.by_uid.insert(uid, Consequence { context, since: now, seen: None });
    }

    fn get(&mut self, uid: &str, now: Moment) -> Option<&mut Consequence> {
        self.by_uid.get_mut(uid).filter(|known| now.since(known.since) < REMEMBERED_FOR)
    }
}

impl Tracer {
    /// A tracer that records, and where its spans come out.
    pub fn new(clock: SharedClock, random: Random, metrics: &Metrics) -> (Self, Spans) {
        let (finished, spans) = mpsc::channel(WAITING_MAX);
        let counts = metrics.trace_spans.clone();
        for result in ["recorded", "dropped", "sent", "failed"] {
            counts.with_label_values(&[result]);
        }
        (Self(Some(Arc::new(Inner { clock, random, finished, counts, admitted: Mutex::default() }))), Spans(spans))
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Something begins, because of `parent` or of itself.
    pub fn open(&self, parent: Option<TraceContext>) -> Option<Open> {
        self.open_at(parent, self.0.as_ref()?.clock.now())
    }

    /// The same of something that began at this time.
    pub fn open_at(&self, parent: Option<TraceContext>, start: Timestamp) -> Option<Open> {
        let inner = self.0.as_ref()?;
        // Neither may be zero.
        let trace = || (u128::from(inner.random.number()) << 64 | u128::from(inner.random.number())).max(1);
        let context = TraceContext {
            trace: parent.map_or_else(trace, |parent| parent.trace),
            span: inner.random.number().max(1),
        };
        Some(Open { context, parent: parent.map(|parent| parent.span), start })
    }

    /// It is over.
    pub fn close(
        &self,
        open: Open,
        name: String,
        role: Role,
        attributes: Vec<(&'static str, String)>,
        error: Option<String>,
    ) {
        if let Some(inner) = &self.0 {
            self.close_at(open, inner.clock.now(), name, role, attributes, error);
        }
    }

    /// It was over at this time.
    pub fn close_at(
        &self,
        open: Open,
        end: Timestamp,
        name: String,
        role: Role,
        attributes: Vec<(&'static str, String)>,
        error: Option<String>,
    ) {
        let Some(inner) = &self.0 else { return };
        let Open { context, parent, start } = open;
        let end = end.max(start);
        let sent = inner.finished.try_send(Span { name, context, parent, role, start, end, attributes, error });
        let result = if sent.is_ok() { "recorded" } else { "dropped" };
        inner.counts.with_label_values(&[result]).inc();
    }

    /// The review of an object that has not been stored yet: what follows it comes before its consequences.
    pub fn pending(&self, uid: &str) -> Option<TraceContext> {
        let inner = self.0.as_ref()?;
        let mut admitted = inner.admitted.lock();
        let known = admitted.get(uid, inner.clock.moment())?;
        known.seen.is_none().then_some(known.context)
    }

    /// A review admitted a change of this object, which will be stored unless somebody else refuses it.
    pub fn admitted(&self, uid: &str, context: TraceContext) {
        let Some(inner) = &self.0 else { return };
        inner.admitted.lock().put(Arc::from(uid), context, inner.clock.moment());
    }

    /// A watch shows this revision. Gives the span of the event if a review admitted it; every watch that shows the
    /// same revision gets the same span.
    pub fn seen(&self, kind: &str, key: &str, uid: &str, revision: Revision) -> Option<TraceContext> {
        let inner = self.0.as_ref()?;
        let mut admitted = inner.admitted.lock();
        let known = admitted.get(uid, inner.clock.moment())?;
        if let Some((seen, event)) = known.seen {
            return (seen == revision).then_some(event);
        }
        let open = self.open(Some(known.context))?;
        known.seen = Some((revision, open.context));
        drop(admitted);
        let attributes = vec![
            ("k8s.object.kind", kind.to_owned()),
            ("k8s.object.key", key.to_owned()),
            ("k8s.object.uid", uid.to_owned()),
            ("k8s.object.resource_version", revision.0.to_string()),
        ];
        self.close(open, format!("watch {kind}"), Role::Consumer, attributes, None);
        Some(open.context)
    }

    /// What became of spans that were recorded.
    #[cfg(feature = "otlp")]
    pub(crate) fn count(&self, result: &str, spans: usize) {
        if let Some(inner) = &self.0 {
            inner.counts.with_label_values(&[result]).inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
        }
    }
}

impl Spans {
    /// Waits for spans and takes up to `limit` of them; none once no tracer is left.
    pub async fn take(&mut self, limit: usize) -> Vec<Span> {
        let mut taken = Vec::new();
        self.0.recv_many(&mut taken, limit).await;
        taken
    }

    /// Takes what is there without waiting.
    pub fn drain(&mut self) -> Vec<Span> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn tracer() -> (Tracer, Spans, Arc<ManualClock>, Metrics) {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let metrics = Metrics::new().unwrap();
        let (tracer, spans) = Tracer::new(clock.clone(), Random::seeded(1), &metrics);
        (tracer, spans, clock, metrics)
    }

    #[test]
    fn the_first_revision_after_a_review_is_its_consequence_for_every_watch() {
        let (tracer, mut spans, clock, _metrics) = tracer();
        let review = tracer.open(None).unwrap();
        assert_eq!(tracer.pending("u"), None);
        tracer.admitted("u", review.context());
        assert_eq!(tracer.pending("u"), Some(review.context()), "a second review of the same request follows it");
        let event = tracer.seen("Node", "n", "u", Revision(7)).unwrap();
        assert_eq!(tracer.pending("u"), None, "it is stored");
        assert_eq!(tracer.seen("Node", "n", "u", Revision(7)), Some(event));
        assert_eq!(tracer.seen("Node", "n", "u", Revision(8)), None, "somebody else's change");
        assert_eq!(tracer.seen("Node", "m", "other", Revision(7)), None);
        let ended = spans.drain();
        assert_eq!(ended.len(), 1, "one event, however many watches show it");
        assert_eq!((ended[0].context, ended[0].parent), (event, Some(review.context().span)));
        assert_eq!(event.trace, review.context().trace);

        tracer.admitted("old", review.context());
        clock.advance(REMEMBERED_FOR);
        assert_eq!(tracer.seen("Node", "n", "old", Revision(9)), None);
    }

    #[test]
    fn what_is_over_is_recorded_with_its_own_time() {
        let (tracer, mut spans, _clock, _metrics) = tracer();
        let second = |second| Timestamp::from_second(second).unwrap();
        let open = tracer.open_at(None, second(3)).unwrap();
        tracer.close_at(open, second(5), "s".to_owned(), Role::Internal, Vec::new(), None);
        let open = tracer.open_at(None, second(3)).unwrap();
        tracer.close_at(open, second(2), "s".to_owned(), Role::Internal, Vec::new(), None);
        let times: Vec<_> = spans.drain().iter().map(|span| (span.start, span.end)).collect();
        assert_eq!(times, [(second(3), second(5)), (second(3), second(3))], "nothing ends before it begins");
    }

    #[test]
    fn memory_and_queue_are_bounded() {
        let (tracer, mut spans, _clock, metrics) = tracer();
        let review = tracer.open(None).unwrap();
        for index in 0..REMEMBERED_MAX * 3 {
            tracer.admitted(&index.to_string(), review.context());
        }
        let inner = tracer.0.as_ref().unwrap();
        assert_eq!(inner.admitted.lock().by_uid.len(), REMEMBERED_MAX);
        assert!(tracer.pending("0").is_none() && tracer.pending(&(REMEMBERED_MAX * 3 - 1).to_string()).is_some());
        for _ in 0..WAITING_MAX + 5 {
            tracer.close(review, "s".to_owned(), Role::Internal, Vec::new(), None);
        }
        assert_eq!(spans.drain().len(), WAITING_MAX);
        assert!(
            metrics
                .text(&[crate::metrics::Audience::Runtime])
                .contains(r#"koord_trace_spans_total{result="dropped"} 5"#)
        );
    }

    #[test]
    fn a_tracer_that_is_off_records_nothing() {
        let tracer = Tracer::default();
        assert!(tracer.open(None).is_none() && tracer.pending("u").is_none());
        assert_eq!(tracer.seen("Node", "n", "u", Revision(1)), None);
    }
}
