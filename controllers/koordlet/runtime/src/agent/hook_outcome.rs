//! What hooks want besides files of cgroups: core-scheduling cookies, files of Terway, classes of the network card.

use std::sync::Arc;

use koord_koordlet_hooks::{
    CookieChange, CoreSchedSupport, Hook,
    network::{terway::TerwayFiles, traffic::TrafficPlan},
    on_stop,
};
use koord_koordlet_resolver::Resolver;

use super::{Agent, Now};
use crate::{capability::State, terway_files::set_terway_files};

const CORE_SCHED: &str = "CoreSched";
const TERWAY: &str = "TerwayQoS";
const TRAFFIC: &str = "TCNetworkQoS";

/// What was carried out last, so that the same is not done again.
#[derive(Default)]
pub(super) struct Carried {
    terway: Terway,
}

/// What was last done with the files of Terway.
#[derive(Default)]
enum Terway {
    #[default]
    Unknown,
    Files(Option<Arc<TerwayFiles>>),
}

/// How a feature fares where the agent is given trees of files alone.
fn without_interface(is_wanted: bool) -> State {
    if !is_wanted {
        return State::Off;
    }
    let reason = "the agent is given files of a node, and not the node itself".to_owned();
    State::Degraded { reason, remedy: "run the agent on the node, with --proc-root-dir=/proc".to_owned() }
}

/// Whether two plans are the same object.
fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

impl Agent {
    /// Whether the kernel schedules cores.
    pub(super) fn core_sched_support(&self) -> CoreSchedSupport {
        match &self.host.interfaces.core_scheduling {
            Some(kernel) if kernel.probe().is_ok() => CoreSchedSupport::Supported,
            _ => CoreSchedSupport::Unsupported,
        }
    }

    /// Changes cookies, and reports how core scheduling fares.
    pub(super) fn change_cookies(&mut self, changes: &[CookieChange], waits: Option<&str>) {
        if !self.settings.hooks.hooks.contains(Hook::CoreSched) {
            return;
        }
        let Some(kernel) = &mut self.host.interfaces.core_scheduling else {
            self.capabilities.degraded(
                CORE_SCHED,
                "processes of this node are not those of this machine",
                "run the agent with the node's /proc",
            );
            return;
        };
        if let Err(reason) = kernel.probe() {
            let remedy =
                "core scheduling needs Linux 5.14 or later with CONFIG_SCHED_CORE, and CPUs with SMT switched on";
            self.capabilities.degraded(CORE_SCHED, reason, remedy);
            return;
        }
        if self.settings.only_observes {
            return;
        }
        let refused = changes.iter().filter_map(|change| kernel.change(change).err()).last();
        let state = match (refused, waits) {
            (Some(reason), _) => State::Degraded {
                reason,
                remedy: "let the agent have CAP_SYS_PTRACE and the node's processes (hostPID)".to_owned(),
            },
            (None, Some(reason)) => State::Degraded {
                reason: reason.to_owned(),
                remedy: "none: it goes on when group identity is off everywhere".to_owned(),
            },
            (None, None) => State::Active,
        };
        self.capabilities.set(CORE_SCHED, state);
    }

    /// Writes the files of Terway. What failed is tried again.
    pub(super) fn set_terway(&mut self, files: Option<Arc<TerwayFiles>>) {
        let is_known = match &self.hooks.carried.terway {
            Terway::Unknown => false,
            Terway::Files(known) => is_same(known.as_ref(), files.as_ref()),
        };
        if !self.settings.hooks.hooks.contains(Hook::TerwayQos) || self.settings.only_observes || is_known {
            return;
        }
        let Some(folder) = &self.host.interfaces.terway else {
            let state = without_interface(files.is_some());
            self.capabilities.set(TERWAY, state);
            return;
        };
        match set_terway_files(folder, files.as_deref()) {
            Ok(()) => {
                let state = if files.is_some() { State::Active } else { State::Off };
                self.capabilities.set(TERWAY, state);
                self.hooks.carried.terway = Terway::Files(files);
            }
            Err(reason) => {
                self.capabilities.degraded(
                    TERWAY,
                    reason,
                    "install Terway with its QoS agent, and mount its folder /var/lib/terway",
                );
            }
        }
    }

    /// Brings classes to the network card. What failed is tried again.
    pub(super) fn set_traffic(&mut self, plan: Option<&TrafficPlan>) {
        if !self.settings.hooks.hooks.contains(Hook::TcNetworkQos) || self.settings.only_observes {
            return;
        }
        let Some(card) = &mut self.host.interfaces.traffic else {
            let state = without_interface(plan.is_some());
            self.capabilities.set(TRAFFIC, state);
            return;
        };
        // The card is looked at each time: others configure it, too.
        match card.apply(plan) {
            Ok(()) => {
                let state = if plan.is_some() { State::Active } else { State::Off };
                self.capabilities.set(TRAFFIC, state);
            }
            Err(error) => {
                self.capabilities.degraded(TRAFFIC, &error.reason, error.remedy);
            }
        }
    }

    /// Undoes what must not outlive the agent: the kubelet cannot start while QoS folders are idle.
    pub fn stop(&mut self, now: Now) {
        let constraints = on_stop(self.host.layout, self.files.cgroups());
        if constraints.0.is_empty() || self.settings.only_observes {
            return;
        }
        // Nothing else that anybody wants of these files counts any more.
        let mut resolver = Resolver::new(self.settings.intervals.verify);
        resolver.submit("stop", constraints);
        let outcome = resolver.pass(now.moment, &mut self.files);
        self.resolved(&outcome, now);
    }
}
