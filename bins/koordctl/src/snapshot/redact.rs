//! Objects without names: every name becomes a pseudonym, the same everywhere, and numbers and structure stay.
//!
//! Pseudonyms are numbered in the order of the names, so that whatever depends on that order stays as it is; nothing of a name is
//! in them that could be guessed from. What the scheduler does not read and may hold secrets is left out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use koord_resource::{Duration, Quantity};
use serde_json::{Map, Value};

/// Names that mean something to the scheduler, and words of the API.
const WORDS: &str = "true false True False Unknown none None null default kube-system koordinator-system cpu memory \
    ephemeral-storage storage pods hugepages-1Gi hugepages-2Mi latest gpu rdma fpga xpu nvidia huawei cambricon metax baidu amd \
    LSE LSR LS BE SYSTEM koord-prod koord-mid koord-batch koord-free system-cluster-critical system-node-critical \
    koordinator-root-quota koordinator-system-quota koordinator-default-quota default-scheduler koord-scheduler \
    gpu-shared-resource-templates metadata.name FullPCPUs SpreadByPCPUs ConstrainedBurst FullPCPUsOnly Default Required Preferred \
    PCPULevel NUMANodeLevel BestEffort Restricted SingleNUMANode MostAllocated LeastAllocated DistributeEvenly Honor Prefer Ignore \
    Strict NonStrict once-satisfied only-waiting waiting-and-running Aligned ReservedCPUsOnly SamePCIe SameNUMANode ApplyForAll \
    RequestsAsCount MustGather PreferGather avg p50 p90 p95 p99 HAMi-core In NotIn Exists DoesNotExist Gt Lt Equal \
    NoSchedule PreferNoSchedule NoExecute ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Static Dynamic Never \
    PreemptLowerPriority Always Pod TCP UDP SCTP amd64 arm64 linux windows static ReservedCPUs core socket node x86_64 sys usage";

/// Fields whose texts are words of the API.
const WORDED: [&str; 24] = [
    "apiVersion",
    "kind",
    "type",
    "phase",
    "operator",
    "effect",
    "protocol",
    "status",
    "whenUnsatisfiable",
    "restartPolicy",
    "preemptionPolicy",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "volumeBindingMode",
    "volumeMode",
    "reclaimPolicy",
    "persistentVolumeReclaimPolicy",
    "allocatePolicy",
    "unhealthyPodEvictionPolicy",
    "qosClass",
    "health",
    "strategy",
    "applyPolicy",
    "imagePullPolicy",
];

/// What the scheduler does not read: texts of people, secrets, addresses.
const DROPPED: [&str; 24] = [
    "message",
    "reason",
    "managedFields",
    "generateName",
    "selfLink",
    "nodeInfo",
    "addresses",
    "daemonEndpoints",
    "podCIDR",
    "podCIDRs",
    "podIP",
    "podIPs",
    "hostIPs",
    "clusterIP",
    "clusterIPs",
    "externalIPs",
    "loadBalancer",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
    "ephemeralContainers",
    "dnsConfig",
    "hostAliases",
    "imagePullSecrets",
];

/// What is kept of a container, and of a volume of a pod.
const OF_CONTAINER: [&str; 5] = ["name", "image", "resources", "ports", "restartPolicy"];
const OF_VOLUME: [&str; 9] = [
    "name",
    "persistentVolumeClaim",
    "ephemeral",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "azureDisk",
    "iscsi",
    "rbd",
    "csi",
];

/// Domains of keys and resources that everybody has.
const DOMAINS: [&str; 7] =
    ["kubernetes.io", "k8s.io", "koordinator.sh", "nvidia.com", "amd.com", "huawei.com", "intel.com"];

/// The objects without names. `schedulers` are names that the configuration has.
pub(super) fn redacted(mut objects: Vec<Value>, schedulers: &[&str]) -> Vec<Value> {
    let known: BTreeSet<&str> = WORDS.split_whitespace().chain(schedulers.iter().copied()).collect();
    let mut names = BTreeSet::new();
    for object in &mut objects {
        let mut collect = |name: &str| {
            names.insert(name.to_owned());
            name.to_owned()
        };
        Walk { known: &known, rename: &mut collect }.object(object);
    }
    let width = names.len().to_string().len();
    let numbered = (1..).zip(&names).map(|(number, name)| (name.clone(), format!("x{number:0width$}")));
    let mut pseudonyms: BTreeMap<String, String> = numbered.collect();
    for (name, parts) in objects.iter().flat_map(ephemeral_claims) {
        let parts = parts.map(|part| pseudonyms.get(&part).cloned().unwrap_or(part));
        pseudonyms.insert(name, parts.join("-"));
    }
    let mut rename = |name: &str| pseudonyms.get(name).cloned().unwrap_or_default();
    for object in &mut objects {
        Walk { known: &known, rename: &mut rename }.object(object);
    }
    objects
}

/// The names of the claims that are made for volumes of a pod, with the parts that they are made of.
fn ephemeral_claims(pod: &Value) -> Vec<(String, [String; 2])> {
    let name = pod["metadata"]["name"].as_str().filter(|_| pod["kind"] == "Pod").unwrap_or_default();
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let ephemeral =
        volumes.filter(|volume| !volume["ephemeral"].is_null()).filter_map(|volume| volume["name"].as_str());
    ephemeral.map(|volume| (format!("{name}-{volume}"), [name.to_owned(), volume.to_owned()])).collect()
}

struct Walk<'a> {
    known: &'a BTreeSet<&'a str>,
    rename: &'a mut dyn FnMut(&str) -> String,
}

