//! Built-in admission of pods: limit ranges, accounts, priority, default tolerations, quotas.

use koord_resource::Quantity;
use serde_json::{Value, json};

use super::{
    ApiServer, subject,
    write::{Effect, Operation, Write},
};
use crate::{encode, metadata, status::ApiError};

/// The annotation that says what a limit range filled in.
const LIMIT_RANGER: &str = "kubernetes.io/limit-ranger";

impl ApiServer {
    /// What is set on and asked of a new pod before webhooks see it.
    pub(super) fn admit_pod(&mut self, write: &mut Write) -> Result<(), ApiError> {
        let is_pod = write.definition.group.is_empty() && write.definition.plural == "pods";
        if !is_pod || write.effect != Effect::Store || !write.target.subresource.is_empty() {
            return Ok(());
        }
        if write.operation == Operation::Create {
            self.admit_limits(write)?;
            self.admit_service_account(write)?;
            self.admit_priority(write)?;
        }
        if write.operation == Operation::Update {
            keep_priority(write);
        }
        if write.operation != Operation::Delete {
            add_tolerations(&mut write.object);
        }
        Ok(())
    }

    fn forbid(write: &Write, why: &str) -> ApiError {
        ApiError::forbidden(subject(&write.definition, &write.target.name), why)
    }

    /// Resolves the priority class.
    fn admit_priority(&self, write: &mut Write) -> Result<(), ApiError> {
        let Some(classes) = self.registry.any_version("scheduling.k8s.io", "priorityclasses") else { return Ok(()) };
        let name = write.object["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
        let class = if name.is_empty() {
            let records = self.store.collection(classes.collection).range("", "");
            let mut found: Vec<Value> = records
                .map(|(_, record)| encode::value(classes, record))
                .filter(|class| class["globalDefault"] == Value::Bool(true))
                .collect();
            found.sort_by_key(|class| class["value"].as_i64());
            found.into_iter().next()
        } else {
            let class = self.object(classes, "", &name);
            Some(class.ok_or_else(|| Self::forbid(write, &format!("no PriorityClass with name {name} was found")))?)
        };
        let (value, policy) = match &class {
            Some(class) => {
                write.object["spec"]["priorityClassName"] = json!(metadata::text(class, "name"));
                (class["value"].as_i64().unwrap_or_default(), class["preemptionPolicy"].clone())
            }
            None => (0, json!("PreemptLowerPriority")),
        };
        if let Some(given) = write.object["spec"]["priority"].as_i64().filter(|given| *given != value) {
            return Err(Self::forbid(
                write,
                &format!(
                    "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
                ),
            ));
        }
        let given = write.object["spec"]["preemptionPolicy"].clone();
        if given.is_string() && given != policy {
            let (given, policy) = (given.as_str().unwrap_or_default(), policy.as_str().unwrap_or_default());
            return Err(Self::forbid(
                write,
                &format!(
                    "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
                ),
            ));
        }
        write.object["spec"]["priority"] = json!(value);
        write.object["spec"]["preemptionPolicy"] = policy;
        Ok(())
    }

    /// Fills in and checks requests and limits by the namespace's limit ranges.
    fn admit_limits(&self, write: &mut Write) -> Result<(), ApiError> {
        let Some(ranges) = self.registry.any_version("", "limitranges") else { return Ok(()) };
        let prefix = ranges.key_prefix(&write.target.namespace);
        let limits: Vec<Value> = self
            .store
            .collection(ranges.collection)
            .range(&prefix, "")
            .flat_map(|(_, record)| {
                encode::value(ranges, record)["spec"]["limits"].as_array().cloned().unwrap_or_default()
            })
            .filter(|limit| limit["type"] == "Container")
            .collect();
        if limits.is_empty() {
            return Ok(());
        }
        let mut filled = Vec::new();
        for list in ["initContainers", "containers"] {
            for container in write.object["spec"][list].as_array_mut().into_iter().flatten() {
                for limit in &limits {
                    fill_resources(container, limit, list, &mut filled);
                }
            }
        }
        if !filled.is_empty() {
            let annotations = metadata::of_mut(&mut write.object).entry("annotations").or_insert_with(|| json!({}));
            annotations[LIMIT_RANGER] = json!(format!("LimitRanger plugin set: {}", filled.join("; ")));
        }
        for container in write.object["spec"]["containers"].as_array().into_iter().flatten() {
            for limit in &limits {
                if let Some(why) = broken_limit(container, limit) {
                    return Err(Self::forbid(write, &why));
                }
            }
        }
        Ok(())
    }

    /// Refuses a new pod that the namespace's quotas have no room for.
    pub(super) fn admit_quota(&mut self, write: &Write) -> Result<(), ApiError> {
        let is_new_pod = write.definition.group.is_empty()
            && write.definition.plural == "pods"
            && write.operation == Operation::Create
            && write.effect == Effect::Store;
        if !is_new_pod {
            return Ok(());
        }
        let Some(quotas) = self.registry.any_version("", "resourcequotas").cloned() else { return Ok(()) };
        let prefix = quotas.key_prefix(&write.target.namespace);
        let found: Vec<Value> = self
            .store
            .collection(quotas.collection)
            .range(&prefix, "")
            .map(|(_, record)| encode::value(&quotas, record))
            .collect();
        let mut changed = Vec::new();
        for mut quota in found {
            let name = metadata::text(&quota, "name").to_owned();
            let hard = quota["status"]["hard"].as_object().cloned().unwrap_or_default();
            let mut missing: Vec<String> = Vec::new();
            for resource in hard.keys().filter(|key| key.starts_with("requests.") || key.starts_with("limits.")) {
                let without: Vec<&str> = containers_without(&write.object, resource);
                if !without.is_empty() {
                    missing.push(format!("{resource} for: {}", without.join(",")));
                }
            }
            if !missing.is_empty() {
                return Err(Self::forbid(write, &format!("failed quota: {name}: must specify {}", missing.join("; "))));
            }
            let (mut requested, mut used_text, mut limited) = (Vec::new(), Vec::new(), Vec::new());
            for (resource, limit) in &hard {
                let Some(delta) = usage(&write.object, resource) else { continue };
                let used = quantity(&quota["status"]["used"][resource]);
                let limit = quantity(limit);
                let total = used.clone() + &delta;
                if total > limit {
                    requested.push(format!("{resource}={delta}"));
                    used_text.push(format!("{resource}={used}"));
                    limited.push(format!("{resource}={limit}"));
                }
                quota["status"]["used"][resource] = json!(total.to_string());
            }
            if !requested.is_empty() {
                return Err(Self::forbid(
                    write,
                    &format!(
                        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
                        requested.join(","),
                        used_text.join(","),
                        limited.join(",")
                    ),
                ));
            }
            changed.push((name, quota));
        }
        if !write.dry_run {
            for (name, mut quota) in changed {
                let key = quotas.key(&write.target.namespace, &name);
                self.put_object(&quotas, &key, &mut quota);
            }
        }
        Ok(())
    }
}

/// A client that does not repeat what admission resolved keeps it.
fn keep_priority(write: &mut Write) {
    let Some((_, old)) = &write.old else { return };
    for field in ["priority", "preemptionPolicy"] {
        if write.object["spec"].is_object() && write.object["spec"][field].is_null() && !old["spec"][field].is_null() {
            write.object["spec"][field] = old["spec"][field].clone();
        }
    }
}

fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// How much of a quota's resource a pod takes; none when the quota does not count pods.
fn usage(pod: &Value, resource: &str) -> Option<Quantity> {
    if matches!(resource, "pods" | "count/pods") {
        return "1".parse().ok();
    }
    let (which, name) = match resource.split_once('.') {
        Some(("requests", name)) => ("requests", name),
        Some(("limits", name)) => ("limits", name),
        None if matches!(resource, "cpu" | "memory" | "ephemeral-storage") => ("requests", resource),
        _ => return None,
    };
    let mut sum = Quantity::default();
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        sum += &quantity(&container["resources"][which][name]);
    }
    Some(sum)
}

