//! The agent as a state machine: it is given what comes from outside and the time, reads and writes the files of the node, and says what it wants of the outside.
//!
//! It has no client, no tasks and no clock. The program runs it beside real watches, and a test beside a fixture tree in virtual time.

mod collections;
mod device_report;
mod enforcement;
mod eviction;
mod folders;
mod hook_outcome;
mod hooks;
mod kept;
mod metric_report;
mod node_effects;
mod sampling;
mod series;
mod state;
mod topology;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeTopology, Pod, Target};
use koord_koordlet_hooks::{Response, Rules};
use koord_koordlet_qos::Strategy;
use koord_koordlet_resolver::{MountedFiles, Outcome, Resolver, Written};
use koord_koordlet_system::{Cgroups, QosFolder, Resource, Writer};
use koord_runtime::write::Answer as ApiAnswer;

pub use self::state::WantedFiles;
use self::{
    collections::Collections,
    device_report::Devices,
    enforcement::Enforcement,
    eviction::Evictions,
    hooks::Hooks,
    metric_report::Reporting,
    sampling::{Sampling, Slo},
    topology::Topology,
};
use crate::{
    audit::{AuditEvent, AuditLog, Subject},
    called::{self, Called, Done},
    capability::Capabilities,
    durations::{Durations, MeasuredFiles},
    exchange::{Effect, Input, Object},
    host::Host,
    kubelet::Kubelet,
    objects::ClaimVolumes,
    settings::Settings,
};

/// The node agent.
pub struct Agent {
    settings: Settings,
    host: Host,
    files: MountedFiles,
    capabilities: Capabilities,
    kubelet: Kubelet,
    node: Option<Arc<Node>>,
    slo: Slo,
    reporting: Reporting,
    devices: Devices,
    claims: ClaimVolumes,
    topology: Topology,
    resolver: Resolver,
    sampling: Sampling,
    enforcement: Enforcement,
    evictions: Evictions,
    hooks: Hooks,
    audit: Option<AuditLog>,
    durations: Option<Durations>,
    collections: Collections,
    /// When the agent started.
    started: Timestamp,
    /// When the Node last changed.
    node_at: Option<Moment>,
    /// Counts changes of the node's labels, annotations and amounts.
    node_generation: u64,
    effects: Vec<Effect>,
    id_last: u64,
}

/// The moment, and the time of day that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub moment: Moment,
    pub time: Timestamp,
}

impl Agent {
    /// An agent of a node. It changes files through the writer.
    ///
    /// `seed` is what random choices follow from, `start` the time of the start.
    pub fn new(settings: Settings, host: Host, writer: Box<dyn Writer>, seed: u64, start: Now) -> Self {
        let cgroups = Cgroups::new(settings.roots.cgroup.clone(), host.layout);
        Self {
            files: MountedFiles::new(cgroups, writer),
            capabilities: Capabilities::default(),
            kubelet: Kubelet::new(settings.kubelet.clone()),
            node: None,
            slo: Slo::default(),
            reporting: Reporting::new(&settings),
            devices: Devices::default(),
            claims: ClaimVolumes::new(),
            topology: Topology::default(),
            resolver: Resolver::new(settings.intervals.verify),
            sampling: Sampling::new(&settings, &host),
            enforcement: Enforcement::new(&settings, &host.machine, seed, start.moment),
            evictions: Evictions::default(),
            hooks: Hooks::new(&settings, &host.machine),
            audit: settings.audit.clone().map(AuditLog::new),
            durations: None,
            collections: Collections::of_start(&host),
            started: start.time,
            node_at: None,
            node_generation: 0,
            effects: Vec::new(),
            id_last: 0,
            settings,
            host,
        }
    }

