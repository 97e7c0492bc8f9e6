//! What both strategies that evict pods do: when they look, what they need, and how their tasks become a round.

use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeSlo};

use crate::{
    cool_down::CoolDown,
    eviction::{EvictionRound, Task},
    feature::Feature,
    input::Input,
    outcome::{Note, Outcome},
};

/// What the features of a strategy decide by.
pub(crate) struct Situation<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) node: &'a Node,
    pub(crate) slo: &'a NodeSlo,
}

/// Evicts for one resource, at most once in the time of its cool-down.
#[derive(Debug)]
pub(crate) struct Evictor {
    /// In the order in which their tasks are carried out.
    features: [Feature; 3],
    /// For messages.
    resource: &'static str,
    capacity: fn(&Node) -> i64,
    cool_down: CoolDown,
}

impl Evictor {
    pub(crate) fn new(
        features: [Feature; 3],
        resource: &'static str,
        capacity: fn(&Node) -> i64,
        cool_down: CoolDown,
    ) -> Self {
        Self { features, resource, capacity, cool_down }
    }

    /// A round of the tasks of all features that are on.
    pub(crate) fn run<'a>(
        &mut self,
        input: &Input<'a>,
        task: impl Fn(Feature, &Situation<'a>, &mut Vec<Note>) -> Option<Task<'a>>,
    ) -> Outcome {
        let features = self.features.into_iter().filter(|feature| input.features.is_on(*feature));
        if features.clone().next().is_none() || !self.cool_down.is_over(input.now) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        if slo.threshold.enable != Some(true) {
            return Outcome { notes: Some(Vec::new()), ..Outcome::default() };
        }
        let Some(node) = input.node.filter(|node| (self.capacity)(node) > 0) else {
            return Outcome::skipped(format!("the {} capacity of the node is not known", self.resource));
        };
        let (situation, mut notes) = (Situation { input: *input, node, slo }, Vec::new());
        let tasks = features.filter_map(|feature| task(feature, &situation, &mut notes)).collect();
        let evictions = EvictionRound::new(tasks, input.evicted);
        if evictions.is_some() {
            self.cool_down.hand_out(input.now);
        }
        Outcome { evictions, notes: Some(notes), ..Outcome::default() }
    }

    /// Takes a round back when all of it was carried out.
    pub(crate) fn finish(&mut self, round: &EvictionRound, now: Moment) {
        self.cool_down.finish(!round.accepted().is_empty(), now);
    }
}
