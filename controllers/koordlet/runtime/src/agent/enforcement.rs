//! Strategies in their intervals: what they want is submitted to the resolver, what else they decide is carried out.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_qos::{
    Feature, Features, Gauge, Generations, Input, Note, NoteKind, Options, PodDisks, Resctrl, Strategies, Strategy,
};
use koord_koordlet_system::{
    Disks, FileTree as _, HostTree, Kernel as _, Machine, PressureResource,
    resctrl::{ResctrlInfo, supported_vendor},
};

use super::{Agent, Now};
use crate::{
    capability::State,
    objects::ClaimVolumes,
    settings::{Intervals, Settings},
};

/// The strategies, and what they need beside the samples.
#[derive(Debug)]
pub(super) struct Enforcement {
    pub(super) strategies: Strategies,
    /// What random choices of strategies follow from.
    pub(super) seed: u64,
    features: Features,
    next: BTreeMap<Strategy, Moment>,
    /// The last moment to which pressure has moved a run of a strategy.
    hurried: BTreeMap<Strategy, Moment>,
    /// All series of each strategy.
    pub(super) gauges: BTreeMap<Strategy, Vec<Gauge>>,
    notes: BTreeMap<Strategy, Vec<Note>>,
    pub(super) resctrl: Option<Resctrl>,
    pub(super) disks: Option<KnownDisks>,
    disks_next: Option<Moment>,
}

/// Disks and the volumes of claims.
#[derive(Debug)]
pub(super) struct KnownDisks {
    disks: Disks,
    pub(super) volumes: ClaimVolumes,
    kubelet: std::path::PathBuf,
    pub(super) generation: u64,
}

impl PodDisks for KnownDisks {
    fn disks(&self) -> &Disks {
        &self.disks
    }

    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<Arc<str>> {
        self.volumes.get(&format!("{namespace}/{claim}")).map(|volume| volume.as_str().into())
    }

    fn kubelet_folder(&self) -> &Path {
        &self.kubelet
    }
}

const DISKS_INTERVAL: Duration = Duration::from_mins(1);
/// Pressure makes a strategy run at most this often.
const PRESSURE_INTERVAL: Duration = Duration::from_millis(500);

fn interval(strategy: Strategy, intervals: &Intervals) -> Duration {
    match strategy {
        Strategy::CpuSuppress => intervals.cpu_suppress,
        Strategy::CpuEvict => intervals.cpu_evict,
        Strategy::MemoryEvict => intervals.memory_evict,
        Strategy::CpuBurst
        | Strategy::CgroupReconcile
        | Strategy::Resctrl
        | Strategy::BlkIo
        | Strategy::SystemConfig => intervals.reconcile,
    }
}

/// The strategy that relieves pressure on a resource. What is done about I/O does not depend on samples.
const fn relief(resource: PressureResource) -> Option<Strategy> {
    match resource {
        PressureResource::Cpu => Some(Strategy::CpuSuppress),
        PressureResource::Memory => Some(Strategy::MemoryEvict),
        PressureResource::Io => None,
    }
}

/// How caches and bandwidth can be shared out; `None` where the CPUs cannot, or resctrl is not mounted.
fn resctrl(machine: &Machine, mount_point: &Path) -> Option<Resctrl> {
    let vendor = supported_vendor(&machine.info).ok()?;
    // Where nothing is mounted, the folder is empty.
    HostTree.read(&mount_point.join("schemata")).ok()?;
    Some(Resctrl { vendor, cache: ResctrlInfo::discover(&HostTree, mount_point).l3_mask })
}

impl Enforcement {
    pub(super) fn new(settings: &Settings, machine: &Machine, seed: u64, start: Moment) -> Self {
        let options = Options {
            cpu_evict_cool_down: settings.eviction.cpu_cool_time,
            memory_evict_cool_down: settings.eviction.memory_cool_time,
            seed,
        };
        let features = Feature::ALL.into_iter().filter(|feature| settings.features.has(feature.name()));
        let (next, hurried, gauges, notes) = Default::default();
        Self {
            strategies: Strategies::new(options, start),
            seed,
            features: features.fold(Features::none(), Features::with),
            next,
            hurried,
            gauges,
            notes,
            resctrl: resctrl(machine, &settings.roots.sys_fs.join("resctrl")),
            disks: None,
            disks_next: None,
        }
    }

    /// When a strategy runs next; `None` when none ever does.
    pub(super) fn due(&self, settings: &Settings) -> Option<Moment> {
        let runs = Strategy::ALL.into_iter().filter(|strategy| !interval(*strategy, &settings.intervals).is_zero());
        runs.map(|strategy| self.next.get(&strategy).copied().unwrap_or_default()).min()
    }

