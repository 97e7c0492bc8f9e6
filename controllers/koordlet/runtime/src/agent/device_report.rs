//! The Device object of the node, and what GPUs are used.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_devices::{DeviceChange, DeviceFiles, DeviceReport, GpuUsage, RdmaCards, Sources, group_usage};
use koord_koordlet_metrics::{Measure, Subject};
use koord_koordlet_reports::gpu_usage;
use koord_koordlet_system::{HostTree, Kernel as _, Resource, parse_ids};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_types::device::{Device, DeviceInfo};
use serde_json::{Value, json};

use super::{Agent, Now};
use crate::{capability::Capabilities, exchange::Effect, gpus::SharedGpus, objects::DeviceObject};

/// What is known of devices.
#[derive(Default)]
pub(super) struct Devices {
    pub(super) live: Option<Arc<DeviceObject>>,
    /// GPUs of NVIDIA, which a thread of their own reads; `None` where they are not looked for.
    pub(super) gpus: Option<SharedGpus>,
    files: DeviceFiles,
    next: Option<Moment>,
    under_way: Option<u64>,
    /// The round of samples that was stored last.
    sampled: u64,
}

pub(super) const FEATURE: &str = "Accelerators";
const RDMA: &str = "RDMADevices";
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

impl Devices {
    pub(super) fn answered(&mut self, id: u64, error: Option<&str>, now: Moment, capabilities: &mut Capabilities) {
        if self.under_way != Some(id) {
            return;
        }
        self.under_way = None;
        if let Some(reason) = error {
            self.next = Some(now + FAILURE_PAUSE);
            let remedy = "let the agent's ServiceAccount create and patch devices.scheduling.koordinator.sh";
            capabilities.degraded(FEATURE, reason, remedy);
        }
    }
}

impl Agent {
    /// Uses the GPUs that a thread reads.
    pub fn use_gpus(&mut self, gpus: SharedGpus) {
        self.devices.gpus = Some(gpus);
    }

    /// Reports devices when that is due.
    pub(super) fn report_devices(&mut self, now: Now) {
        let is_late = self.devices.next.is_none_or(|next| next <= now.moment);
        let Some(interval) = self.settings.intervals.topology else { return };
        if !self.settings.features.has(FEATURE)
            || !self.topology.is_listed
            || !is_late
            || self.devices.under_way.is_some()
        {
            return;
        }
        let Some(node) = self.node.clone() else { return };
        self.devices.next = Some(now.moment + interval);
        self.devices.files.refresh(&HostTree, &self.settings.xpu_device_infos);
        let errors: Vec<String> = self.devices.files.errors().map(ToString::to_string).collect();
        let cards = self.settings.features.has(RDMA).then(|| RdmaCards::discover(&HostTree, &self.settings.roots.sys));
        let change = {
            // The driver may hang: the last report counts until its thread is done.
            let gpus = self.devices.gpus.as_ref().map(SharedGpus::read);
            let Some(gpus) = gpus.map_or(Some(None), |gpus| gpus.map(Some)) else { return };
            let xpu = self.devices.files.devices();
            let gpus = gpus.as_ref().map(|gpus| &gpus.gpus);
            let report = DeviceReport::of(&Sources { xpu: &xpu, gpus, rdma: cards.as_ref() });
            report.change(&node, self.devices.live.as_ref().map(|live| &live.object), now.time)
        };
        let fault = self.devices.gpus.as_ref().and_then(SharedGpus::fault);
        match errors.first() {
            Some(error) => {
                self.capabilities.degraded(
                    FEATURE,
                    error,
                    "correct the device file; what it said last counts until then",
                );
            }
            None => match fault {
                Some((reason, remedy)) if self.devices.files.devices().is_empty() => {
                    self.capabilities.degraded(FEATURE, reason, &remedy);
                }
                _ => {
                    self.capabilities.active(FEATURE);
                }
            },
        }
        let action = match (change, &self.devices.live) {
            (Some(DeviceChange::Create(object)), _) => Action::Create(object),
            (Some(DeviceChange::Patch(mut patch)), Some(live)) => {
                patch["metadata"]["uid"] = json!(live.identity.uid);
                patch["metadata"]["resourceVersion"] = Value::String(live.identity.resource_version.clone());
                Action::Patch { subresource: "", patch }
            }
            (None, _) | (Some(DeviceChange::Patch(_)), None) => return,
        };
        let id = self.next_id();
        self.devices.under_way = Some(id);
        let write = Write { kind: ResourceKind::typed::<Device>(), key: ObjectKey::cluster(&node.name), action };
        self.effects.push(Effect::Write { id, write });
    }

    /// Stores what processes use of GPUs, when there is a new round of samples.
    pub(super) fn sample_gpus(&mut self, now: Now) {
        let Some(gpus) = &self.devices.gpus else { return };
        let Some(state) = gpus.read() else { return };
        if state.round == self.devices.sampled {
            return;
        }
        self.devices.sampled = state.round;
        let store = &mut self.sampling.store;
        let mut add = |subject: Subject<'_>, usage: GpuUsage| {
            store.append(subject, Measure::GpuCore(usage.minor), now.moment, usage.core_percent as f64);
            store.append(subject, Measure::GpuMemory(usage.minor), now.moment, usage.memory_bytes as f64);
        };
        for activity in &state.activities {
            add(Subject::Node, activity.usage());
        }
        let kernel = self.files.cgroups();
        for pod in self.kubelet.pods.iter() {
            let mut processes = Vec::new();
            for cgroup in pod.containers.iter().filter_map(|container| container.cgroup.as_ref()) {
                let text = kernel.text(cgroup, Resource::Processes).unwrap_or_default();
                processes.extend(parse_ids("cgroup.procs", text.as_bytes()).filter_map(Result::ok));
            }
            for usage in group_usage(&state.activities, &processes) {
                add(Subject::Pod(&pod.uid), usage);
            }
        }
    }

    /// What is used of the GPUs by the node or a pod, on the average of a span that ends now.
    pub(super) fn used_gpus(&self, subject: Subject<'_>, span: Duration, now: Moment) -> Vec<DeviceInfo> {
        let Some(state) = self.devices.gpus.as_ref().and_then(SharedGpus::read) else { return Vec::new() };
        let from = Moment::at(now.since(Moment::default()).saturating_sub(span));
        let average = |measure| self.sampling.store.window(subject, measure, from, now).average();
        let used = state.gpus.gpus().filter_map(|gpu| {
            let minor = gpu.minor;
            let (core, memory) = average(Measure::GpuCore(minor)).zip(average(Measure::GpuMemory(minor)))?;
            Some(gpu_usage(i32::try_from(minor).ok()?, &gpu.uuid, core, memory, gpu.memory_bytes as f64))
        });
        used.collect()
    }
}
