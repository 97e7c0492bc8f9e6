//! Hooks on the pods that run, and the rules that calls of container runtimes follow.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use koord_core::clock::Moment;
use koord_koordlet_framework::Constraints;
use koord_koordlet_hooks::{
    CoreSchedSupport, KernelSwitches, OomScore, Options, Reconciler, ResctrlMachine, RuleInputs, Rules, SCHED_CORE,
    SCHED_GROUP_IDENTITY,
};
use koord_koordlet_system::{
    HostTree, Kernel as _, Resource, Roots, read,
    resctrl::{ResctrlInfo, Schemata, supported_vendor},
};

use super::{Agent, Now, hook_outcome::Carried};
use crate::{capability::State, settings::Settings};

/// Rules and the reconciler.
pub(super) struct Hooks {
    options: Options,
    reconciler: Reconciler,
    /// What calls of container runtimes follow; none before they are computed for the first time.
    pub(super) rules: Arc<ArcSwapOption<Rules>>,
    machine: Option<Arc<ResctrlMachine>>,
    /// What the rules were computed from.
    seen: Option<(u64, u64, u64, KernelSwitches)>,
    /// The pods that were reconciled last.
    pods: u64,
    next: Option<Moment>,
    refused: Vec<String>,
    /// The score adjustments of the last round.
    pub(super) oom_scores: Vec<OomScore>,
    /// The constraints that were submitted last.
    submitted: Option<Arc<Constraints>>,
    pub(super) carried: Carried,
}

/// The name under which constraints of hooks are submitted.
pub(super) const STRATEGY: &str = "RuntimeHooks";

impl Hooks {
    pub(super) fn new(settings: &Settings, machine: &koord_koordlet_system::Machine) -> Self {
        let resctrl = settings.roots.sys_fs.join("resctrl");
        let found = || {
            let vendor = supported_vendor(&machine.info).ok()?;
            let ways = ResctrlInfo::discover(&HostTree, &resctrl).l3_mask?;
            let root = Schemata::parse(&read(&resctrl.join("schemata")).ok()?).ok()?;
            Some(Arc::new(ResctrlMachine { vendor, ways, root }))
        };
        Self {
            options: settings.hooks.clone(),
            reconciler: Reconciler::default(),
            rules: Arc::default(),
            machine: found(),
            seen: None,
            pods: 0,
            next: None,
            refused: Vec::new(),
            oom_scores: Vec::new(),
            submitted: None,
            carried: Carried::default(),
        }
    }

    /// Computes rules anew, and reconciles all pods.
    pub(super) fn forget(&mut self) {
        self.reconciler = Reconciler::default();
        self.seen = None;
        self.next = None;
        self.submitted = None;
    }

    /// How many pods something is kept of.
    pub(super) fn pods(&self) -> usize {
        self.reconciler.pods()
    }

    /// When pods are reconciled next though nothing changed.
    pub(super) fn due(&self) -> Option<Moment> {
        self.next
    }
}

/// What the switches of the kernel say.
fn switches(roots: &Roots, kernel: &koord_koordlet_system::Cgroups, core_sched: CoreSchedSupport) -> KernelSwitches {
    let switch = |file: &str| {
        let text = read(&roots.proc.join("sys").join(file)).ok()?;
        match text.trim_ascii() {
            b"0" => Some(false),
            b"1" => Some(true),
            _ => None,
        }
    };
    KernelSwitches {
        group_identity: switch(SCHED_GROUP_IDENTITY),
        sched_core: switch(SCHED_CORE),
        has_group_identity_file: kernel.supports(&kernel.layout().kubepods(), Resource::GroupIdentity),
        core_sched,
    }
}

impl Agent {
    /// Computes the rules when what they follow from has changed, and reconciles pods when they or the rules have, and again and again.
    pub(super) fn run_hooks(&mut self, now: Now) {
        let is_late = self.hooks.next.is_none_or(|next| next <= now.moment);
        // Switches are read with the others: who else sets them is seen at the next interval.
        let is_changed = self.update_rules(is_late);
        if !self.kubelet.has_pods {
            return;
        }
        if is_late || is_changed || self.hooks.pods != self.kubelet.generation {
            self.hooks.pods = self.kubelet.generation;
            self.hooks.next = Some(now.moment + self.settings.intervals.hooks);
            self.reconcile_hooks(now);
        }
    }

    fn update_rules(&mut self, is_late: bool) -> bool {
        let objects = (self.slo.generation, self.topology.generation, self.node_generation);
        let known = self.hooks.seen.map(|(slo, topology, node, _)| (slo, topology, node));
        if known == Some(objects) && !is_late {
            return false;
        }
        let switches = switches(&self.settings.roots, self.files.cgroups(), self.core_sched_support());
        let (slo, topology, node) = objects;
        let seen = Some((slo, topology, node, switches));
        if self.hooks.seen == seen {
            return false;
        }
        self.hooks.seen = seen;
        let previous = self.hooks.rules.load_full();
        let inputs = RuleInputs {
            options: &self.hooks.options,
            layout: self.host.layout,
            slo: self.slo.merged.as_ref(),
            topology: self.topology.report.as_ref().map(|report| &report.topology),
            node: self.node.as_deref(),
            switches,
            resctrl: self.hooks.machine.as_ref(),
        };
        self.hooks.rules.store(Some(Arc::new(Rules::new(inputs, previous.as_deref()))));
        true
    }

    fn reconcile_hooks(&mut self, now: Now) {
        // A switch that was set changes the rules once more.
        for _ in 0..2 {
            let Some(rules) = self.hooks.rules.load_full() else { return };
            let pods = Arc::clone(&self.kubelet.pods);
            let core_scheduling = self.host.interfaces.core_scheduling.as_deref();
            let cookie = |process: u32| core_scheduling.and_then(|kernel| kernel.cookie(process));
            let outcome = self.hooks.reconciler.reconcile(&pods, &rules, self.files.cgroups(), &cookie);
            let mut was_set = false;
            for switch in &outcome.switches {
                was_set |= self.set_switch(switch, now);
            }
            if was_set && self.update_rules(true) {
                continue;
            }
            let is_same = self.hooks.submitted.as_ref().is_some_and(|known| Arc::ptr_eq(known, &outcome.constraints));
            if !is_same {
                self.resolver.submit(STRATEGY, (*outcome.constraints).clone());
                self.hooks.submitted = Some(Arc::clone(&outcome.constraints));
            }
            self.change_cookies(&outcome.cookies, outcome.core_sched_waits.as_deref());
            self.set_terway(outcome.terway);
            self.set_traffic(outcome.traffic.as_deref());
            for score in &outcome.oom_scores {
                self.set_oom_score(score, now);
            }
            for group in outcome.groups {
                self.set_group(&group.name, &group.schemata, &group.tasks, now);
            }
            if self.hooks.machine.is_some() {
                self.remove_unneeded_groups(&outcome.needed_groups, now);
            }
            self.hooks.oom_scores = outcome.oom_scores;
            let refused: Vec<String> = outcome.refused.iter().map(ToString::to_string).collect();
            for refused in refused.iter().filter(|refused| !self.hooks.refused.contains(refused)) {
                tracing::warn!("{refused}");
            }
            let state = match refused.first() {
                None => State::Active,
                Some(reason) => State::Degraded { reason: reason.clone(), remedy: "correct the setting".to_owned() },
            };
            self.hooks.refused = refused;
            self.capabilities.set(STRATEGY, state);
            return;
        }
    }
}
