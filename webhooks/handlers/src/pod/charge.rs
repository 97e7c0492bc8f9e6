//! What a new pod costs its quota, and whether the quota has as much.

use std::collections::BTreeSet;

use jiff::Timestamp;
use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, Operation, Request},
    quantity::Format,
};
use koord_runtime::key::ObjectKey;
use koord_types::{
    pod_annotations::{REPLACE_RESOURCES, ResourceReplacements},
    protocol::Text,
    quota::{DEFAULT_QUOTA, is_reserved},
};

use super::{Parts, PodView, quota_of::quota_of, request_of, view::Spec};
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

/// What a pod that is admitted at this time costs its quota; none where nothing is charged. QUIRK: a pod whose quota is
/// looked at keeps the resources that it is counted with, and its devices are checked with them
/// (`devices_are_checked_as_the_quota_counts_them`).
pub(crate) fn of(
    pod: &mut Parts<'_>,
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
    if let Some(error) = &quota.decode_error {
        return Err(Denial::bad_request(error.to_string()));
    }
    if switches.replace_resources {
        replace_resources(pod);
    }
    if pod.is_over(now) || !COUNTED.iter().any(|name| quota.max.contains(name)) {
        return Ok(None);
    }
    let amounts = amounts(&pod.spec, quota);
    Ok((!amounts.is_empty()).then(|| Charge { quota: key.clone(), amounts }))
}

/// What the pod requests of the resources that the quota bounds.
fn amounts(spec: &Spec<'_>, quota: &Quota) -> ResourceList {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let lists = containers.map(|container| &container.resources.requests);
    let of_pod = spec.resources.as_ref().map(|whole| &whole.requests);
    let names = lists.chain([&spec.overhead]).chain(of_pod).flat_map(Amounts::names);
    let names: BTreeSet<&str> = names.collect();
    let amounts: ResourceList = names.into_iter().map(|name| (name, request_of(spec, name))).collect();
    amounts.filtered(|name, amount| quota.max.contains(name) && !amount.is_zero())
}

/// Carries out the annotation by which a pod asks for other resources than it names. What it asks for as a whole stays.
fn replace_resources(pod: &mut Parts<'_>) {
    let annotation = pod.metadata.annotations.get(REPLACE_RESOURCES.name());
    let Some(Ok(ResourceReplacements(pairs))) = annotation.map(ResourceReplacements::read) else { return };
    let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
    let requests = containers.map(|container| &mut container.resources.requests);
    requests.chain([&mut pod.spec.overhead]).for_each(|amounts| replace_in(amounts, &pairs));
}

