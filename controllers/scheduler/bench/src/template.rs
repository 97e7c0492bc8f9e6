//! The objects that a scenario is made of: templates, their placeholders, and what every object of a benchmark carries.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, bail};
use koord_types::gang::POD_GROUP_LABEL;
use serde_json::{Map, Value, json};

use crate::scenario::Scenario;

/// The label by which objects of a benchmark are known; its value is the run.
pub const RUN_LABEL: &str = "benchmark.koordinator.sh/run-id";

/// Marks nodes that kwok plays, and keeps other pods off them.
const KWOK: &str = "kwok.x-k8s.io/node";

/// How often templates may extend each other.
const DEPTH_MAX: usize = 8;

/// The templates of a scenario.
pub(crate) struct Templates(BTreeMap<String, Value>);

impl Templates {
    /// The templates of a scenario, with those that it need not name.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let mut templates = scenario.templates.clone();
        templates.entry("node".to_owned()).or_insert_with(node);
        templates.entry("pod".to_owned()).or_insert_with(|| pod(scenario));
        Self(templates)
    }

    /// A template, with those that it extends.
    pub(crate) fn get(&self, name: &str) -> Result<Value> {
        self.extended(name, 0)
    }

    fn extended(&self, name: &str, depth: usize) -> Result<Value> {
        let mut template = self.0.get(name).with_context(|| format!("there is no template {name}"))?.clone();
        let Some(base) = template.as_object_mut().and_then(|template| template.remove("extends")) else {
            return Ok(template);
        };
        let base = base.as_str().ok_or_else(|| anyhow!("template {name}: extends must name a template"))?;
        if depth == DEPTH_MAX {
            bail!("template {name} extends too many others, or itself");
        }
        let mut whole = self.extended(base, depth + 1)?;
        merge(&mut whole, &template);
        Ok(whole)
    }
}

/// Changes a value by another: objects are merged, everything else is replaced, and null removes.
pub(crate) fn merge(value: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *value = change.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let Some(members) = value.as_object_mut() else { return };
    for (key, change) in change {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// The object of a template with this number: `{index}`, `{index/5}` and `{index%5}` in keys and texts are replaced. A text that is nothing
/// else becomes a number, to which another may be added: `{8000+index}`.
pub(crate) fn filled(template: &Value, index: u64) -> Result<Value> {
    Ok(match template {
        Value::String(text) => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(inside) if inside.contains("index") && !inside.contains('{') => json!(number(inside, index)?),
            _ => Value::String(text_filled(text, index)?),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, index)).collect::<Result<_>>()?,
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| Ok((text_filled(key, index)?, filled(value, index)?));
            Value::Object(members.iter().map(member).collect::<Result<Map<_, _>>>()?)
        }
        other => other.clone(),
    })
}

fn text_filled(text: &str, index: u64) -> Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{index") {
        let (inside, after) = after.split_once('}').ok_or_else(|| anyhow!("{text:?}: a }} is missing"))?;
        filled.push_str(before);
        filled.push_str(&number(&format!("index{inside}"), index)?.to_string());
        rest = after;
    }
    Ok(filled + rest)
}

fn number(expression: &str, index: u64) -> Result<u64> {
    let wrong = || anyhow!("{{{expression}}} is none of {{index}}, {{index/5}} and {{index%5}}");
    if let Some((base, rest)) = expression.split_once('+') {
        let base: u64 = base.parse().map_err(|_| wrong())?;
        return Ok(base.saturating_add(number(rest, index)?));
    }
    let rest = expression.strip_prefix("index").ok_or_else(wrong)?;
    if rest.is_empty() {
        return Ok(index);
    }
    let by: u64 = rest.get(1..).and_then(|digits| digits.parse().ok()).filter(|by| *by > 0).ok_or_else(wrong)?;
    match rest.as_bytes().first() {
        Some(b'/') => Ok(index / by),
        Some(b'%') => Ok(index % by),
        _ => Err(wrong()),
    }
}

/// What every object of a run carries.
pub(crate) struct Dress<'a> {
    pub(crate) run: &'a str,
    pub(crate) scheduler: &'a str,
    /// Pods are kept off nodes that are not of this run.
    pub(crate) keeps_off: bool,
}

impl Dress<'_> {
    /// Gives an object its label, and nodes and pods what keeps them together.
    pub(crate) fn put_on(&self, object: &mut Value) {
        object["metadata"]["labels"][RUN_LABEL] = self.run.into();
        match object["kind"].as_str() {
            Some("Node") => Self::node(object),
            Some("Pod") => self.pod(object),
            _ => {}
        }
    }

    /// Keeps in a change of an object what it carries: a list is changed as a whole.
    pub(crate) fn keep_on(object: &mut Value) {
        if object["spec"]["tolerations"].is_array() {
            push(&mut object["spec"]["tolerations"], toleration());
        }
        if object["spec"]["taints"].is_array() {
            push(&mut object["spec"]["taints"], taint());
        }
    }

    fn node(node: &mut Value) {
        node["metadata"]["annotations"][KWOK] = "fake".into();
        let name = node["metadata"]["name"].clone();
        let labels = &mut node["metadata"]["labels"];
        for (key, value) in [("kubernetes.io/hostname", name), ("type", "kwok".into())] {
            if labels[key].is_null() {
                labels[key] = value;
            }
        }
        push(&mut node["spec"]["taints"], taint());
        let status = &mut node["status"];
        if status["allocatable"].is_null() {
            status["allocatable"] = status["capacity"].clone();
        }
        if status["conditions"].is_null() {
            status["conditions"] = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]);
        }
    }

    fn pod(&self, pod: &mut Value) {
        let spec = &mut pod["spec"];
        if spec["schedulerName"].is_null() {
            spec["schedulerName"] = self.scheduler.into();
        }
        push(&mut spec["tolerations"], toleration());
        if self.keeps_off {
            spec["nodeSelector"][RUN_LABEL] = self.run.into();
        }
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

/// The taint of kwok's nodes.
pub(crate) fn taint() -> Value {
    json!({"key": KWOK, "value": "fake", "effect": "NoSchedule"})
}

fn toleration() -> Value {
    json!({"key": KWOK, "operator": "Equal", "value": "fake", "effect": "NoSchedule"})
}

/// A node as the original's harness makes them.
fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "status": {"capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"}},
    })
}

