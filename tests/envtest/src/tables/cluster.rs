//! The columns of the kinds that are neither pods nor workloads.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::human::{self, NONE, UNKNOWN, age, integer, items, name, or_none, text};

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let address = |type_: &str| {
        let found = items(object, "/status/addresses").find(|address| address["type"] == type_);
        found.map_or_else(|| NONE.to_owned(), |address| text(address, "/address", NONE))
    };
    let info = |field: &str, absent: &str| text(object, &format!("/status/nodeInfo/{field}"), absent);
    vec![
        name(object),
        node_status(object).into(),
        node_roles(object).into(),
        age(object, now),
        info("kubeletVersion", "").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage", UNKNOWN).into(),
        info("kernelVersion", UNKNOWN).into(),
        info("containerRuntimeVersion", UNKNOWN).into(),
    ]
}

fn node_status(node: &Value) -> String {
    let ready = items(node, "/status/conditions").find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "/status/phase", "").into(), age(object, now)]
}

fn count(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), (count(&object["data"]) + count(&object["binaryData"])).into(), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "/type", "").into(), count(&object["data"]).into(), age(object, now)]
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), items(object, "/secrets").len().into(), age(object, now)]
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = items(object, "/spec/ports").map(|port| {
        let (number, protocol) = (integer(port, "/port"), text(port, "/protocol", "TCP"));
        match integer(port, "/nodePort") {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    });
    vec![
        name(object),
        text(object, "/spec/type", "").into(),
        text(object, "/spec/clusterIP", NONE).into(),
        external_addresses(object).into(),
        or_none(ports.collect::<Vec<_>>().join(",")).into(),
        age(object, now),
        or_none(human::labels(&object["spec"]["selector"]).join(",")).into(),
    ]
}

fn external_addresses(service: &Value) -> String {
    let mut addresses: Vec<&str> = items(service, "/spec/externalIPs").filter_map(Value::as_str).collect();
    match service["spec"]["type"].as_str() {
        Some("ExternalName") => text(service, "/spec/externalName", NONE),
        Some("LoadBalancer") => {
            let balancers: BTreeSet<&str> = items(service, "/status/loadBalancer/ingress")
                .filter_map(|ingress| ingress["ip"].as_str().or_else(|| ingress["hostname"].as_str()))
                .collect();
            addresses.splice(..0, balancers);
            if addresses.is_empty() { "<pending>".to_owned() } else { addresses.join(",") }
        }
        _ => or_none(addresses.join(",")),
    }
}

const SHOWN_MAX: usize = 3;

/// The first few of many.
fn abridged(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => or_none(shown),
        more => format!("{shown} + {more} more..."),
    }
}

pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in items(object, "/subsets") {
        let addresses: Vec<&str> = items(subset, "/addresses").filter_map(|address| address["ip"].as_str()).collect();
        let ports = items(subset, "/ports");
        if ports.len() == 0 {
            all.extend(addresses.iter().map(ToString::to_string));
        } else {
            for port in ports {
                all.extend(addresses.iter().map(|ip| format!("{ip}:{}", integer(port, "/port"))));
            }
        }
    }
    vec![name(object), abridged(&all).into(), age(object, now)]
}

pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let port = |port: &Value| port.get("port").map_or_else(|| "*".to_owned(), Value::to_string);
    let ports: Vec<String> = items(object, "/ports").map(port).collect();
    let ports = if object.get("ports").is_none() { "<unset>".to_owned() } else { abridged(&ports) };
    let addresses = items(object, "/endpoints").flat_map(|endpoint| items(endpoint, "/addresses"));
    let addresses: Vec<String> = addresses.filter_map(|address| address.as_str().map(ToOwned::to_owned)).collect();
    let addresses = if object.get("endpoints").is_none() { "<unset>".to_owned() } else { abridged(&addresses) };
    vec![name(object), text(object, "/addressType", "").into(), ports.into(), addresses.into(), age(object, now)]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let moment = |pointer: &str| object.pointer(pointer).filter(|time| !time.is_null());
    let first = human::since(moment("/firstTimestamp").or_else(|| moment("/eventTime")), now);
    let mut last = moment("/lastTimestamp").map_or_else(|| first.clone(), |time| human::since(Some(time), now));
    let mut occurrences = integer(object, "/count");
    if let Some(series) = object.get("series").filter(|series| series.is_object()) {
        last = human::since(series.get("lastObservedTime"), now);
        occurrences = integer(series, "/count");
    } else if occurrences == 0 {
        // The newer API counts series only.
        occurrences = 1;
    }
    // events.k8s.io calls the same object `regarding`, and its message `note`.
    let involved = object.get("involvedObject").or_else(|| object.get("regarding")).unwrap_or(&Value::Null);
    let (kind, target) = (text(involved, "/kind", "").to_lowercase(), text(involved, "/name", ""));
    let target = if target.is_empty() { kind } else { format!("{kind}/{target}") };
    let pick = |pointers: [&str; 3]| {
        pointers.iter().map(|pointer| text(object, pointer, "")).find(|found| !found.is_empty()).unwrap_or_default()
    };
    let component = pick(["/source/component", "/deprecatedSource/component", "/reportingComponent"]);
    let component = if component.is_empty() { text(object, "/reportingController", "") } else { component };
    let instance = pick(["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    let message = pick(["/message", "/note", "/message"]);
    vec![
        last.into(),
        text(object, "/type", "").into(),
        text(object, "/reason", "").into(),
        target.into(),
        text(involved, "/fieldPath", "").into(),
        source.into(),
        message.trim().into(),
        first.into(),
        occurrences.into(),
        name(object),
    ]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "/spec/holderIdentity", "").into(), age(object, now)]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        integer(object, "/value").into(),
        (object["globalDefault"] == true).into(),
        age(object, now),
        text(object, "/preemptionPolicy", "").into(),
    ]
}

