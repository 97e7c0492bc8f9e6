//! What may stand in a pod's spec and status, and what an update may change.

mod containers;
mod environment;
mod probes;
pub(super) mod resources;
pub(super) mod scheduling;
mod security;
mod update;
mod volumes;

pub(super) use self::{
    containers::{PROTOCOLS, port_number, port_number_or_name},
    update::{ephemeral, resize, status, update},
};

use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::Value;

use self::volumes::Volumes;
use crate::metadata;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARS_MAX: usize = 2048;
pub(super) const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// What the checks of one container need to know of its pod.
struct Surrounding<'a> {
    volumes: &'a Volumes<'a>,
    /// Names of the claims of devices.
    claims: Vec<&'a str>,
    grace_period: Option<i64>,
    restart_policy: &'a str,
    has_host_users: bool,
}

/// Checks a pod: what its spec says, and what only pods are asked for.
pub(super) fn pod(object: &Value, errors: &mut Errors) {
    let (meta_at, spec_at) = (Path::root("metadata"), Path::root("spec"));
    let spec = &object["spec"];
    annotations(&object["metadata"]["annotations"], spec, &meta_at.child("annotations"), errors);
    self::spec(spec, Owner::Pod(metadata::text(object, "name")), &spec_at, errors);
    if text(spec, "serviceAccountName").is_empty() {
        let volumes_at = spec_at.child("volumes");
        for (index, volume) in list(spec, "volumes").enumerate() {
            let volume_at = volumes_at.index(index);
            let projected_at = volume_at.child("projected");
            let sources_at = projected_at.child("sources");
            for (index, source) in list(&volume["projected"], "sources").enumerate() {
                if source["serviceAccountToken"].is_object() {
                    let message = "must not be specified when serviceAccountName is not set";
                    errors.forbidden(&sources_at.index(index).child("serviceAccountToken"), message);
                }
            }
        }
    }
    for field in ["containers", "initContainers"] {
        let at = spec_at.child(field);
        for (index, container) in list(spec, field).enumerate() {
            containers::padded_image(container, &at.index(index), errors);
        }
    }
}

/// Checks what only a new pod is asked for.
pub(super) fn new_pod(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let at = Path::root("spec");
    pod(object, errors);
    if list(spec, "ephemeralContainers").next().is_some() {
        errors.forbidden(&at.child("ephemeralContainers"), "cannot be set on create");
    }
    if list(spec, "schedulingGates").next().is_some() && !text(spec, "nodeName").is_empty() {
        errors.forbidden(&at.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
    security::annotations_agree(&object["metadata"]["annotations"], spec, &at, errors);
}

/// Checks the annotations that mean something to a pod.
fn annotations(annotations: &Value, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    if let Some(mirror) = annotations[MIRROR].as_str().filter(|_| text(spec, "nodeName").is_empty()) {
        errors.invalid(&at.key(MIRROR), mirror, "must set spec.nodeName if mirror pod annotation is set");
    }
    if let Some(cost) = annotations[DELETION_COST].as_str() {
        let is_canonical =
            cost.parse::<i32>().is_ok() && !cost.starts_with('+') && (cost == "0" || !cost.starts_with('0'));
        if !is_canonical {
            errors.invalid(&at.key(DELETION_COST), cost, "must be a 32bit integer");
        }
    }
    security::annotations(annotations, spec, at, errors);
}

/// Whose spec it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// A pod of this name.
    Pod(&'a str),
    /// A template, whose pods have no names yet.
    Template,
}

/// Checks the spec of a pod.
pub(super) fn spec(spec: &Value, owner: Owner<'_>, at: &Path<'_>, errors: &mut Errors) {
    let pod_name = if let Owner::Pod(name) = owner { name } else { "" };
    let volumes = volumes::check(spec, pod_name, &at.child("volumes"), errors);
    resources::pod_claims(spec, &at.child("resourceClaims"), errors);
    let around = containers::around(spec, &volumes);
    containers::regular(spec, &at.child("containers"), &around, errors);
    containers::init(spec, &at.child("initContainers"), &around, errors);
    containers::ephemeral(spec, &at.child("ephemeralContainers"), &around, errors);
    resources::of_pod(spec, &at.child("resources"), errors);
    on_host(spec, owner, at, errors);
    one_of(spec, "restartPolicy", at, &["Always", "OnFailure", "Never"], errors);
    one_of(spec, "dnsPolicy", at, &DNS_POLICIES, errors);
    koord_schema::object_meta::validate_labels(&spec["nodeSelector"], &at.child("nodeSelector"), errors);
    security::of_pod(spec, &at.child("securityContext"), errors);
    scheduling::affinity(&spec["affinity"], &at.child("affinity"), errors);
    dns_config(spec, &at.child("dnsConfig"), errors);
    let gates_at = at.child("readinessGates");
    for (index, gate) in list(spec, "readinessGates").enumerate() {
        let condition = text(gate, "conditionType");
        for message in names::qualified_name(condition) {
            errors.invalid(&gates_at.index(index).child("conditionType"), condition, message);
        }
    }
    scheduling::gates(spec, &at.child("schedulingGates"), errors);
    scheduling::spread(spec, &at.child("topologySpreadConstraints"), errors);
    security::host_users(spec, at, errors);
    for field in ["serviceAccountName", "nodeName"] {
        subdomain(spec, field, at, errors);
    }
    let deadline = spec["activeDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        errors.invalid(&at.child("activeDeadlineSeconds"), seconds, "must be between 1 and 2147483647, inclusive");
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, field);
        if !name.is_empty() {
            check_label(name, &at.child(field), errors);
        }
    }
    scheduling::tolerations(spec, &at.child("tolerations"), errors);
    host_aliases(spec, &at.child("hostAliases"), errors);
    subdomain(spec, "priorityClassName", at, errors);
    if let Some(class) = spec["runtimeClassName"].as_str() {
        for message in names::dns1123_subdomain(class) {
            errors.invalid(&at.child("runtimeClassName"), class, message);
        }
    }
    if let Some(policy) = spec["preemptionPolicy"].as_str() {
        one_of_value(policy, &at.child("preemptionPolicy"), &["PreemptLowerPriority", "Never"], errors);
    }
    resources::overhead(spec, &at.child("overhead"), errors);
    security::operating_system(spec, at, errors);
}

/// Containers on the host's network have the same port there; a template may leave it open.
fn on_host(spec: &Value, owner: Owner<'_>, at: &Path<'_>, errors: &mut Errors) {
    if spec["hostNetwork"] != true {
        return;
    }
    let containers_at = at.child("containers");
    for (index, container) in list(spec, "containers").enumerate() {
        let at = containers_at.index(index);
        let ports_at = at.child("ports");
        for (index, port) in list(container, "ports").enumerate() {
            let [host, own] = ["hostPort", "containerPort"].map(|field| port[field].as_i64().unwrap_or_default());
            if host != own && (owner != Owner::Template || host != 0) {
                let message = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&ports_at.index(index).child("hostPort"), host, message);
            }
        }
    }
}