impl Walk<'_> {
    fn object(&mut self, object: &mut Value) {
        // It holds templates, which are the same everywhere.
        if object["kind"] == "ConfigMap" {
            return;
        }
        let is_pod_like = object["kind"] == "Pod";
        self.value("", object);
        if is_pod_like && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("hostIP");
        }
    }

    fn value(&mut self, field: &str, value: &mut Value) {
        match value {
            Value::Object(members) => self.members(field, members),
            Value::Array(items) => {
                let kept: Option<&[&str]> = match field {
                    "containers" | "initContainers" => Some(&OF_CONTAINER),
                    "volumes" => Some(&OF_VOLUME),
                    _ => None,
                };
                for item in items {
                    if let (Some(kept), Some(members)) = (kept, item.as_object_mut()) {
                        members.retain(|key, _| kept.contains(&key.as_str()));
                    }
                    self.value(field, item);
                }
            }
            Value::String(text) if !WORDED.contains(&field) => *text = self.text(text),
            _ => {}
        }
    }

    fn members(&mut self, field: &str, members: &mut Map<String, Value>) {
        if field == "annotations" {
            members.retain(|key, _| is_common(key));
        }
        let by_key = ["labels", "annotations", "nodeSelector", "matchLabels", "selector"].contains(&field);
        let is_term = members.contains_key("matchLabels") || members.contains_key("matchExpressions");
        let renamed = std::mem::take(members).into_iter().filter(|(key, _)| !DROPPED.contains(&key.as_str()));
        for (key, mut value) in renamed {
            // Labels that are named as fields are values all the same.
            self.value(if by_key && !is_term { "" } else { &key }, &mut value);
            let is_name = by_key && !is_term || key.contains('/');
            members.insert(if is_name { self.text(&key) } else { key }, value);
        }
    }

    fn text(&mut self, text: &str) -> String {
        if text.starts_with(['{', '['])
            && let Ok(mut value) = serde_json::from_str::<Value>(text)
        {
            self.value("", &mut value);
            return value.to_string();
        }
        if self.is_plain(text) || text.parse::<Timestamp>().is_ok() || is_common(text) {
            return text.to_owned();
        }
        let mut result = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(['/', ',', ':', '@', ' ', '=']).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            // Zones of a volume are joined so.
            let parts: Vec<String> = token.split("__").map(|part| self.token(part)).collect();
            result.push_str(&parts.join("__"));
            let delimiter = after.chars().next();
            result.extend(delimiter);
            rest = &after[delimiter.map_or(0, char::len_utf8)..];
        }
        result
    }

    fn token(&mut self, token: &str) -> String {
        if self.is_plain(token) { token.to_owned() } else { (self.rename)(token) }
    }

    /// Whether a text is a word of the API, a number, or an amount; addresses are names.
    fn is_plain(&self, text: &str) -> bool {
        let is_range = text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let is_address = text.matches('.').count() == 3 && text != "0.0.0.0";
        self.known.contains(text)
            || !is_address && (is_range || text.parse::<Quantity>().is_ok() || text.parse::<Duration>().is_ok())
    }
}

/// Whether a key or a resource has a domain that everybody has.
fn is_common(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_pod_group = key == "pod-group.scheduling.sigs.k8s.io";
    let ends = |known: &str| domain == known || domain.strip_suffix(known).is_some_and(|rest| rest.ends_with('.'));
    is_pod_group || DOMAINS.iter().any(|known| ends(known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_replaced_alike_in_their_order_and_numbers_stay() {
        let pod = json!({
            "kind": "Pod",
            "metadata": {
                "name": "web-0", "namespace": "shop", "labels": {"app": "web", "example.com/team": "blue", "koordinator.sh/qosClass": "LS"},
                "annotations": {"example.com/secret": "s", "gang.scheduling.koordinator.sh/groups": "[\"shop/web-0\"]"},
            },
            "spec": {
                "containers": [{"name": "c", "image": "reg.example/web:1", "env": [{"name": "P", "value": "1234"}],
                    "resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}}}],
                "volumes": [{"name": "scratch", "ephemeral": {}}, {"name": "s", "secret": {"secretName": "s"}}],
                "nodeSelector": {"kubernetes.io/hostname": "n1", "app": "web"},
            },
            "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True", "message": "web-0"}]},
        });
        let claim =
            json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "web-0-scratch", "namespace": "shop"}});
        let node = json!({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "example.com/gpu": "2"}}});
        let all = redacted(vec![pod, claim, node], &[]);
        let (pod, claim, node) = (&all[0], &all[1], &all[2]);
        let text = json!(all).to_string();
        for name in ["web", "shop", "blue", "team", "secret", "1234", "10.0.0.1", "scratch", "reg", "example.com", "n1"]
        {
            assert!(!text.contains(name), "{name}: {text}");
        }
        let name = |value: &Value| value.as_str().unwrap().to_owned();
        assert_eq!(pod["spec"]["nodeSelector"]["kubernetes.io/hostname"], node["metadata"]["name"]);
        assert_eq!(pod["metadata"]["namespace"], claim["metadata"]["namespace"]);
        let volume = name(&pod["spec"]["volumes"][0]["name"]);
        assert_eq!(name(&claim["metadata"]["name"]), format!("{}-{volume}", name(&pod["metadata"]["name"])));
        let groups = format!("[\"{}/{}\"]", name(&pod["metadata"]["namespace"]), name(&pod["metadata"]["name"]));
        assert_eq!(name(&pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/groups"]), groups);
        assert_eq!(pod["metadata"]["labels"]["koordinator.sh/qosClass"], "LS");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "500m");
        assert!(name(&node["metadata"]["name"]) < name(&pod["metadata"]["name"]), "in the order of n1 and web-0");
    }
}
