//! What a node shall have: the results of all parts together.

use std::collections::BTreeMap;

use koord_resource::{Quantity, ResourceList, quantity::Format};
use koord_types::{
    go_text,
    node_annotations::{
        CPU_NORMALIZATION_RATIO, ORIGIN_EXTENDED_ALLOCATABLE, OriginExtendedAllocatable, RESOURCE_AMPLIFICATION_RATIO,
        THIRD_PARTY_ALLOCATIONS,
    },
    priority::PriorityClass,
    protocol::Text as _,
    resource_names::{BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY},
};

use super::{
    amplification,
    batch::{self, Place},
    cpu_normalization, devices,
    facts::{Degraded, Facts},
    mid,
    plugin::{Plugin, Plugins},
    waterfall::Unasked,
};
use crate::{
    amount::{Amount, CpuMemory, Native},
    view::{Measured, Report},
};

/// What a node shall have. What is not named is left as it is.
#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    /// Resources in `status.capacity` and `status.allocatable`: an amount, or absent.
    pub resources: devices::Resources,
    /// Annotations: a text, or absent.
    pub annotations: BTreeMap<&'static str, Option<String>>,
    pub labels: BTreeMap<&'static str, String>,
    /// What batch pods may use of each zone; none where zones are left alone.
    pub zones: Option<Vec<ZoneAmounts>>,
    /// What batch pods may use, before it is counted for others, for metrics.
    pub batch: Option<CpuMemory>,
    /// Why the resources of batch and mid pods go.
    pub reset: Option<Reset>,
    /// Parts that could not decide, and why; what they decided before stays.
    pub failures: Vec<(Plugin, String)>,
}

/// What batch pods may use of a zone. QUIRK: shares of what belongs to no zone are exact to a thousandth, and so are these,
/// as the original writes them; only nodes count in whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneAmounts {
    /// In thousandths of cores.
    pub cpu: Quantity,
    /// In bytes.
    pub memory: Quantity,
}

/// Why the resources of batch and mid pods go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reset {
    /// Colocation is off.
    #[error("colocation is off")]
    Disabled,
    /// What koordlet reports is missing or out of date.
    #[error(transparent)]
    Degraded(#[from] Degraded),
}

/// Decides about a node.
pub fn decide(facts: &Facts<'_>, plugins: &Plugins) -> Decision {
    let mut decision = Decision::default();
    let is_on = facts.is_enabled;
    let mut normalization = None;
    if is_on && plugins.has(Plugin::CpuNormalization) {
        match cpu_normalization::ratio(facts, &mut Unasked) {
            Ok(ratio) => {
                let text = go_text::two_decimals(ratio);
                normalization = go_text::parse_float(&text);
                decision.annotations.insert(CPU_NORMALIZATION_RATIO.name(), Some(text));
            }
            Err(error) => decision.failures.push((Plugin::CpuNormalization, error.to_string())),
        }
    }
    if plugins.has(Plugin::ResourceAmplification) {
        decision.amplify(facts);
    }
    let trusted = if is_on { facts.trusted().map_err(Reset::Degraded) } else { Err(Reset::Disabled) };
    decision.reset = trusted.err();
    let trusted = trusted.ok();
    if plugins.has(Plugin::MidResource) {
        for (native, name) in [(Native::Cpu, MID_CPU), (Native::Memory, MID_MEMORY)] {
            let amount = trusted.map(|trusted| mid::available(native, facts, trusted, &mut Unasked));
            let amount = amount.map(|amount| derived(native, native.count(amount), Format::BinarySI));
            decision.resources.insert(name, amount);
        }
    }
    if plugins.has(Plugin::BatchResource) {
        decision.give_to_batch(facts, trusted, normalization);
    }
    if is_on && plugins.has(Plugin::GpuDeviceResource) {
        decision.resources.extend(devices::gpus(facts, plugins.gpu_shares, &mut Unasked));
        decision.labels = devices::gpu_labels(facts);
    }
    if is_on && plugins.has(Plugin::RdmaDeviceResource) {
        decision.resources.extend(devices::rdma(facts, &mut Unasked));
    }
    decision
}

impl Decision {
    /// QUIRK: where colocation is off, the factors go (spec/manager.md 4.1.2).
    fn amplify(&mut self, facts: &Facts<'_>) {
        let text = if facts.is_enabled {
            match amplification::ratios(facts, &mut Unasked) {
                Ok(ratios) => Some(ratios).filter(|ratios| !ratios.0.is_empty()).map(|ratios| ratios.write()),
                Err(error) => return self.failures.push((Plugin::ResourceAmplification, error.to_string())),
            }
        } else {
            None
        };
        self.annotations.insert(RESOURCE_AMPLIFICATION_RATIO.name(), text);
    }

