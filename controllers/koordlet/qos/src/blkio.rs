//! Disk QoS: limits and weights of BE pods together and of single pods, and the cost model of disks. The files are those of cgroup v1.

mod lines;

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Bound, Constraint, Constraints, Phase, Pod, Precedence, Reason, Target};
use koord_koordlet_system::{CgroupPath, DeviceNumber, QosFolder, Resource, Value};
use koord_types::{
    node_slo::{BlkIoQosCfg, BlockCfg, BlockType, IoCfg},
    pod_annotations::BLKIO_QOS,
    qos::QosClass,
};

use self::lines::Lines;
use crate::{
    feature::Feature,
    input::{Generations, Input, PodDisks},
    outcome::{Note, Outcome},
};

/// The strategy of feature `BlkIOReconcile`.
#[derive(Debug, Default)]
pub struct BlkIo {
    seen: Option<Generations>,
    looked: Option<Moment>,
}

/// How often files are looked at while no object changes: limits of disks that are not configured are removed.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);
/// The weight of a disk that none is set for, in percent.
const WEIGHT: i64 = 100;
/// What requests shall keep to where nothing is set: the percentile, and the latency in microseconds.
const LATENCY_PERCENT: i64 = 95;
const LATENCY_US: i64 = 3000;

const BE_CLASS: &str = "NodeSLO resourceQOSStrategy.beClass.blkioQOS";
const ROOT: &str = "NodeSLO resourceQOSStrategy.cgroupRoot.blkioQOS";
const ANNOTATION: &str = "annotation koordinator.sh/blkioQOS";

impl BlkIo {
    /// Names all limits when objects have changed, and once a minute.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::BlkIoReconcile) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let Some(disks) = input.disks else { return Outcome::skipped("the disks of the node are not known yet") };
        let is_looked = self.looked.is_some_and(|looked| input.now.since(looked) < LOOK_INTERVAL);
        if is_looked && self.seen == Some(input.generations) {
            return Outcome::unchanged();
        }
        self.seen = Some(input.generations);
        self.looked = Some(input.now);
        let kernel = input.kernel;
        let mut plan = Plan { input, disks, constraints: Constraints::default(), notes: Vec::new() };
        if !kernel.supports(&kernel.layout().kubepods(), Resource::BlkioReadIops) {
            plan.note_unsupported();
            return Outcome {
                constraints: Some(Constraints::default()),
                notes: Some(plan.notes),
                ..Outcome::default()
            };
        }
        for class in [QosClass::Lsr, QosClass::Ls] {
            let config = slo.class(&class).and_then(|of_class| of_class.blkio_qos.as_ref());
            if config.is_some_and(|config| config.enable == Some(true) && !config.blocks.is_empty()) {
                plan.notes.push(Note::degraded(
                    format!("blkioQOS of class {class} is not supported"),
                    "set it for class BE, or for single pods by annotation",
                ));
            }
        }
        let blocks = |config: Option<&BlkIoQosCfg>| {
            let enabled = config.filter(|config| config.enable == Some(true));
            enabled.map(|config| config.blocks.clone()).unwrap_or_default()
        };
        let be = slo.qos.be_class.as_ref().and_then(|class| class.blkio_qos.as_ref());
        plan.limits(&kernel.layout().qos(QosFolder::BestEffort), None, &blocks(be), BE_CLASS);
        let root = slo.qos.cgroup_root.as_ref().and_then(|class| class.blkio_qos.as_ref());
        plan.costs(&blocks(root));
        for pod in input.pods.iter().filter(|pod| pod.qos_label.is_some() && pod.phase == Phase::Running) {
            plan.pod(pod);
        }
        Outcome { constraints: Some(plan.constraints), notes: Some(plan.notes), ..Outcome::default() }
    }
}

/// The constraints as they come together.
struct Plan<'a, 'i> {
    input: &'a Input<'i>,
    disks: &'a dyn PodDisks,
    constraints: Constraints,
    notes: Vec<Note>,
}

/// A file with a line for each disk: the amount of a block, and the one that stands for none.
type LimitFile = (Resource, fn(&IoCfg) -> Option<i64>, i64);