fn dns_config(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let config = &spec["dnsConfig"];
    if spec["dnsPolicy"] == "None" {
        if !config.is_object() {
            return errors.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if list(config, "nameservers").next().is_none() {
            let message = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&at.child("nameservers"), message);
        }
    }
    let servers_at = at.child("nameservers");
    if list(config, "nameservers").count() > NAMESERVERS_MAX {
        let message = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.invalid(&servers_at, &config["nameservers"], message);
    }
    for (index, server) in list(config, "nameservers").filter_map(Value::as_str).enumerate() {
        check_ip(server, &servers_at.index(index), errors);
    }
    let searches: Vec<&str> = list(config, "searches").filter_map(Value::as_str).collect();
    let searches_at = at.child("searches");
    if searches.len() > SEARCHES_MAX {
        let message = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.invalid(&searches_at, &searches, message);
    }
    if searches.join(" ").len() > SEARCH_CHARS_MAX {
        let message =
            format!("must not have more than {SEARCH_CHARS_MAX} characters (including spaces) in the search list");
        errors.invalid(&searches_at, &searches, message);
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| **search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        for message in names::dns1123_subdomain_with_underscores(search) {
            errors.invalid(&searches_at.index(index), search, message);
        }
    }
    let options_at = at.child("options");
    for (index, option) in list(config, "options").enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&options_at.index(index), "must not be empty");
        }
    }
}

fn host_aliases(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, alias) in list(spec, "hostAliases").enumerate() {
        let at = at.index(index);
        check_ip(text(alias, "ip"), &at.child("ip"), errors);
        let names_at = at.child("hostnames");
        for (index, name) in list(alias, "hostnames").filter_map(Value::as_str).enumerate() {
            for message in names::dns1123_subdomain(name) {
                errors.invalid(&names_at.index(index), name, message);
            }
        }
    }
}

/// Checks an address.
pub(super) fn check_ip(address: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let is_right = crate::addresses::parse_ip(address).is_some();
    if !is_right {
        errors.invalid(at, address, IP);
    }
    is_right
}

fn list<'a>(fields: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    fields[name].as_array().into_iter().flatten()
}

fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields[name].as_str().unwrap_or_default()
}

/// Whether a field says anything: what Go would not call its zero value.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

fn check_label(name: &str, at: &Path<'_>, errors: &mut Errors) {
    for message in names::dns1123_label(name) {
        errors.invalid(at, name, message);
    }
}

fn subdomain(fields: &Value, name: &str, at: &Path<'_>, errors: &mut Errors) {
    let value = text(fields, name);
    if !value.is_empty() {
        for message in names::dns1123_subdomain(value) {
            errors.invalid(&at.child(name), value, message);
        }
    }
}

fn one_of(fields: &Value, name: &str, at: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    one_of_value(text(fields, name), &at.child(name), allowed, errors);
}

fn one_of_value(value: &str, at: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    if value.is_empty() {
        errors.required(at, "");
    } else if !allowed.contains(&value) {
        errors.not_supported(at, value, allowed);
    }
}

fn not_negative(fields: &Value, name: &str, at: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = fields[name].as_i64().filter(|number| *number < 0) {
        errors.invalid(&at.child(name), number, "must be greater than or equal to 0");
    }
}

fn not_found(at: &Path<'_>, name: &str, detail: &str, errors: &mut Errors) {
    let error = FieldError {
        mistake: Mistake::NotFound,
        field: at.to_string(),
        value: format!("{name:?}"),
        detail: detail.to_owned(),
    };
    errors.add(error);
}

/// Refuses a value that is shown otherwise than its JSON.
fn invalid_as(at: &Path<'_>, value: String, detail: &str, errors: &mut Errors) {
    errors.add(FieldError { mistake: Mistake::Invalid, field: at.to_string(), value, detail: detail.to_owned() });
}