fn containers_without<'a>(pod: &'a Value, resource: &str) -> Vec<&'a str> {
    let Some((which, name)) = resource.split_once('.') else { return Vec::new() };
    pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|container| container["resources"][which][name].is_null())
        .filter_map(|container| container["name"].as_str())
        .collect()
}

fn fill_resources(container: &mut Value, limit: &Value, list: &str, filled: &mut Vec<String>) {
    let name = container["name"].as_str().unwrap_or_default().to_owned();
    let role = if list == "initContainers" { "init container" } else { "container" };
    for (which, from, word) in [("requests", "defaultRequest", "request"), ("limits", "default", "limit")] {
        for (resource, value) in limit[from].as_object().into_iter().flatten() {
            if container["resources"][which][resource].is_null() {
                container["resources"][which][resource] = value.clone();
                filled.push(format!("{resource} {word} for {role} {name}"));
            }
        }
    }
}

fn broken_limit(container: &Value, limit: &Value) -> Option<String> {
    let of = |which: &str, resource: &str| {
        let value = &container["resources"][which][resource];
        (!value.is_null()).then(|| quantity(value))
    };
    for (resource, bound) in limit["min"].as_object().into_iter().flatten() {
        let bound = quantity(bound);
        match of("requests", resource) {
            None => {
                return Some(format!("minimum {resource} usage per Container is {bound}.  No request is specified"));
            }
            Some(request) if request < bound => {
                return Some(format!("minimum {resource} usage per Container is {bound}, but request is {request}"));
            }
            Some(_) => {}
        }
    }
    for (resource, bound) in limit["max"].as_object().into_iter().flatten() {
        let bound = quantity(bound);
        match of("limits", resource) {
            None => return Some(format!("maximum {resource} usage per Container is {bound}.  No limit is specified")),
            Some(limit) if limit > bound => {
                return Some(format!("maximum {resource} usage per Container is {bound}, but limit is {limit}"));
            }
            Some(_) => {}
        }
    }
    None
}

/// Pods stay five minutes on a node that is not ready or not reachable, unless they say otherwise.
fn add_tolerations(pod: &mut Value) {
    if !pod["spec"].is_object() {
        return;
    }
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            let known = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (known == key || known.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !is_tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    if !tolerations.is_empty() {
        pod["spec"]["tolerations"] = Value::Array(tolerations);
    }
}