const LIMIT_FILES: [LimitFile; 5] = [
    (Resource::BlkioReadIops, |io| io.read_iops, 0),
    (Resource::BlkioWriteIops, |io| io.write_iops, 0),
    (Resource::BlkioReadBps, |io| io.read_bps, 0),
    (Resource::BlkioWriteBps, |io| io.write_bps, 0),
    (Resource::BlkioWeight, |io| io.io_weight_percent, WEIGHT),
];

/// A block with the disk that it stands for.
type Placed<'b> = (DeviceNumber, &'b IoCfg);

impl Plan<'_, '_> {
    fn pod(&mut self, pod: &Pod) {
        let Some(text) = pod.annotations.get(BLKIO_QOS.name()) else { return };
        // An empty annotation removes limits.
        let config = if text.is_empty() { Ok(BlkIoQosCfg::default()) } else { BLKIO_QOS.read(text) };
        match config {
            Ok(config) => self.limits(&pod.cgroup, Some(pod), &config.blocks, ANNOTATION),
            Err(error) => {
                self.notes.push(Note::invalid(format!("{}: {error}", pod.key()), "correct the annotation"));
            }
        }
    }

    /// Limits and weights of disks in one cgroup. Where one disk is not found, the cgroup is left alone.
    fn limits(&mut self, cgroup: &CgroupPath, pod: Option<&Pod>, blocks: &[BlockCfg], setting: &'static str) {
        let Some(placed) = self.placed(pod, blocks, setting) else { return };
        let kernel = self.input.kernel;
        let is_supported = |(resource, ..): &LimitFile| kernel.supports(&kernel.layout().kubepods(), *resource);
        let (files, lacking): (Vec<LimitFile>, Vec<LimitFile>) = LIMIT_FILES.into_iter().partition(is_supported);
        for (resource, amount, _) in lacking {
            if placed.iter().any(|(_, io)| amount(io).is_some()) {
                self.notes
                    .push(Note::degraded(format!("{setting}: this kernel has no {resource}"), "leave the field unset"));
            }
        }
        let lines: Vec<Lines> = files.iter().map(|(resource, ..)| Lines::of(kernel, cgroup, *resource)).collect();
        // What some file has for a disk that is not configured is removed from all of them.
        let mut removed: Vec<DeviceNumber> = lines.iter().flat_map(Lines::disks).collect();
        removed.sort_unstable();
        removed.dedup();
        removed.retain(|disk| placed.iter().all(|(placed, _)| placed != disk));
        let none = IoCfg::default();
        let all = placed.iter().copied().chain(removed.iter().map(|disk| (*disk, &none)));
        for (disk, io) in all {
            for ((resource, amount, default), lines) in files.iter().zip(&lines) {
                let amount = amount(io).unwrap_or(*default);
                // A limit of 0 takes a line away; where there is none, there is nothing to take.
                if amount == 0 && !lines.has(disk) {
                    continue;
                }
                let formula = if removed.contains(&disk) { "not configured" } else { "as configured" };
                self.disk(cgroup, *resource, disk, amount.to_string(), Reason::new(setting, formula));
            }
        }
    }

    /// The cost model of each disk at the root, and the latencies by which it is steered.
    fn costs(&mut self, blocks: &[BlockCfg]) {
        let root = CgroupPath::root();
        let kernel = self.input.kernel;
        if !kernel.supports(&root, Resource::BlkioCostQos) {
            if !blocks.is_empty() {
                self.notes.push(Note::degraded(
                    "blkioQOS of the root cgroup: this kernel has no blkio.cost.qos",
                    "use a kernel with blk-iocost for cgroup v1 (Anolis OS)",
                ));
            }
            return;
        }
        let Some(placed) = self.placed(None, blocks, ROOT) else { return };
        let lines = [Resource::BlkioCostQos, Resource::BlkioCostModel]
            .map(|resource| (resource, Lines::of(kernel, &root, resource)));
        for (resource, lines) in &lines {
            let is_qos = *resource == Resource::BlkioCostQos;
            let wanted = placed.iter().map(|(disk, io)| (*disk, if is_qos { qos_text(io) } else { model_text(io) }));
            let other = lines.disks().filter(|disk| placed.iter().all(|(placed, _)| placed != disk));
            let removed = other.map(|disk| (disk, if is_qos { "enable=0" } else { "ctrl=auto" }.to_owned()));
            for (disk, text) in wanted.chain(removed).collect::<Vec<_>>() {
                // The kernel shows more parameters than are set, and numbers with decimals.
                if !lines.has_parameters(disk, &text) {
                    self.disk(&root, *resource, disk, text, Reason::new(ROOT, "as configured"));
                }
            }
        }
    }

