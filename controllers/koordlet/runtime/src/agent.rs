//! The agent as a state machine: it is given what comes from outside and the time, reads and writes the files of the node, and says what it wants of the outside.
//!
//! It has no client, no tasks and no clock. The program runs it beside real watches, and a test beside a fixture tree in virtual time.

mod sampling;
mod topology;

use std::sync::Arc;

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeTopology, Pod};
use koord_koordlet_resolver::{MountedFiles, Outcome, Resolver, Written};
use koord_koordlet_system::{Cgroups, Writer};

use self::{
    sampling::{Sampling, Slo},
    topology::Topology,
};
use crate::{
    capability::Capabilities,
    exchange::{Effect, Input, Object},
    host::Host,
    kubelet::Kubelet,
    objects::{ClaimVolumes, DeviceObject, MetricObject},
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
    metric: Option<Arc<MetricObject>>,
    device: Option<Arc<DeviceObject>>,
    claims: ClaimVolumes,
    topology: Topology,
    resolver: Resolver,
    sampling: Sampling,
    effects: Vec<Effect>,
    written: Vec<Written>,
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
    pub fn new(settings: Settings, host: Host, writer: Box<dyn Writer>) -> Self {
        let cgroups = Cgroups::new(settings.roots.cgroup.clone(), host.layout);
        Self {
            files: MountedFiles::new(cgroups, writer),
            capabilities: Capabilities::default(),
            kubelet: Kubelet::new(settings.kubelet.clone()),
            node: None,
            slo: Slo::default(),
            metric: None,
            device: None,
            claims: ClaimVolumes::new(),
            topology: Topology::default(),
            resolver: Resolver::new(settings.intervals.verify),
            sampling: Sampling::new(&settings, &host),
            effects: Vec::new(),
            written: Vec::new(),
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
                self.kubelet.answer(path, result, now.moment, self.host.layout, &mut self.capabilities);
                if self.kubelet.generation != before {
                    self.pods_changed();
                }
            }
            Input::Object(object) => self.object(object),
            Input::Listed => self.topology.is_listed = true,
            Input::Written { id, result } => self.answered(id, &result, now),
            Input::Stopped { .. } => {}
            Input::PodFolder => self.kubelet.hurry(now.moment),
        }
    }

    fn object(&mut self, object: Object) {
        match object {
            Object::Node(node) => {
                self.node = node;
                self.topology.is_stale = true;
            }
            Object::Metric(metric) => self.metric = metric,
            Object::Slo(slo) => self.take_slo(slo.as_deref()),
            Object::Topology(live) => self.topology.live = live,
            Object::Device(device) => self.device = device,
            Object::Claim(claim) => {
                self.claims.insert(format!("{}/{}", claim.namespace, claim.name), claim.volume.clone());
            }
        }
    }

    fn pods_changed(&mut self) {
        self.topology.is_stale = true;
        self.resolver.look_for_gone();
        self.sampling.collectors.set_pods(&self.kubelet.pods);
    }

    fn answered(&mut self, id: u64, result: &Result<(u16, String), String>, now: Now) {
        let error = match result {
            Ok((code, _)) if (200..300).contains(code) => None,
            Ok((code, body)) => Some(format!("HTTP {code}: {body}")),
            Err(reason) => Some(reason.clone()),
        };
        self.topology.answered(id, error.as_deref(), now.moment, &mut self.capabilities);
    }

    /// When the agent has something to do by itself.
    pub fn due(&self) -> Moment {
        let kubelet = self.node.as_ref().and_then(|_| self.kubelet.due());
        let topology = self.node.as_ref().and_then(|_| self.topology.due(&self.settings));
        let sampling = Some(self.sampling.due());
        [kubelet, topology, sampling].into_iter().flatten().min().unwrap_or_default()
    }

    /// Does all that is due, files included. `time` shows the moment at which it is called: samples carry the time at which they were taken.
    pub fn run(&mut self, now: Now, time: &dyn Fn() -> Moment) -> Vec<Effect> {
        if self.node.is_some() {
            let requests = self.kubelet.requests(now.moment);
            self.effects.extend(requests.into_iter().map(Effect::AskKubelet));
            self.report_topology(now);
        }
        self.sample(now.moment, time);
        let outcome = self.resolver.pass(now.moment, &mut self.files);
        self.resolved(outcome);
        std::mem::take(&mut self.effects)
    }

    fn resolved(&mut self, outcome: Outcome) {
        for (target, value, reason) in &outcome.refused {
            tracing::warn!(%target, %value, reason, "the kernel refuses a value");
        }
        self.written.extend(outcome.written);
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
    pub fn topology(&self) -> Option<&NodeTopology> {
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
