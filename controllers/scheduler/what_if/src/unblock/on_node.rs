//! What might make one plugin accept one node.

use k8s_openapi::api::core::v1::{PodSpec, Taint};
use koord_resource::controller::ResourceKind;
use koord_runtime::key::ObjectKey;
use koord_scheduler_framework::{cluster::Cluster, columns::Row, node::Node, pod::Pod};
use koord_scheduling::{Effect, NodeAffinity, tolerates};
use koord_types::node_annotations::USAGE_THRESHOLDS;
use serde_json::{Value, json};

use super::{
    change::{Change, Edit, escaped},
    requests::Subject,
};

/// Annotations that restrict the devices, CPUs and reservations of a pod.
const RESTRICTIONS: [(&str, &[&str]); 3] = [
    (
        "DeviceShare",
        &[
            "scheduling.koordinator.sh/device-joint-allocate",
            "scheduling.koordinator.sh/device-allocate-hint",
            "scheduling.koordinator.sh/gpu-partition-spec",
        ],
    ),
    ("NodeNUMAResource", &["scheduling.koordinator.sh/resource-spec", "scheduling.koordinator.sh/numa-topology-spec"]),
    ("Reservation", &["scheduling.koordinator.sh/reservation-affinity"]),
];

/// The taint of a node that is cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A pod that a node does not take.
pub(super) struct Refusal<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) subject: &'a Subject,
    pub(super) pod: &'a Pod,
    pub(super) node: &'a Node,
    pub(super) row: Row,
}

