//! One attempt: a node is looked for, the pod gets what it needs there, or learns why there is none.

use std::sync::Arc;

use koord_core::clock::Moment;

use super::{Attempt, Engine, Outcome, laps::Part};
use crate::{
    cluster::Hidden,
    cycle::{Found, Profile},
    extender::Question,
    framework::Request,
    pod::Pod,
    queue::Tried,
};

impl Engine {
    pub(super) fn attempt_with(&mut self, index: usize, pod: Arc<Pod>, tried: Tried, now: Moment) -> Attempt {
        self.under_way.set(Some((Arc::clone(&pod), now)));
        let profile = Arc::clone(&self.profiles[index]);
        self.laps.begin();
        self.hide(&profile, &pod);
        let mut found = self.search(index, &profile, &pod);
        if found.is_outdated() {
            self.forget_answers();
            found = self.search(index, &profile, &pod);
        }
        self.laps.end(Part::Filter, matches!(found, Found::Node { .. }));
        let searched = found.searched();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &profile.plugins };
        let outcome = match found {
            Found::Node { .. } if self.asks(&request) => {
                self.cluster.hide_all();
                let rows = profile.takers(&request, &mut self.cluster);
                let nodes = rows.into_iter().filter_map(|row| self.cluster.node(row));
                let nodes = nodes.map(|node| Arc::clone(&node.name)).collect();
                self.ask(&pod, tried, Question::Nodes(nodes), now)
            }
            Found::Node { row, score, ties, .. } => self.reserve(&profile, &pod, tried, (row, score, ties), now),
            found => {
                self.cluster.hide_all();
                if let Some(rejected) = profile.of_reserve(&found, &self.cluster) {
                    self.refuse_in_reserve(&profile, &pod, tried, rejected, now)
                } else {
                    match self.refuse(&profile, &pod, &found, now) {
                        Ok((refused_by, refused)) => {
                            self.give_back(&pod, tried, refused.why(refused_by), now);
                            Outcome::Refused(refused)
                        }
                        Err(victims) => self.ask(&pod, tried, Question::Victims(victims), now),
                    }
                }
            }
        };
        self.laps.finish();
        self.under_way.set(None);
        Attempt { pod, tried, began: now, has_waited: false, searched, outcome }
    }

    fn search(&mut self, index: usize, profile: &Profile, pod: &Arc<Pod>) -> Found {
        let Self { cluster, memories, random, laps, .. } = self;
        let memory = &mut memories[index];
        let draw = |ties: u32| u32::try_from(random.below(u64::from(ties))).unwrap_or(0);
        match laps.stopwatch() {
            None => profile.search(pod, cluster, memory, draw),
            Some(mut stopwatch) => profile.search_timed(pod, cluster, memory, draw, &mut stopwatch),
        }
    }

    /// Takes away what is not there for this pod, until it is decided about it.
    pub(super) fn hide(&mut self, profile: &Profile, pod: &Arc<Pod>) {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let points = profile.each(|plugin| &plugin.reservation_restore);
        let hidden = points.filter_map(|point| point.restore(&request, &self.cluster));
        let hidden: Vec<Hidden> = hidden.collect();
        self.cluster.offer(hidden);
    }
}
