//! Where a pod stands in the queue, for people.

use std::sync::Arc;

use koord_core::clock::Moment;
use koord_scheduler_framework::{PluginSet, pod::Pod};

use super::{Entry, Place, Queue, Tried};

/// A part of the queue, or beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stands {
    /// It is being tried, bound, or waits in its place.
    InFlight,
    /// It is to be tried next.
    Active,
    /// It was tried lately.
    Backoff,
    /// It was refused, and nothing has happened that may help.
    Unschedulable,
    /// A plugin holds it back.
    Gated,
}

/// Where a pod stands in the queue.
#[derive(Clone, Debug)]
pub struct Standing<'q> {
    pub pod: &'q Arc<Pod>,
    pub stands: Stands,
    /// How many pods of its part are before it.
    pub before: usize,
    /// What was tried with it; nothing is known while it is in flight.
    pub tried: Tried,
    /// Since when it is here; not known while it is in flight.
    pub since: Option<Moment>,
    /// When its pause ends; none where it does not pause.
    pub until: Option<Moment>,
    /// The plugins that have refused it, or the one that holds it back.
    pub stopped_by: PluginSet,
}

impl Entry {
    fn stands(&self) -> Stands {
        match self.place {
            Place::Active => Stands::Active,
            Place::Backoff { .. } => Stands::Backoff,
            Place::Parked if self.gate.is_none() => Stands::Unschedulable,
            Place::Parked | Place::Held => Stands::Gated,
        }
    }
}

impl Queue {
    /// The pods that wait, with the part in which each is.
    pub fn waiting(&self) -> impl Iterator<Item = (&Arc<Pod>, Stands)> {
        self.entries.values().map(|entry| (&entry.pod, entry.stands()))
    }

    /// All pods, part by part, in the order in which they would be tried.
    pub fn standings(&self) -> Vec<Standing<'_>> {
        let in_flight = self.in_flight.iter().map(|flying| Standing {
            pod: &flying.pod,
            stands: Stands::InFlight,
            before: 0,
            tried: Tried::default(),
            since: None,
            until: None,
            stopped_by: PluginSet::default(),
        });
        let active = self.active.iter().map(|(_, uid)| uid);
        let errors = self.error_backoff.iter().map(|(end, uid)| (*end, uid));
        let mut pausing: Vec<_> = self.backoff.iter().map(|(end, _, uid)| (*end, uid)).chain(errors).collect();
        pausing.sort_by_key(|(end, _)| *end);
        let parked = self.parked.iter().chain(&self.held).map(|(_, uid)| uid);
        let waiting = active.chain(pausing.into_iter().map(|(_, uid)| uid)).chain(parked);
        let mut standings: Vec<Standing<'_>> = waiting
            .filter_map(|uid| {
                let entry = self.entries.get(uid)?;
                let stands = entry.stands();
                let until = match entry.place {
                    Place::Backoff { end, .. } => Some(Self::pause_over(end)),
                    Place::Active | Place::Parked | Place::Held => None,
                };
                let (pod, tried, since) = (&entry.pod, entry.tried, Some(entry.since));
                Some(Standing { pod, stands, before: 0, tried, since, until, stopped_by: entry.stopped_by() })
            })
            .collect();
        standings.sort_by_key(|standing| standing.stands);
        let mut all: Vec<Standing<'_>> = in_flight.chain(standings).collect();
        let mut last = None;
        for standing in &mut all {
            standing.before = match last {
                Some((stands, before)) if stands == standing.stands => before + 1,
                _ => 0,
            };
            last = Some((standing.stands, standing.before));
        }
        all
    }
}