    fn give_to_batch(&mut self, facts: &Facts<'_>, trusted: Option<(&Report, Measured)>, normalization: Option<f64>) {
        let node = trusted.map(|trusted| batch::both(Place::Node, facts, trusted, &mut Unasked));
        let memory_format = facts.capacity.amount("memory").format();
        self.batch = node;
        let cpu = node.map(|amounts| whole(&faster(amounts.cpu.milli(), normalization)));
        let memory = node.map(|amounts| derived(Native::Memory, amounts.memory.units(), memory_format));
        if !facts.zones.is_empty() {
            let zones = (0..facts.zones.len()).map(|zone| {
                let amounts = trusted
                    .map(|trusted| batch::both(Place::Zone(zone), facts, trusted, &mut Unasked))
                    .unwrap_or_default();
                let format = facts.zones.get(zone).map_or(Format::DecimalSI, |zone| zone.memory_format);
                ZoneAmounts { cpu: faster(amounts.cpu.milli(), normalization), memory: exact(amounts.memory, format) }
            });
            self.zones = Some(zones.collect());
        }
        // QUIRK: a node without any annotation gets none here (spec/manager.md 4.1.3).
        if facts.node.annotated || self.annotations.values().any(Option::is_some) {
            let text = origin(facts, cpu.as_ref(), memory.as_ref());
            self.annotations.insert(ORIGIN_EXTENDED_ALLOCATABLE.name(), Some(text));
        }
        let others = taken_by_others(facts);
        let left = |amount: Option<Quantity>, name: &str, format: Format| match (&others, amount) {
            (Some(others), Some(amount)) => {
                let left = amount.value().saturating_sub(others.amount(name).value()).max(0);
                Some(Quantity::new(left, format))
            }
            (_, amount) => amount,
        };
        self.resources.insert(BATCH_CPU, left(cpu, BATCH_CPU, Format::DecimalSI));
        self.resources.insert(BATCH_MEMORY, left(memory, BATCH_MEMORY, Format::BinarySI));
    }
}

fn derived(native: Native, count: i64, memory: Format) -> Quantity {
    Quantity::new(count, if native == Native::Cpu { Format::DecimalSI } else { memory })
}

/// Faster CPUs give batch pods more thousandths of a core.
fn faster(milli_cpu: i64, ratio: Option<f64>) -> Quantity {
    let count = Quantity::new(milli_cpu, Format::DecimalSI);
    match ratio {
        Some(ratio) if ratio > 1.0 => count.milli_scaled_by(ratio),
        _ => count,
    }
}

fn exact(amount: Amount, format: Format) -> Quantity {
    let units = amount.units();
    if Amount::from_units(units) == amount {
        Quantity::new(units, format)
    } else {
        Quantity::from_milli(amount.milli(), format)
    }
}

/// A node counts in whole numbers.
fn whole(count: &Quantity) -> Quantity {
    Quantity::new(count.value(), count.format())
}

/// What batch pods could use before others took some. What else the annotation says stays.
fn origin(facts: &Facts<'_>, cpu: Option<&Quantity>, memory: Option<&Quantity>) -> String {
    let known = ORIGIN_EXTENDED_ALLOCATABLE.get(&facts.annotations);
    let OriginExtendedAllocatable { mut resources } = known.ok().flatten().unwrap_or_default();
    let amount = |amount: Option<&Quantity>| amount.map_or(0, Quantity::value).max(0);
    resources.insert(BATCH_CPU, Quantity::new(amount(cpu), Format::DecimalSI));
    resources.insert(BATCH_MEMORY, Quantity::bytes(amount(memory)));
    OriginExtendedAllocatable { resources }.write()
}

/// What others took of what batch pods could use; none where nobody says, or where nobody understands it.
pub(super) fn taken_by_others(facts: &Facts<'_>) -> Option<ResourceList> {
    let annotation = THIRD_PARTY_ALLOCATIONS.get(&facts.annotations).ok().flatten()?;
    let batch = annotation.allocations.iter().filter(|taken| taken.priority == PriorityClass::Batch.as_str());
    let mut sum = ResourceList::new();
    batch.for_each(|taken| sum.add(&taken.resources));
    Some(sum)
}