    /// Takes something from outside. What follows from it is done by the next [`Agent::run`].
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Kubelet { path, result } => {
                let before = self.kubelet.generation;
                let status = result.as_ref().map_or_else(|failure| failure.status, |_| Some(200));
                if let (Some(durations), Some(status)) = (&self.durations, status) {
                    durations.kubelet_request(path, status, now.moment.since(self.kubelet.sent(path)));
                }
                let result = result.map_err(|failure| failure.reason);
                self.kubelet.answer(path, result, now.moment, self.host.layout, &mut self.capabilities);
                self.follow_kubelet_root(now);
                if self.kubelet.generation != before {
                    self.pods_changed();
                }
            }
            Input::Object(object) => self.object(object, now.moment),
            Input::Listed => self.topology.is_listed = true,
            Input::Written { id, result } => self.answered(id, &result, now),
            Input::Stopped { id, result } => {
                self.eviction_answered(id, result.err(), now);
            }
            Input::PodFolder => self.kubelet.hurry(now.moment),
            Input::Pressure(resource) => self.pressure(resource, now.moment),
            Input::Called(called) => self.answered_call(*called, now),
            Input::Capability { feature, state } => {
                self.capabilities.set(feature, state);
            }
        }
    }

    fn object(&mut self, object: Object, now: Moment) {
        match object {
            Object::Node(node) => {
                let is_same = self.node == node;
                self.node = node;
                if !is_same {
                    self.node_at = Some(now);
                    self.node_generation += 1;
                    self.topology.hurry();
                }
            }
            Object::Metric(metric) => self.take_metric(metric),
            Object::Slo(slo) => self.take_slo(slo.as_deref(), now),
            Object::Topology(live) => self.topology.live = live,
            Object::Device(device) => self.devices.live = device,
            Object::Claim(claim) => {
                self.claims.insert(format!("{}/{}", claim.namespace, claim.name), claim.volume.clone());
            }
        }
    }

    fn pods_changed(&mut self) {
        self.topology.hurry();
        self.resolver.look_for_gone();
        self.evictions.ledger.retain(&self.kubelet.pods);
        self.sampling.collectors.set_pods(&self.kubelet.pods);
    }

    fn answered(&mut self, id: u64, result: &Result<(u16, String), String>, now: Now) {
        let error = match result {
            Ok((code, _)) if (200..300).contains(code) => None,
            Ok((code, body)) => {
                let (_, message) = ApiAnswer { body: body.clone(), ..ApiAnswer::default() }.status();
                Some(if message.is_empty() { format!("HTTP {code}: {body}") } else { message })
            }
            Err(reason) => Some(reason.clone()),
        };
        if self.eviction_answered(id, error.clone(), now) {
            return;
        }
        self.reporting.answered(id, result, error.as_deref(), now.moment, &mut self.capabilities);
        self.devices.answered(id, error.as_deref(), now.moment, &mut self.capabilities);
        self.topology.answered(id, error.as_deref(), now.moment, &mut self.capabilities);
    }

    /// When the agent has something to do by itself.
    pub fn due(&self) -> Moment {
        let kubelet = self.node.as_ref().and_then(|_| self.kubelet.due());
        let topology = self.node.as_ref().and_then(|_| self.topology.due(&self.settings));
        let sampling = Some(self.sampling.due());
        let enforcement = self.sampling.has_pods.then(|| self.enforcement.due(&self.settings)).flatten();
        [kubelet, topology, sampling, enforcement, self.hooks.due(), self.reporting.due()]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_default()
    }

    /// Does all that is due, files included. `time` shows the moment at which it is called: samples carry the time at which they were taken.
    pub fn run(&mut self, now: Now, time: &dyn Fn() -> Moment) -> Vec<Effect> {
        if self.node.is_some() {
            let requests = self.kubelet.requests(now.moment);
            self.effects.extend(requests.into_iter().map(Effect::AskKubelet));
            self.report_topology(now);
            self.report_devices(now);
        }
        self.sample(now.moment, time);
        self.sample_gpus(now);
        self.report_metric(now);
        self.run_hooks(now);
        self.enforce(now);
        self.evict(now);
        let mut files = MeasuredFiles { files: &mut self.files, durations: self.durations.as_ref(), time };
        let outcome = self.resolver.pass(now.moment, &mut files);
        self.resolved(&outcome, now);
        if let Some(audit) = &mut self.audit {
            audit.tick(now.moment);
        }
        std::mem::take(&mut self.effects)
    }

    fn resolved(&mut self, outcome: &Outcome, now: Now) {
        for (target, value, reason) in &outcome.refused {
            tracing::warn!(%target, %value, reason, "the kernel refuses a value");
        }
        for (target, value) in &outcome.foreign {
            tracing::warn!(%target, %value, "another program keeps writing this file; it is not fought");
        }
        for written in &outcome.written {
            let name = written.target.cgroup().map_or_else(String::new, ToString::to_string);
            let message = format!("update {} to {}", written.target, written.value);
            let event = AuditEvent::of(Subject::Group, 3, &name, "UpdateCgroups", message, now.time);
            self.audit(&event, now);
            self.audit_suppression(written, now);
        }
    }

    /// What suppression leaves BE pods is among the important events.
    fn audit_suppression(&mut self, written: &Written, now: Now) {
        let best_effort = self.host.layout.qos(QosFolder::BestEffort);
        let quota = Target::Cgroup { cgroup: best_effort, resource: Resource::CpuQuota };
        if written.strategy != Strategy::CpuSuppress.name() || written.target != quota {
            return;
        }
        let message = format!("update BE group to cfs_quota: {}", written.value);
        self.audit(&AuditEvent::of(Subject::Node, 1, "", "AdjustBEByNodeCPUUsage", message, now.time), now);
    }

    /// Carries out what hooks answered a container runtime: files of the pod's cgroup, which no runtime writes, and effects. Refused settings are logged.
    pub fn called(&mut self, response: &Response, now: Now) {
        let resctrl = self.resctrl_folder();
        let groups = called::effects(response, &mut self.files, &resctrl);
        let done = Done { groups, ..Done::default() };
        self.answered_call(Called { response: response.clone(), done }, now);
        if !response.constraints.0.is_empty() {
            let outcome = self.resolver.pass(now.moment, &mut self.files);
            self.resolved(&outcome, now);
        }
    }

    /// Keeps what was done for a container runtime.
    fn answered_call(&mut self, called: Called, now: Now) {
        let Called { response, done: Done { outcome, groups } } = called;
        for refused in &response.refused {
            tracing::warn!("{refused}");
        }
        for group in groups {
            self.group_changed(group, now);
        }
        self.resolved(&outcome, now);
        self.resolver.submit_more(hooks::STRATEGY, response.constraints);
    }

    fn audit(&mut self, event: &AuditEvent, now: Now) {
        if let Some(audit) = &mut self.audit {
            audit.record(event, now.moment, now.time);
        }
    }

    /// Measures from now on how long things take.
    pub(crate) fn measure(&mut self, durations: Durations) {
        self.durations = Some(durations);
    }

    /// The audit, where it is on.
    pub fn audit_log(&mut self) -> Option<&mut AuditLog> {
        self.audit.as_mut()
    }

    /// What calls of container runtimes follow.
    pub fn rules(&self) -> Arc<ArcSwapOption<Rules>> {
        Arc::clone(&self.hooks.rules)
    }

    /// The pods of the node.
    pub fn pods(&self) -> &Arc<[Arc<Pod>]> {
        &self.kubelet.pods
    }

    /// Which features work here.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The CPUs of the node and their pools, once they are known.
    pub fn topology(&self) -> Option<&Arc<NodeTopology>> {
        self.topology.report.as_ref().map(|report| &report.topology)
    }

    /// What all strategies want of the files of the node.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    fn next_id(&mut self) -> u64 {
        self.id_last += 1;
        self.id_last
    }
}