/// What is dropped is dropped first. A resource that is there under the new name too stays. Cores become thousandths.
fn replace_in(amounts: &mut Amounts<'_>, pairs: &[(String, String)]) {
    for (old, _) in pairs.iter().filter(|(_, new)| new.is_empty()) {
        amounts.remove(old);
    }
    for (old, new) in pairs.iter().filter(|(_, new)| !new.is_empty()) {
        if amounts.contains(new) {
            continue;
        }
        let Some(amount) = amounts.remove(old) else { continue };
        let amount = if old == "cpu" { Quantity::new(amount.milli_value(), Format::DecimalSI) } else { amount };
        amounts.set(new.clone(), amount);
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

#[cfg(test)]
mod tests {
    use koord_types::quota::{ADMISSION, CHILD_REQUEST};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Ctx, pod::Pod};

    /// What a pod with this spec is charged.
    fn charged(replacements: &str, spec: &Value) -> Value {
        let max = json!({"cpu": "100", "memory": "100Gi", "kubernetes.io/batch-cpu": "100k"});
        let pod = json!({"metadata": {"annotations": {REPLACE_RESOURCES.name(): replacements}}, "spec": spec});
        serde_json::to_value(charge(&json!({}), &max, pod).unwrap().unwrap().amounts).unwrap()
    }

    /// What a new pod is charged by a quota with these annotations and this `max`.
    fn charge(annotations: &Value, max: &Value, mut pod: Value) -> Result<Option<Charge>, Denial> {
        let ctx = Ctx::detached(|_| true);
        let metadata =
            json!({"name": "q", "namespace": "team", "uid": "u", "resourceVersion": "1", "annotations": annotations});
        ctx.put("ElasticQuota", &json!({"metadata": metadata, "spec": {"max": max}}).to_string()).unwrap();
        pod["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/name": "q"});
        let request = Request { operation: Operation::Create, namespace: "team".into(), ..Request::default() };
        of(&mut Pod::read_text(&pod.to_string()).unwrap(), None, &request, ctx.pods(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn annotations_that_cannot_be_decoded_refuse_pods_that_would_be_charged_nothing() {
        let container = json!({"name": "c", "resources": {"requests": {"memory": "1Gi"}}});
        let pods = [
            json!({"spec": {"containers": []}}),
            json!({"spec": {"containers": [container]}}),
            json!({"spec": {"containers": [container]}, "status": {"phase": "Succeeded"}}),
        ];
        for pod in pods {
            for max in [json!({"cpu": "1"}), json!({"example.com/x": "1"})] {
                let refused =
                    |annotations: Value| charge(&annotations, &max, pod.clone()).map_err(|denial| denial.message);
                let ends = "unexpected end of JSON input";
                assert_eq!(refused(json!({ADMISSION.name(): "{"})), Err(ends.to_owned()));
                let both = format!("[{ends}, invalid character 'x' looking for beginning of value]");
                assert_eq!(refused(json!({CHILD_REQUEST.name(): "{", ADMISSION.name(): "x"})), Err(both));
                assert_eq!(refused(json!({})), Ok(None));
            }
        }
    }

    #[test]
    fn a_pod_being_deleted_is_charged_until_its_grace_is_over() {
        let spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
        for (deleted, grace, charged) in [
            (Value::Null, Value::Null, true),
            (json!("1969-12-31T23:00:00Z"), Value::Null, true),
            (json!("1969-12-31T23:00:00Z"), json!(30), false),
            (json!("1969-12-31T23:59:50Z"), json!(30), true),
        ] {
            let metadata = json!({"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace});
            let pod = json!({"metadata": metadata, "spec": spec});
            let charge = charge(&json!({}), &json!({"cpu": "1"}), pod).unwrap();
            assert_eq!(charge.is_some(), charged, "{deleted} {grace}");
        }
    }

    #[test]
    fn resources_are_replaced_in_each_container_before_they_are_summed() {
        let container = |requests: Value| json!({"name": "c", "resources": {"requests": requests}});
        let both = json!({"cpu": "1", "kubernetes.io/batch-cpu": "500"});
        let containers = json!([container(both), container(json!({"cpu": "2", "memory": "1Gi"}))]);
        let spec = json!({"containers": containers, "overhead": {"cpu": "100m"}});
        let charge = json!({"cpu": "1", "kubernetes.io/batch-cpu": "2600", "memory": "1Gi"});
        assert_eq!(charged("cpu:kubernetes.io/batch-cpu", &spec), charge, "what is there under the new name stays");
        let charge = json!({"kubernetes.io/batch-cpu": "500", "memory": "1Gi"});
        assert_eq!(charged("cpu:", &spec), charge, "no new name: it is dropped");
        assert_eq!(charged("cpu:kubernetes.io/batch-cpu,cpu:example.com/x", &spec), charge, "the last name counts");
        let charge = json!({"cpu": "3100m", "kubernetes.io/batch-cpu": "500", "memory": "1Gi"});
        assert_eq!(charged("", &spec), charge);
    }

    #[test]
    fn what_a_pod_requests_as_a_whole_is_charged() {
        let spec = json!({"resources": {"requests": {"cpu": "4"}}, "containers": [{"name": "c"}]});
        assert_eq!(charged("", &spec), json!({"cpu": "4"}));
    }
}
