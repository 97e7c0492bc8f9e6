//! The samples of the node, and the NodeSLO by which host applications are known.

use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::{NodeSlo, NodeSloReader};
use koord_koordlet_metrics::{
    Retention, Store,
    collect::{Activity, CollectorSettings, Collectors, ContainerSampling},
};
use koord_koordlet_system::KernelUnits;

use super::Agent;
use crate::{
    capability::State,
    host::Host,
    objects::SloObject,
    perf_counters::PerfCounters,
    settings::{Features, Intervals, Settings},
};

/// The samples, and what takes them.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) store: Store,
    pub(super) collectors: Collectors,
    /// When samples are taken next.
    pub(super) next: Option<Moment>,
    /// When samples are taken beside the rhythm, because a strategy runs then.
    hurried: Option<Moment>,
    /// When samples were taken last.
    pub(super) last: Option<Moment>,
    /// Whether there was a round with usage of all pods of the node.
    pub(super) has_pods: bool,
    /// When the pods of the node were first sampled.
    pods_since: Option<Moment>,
}

/// The strategies of the node.
#[derive(Debug, Default)]
pub(super) struct Slo {
    reader: NodeSloReader,
    /// `None` before there was an object.
    pub(super) merged: Option<NodeSlo>,
    /// When there last was an object.
    pub(super) at: Option<Moment>,
    /// Counts changes.
    pub(super) generation: u64,
}

/// Samples are not taken more often than this.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Samples beside the rhythm come at least this long after the last ones: the CPU usage of the node is counted in steps of 10 ms.
const HURRIED_SPAN_MIN: Duration = Duration::from_millis(20);
/// How long strategies wait for usage of all pods.
const NEW_PODS_MAX: Duration = Duration::from_secs(5);
pub(super) const SLO_FEATURE: &str = "NodeSLO";

fn collector_settings(features: &Features, intervals: &Intervals, settings: &Settings) -> CollectorSettings {
    let units = KernelUnits::of_this_kernel();
    let when = |is_on: bool, interval: Duration| is_on.then_some(interval);
    let needs_containers = features.has("CPICollector") || features.has("PSICollector");
    CollectorSettings {
        ticks_per_second: u32::try_from(units.ticks_per_second).unwrap_or(100),
        page_bytes: units.page_bytes,
        system_outdated: intervals.outdated,
        with_page_cache: settings.samples_page_cache,
        containers: if needs_containers { ContainerSampling::All } else { ContainerSampling::Bursting },
        cold_page_interval: when(features.has("ColdPageCollector"), intervals.cold_pages),
        pressure_interval: when(features.has("PSICollector"), intervals.pressure),
        resctrl_interval: when(features.has("ResctrlCollector") && settings.samples_resctrl, intervals.resctrl),
        cycles_interval: when(features.has("CPICollector"), intervals.cpi),
        cycles_window: intervals.cpi_window,
        ..CollectorSettings::default()
    }
}

fn collectors(settings: &Settings, host: &Host) -> Collectors {
    let collected = collector_settings(&settings.features, &settings.intervals, settings);
    let mut collectors = Collectors::new(&settings.roots, host.layout, collected);
    let topology = &host.machine.topology;
    collectors.set_machine(topology.cpus(), topology.nodes());
    collectors
}

impl Sampling {
    pub(super) fn new(settings: &Settings, host: &Host) -> Self {
        let (next, hurried, last, pods_since) = Default::default();
        let (store, collectors) = (Store::new(Retention::default()), collectors(settings, host));
        Self { store, collectors, next, hurried, last, has_pods: false, pods_since }
    }

    /// Opens the files of other folders; strategies wait for samples of them.
    pub(super) fn set_layout(&mut self, settings: &Settings, host: &Host) {
        self.collectors = collectors(settings, host);
        self.has_pods = false;
        self.pods_since = None;
    }

    /// When samples are taken next.
    pub(super) fn due(&self) -> Moment {
        let next = self.next.unwrap_or_default();
        self.hurried.map_or(next, |hurried| hurried.min(next))
    }

    /// When samples that are taken beside the rhythm would say enough.
    pub(super) fn earliest(&self) -> Moment {
        self.last.map_or(Moment::default(), |last| last + HURRIED_SPAN_MIN)
    }

    /// Takes samples at this moment too, unless those before it are younger than [`HURRIED_SPAN_MIN`].
    pub(super) fn hurry(&mut self, moment: Moment) {
        self.hurried = Some(self.hurried.map_or(moment, |hurried| hurried.min(moment)));
    }

    /// Whether samples are taken now; then the next ones come after an interval. Rounds keep their rhythm, unless one was missed or one came early.
    fn takes_now(&mut self, moment: Moment, interval: Duration) -> bool {
        let is_early = self.hurried.take_if(|hurried| *hurried <= moment).is_some() && moment >= self.earliest();
        let next = match self.next {
            Some(next) if next > moment => {
                if !is_early {
                    return false;
                }
                moment + interval
            }
            Some(next) if next + interval > moment => next + interval,
            _ => moment + interval,
        };
        self.next = Some(next);
        self.last = Some(moment);
        true
    }
}

impl Slo {
    /// Takes the object; without one the last one counts.
    pub(super) fn take(&mut self, object: Option<&SloObject>) -> Vec<String> {
        let Some(object) = object else { return Vec::new() };
        let (merged, errors) = self.reader.read(&object.spec);
        if self.merged.as_ref() != Some(&merged) {
            self.generation += 1;
            self.merged = Some(merged);
        }
        errors.iter().map(ToString::to_string).collect()
    }
}

impl Agent {
    /// Takes samples when they are due.
    pub(super) fn sample(&mut self, moment: Moment, time: &dyn Fn() -> Moment) -> bool {
        let sampling = &mut self.sampling;
        let is_first = sampling.next.is_none();
        if !sampling.takes_now(moment, self.settings.intervals.collect.max(INTERVAL_MIN)) {
            return false;
        }
        if is_first
            && !self.settings.only_observes
            && let Err(error) = sampling.collectors.set_up(self.files.writer())
        {
            tracing::debug!(%error, "the kernel does not look for cold pages");
        }
        sampling.collectors.collect(time, Some(&mut PerfCounters), &mut sampling.store);
        if self.kubelet.has_pods {
            let since = *sampling.pods_since.get_or_insert(moment);
            let knows_pods = sampling.collectors.pods.usage().is_some_and(|usage| !usage.has_new_pods);
            // Where a new pod comes every second, strategies do not wait for ever.
            sampling.has_pods |= knows_pods || moment.since(since) >= NEW_PODS_MAX;
        }
        for (collector, activity) in sampling.collectors.activities(moment) {
            let state = match activity {
                Activity::Off => State::Off,
                Activity::Active => State::Active,
                Activity::Degraded { reason, remedy } => {
                    State::Degraded { reason: reason.to_string(), remedy: remedy.to_owned() }
                }
            };
            self.capabilities.set(collector, state);
        }
        true
    }

    /// Takes the NodeSLO of the node.
    pub(super) fn take_slo(&mut self, object: Option<&SloObject>, now: Moment) {
        if object.is_some() {
            self.slo.at = Some(now);
        }
        let errors = self.slo.take(object);
        if errors.is_empty() {
            self.capabilities.active(SLO_FEATURE);
        } else {
            let remedy = "correct slo-controller-config, from which koord-manager makes the NodeSLO";
            self.capabilities.degraded(SLO_FEATURE, errors.join("; "), remedy);
        }
        let applications = self.slo.merged.as_ref().map(|slo| slo.host_applications.as_slice());
        self.sampling.collectors.set_applications(applications);
    }
}
