//! What a new pod costs its quota, and whether the quota has as much.

use std::collections::BTreeSet;

use jiff::Timestamp;
use koord_api::{
    pod_annotations::REPLACE_RESOURCES,
    protocol::Text,
    quota::{DEFAULT_QUOTA, is_reserved},
};
use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, Operation, Request},
    quantity::Format,
};
use koord_runtime::key::ObjectKey;

use super::{Parts, PodView, quota_of::quota_of, request_of};
use crate::{quota::Quota, resources::Amounts};

/// Resources of which at least one must be bounded for a quota to be asked at all.
const COUNTED: [&str; 14] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "kubernetes.io/batch-cpu",
    "kubernetes.io/batch-memory",
    "kubernetes.io/mid-cpu",
    "kubernetes.io/mid-memory",
    "koordinator.sh/gpu",
    "nvidia.com/gpu",
    "koordinator.sh/gpu.shared",
    "koordinator.sh/gpu-memory-ratio",
];

/// Amounts that shall be charged to a quota.
#[derive(Debug, PartialEq)]
pub(crate) struct Charge {
    pub(crate) quota: ObjectKey,
    pub(crate) amounts: ResourceList,
}

/// What a pod that is admitted at this time costs its quota; none where nothing is charged.
pub(crate) fn of(
    pod: &Parts<'_>,
    old: Option<&Parts<'_>>,
    request: &Request<'_>,
    view: PodView<'_>,
    now: Timestamp,
) -> Result<Option<Charge>, Denial> {
    let switches = view.switches;
    let quotas = view.quotas.read();
    let name = quota_of(pod, request, view, &quotas);
    let concerned = match request.operation {
        Operation::Create => true,
        Operation::Update => {
            switches.quota_admission_on_update && old.is_none_or(|old| quota_of(old, request, view, &quotas) != name)
        }
        _ => false,
    };
    if !concerned || name.is_empty() || name == DEFAULT_QUOTA || is_reserved(&name) {
        return Ok(None);
    }
    let mut found = quotas.index().all_named(&name);
    let key = match (found.next(), found.next()) {
        (None, _) => return Err(Denial::bad_request(format!("elastic quota {name} not found"))),
        (Some(_), Some(_)) => return Err(Denial::bad_request(format!("more than one elastic quota {name} found"))),
        (Some(key), None) => key,
    };
    let Some(quota) = quotas.get(key.as_str()).map(|entry| &*entry.value) else { return Ok(None) };
    if pod.is_over(now) || !COUNTED.iter().any(|name| quota.max.contains(name)) {
        return Ok(None);
    }
    let amounts = amounts(pod, quota, switches.replace_resources);
    Ok((!amounts.is_empty()).then(|| Charge { quota: key.clone(), amounts }))
}

/// What the pod requests of the resources that the quota bounds.
fn amounts(pod: &Parts<'_>, quota: &Quota, replace: bool) -> ResourceList {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let lists = containers.map(|container| &container.resources.requests).chain([&pod.spec.overhead]);
    let names: BTreeSet<String> = lists.flat_map(Amounts::names).map(str::to_owned).collect();
    let mut amounts: ResourceList = names.into_iter().map(|name| (name.clone(), request_of(pod, &name))).collect();
    if replace {
        replaced(pod.metadata.annotations.get(REPLACE_RESOURCES.name()), &mut amounts);
    }
    amounts.filtered(|name, amount| quota.max.contains(name) && !amount.is_zero())
}

/// Carries out the annotation by which a pod asks for other resources than it names: cores become milli-cores.
fn replaced(annotation: Option<&str>, amounts: &mut ResourceList) {
    use koord_api::pod_annotations::ResourceReplacements;
    let Some(Ok(ResourceReplacements(pairs))) = annotation.map(ResourceReplacements::read) else { return };
    for (from, to) in pairs {
        let Some(amount) = amounts.remove(&from) else { continue };
        if to.is_empty() {
            continue;
        }
        let amount = if from == "cpu" { Quantity::new(amount.milli_value(), Format::DecimalSI) } else { amount };
        amounts.insert(to, amount);
    }
}

/// What the quota's pods request with this one; an error says of what the quota has too little.
pub(crate) fn admit(
    key: &ObjectKey,
    quota: &Quota,
    requested: &ResourceList,
    amounts: &ResourceList,
) -> Result<ResourceList, Denial> {
    if let Some(error) = &quota.decode_error {
        return Err(Denial::bad_request(error.to_string()));
    }
    let limit = quota.admission.as_ref().unwrap_or(&quota.max);
    let total = requested.plus(amounts);
    let over: Vec<&str> = total.exceeding(limit).into_iter().filter(|name| amounts.contains(name)).collect();
    if over.is_empty() {
        return Ok(total);
    }
    let list = |amounts: &ResourceList| {
        let pairs = amounts.only(&over);
        pairs.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
    };
    Err(Denial::bad_request(format!(
        "exceeded quota: {key}, requested: {}, used: {}, limited: {}",
        list(amounts),
        list(requested),
        list(limit)
    )))
}