    /// The disks of the blocks; `None` where one is not found.
    fn placed<'b>(
        &mut self,
        pod: Option<&Pod>,
        blocks: &'b [BlockCfg],
        setting: &'static str,
    ) -> Option<Vec<Placed<'b>>> {
        let mut placed = Vec::with_capacity(blocks.len());
        for block in blocks {
            let Some(disk) = self.disk_of(pod, block) else {
                let type_ = block.type_.as_ref().map_or("", BlockType::as_str);
                self.notes.push(Note::invalid(
                    format!("{setting}: no disk is known for {type_} {:?}", block.name),
                    "name a disk, a partition, a volume group or a volume of the pod that exists on the node",
                ));
                return None;
            };
            placed.push((disk, &block.io_cfg));
        }
        Some(placed)
    }

    fn disk_of(&self, pod: Option<&Pod>, block: &BlockCfg) -> Option<DeviceNumber> {
        let disks = self.disks.disks();
        match block.type_.as_ref()? {
            BlockType::Device => disks.of_device(&block.name),
            BlockType::VolumeGroup => disks.of_volume_group(&block.name).next(),
            BlockType::PodVolume => {
                let pod = pod?;
                let volume = pod.volumes.iter().find(|volume| *volume.name == *block.name)?;
                let name = match &volume.claim {
                    Some(claim) => self.disks.volume_of_claim(&pod.namespace, claim)?,
                    None => Arc::clone(&volume.name),
                };
                self.disks.of_csi_volume(&pod.uid, &name)
            }
            BlockType::Other(_) => None,
        }
    }

    fn disk(&mut self, cgroup: &CgroupPath, resource: Resource, disk: DeviceNumber, text: String, reason: Reason) {
        let disk: Arc<str> = disk.to_string().into();
        let value = Value::Disk { disk: (*disk).into(), text: text.into() };
        let target = Target::Disk { cgroup: cgroup.clone(), resource, disk };
        let precedence = Precedence::Specified;
        self.constraints.0.push(Constraint { target, bound: Bound::Exactly, value, precedence, reason });
    }

    fn note_unsupported(&mut self) {
        let slo = self.input.slo;
        let is_used = slo.and_then(|slo| slo.qos.be_class.as_ref()?.blkio_qos.as_ref()?.enable) == Some(true)
            || self.input.pods.iter().any(|pod| BLKIO_QOS.is_present(&pod.annotations));
        if is_used {
            self.notes.push(Note::degraded(
                "blkioQOS is not supported on this kernel: there is no blkio.throttle.read_iops_device",
                "use cgroup v1, or leave blkioQOS disabled",
            ));
        }
    }
}

fn qos_text(io: &IoCfg) -> String {
    format!(
        "enable=1 ctrl=user rpct={} rlat={} wpct={} wlat={}",
        io.read_latency_percent.unwrap_or(LATENCY_PERCENT),
        io.read_latency.unwrap_or(LATENCY_US),
        io.write_latency_percent.unwrap_or(LATENCY_PERCENT),
        io.write_latency.unwrap_or(LATENCY_US)
    )
}

fn model_text(io: &IoCfg) -> String {
    if io.enable_user_model != Some(true) {
        return "ctrl=auto".to_owned();
    }
    let number = |number: Option<i64>| number.unwrap_or(1);
    format!(
        "ctrl=user rbps={} rseqiops={} rrandiops={} wbps={} wseqiops={} wrandiops={}",
        number(io.model_read_bps),
        number(io.model_read_seq_iops),
        number(io.model_read_rand_iops),
        number(io.model_write_bps),
        number(io.model_write_seq_iops),
        number(io.model_write_rand_iops)
    )
}

#[cfg(test)]
mod tests;