    /// Moves the next run of a strategy to now, but not before `earliest` and not within [`PRESSURE_INTERVAL`] after the last run that was moved; returns to when.
    fn hurry(&mut self, strategy: Strategy, now: Moment, earliest: Moment) -> Moment {
        let run = match self.hurried.get(&strategy) {
            Some(last) if *last > now => *last,
            Some(last) => now.max(earliest).max(*last + PRESSURE_INTERVAL),
            None => now.max(earliest),
        };
        self.hurried.insert(strategy, run);
        let next = self.next.entry(strategy).or_insert(run);
        *next = run.min(*next);
        run
    }
}

impl Agent {
    /// Makes the strategy that relieves the pressure run at once, by a sample of that moment. Its own pauses, such as the time between evictions, hold as ever.
    pub(super) fn pressure(&mut self, resource: PressureResource, now: Moment) {
        let Some(strategy) = relief(resource) else { return };
        if !self.sampling.has_pods || interval(strategy, &self.settings.intervals).is_zero() {
            return;
        }
        let run = self.enforcement.hurry(strategy, now, self.sampling.earliest());
        self.sampling.hurry(run);
    }

    /// Runs the strategies that are due.
    pub(super) fn enforce(&mut self, now: Now) {
        // Without samples of the pods it would look as if evictions released nothing.
        if !self.sampling.has_pods {
            return;
        }
        self.look_at_disks(now);
        for strategy in Strategy::ALL {
            let interval = interval(strategy, &self.settings.intervals);
            let is_due = self.enforcement.next.get(&strategy).is_none_or(|next| *next <= now.moment);
            if interval.is_zero() || !is_due {
                continue;
            }
            self.enforcement.next.insert(strategy, now.moment + interval);
            self.run_strategy(strategy, now);
        }
    }

    fn run_strategy(&mut self, strategy: Strategy, now: Now) {
        let generations = Generations {
            pods: self.kubelet.generation,
            node: self.node_generation,
            slo: self.slo.generation,
            topology: self.topology.generation,
            disks: self.enforcement.disks.as_ref().map_or(0, |disks| disks.generation),
        };
        let input = Input {
            now: now.moment,
            time: now.time,
            collect_interval: self.settings.intervals.collect,
            features: self.enforcement.features,
            generations,
            node: self.node.as_deref(),
            slo: self.slo.merged.as_ref(),
            topology: self.topology.report.as_ref().map(|report| &*report.topology),
            pods: &self.kubelet.pods,
            store: &self.sampling.store,
            kernel: self.files.cgroups(),
            roots: &self.settings.roots,
            files: &HostTree,
            evicted: &self.evictions.ledger,
            disks: self.enforcement.disks.as_ref().map(|disks| disks as &dyn PodDisks),
            resctrl: self.enforcement.resctrl.as_ref(),
        };
        let outcome = self.enforcement.strategies.run(strategy, &input);
        if let Some(constraints) = outcome.constraints {
            self.resolver.submit(strategy.name(), constraints);
        }
        if let Some(gauges) = outcome.gauges {
            self.enforcement.gauges.insert(strategy, gauges);
        }
        if let Some(notes) = outcome.notes {
            self.note(strategy, &notes);
        }
        for group in outcome.groups.into_iter().flatten() {
            self.ensure_group(&group, now);
        }
        for write in outcome.writes {
            self.write_system(&write, now);
        }
        if let Some(round) = outcome.evictions {
            self.evictions.begin(strategy, round);
        }
    }

    /// What keeps a strategy from its work becomes its capability, and is logged when it is new.
    fn note(&mut self, strategy: Strategy, notes: &[Note]) {
        let known = self.enforcement.notes.entry(strategy).or_default();
        if *known == notes {
            return;
        }
        notes.clone_into(known);
        let worst = notes.iter().find(|note| note.kind != NoteKind::Skipped);
        let state = match worst {
            Some(note) => State::Degraded { reason: note.reason.to_string(), remedy: note.remedy.to_owned() },
            None => State::Active,
        };
        self.capabilities.set(strategy.name(), state);
        for note in notes.iter().filter(|note| note.kind == NoteKind::Skipped) {
            tracing::debug!(strategy = strategy.name(), reason = %note.reason, "a round was skipped");
        }
    }

    fn look_at_disks(&mut self, now: Now) {
        let is_on = self.settings.features.has(Feature::BlkIoReconcile.name());
        if !is_on || self.enforcement.disks_next.is_some_and(|next| next > now.moment) {
            return;
        }
        self.enforcement.disks_next = Some(now.moment + DISKS_INTERVAL);
        let disks = self.host.disks(&self.settings.roots);
        self.collections.disks.count(disks.numbers().next().is_some());
        let known = &mut self.enforcement.disks;
        let is_same = known.as_ref().is_some_and(|known| known.disks == disks && known.volumes == self.claims);
        if !is_same {
            let generation = known.as_ref().map_or(1, |known| known.generation + 1);
            let kubelet = self.settings.roots.kubelet.clone();
            *known = Some(KnownDisks { disks, volumes: self.claims.clone(), kubelet, generation });
        }
    }

    /// The version of cgroups, for reports.
    pub fn layout(&self) -> koord_koordlet_system::Layout {
        self.files.cgroups().layout()
    }
}