/// A pod of a scenario.
fn pod(scenario: &Scenario) -> Value {
    let mut labels = json!({"app": "kwok-bench"});
    merge(&mut labels, &json!(scenario.labels));
    if let Some(class) = &scenario.qos_class {
        labels["koordinator.sh/qosClass"] = class.as_str().into();
    }
    let mut requests = json!(scenario.resource_requests);
    if scenario.resource_requests.is_empty() && scenario.ops.is_empty() {
        requests = json!({"cpu": "500m", "memory": "512Mi"});
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"labels": labels, "annotations": scenario.annotations},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "pause", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": requests, "limits": requests},
            }],
        },
    })
}

/// The PodGroup of a gang.
pub(crate) fn pod_group(name: &str, namespace: &str, min_member: u32) -> Value {
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": min_member, "scheduleTimeoutSeconds": 600},
    })
}

/// Makes a pod a member of a gang.
pub(crate) fn join(pod: &mut Value, gang: &str) {
    pod["metadata"]["labels"][POD_GROUP_LABEL] = gang.into();
}

/// Gives a pod a volume, by a claim that is bound to it already. The volume and the claim have the pod's name.
pub(crate) fn with_volume(pod: &mut Value, mut volume: Value, mut claim: Value) -> [Value; 2] {
    let metadata = &pod["metadata"];
    let (name, namespace) = (metadata["name"].clone(), metadata["namespace"].clone());
    volume["metadata"]["name"] = name.clone();
    volume["spec"]["claimRef"] =
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": namespace});
    claim["metadata"]["name"] = name.clone();
    claim["metadata"]["namespace"] = namespace;
    claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "true".into();
    claim["spec"]["volumeName"] = name.clone();
    if claim["spec"]["storageClassName"].is_null() {
        // None, not the default one.
        claim["spec"]["storageClassName"] = "".into();
    }
    push(&mut pod["spec"]["volumes"], json!({"name": "data", "persistentVolumeClaim": {"claimName": name}}));
    [volume, claim]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_by_numbers() {
        let template =
            json!({"a-{index}": ["x{index/5}-{index%5}y", "{index}", "{other}", 1], "port": "{8000+index%3}"});
        let expected = json!({"a-7": ["x1-2y", 7, "{other}", 1], "port": 8001});
        assert_eq!(filled(&template, 7).unwrap(), expected);
        for wrong in ["{index*2}", "a{index/0}", "{index%x}"] {
            let error = filled(&json!(wrong), 1).unwrap_err().to_string();
            assert!(error.ends_with("is none of {index}, {index/5} and {index%5}"), "{error}");
        }
        assert_eq!(filled(&json!("a{index"), 1).unwrap_err().to_string(), "\"a{index\": a } is missing");
    }

    #[test]
    fn a_template_changes_the_one_that_it_extends() {
        let mut scenario = Scenario::default();
        let small = json!({"extends": "node", "status": {"capacity": {"cpu": "4", "pods": null}}});
        scenario.templates.insert("small".to_owned(), small);
        scenario.templates.insert("loop".to_owned(), json!({"extends": "loop"}));
        let templates = Templates::of(&scenario);
        let small = templates.get("small").unwrap();
        assert_eq!(small["status"]["capacity"], json!({"cpu": "4", "memory": "256Gi"}));
        assert_eq!(templates.get("loop").unwrap_err().to_string(), "template loop extends too many others, or itself");
    }

    #[test]
    fn nodes_and_pods_of_a_run_belong_together() {
        let dress = Dress { run: "r1", scheduler: "s", keeps_off: true };
        let (mut node, mut pod) = (node(), pod(&Scenario::default()));
        node["metadata"]["name"] = "n".into();
        dress.put_on(&mut node);
        dress.put_on(&mut pod);
        assert_eq!((&node["spec"]["taints"], &node["status"]["allocatable"]["cpu"]), (&json!([taint()]), &json!("32")));
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "n");
        assert_eq!(pod["spec"]["nodeSelector"], json!({RUN_LABEL: "r1"}));
        assert_eq!((&pod["spec"]["schedulerName"], &pod["spec"]["tolerations"]), (&json!("s"), &json!([toleration()])));
        let mut change = json!({"spec": {"taints": []}});
        Dress::keep_on(&mut change);
        assert_eq!(change, json!({"spec": {"taints": [taint()]}}));
    }
}
