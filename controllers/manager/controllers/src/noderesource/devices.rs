//! What the devices of a node add up to, as resources of the node.

use std::collections::BTreeMap;

use koord_resource::{Quantity, quantity::Format};
use koord_types::{
    node_annotations::{GPU_DRIVER_VERSION, GPU_MODEL, GPU_VENDOR},
    resource_names::{
        GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU, HUAWEI_NPU_DVPP, RDMA,
    },
};

use super::{
    facts::Facts,
    waterfall::{Listener, Operation, Source, add_term},
};
use crate::amount::Amount;

/// Resources with what they shall be: an amount, or absent.
pub(super) type Resources = BTreeMap<&'static str, Option<Quantity>>;

/// What a whole device counts.
const WHOLE: i64 = 100;

/// Everything that GPUs make a node have.
const OF_GPUS: [&str; 8] =
    [GPU, GPU_CORE, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU, HUAWEI_NPU_DVPP, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED];

/// The resources that follow from a node's working GPUs. Without any, all of them go; what GPUs say nothing about is
/// left as it is.
pub(super) fn gpus(facts: &Facts<'_>, shares: bool, to: &mut impl Listener) -> Resources {
    let working = count(facts, "gpu");
    let (Some(device), true) = (facts.device, working > 0) else {
        return OF_GPUS.into_iter().map(|name| (name, None)).collect();
    };
    let mut resources = Resources::new();
    for name in OF_GPUS {
        let Some(sum) = device.gpus.get(name) else { continue };
        add_term(to, Operation::Start, Amount::from(sum), format!("{name} of {working} working GPUs"), || {
            source(facts)
        });
        resources.insert(name, Some(possible(sum)));
    }
    // Other vendors' GPUs are not requested by the name that NVIDIA's had first, unless they say so themselves.
    let vendor = device.labels.get(GPU_VENDOR.name()).unwrap_or_default();
    if let "" | "nvidia" = vendor {
        resources.insert(GPU, Some(possible(device.gpus.amount(GPU_CORE))));
    }
    if shares {
        resources.insert(GPU_SHARED, Some(hundreds(working)));
    }
    resources
}

/// What says which GPUs a node has is said on the node too.
pub(super) fn gpu_labels(facts: &Facts<'_>) -> BTreeMap<&'static str, String> {
    let Some(device) = facts.device.filter(|_| count(facts, "gpu") > 0) else { return BTreeMap::new() };
    let names = [GPU_VENDOR.name(), GPU_MODEL.name(), GPU_DRIVER_VERSION.name()];
    names.into_iter().filter_map(|name| Some((name, device.labels.get(name)?.to_owned()))).collect()
}

/// The resources that follow from a node's working RDMA cards.
pub(super) fn rdma(facts: &Facts<'_>, to: &mut impl Listener) -> Resources {
    let working = count(facts, "rdma");
    let amount = (working > 0).then(|| hundreds(working));
    if let Some(amount) = &amount {
        add_term(to, Operation::Start, Amount::from(amount), format!("{RDMA} of {working} working cards"), || {
            source(facts)
        });
    }
    Resources::from([(RDMA, amount)])
}

fn count(facts: &Facts<'_>, type_: &str) -> i64 {
    facts.device.and_then(|device| device.working.get(type_)).copied().unwrap_or_default()
}

/// What a node may have: a whole number of at least 0. With anything else the API server would refuse all its amounts.
fn possible(sum: &Quantity) -> Quantity {
    match sum.as_i64() {
        Some(whole) if whole >= 0 => sum.clone(),
        _ => Quantity::new(sum.value().max(0), sum.format()),
    }
}

fn hundreds(devices: i64) -> Quantity {
    Quantity::new(devices.saturating_mul(WHOLE), Format::DecimalSI)
}

fn source(facts: &Facts<'_>) -> Source {
    Source::of("Device", facts.name, "spec.devices, those that are healthy")
}
