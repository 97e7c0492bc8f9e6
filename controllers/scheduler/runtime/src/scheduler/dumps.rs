//! Logs of single attempts, where configured: the best nodes with their scores, and which plugins refuse the others.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use koord_scheduler_engine::{Attempt, Engine};
use koord_scheduler_framework::{Reason, cycle::OnNode};

use crate::observer::{Observed, Observer, Occurrence};

/// What is logged of every attempt; it may be changed at any time.
///
/// For each attempt the engine is copied and every node is filtered again, which takes milliseconds in a cluster of thousands of nodes.
#[derive(Clone, Debug, Default)]
pub struct Dumps(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    scores: AtomicUsize,
    refusals: AtomicBool,
}

impl Dumps {
    /// Logs so many nodes with the highest scores; 0 logs none.
    pub fn set_scores(&self, nodes: usize) {
        self.0.scores.store(nodes, Ordering::Relaxed);
    }

    /// Logs why nodes are refused, or does not.
    pub fn set_refusals(&self, are_logged: bool) {
        self.0.refusals.store(are_logged, Ordering::Relaxed);
    }

    fn settings(&self) -> Option<(usize, bool)> {
        let settings = (self.0.scores.load(Ordering::Relaxed), self.0.refusals.load(Ordering::Relaxed));
        (settings != (0, false)).then_some(settings)
    }
}

impl Observer for Dumps {
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>) {
        if let Occurrence::Decided { attempt, .. } = occurrence
            && !attempt.has_waited
        {
            self.dump(attempt, observed.engine);
        }
    }
}

impl Dumps {
    /// Logs the configured details of an attempt. A pod that has its node is evaluated on the others as if it had none.
    fn dump(&self, attempt: &Attempt, engine: &Engine) {
        let Some((scores, refusals)) = self.settings() else { return };
        let Some(mut nodes) = engine.copy().on_nodes(&attempt.pod.uid) else { return };
        let pod = &attempt.pod.key;
        for on in nodes.iter().filter(|_| refusals) {
            let Some(first) = on.refusals.first() else { continue };
            let (node, plugin, reason) = (&*on.node, first.plugin, Reason::joined(&first.reasons));
            let codes = first.reasons.iter().map(|reason| reason.code.as_str()).collect::<Vec<_>>().join(" ");
            tracing::info!(%pod, node, plugin, reason, codes, "a node is refused");
        }
        nodes.retain(|on| on.total().is_some());
        nodes.sort_by_key(|on| std::cmp::Reverse(on.total()));
        for (place, on) in (1..=scores).zip(&nodes) {
            let (node, score) = (&*on.node, on.total().unwrap_or(0));
            tracing::info!(%pod, place, node, score, by = by_plugins(on), "the score of a node");
        }
    }
}

/// `NodeResourcesFit 50, ImageLocality 12`: what each plugin counts.
fn by_plugins(on: &OnNode) -> String {
    let counts = on.scores.iter().map(|one| format!("{} {}", one.plugin, one.score.saturating_mul(one.weight)));
    counts.collect::<Vec<_>>().join(", ")
}