impl Refusal<'_> {
    /// The changes of which each may make the plugin accept the node.
    pub(super) fn remedies(&self, plugin: &str) -> Vec<Change> {
        match plugin {
            "NodeUnschedulable" => vec![self.uncordoned()],
            "TaintToleration" => self.tolerating().into_iter().collect(),
            "NodeAffinity" => self.elsewhere(),
            "NodePorts" => self.without_ports().into_iter().collect(),
            "NodeResourcesFit" => self.fitting(),
            "InterPodAffinity" => self.without_pod_affinity(),
            "VolumeBinding" | "VolumeZone" | "VolumeRestrictions" | "NodeVolumeLimits" => self.without_volumes(),
            plugin => self.unrestricted(plugin),
        }
    }

    fn on_node(&self, path: &str, value: Value) -> Edit {
        let key = ObjectKey::cluster(&self.node.name);
        Edit { kind: ResourceKind::NODE, key, path: path.to_owned(), value }
    }

    fn uncordoned(&self) -> Change {
        let edits = vec![self.on_node("/spec/unschedulable", json!(false))];
        let taint = self.node.taints.iter().any(|taint| taint.key == UNSCHEDULABLE);
        let others = self.node.taints.iter().filter(|taint| taint.key != UNSCHEDULABLE);
        let without = taint.then(|| self.on_node("/spec/taints", json!(others.collect::<Vec<_>>())));
        let text = format!("{} were uncordoned", self.node.name);
        Change::of("uncordon", text, edits.into_iter().chain(without).collect()).like("")
    }

    /// Whether the node keeps the pod away by no other taint than that of a cordon.
    pub(super) fn is_only_cordoned(&self) -> bool {
        self.node.unschedulable && self.untolerated().is_empty()
    }

    /// The taints that keep the pod away, beside that of a cordon.
    fn untolerated(&self) -> Vec<&Taint> {
        let tolerations = &self.pod.template.tolerations;
        let is_tolerated = |taint: &Taint| tolerations.iter().any(|toleration| tolerates(toleration, taint));
        let is_hard = |taint: &&Taint| Effect::HARD.iter().any(|effect| effect.as_str() == taint.effect);
        let is_cordon = |taint: &Taint| self.node.unschedulable && taint.key == UNSCHEDULABLE;
        self.node.taints.iter().filter(is_hard).filter(|taint| !is_tolerated(taint) && !is_cordon(taint)).collect()
    }

    fn tolerating(&self) -> Option<Change> {
        let taints = self.untolerated();
        let edits = taints.iter().map(|taint| {
            let operator = if taint.value.is_some() { "Equal" } else { "Exists" };
            let mut toleration = json!({"key": taint.key, "operator": operator, "effect": taint.effect});
            if let Some(value) = &taint.value {
                toleration["value"] = json!(value);
            }
            self.subject.edit("/spec/tolerations/-", toleration)
        });
        let edits: Vec<Edit> = edits.collect();
        let names: Vec<String> = taints.iter().map(|taint| named(taint)).collect();
        (!edits.is_empty()).then(|| Change::of("toleration", format!("it tolerated {}", names.join(" and ")), edits))
    }

    /// Without what of its node selector and its node affinity does not select the node, and the node with the labels.
    fn elsewhere(&self) -> Vec<Change> {
        let spec = &self.subject.pod["spec"];
        let selector: Vec<(&String, &str)> = spec["nodeSelector"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key, value.as_str()?)))
            .filter(|(key, value)| self.node.labels.get(key) != Some(value))
            .collect();
        let affinity = json!({"containers": [], "affinity": {"nodeAffinity": spec["affinity"]["nodeAffinity"]}});
        let selects = serde_json::from_value::<PodSpec>(affinity)
            .is_ok_and(|spec| NodeAffinity::required(&spec).selects(&self.node.name, |key| self.node.labels.get(key)));
        let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        let free = (!selects).then(|| self.subject.edit(required, Value::Null));
        let unselect = selector
            .iter()
            .map(|(key, _)| self.subject.edit(&format!("/spec/nodeSelector/{}", escaped(key)), Value::Null));
        let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut words = pairs.iter().map(|pair| format!("nodeSelector {pair}")).collect::<Vec<_>>();
        words.extend(free.is_some().then(|| "its required node affinity".to_owned()));
        let text = format!("it were without {}", words.join(" and "));
        let edits: Vec<Edit> = unselect.chain(free.clone()).collect();
        let mut changes: Vec<Change> =
            (!edits.is_empty()).then(|| Change::of("nodeAffinity", text, edits)).into_iter().collect();
        if free.is_none() && !selector.is_empty() {
            let labels = selector
                .iter()
                .map(|(key, value)| self.on_node(&format!("/metadata/labels/{}", escaped(key)), json!(value)));
            let text = format!("{} had the label {}", self.node.name, pairs.join(" and "));
            changes.push(Change::of("nodeLabel", text, labels.collect()).like(pairs.join(" ")));
        }
        changes
    }

    fn without_ports(&self) -> Option<Change> {
        let taken: Vec<i32> = self
            .pod
            .template
            .host_ports
            .iter()
            .filter(|port| {
                let mut placed = self.cluster.pods_on(self.row);
                placed.any(|placed| placed.pod.template.host_ports.has_conflict_with(port))
            })
            .map(|port| port.port)
            .collect();
        let mut edits = Vec::new();
        for list in ["containers", "initContainers"] {
            for (at, container) in (0..).zip(self.subject.pod["spec"][list].as_array().into_iter().flatten()) {
                for (port, value) in (0..).zip(container["ports"].as_array().into_iter().flatten()) {
                    if taken.iter().any(|taken| value["hostPort"] == json!(taken)) {
                        edits.push(self.subject.edit(&format!("/spec/{list}/{at}/ports/{port}/hostPort"), Value::Null));
                    }
                }
            }
        }
        let names: Vec<String> = taken.iter().map(ToString::to_string).collect();
        let text = format!("it did not use host port {}", names.join(" and "));
        (!edits.is_empty()).then(|| Change::of("hostPort", text, edits))
    }

    /// What is left of everything that it requests too much of; another pod on a node that has as many as it may have.
    fn fitting(&self) -> Vec<Change> {
        let (cluster, row) = (self.cluster, self.row);
        let left = |name: &str| {
            let id = cluster.resources().get(name)?;
            Some(cluster.allocatable(id, row) - cluster.requested(id, row))
        };
        let mut changes: Vec<Change> = Vec::new();
        for (name, amount) in &self.pod.template.requests {
            let now = koord_scheduling::count(name, amount);
            let left = left(name).unwrap_or(0).max(0);
            if now > left {
                let smaller = (left > 0).then(|| self.subject.requesting(name, now, left)).flatten();
                // There is nothing of it here: no smaller request helps.
                let Some(smaller) = smaller else { return Vec::new() };
                changes.push(smaller);
            }
        }
        if left("pods").is_some_and(|left| left <= 0) {
            let pods = cluster.pods_on(row).count() + 1;
            let text = format!("{} allowed {pods} pods", self.node.name);
            let edit = self.on_node("/status/allocatable/pods", json!(pods.to_string()));
            changes.push(Change::of("podsOfNode", text, vec![edit]).like(""));
        }
        let Some((first, rest)) = changes.split_first() else { return Vec::new() };
        vec![rest.iter().fold(first.clone(), joined)]
    }

    /// Without each of its terms about other pods that must hold.
    fn without_pod_affinity(&self) -> Vec<Change> {
        let terms = [("podAffinity", "pod affinity"), ("podAntiAffinity", "pod anti-affinity")];
        let changes = terms.into_iter().flat_map(|(field, words)| {
            let path = format!("/spec/affinity/{field}/requiredDuringSchedulingIgnoredDuringExecution");
            let all = self.subject.pod.pointer(&path).and_then(Value::as_array).cloned().unwrap_or_default();
            (0..all.len()).map(move |index| {
                let mut others = all.clone();
                let term = others.remove(index);
                let key = term["topologyKey"].as_str().unwrap_or_default();
                let number = if all.len() > 1 { format!(" number {}", index + 1) } else { String::new() };
                let text = format!("it were without its required {words} term{number} (topologyKey {key})");
                Change::of(field_kind(field), text, vec![self.subject.edit(&path, json!(others))])
            })
        });
        changes.collect()
    }

    fn without_volumes(&self) -> Vec<Change> {
        let volumes = self.subject.pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        let claims = (0..volumes.len()).filter(|index| {
            volumes.get(*index).is_some_and(|volume| {
                ["persistentVolumeClaim", "ephemeral"].iter().any(|source| !volume[*source].is_null())
            })
        });
        let changes = claims.map(|index| {
            let mut others = volumes.clone();
            let volume = others.remove(index);
            let claim = volume["persistentVolumeClaim"]["claimName"].as_str();
            let what = claim.map_or_else(
                || format!("its ephemeral volume {}", volume["name"].as_str().unwrap_or_default()),
                |claim| format!("the volume of claim {claim}"),
            );
            Change::of(
                "volume",
                format!("it did not need {what}"),
                vec![self.subject.edit("/spec/volumes", json!(others))],
            )
        });
        changes.collect()
    }

    fn unrestricted(&self, plugin: &str) -> Vec<Change> {
        let names = RESTRICTIONS.iter().filter(|(known, _)| *known == plugin).flat_map(|(_, names)| *names);
        let written = names.filter(|name| self.subject.pod["metadata"]["annotations"][**name].is_string());
        let changes = written.map(|name| {
            let edit = self.subject.edit(&format!("/metadata/annotations/{}", escaped(name)), Value::Null);
            Change::of("annotation", format!("it were without the annotation {name}"), vec![edit])
        });
        changes.collect()
    }

    /// The node with a threshold of usage for a resource.
    pub(super) fn threshold(&self, resource: &str, percent: i64) -> Change {
        let name = USAGE_THRESHOLDS.name();
        let known = self.node.annotations.get(name).and_then(|text| serde_json::from_str::<Value>(text).ok());
        let mut thresholds = known.filter(Value::is_object).unwrap_or_else(|| json!({}));
        thresholds["usageThresholds"][resource] = json!(percent);
        let edit = self.on_node(&format!("/metadata/annotations/{}", escaped(name)), json!(thresholds.to_string()));
        let text = format!("the usage threshold of {resource} of {} were at least {percent} percent", self.node.name);
        Change::of("usageThreshold", text, vec![edit]).like(resource)
    }
}

/// Two changes that only help together.
pub(super) fn joined(one: Change, other: &Change) -> Change {
    Change {
        detail: format!("{} {}", one.detail, other.detail),
        text: format!("{} and {}", one.text, other.text),
        loss: one.loss + other.loss,
        edits: one.edits.into_iter().chain(other.edits.iter().cloned()).collect(),
        ..one
    }
}

fn field_kind(field: &str) -> &'static str {
    if field == "podAffinity" { "podAffinity" } else { "podAntiAffinity" }
}

fn named(taint: &Taint) -> String {
    let value = taint.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
    format!("the taint {}{value}:{}", taint.key, taint.effect)
}