pub(super) fn webhook_configuration(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), items(object, "/webhooks").len().into(), age(object, now)]
}

pub(super) fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", text(object, "/roleRef/kind", ""), text(object, "/roleRef/name", ""));
    let subjects = |kind: &str| {
        let names = items(object, "/subjects").filter(|subject| subject["kind"] == kind).map(|subject| {
            let named = text(subject, "/name", "");
            if kind == "ServiceAccount" { format!("{}/{named}", text(subject, "/namespace", "")) } else { named }
        });
        names.collect::<Vec<_>>().join(", ")
    };
    vec![
        name(object),
        role.into(),
        age(object, now),
        subjects("User").into(),
        subjects("Group").into(),
        subjects("ServiceAccount").into(),
    ]
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => Some("RWO"),
        Some("ReadOnlyMany") => Some("ROX"),
        Some("ReadWriteMany") => Some("RWX"),
        Some("ReadWriteOncePod") => Some("RWOP"),
        _ => None,
    };
    items(object, pointer).filter_map(short).collect::<Vec<_>>().join(",")
}

pub(super) fn volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = !text(object, "/spec/volumeName", "").is_empty();
    let terminating = object.pointer("/metadata/deletionTimestamp").is_some();
    let status = if terminating { "Terminating".to_owned() } else { text(object, "/status/phase", "") };
    let (capacity, modes) = if bound {
        (text(object, "/status/capacity/storage", "0"), access_modes(object, "/status/accessModes"))
    } else {
        (String::new(), String::new())
    };
    vec![
        name(object),
        status.into(),
        text(object, "/spec/volumeName", "").into(),
        capacity.into(),
        modes.into(),
        text(object, "/spec/storageClassName", "").into(),
        text(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        age(object, now),
        text(object, "/spec/volumeMode", "<unset>").into(),
    ]
}

pub(super) fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object
        .pointer("/spec/claimRef")
        .map_or_else(String::new, |claim| format!("{}/{}", text(claim, "/namespace", ""), text(claim, "/name", "")));
    let terminating = object.pointer("/metadata/deletionTimestamp").is_some();
    let status = if terminating { "Terminating".to_owned() } else { text(object, "/status/phase", "") };
    vec![
        name(object),
        text(object, "/spec/capacity/storage", "").into(),
        access_modes(object, "/spec/accessModes").into(),
        text(object, "/spec/persistentVolumeReclaimPolicy", "").into(),
        status.into(),
        claim.into(),
        text(object, "/spec/storageClassName", "").into(),
        text(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        text(object, "/status/reason", "").into(),
        age(object, now),
        text(object, "/spec/volumeMode", "<unset>").into(),
    ]
}

pub(super) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = &object["metadata"]["annotations"];
    let default = annotations["storageclass.kubernetes.io/is-default-class"] == "true"
        || annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true";
    let mut shown = text(object, "/metadata/name", "");
    if default {
        shown.push_str(" (default)");
    }
    vec![
        shown.into(),
        text(object, "/provisioner", "").into(),
        text(object, "/reclaimPolicy", "Delete").into(),
        text(object, "/volumeBindingMode", "Immediate").into(),
        (object["allowVolumeExpansion"] == true).into(),
        age(object, now),
    ]
}

pub(super) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = object["status"]["hard"].as_object().into_iter().flatten();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, limit) in hard {
        let used = text(&object["status"]["used"], &format!("/{}", resource.replace('/', "~1")), "0");
        let shown = format!("{resource}: {used}/{}", limit.as_str().unwrap_or_default());
        if resource.starts_with("limits.") { &mut limits } else { &mut requests }.push(shown);
    }
    vec![name(object), requests.join(", ").into(), limits.join(", ").into(), age(object, now)]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "/handler", "").into(), age(object, now)]
}

pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), human::selector(object.pointer("/spec/podSelector")).into(), age(object, now)]
}

pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = object.pointer("/spec/parameters").map_or_else(
        || NONE.to_owned(),
        |parameters| {
            let group = text(parameters, "/apiGroup", "");
            let kind = text(parameters, "/kind", "");
            let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
            format!("{kind}/{}", text(parameters, "/name", ""))
        },
    );
    vec![name(object), text(object, "/spec/controller", "").into(), parameters.into(), age(object, now)]
}

pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let hosts: Vec<&str> = items(object, "/spec/rules").filter_map(|rule| rule["host"].as_str()).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") };
    let balancers = items(object, "/status/loadBalancer/ingress")
        .filter_map(|ingress| ingress["ip"].as_str().or_else(|| ingress["hostname"].as_str()));
    let ports = if items(object, "/spec/tls").len() == 0 { "80" } else { "80, 443" };
    vec![
        name(object),
        text(object, "/spec/ingressClassName", NONE).into(),
        hosts.into(),
        balancers.collect::<Vec<_>>().join(",").into(),
        ports.into(),
        age(object, now),
    ]
}

pub(super) fn certificate_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |type_: &str| items(object, "/status/conditions").any(|condition| condition["type"] == type_);
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(object, "/status/certificate", "").is_empty() {
        status.push_str(",Issued");
    }
    let duration = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64).map(human::duration);
    vec![
        name(object),
        age(object, now),
        text(object, "/spec/signerName", NONE).into(),
        text(object, "/spec/username", "").into(),
        duration.unwrap_or_else(|| NONE.to_owned()).into(),
        status.into(),
    ]
}

/// What a kind without columns of its own shows.
pub(super) fn created_at(object: &Value) -> Vec<Value> {
    vec![name(object), object.pointer("/metadata/creationTimestamp").cloned().unwrap_or(json!(UNKNOWN))]
}
