//! The annotation that lists for the node which batch resources each container was given.
//!
//! The container runtime does not get extended resources, so the node's agent reads them from here.

use std::{borrow::Cow, collections::BTreeMap};

use koord_api::{
    pod_annotations::{EXTENDED_RESOURCE_SPEC, ExtendedResourceSpec},
    protocol::Text as _,
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};
use koord_resource::{admission::Denial, go_json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    pod::{Container, Parts},
    resources::{Amount, Amounts},
};

#[derive(Serialize)]
struct ExtendedResources<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    containers: BTreeMap<&'a str, OfContainer<'a>>,
}

#[derive(Serialize)]
struct OfContainer<'a> {
    #[serde(skip_serializing_if = "OfList::is_empty")]
    limits: OfList<'a>,
    #[serde(skip_serializing_if = "OfList::is_empty")]
    requests: OfList<'a>,
}

/// The batch resources of one list, in the order of their names.
#[derive(Serialize)]
struct OfList<'a> {
    #[serde(rename = "kubernetes.io/batch-cpu", skip_serializing_if = "Option::is_none")]
    cpu: Option<Cow<'a, Amount<'a>>>,
    #[serde(rename = "kubernetes.io/batch-memory", skip_serializing_if = "Option::is_none")]
    memory: Option<Cow<'a, Amount<'a>>>,
}

impl<'a> OfList<'a> {
    fn of(amounts: &'a Amounts<'a>) -> Self {
        Self { cpu: amounts.canonical(BATCH_CPU), memory: amounts.canonical(BATCH_MEMORY) }
    }

    fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}

/// Brings the annotation up to date. One that says the same stays as somebody wrote it.
pub(super) fn annotate(pod: &mut Parts<'_>) -> Result<(), Denial> {
    let current = pod.metadata.annotations.get(EXTENDED_RESOURCE_SPEC.name());
    let mut containers = BTreeMap::new();
    for Container { name, resources, .. } in &pod.spec.containers {
        let of = OfContainer { limits: OfList::of(&resources.limits), requests: OfList::of(&resources.requests) };
        if !(of.limits.is_empty() && of.requests.is_empty()) {
            containers.insert(name.as_ref(), of);
        }
    }
    let Some(current) = current else {
        if !containers.is_empty() {
            let text = go_json::to_string(&ExtendedResources { containers })?;
            pod.metadata.annotations.set(EXTENDED_RESOURCE_SPEC.name(), text);
        }
        return Ok(());
    };
    ExtendedResourceSpec::read(current)
        .map_err(|reason| Denial::internal(format!("failed to get current extended resource spec, err: {reason}")))?;
    let written: Option<Written<'_>> = serde_json::from_str(current)?;
    if !written.unwrap_or_default().says(pod) {
        let text = go_json::to_string(&ExtendedResources { containers })?;
        pod.metadata.annotations.set(EXTENDED_RESOURCE_SPEC.name(), text);
    }
    Ok(())
}

/// The annotation as it is. Its quantities are compared by their texts with those of the pod: two forms of one amount
/// differ, and then the annotation is written in canonical form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written<'a> {
    #[serde(borrow)]
    containers: Option<BTreeMap<String, WrittenContainer<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenContainer<'a> {
    #[serde(borrow)]
    limits: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(borrow)]
    requests: Option<BTreeMap<String, &'a RawValue>>,
}

impl Written<'_> {
    fn says(&self, pod: &Parts<'_>) -> bool {
        let with_batch = |container: &&Container<'_>| {
            let lists = [&container.resources.limits, &container.resources.requests];
            lists.iter().any(|list| list.contains(BATCH_CPU) || list.contains(BATCH_MEMORY))
        };
        let of_pod = || pod.spec.containers.iter().filter(with_batch);
        let written = self.containers.as_ref();
        written.map_or(0, BTreeMap::len) == of_pod().count()
            && of_pod().all(|container| {
                let Some(written) = written.and_then(|all| all.get(container.name.as_ref())) else { return false };
                same(written.limits.as_ref(), &container.resources.limits)
                    && same(written.requests.as_ref(), &container.resources.requests)
            })
    }
}

fn same(written: Option<&BTreeMap<String, &RawValue>>, amounts: &Amounts<'_>) -> bool {
    let names = [BATCH_CPU, BATCH_MEMORY];
    let text = |name: &str| written.and_then(|all| all.get(name)).map(|raw| raw.get().trim_matches('"'));
    let only_these = written.is_none_or(|all| all.keys().all(|name| names.contains(&name.as_str())));
    only_these
        && names.iter().all(|name| match (text(name), amounts.get(name)) {
            (None, None) => true,
            (Some(text), Some(quantity)) => match amounts.written(name) {
                Some(written) => written.trim_matches('"') == text,
                None => quantity.to_string() == text,
            },
            _ => false,
        })
}
