//! What a new pod costs its quota, and whether the quota has as much.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use koord_api::{
    pod_annotations::REPLACE_RESOURCES,
    protocol::Text,
    quota::{DEFAULT_QUOTA, is_reserved},
};
use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, Operation, Request, or_default},
    quantity::Format,
};
use koord_runtime::key::ObjectKey;
use serde::Deserialize;

use super::Quota;
use crate::{
    Ctx, decode,
    pod::{Amounts, Parts, Pod, request_of},
    validate_pod::quota_of,
};

/// Resources of which at least one must be bounded for a quota to be asked at all.
const COUNTED: [&str; 15] = [
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
    "koordinator.sh/gpu-memory",
];

/// Amounts that shall be charged to a quota.
#[derive(Debug, PartialEq)]
pub(crate) struct Charge {
    pub(crate) quota: ObjectKey,
    pub(crate) amounts: ResourceList,
}

/// Of a pod: whether it still needs anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Life<'a> {
    #[serde(deserialize_with = "or_default")]
    metadata: Deletion,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Phase<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Deletion {
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase<'a> {
    phase: Option<&'a str>,
}

impl Life<'_> {
    fn is_over(&self, now: Timestamp) -> bool {
        let grace = SignedDuration::from_secs(self.metadata.deletion_grace_period_seconds.unwrap_or_default());
        let gone = |deleted: Timestamp| deleted.saturating_add(grace).is_ok_and(|gone| gone < now);
        matches!(self.status.phase, Some("Succeeded" | "Failed")) || self.metadata.deletion_timestamp.is_some_and(gone)
    }
}

/// What a request costs; none where nothing is charged.
pub(crate) fn of(request: &Request<'_>, ctx: &Ctx, now: Timestamp) -> Result<Option<Charge>, Denial> {
    let switches = &ctx.switches;
    let concerned = match request.operation {
        Operation::Create => true,
        Operation::Update => switches.quota_admission_on_update,
        _ => false,
    };
    if !concerned || !request.sub_resource.is_empty() || request.resource.resource != "pods" {
        return Ok(None);
    }
    let pod = Pod::read(request.object)?;
    let quotas = ctx.quotas.read();
    let name = quota_of(&pod, request, ctx, &quotas);
    if request.operation == Operation::Update
        && quota_of(&Pod::read(request.old_object)?, request, ctx, &quotas) == name
    {
        return Ok(None);
    }
    if name.is_empty() || name == DEFAULT_QUOTA || is_reserved(&name) {
        return Ok(None);
    }
    let mut found = quotas.index().all_named(&name);
    let key = match (found.next(), found.next()) {
        (None, _) => return Err(Denial::bad_request(format!("elastic quota {name} not found"))),
        (Some(_), Some(_)) => return Err(Denial::bad_request(format!("more than one elastic quota {name} found"))),
        (Some(key), None) => key,
    };
    let Some(quota) = quotas.get(key.as_str()).map(|entry| &*entry.value) else { return Ok(None) };
    let life: Life<'_> = decode::object(request.object)?;
    if life.is_over(now) || !COUNTED.iter().any(|name| quota.max.contains(name)) {
        return Ok(None);
    }
    let amounts = amounts(&pod, quota, switches.replace_resources);
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
    let bounded = amounts.iter().filter(|(name, amount)| quota.max.contains(name) && !amount.is_zero());
    bounded.collect()
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
