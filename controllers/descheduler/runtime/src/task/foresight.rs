//! What the tasks do where it is foreseen what evictions lead to.

use std::{collections::BTreeSet, time::Duration};

use koord_descheduler_framework::{Eviction, Step};
use koord_descheduler_migration::controller::COMPONENT;
use koord_runtime::api::Api;
use tokio_util::sync::CancellationToken;

use super::{INCOMPLETE, Worker};
use crate::{carry_out, passes::Passes};

/// How long the first pass waits for what the scheduler knows.
const FORESIGHT_WITHIN: Duration = Duration::from_secs(10);
/// How many objections are remembered, so that each is reported once.
const REPORTED_MAX: usize = 10_000;

impl Worker {
    /// Reads what was evicted before, and waits a while for what the scheduler knows.
    pub(super) async fn foresee(&mut self, api: &Api, end: &CancellationToken) {
        if let Some(history) = &mut self.history {
            history.load(api, &mut self.passes.history).await;
        }
        let until = self.clock.moment() + FORESIGHT_WITHIN;
        let waits = |passes: &Passes| passes.planner.as_ref().is_some_and(|planner| planner.obstacle().is_some());
        while waits(&self.passes) && self.clock.moment() < until && !end.is_cancelled() {
            self.follow(INCOMPLETE).await;
        }
    }

    /// Brings the planner to where the caches are, and reports where it cannot foresee anything.
    pub(super) fn prepare_foresight(&mut self) {
        let Some(planner) = &mut self.passes.planner else { return };
        planner.catch_up();
        let obstacle = planner.obstacle();
        self.measures.plans(obstacle.is_none());
        if let Some(obstacle) = obstacle.as_ref().filter(|_| self.obstacle != obstacle) {
            tracing::warn!(
                "what evictions lead to is not foreseen: {obstacle}; until it is, profiles with `planning: enforce` evict nothing, and those with `report` look at budgets and the history alone"
            );
        }
        self.obstacle = obstacle;
        if self.passes.find_successors(self.clock.now())
            && let Some(history) = &mut self.history
        {
            history.changed();
        }
    }

    /// Reports evictions that are not worth it and do not take place, each once until another reason keeps the pod.
    pub(super) fn report_spared(&mut self, spared: &[Eviction]) {
        let mut reported = BTreeSet::new();
        for eviction in spared {
            let Some(objection) = &eviction.outlook.objection else { continue };
            self.measures.objected(eviction, true);
            let key = (eviction.pod.uid.clone(), objection.code.as_str());
            if !self.reported.contains(&key)
                && let Some(event) = carry_out::objection(eviction, true)
            {
                let (pod, strategy) = (eviction.pod.key.as_str(), eviction.plugin);
                tracing::info!(pod, strategy, "the pod stays: {objection}");
                if !self.is_dry_run {
                    self.events.record(COMPONENT, event);
                }
            }
            if reported.len() < REPORTED_MAX {
                reported.insert(key);
            }
        }
        self.reported = reported;
    }

    /// Reports an eviction that takes place although it is not worth it.
    pub(super) fn report_objection(&self, step: &Step) {
        if let Some(eviction) = step.eviction()
            && let Some(event) = carry_out::objection(eviction, false)
        {
            self.measures.objected(eviction, false);
            self.events.record(COMPONENT, event);
        }
    }
}
