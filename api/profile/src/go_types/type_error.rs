//! Values that no pod can hold, in a pod or a patch. A pod is decoded after it was merged, and the first of them refuses
//! it, in Go's words.
//!
//! What is known are the fields of the metadata, the spec and its containers; what stands deeper is left to API servers.

use koord_schema::go_text::json_type;
use serde_json::{Map, Value};

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    /// A text, under the name of its type.
    Text(&'static str),
    Flag,
    Int32,
    Int64,
    /// An object of a type.
    Object(&'static str),
    /// Texts by key.
    Texts,
    /// A list of objects of a type.
    Objects(&'static str),
    /// A list of texts.
    Names,
    Containers,
}

type Known = &'static [(&'static str, Kind)];

use Kind::{Containers, Flag, Int32, Int64, Names, Object, Objects, Text, Texts};

const METADATA: Known = &[
    ("annotations", Texts),
    ("finalizers", Names),
    ("generateName", Text("string")),
    ("generation", Int64),
    ("labels", Texts),
    ("managedFields", Objects("v1.ManagedFieldsEntry")),
    ("name", Text("string")),
    ("namespace", Text("string")),
    ("ownerReferences", Objects("v1.OwnerReference")),
    ("resourceVersion", Text("string")),
    ("uid", Text("types.UID")),
];

const SPEC: Known = &[
    ("activeDeadlineSeconds", Int64),
    ("affinity", Object("v1.Affinity")),
    ("automountServiceAccountToken", Flag),
    ("containers", Containers),
    ("dnsConfig", Object("v1.PodDNSConfig")),
    ("dnsPolicy", Text("v1.DNSPolicy")),
    ("enableServiceLinks", Flag),
    ("ephemeralContainers", Objects("v1.EphemeralContainer")),
    ("hostAliases", Objects("v1.HostAlias")),
    ("hostIPC", Flag),
    ("hostNetwork", Flag),
    ("hostPID", Flag),
    ("hostUsers", Flag),
    ("hostname", Text("string")),
    ("imagePullSecrets", Objects("v1.LocalObjectReference")),
    ("initContainers", Containers),
    ("nodeName", Text("string")),
    ("nodeSelector", Texts),
    ("os", Object("v1.PodOS")),
    ("overhead", Object("v1.ResourceList")),
    ("preemptionPolicy", Text("v1.PreemptionPolicy")),
    ("priority", Int32),
    ("priorityClassName", Text("string")),
    ("readinessGates", Objects("v1.PodReadinessGate")),
    ("resourceClaims", Objects("v1.PodResourceClaim")),
    ("resources", Object("v1.ResourceRequirements")),
    ("restartPolicy", Text("v1.RestartPolicy")),
    ("runtimeClassName", Text("string")),
    ("schedulerName", Text("string")),
    ("schedulingGates", Objects("v1.PodSchedulingGate")),
    ("securityContext", Object("v1.PodSecurityContext")),
    ("serviceAccount", Text("string")),
    ("serviceAccountName", Text("string")),
    ("setHostnameAsFQDN", Flag),
    ("shareProcessNamespace", Flag),
    ("subdomain", Text("string")),
    ("terminationGracePeriodSeconds", Int64),
    ("tolerations", Objects("v1.Toleration")),
    ("topologySpreadConstraints", Objects("v1.TopologySpreadConstraint")),
    ("volumes", Objects("v1.Volume")),
];

const CONTAINER: Known = &[
    ("args", Names),
    ("command", Names),
    ("env", Objects("v1.EnvVar")),
    ("envFrom", Objects("v1.EnvFromSource")),
    ("image", Text("string")),
    ("imagePullPolicy", Text("v1.PullPolicy")),
    ("lifecycle", Object("v1.Lifecycle")),
    ("livenessProbe", Object("v1.Probe")),
    ("name", Text("string")),
    ("ports", Objects("v1.ContainerPort")),
    ("readinessProbe", Object("v1.Probe")),
    ("resizePolicy", Objects("v1.ContainerResizePolicy")),
    ("resources", Object("v1.ResourceRequirements")),
    ("restartPolicy", Text("v1.ContainerRestartPolicy")),
    ("securityContext", Object("v1.SecurityContext")),
    ("startupProbe", Object("v1.Probe")),
    ("stdin", Flag),
    ("stdinOnce", Flag),
    ("terminationMessagePath", Text("string")),
    ("terminationMessagePolicy", Text("v1.TerminationMessagePolicy")),
    ("tty", Flag),
    ("volumeDevices", Objects("v1.VolumeDevice")),
    ("volumeMounts", Objects("v1.VolumeMount")),
    ("workingDir", Text("string")),
];

/// Why a pod, or a pod that was merged with this patch, cannot be decoded; none where nothing speaks against it.
pub fn type_error(pod: &Map<String, Value>) -> Option<String> {
    pod.iter().find_map(|(name, part)| {
        let (go_type, known) = match name.as_str() {
            "metadata" => ("v1.ObjectMeta", METADATA),
            "spec" => ("v1.PodSpec", SPEC),
            _ => return None,
        };
        match part {
            Value::Null => None,
            Value::Object(fields) => {
                let holder = go_type.trim_start_matches("v1.");
                type_error_in(fields, known, holder, name)
            }
            other => Some(message(other, "Pod", name, go_type)),
        }
    })
}

fn type_error_in(fields: &Map<String, Value>, known: Known, holder: &str, at: &str) -> Option<String> {
    fields.iter().find_map(|(name, value)| {
        let (_, kind) = known.iter().find(|(known, _)| known == name)?;
        type_error_of(value, *kind, holder, &format!("{at}.{name}"))
    })
}

fn type_error_of(value: &Value, kind: Kind, holder: &str, at: &str) -> Option<String> {
    let wrong = |value: &Value, go_type: &str| Some(message(value, holder, at, go_type));
    match (kind, value) {
        (_, Value::Null) | (Text(_), Value::String(_)) | (Flag, Value::Bool(_)) | (Object(_), Value::Object(_)) => None,
        (Int32, Value::Number(number)) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => None,
        (Int64, Value::Number(number)) if number.is_i64() => None,
        (Int32 | Int64, Value::Number(number)) => {
            let go_type = if matches!(kind, Int32) { "int32" } else { "int64" };
            Some(format!("json: cannot unmarshal number {number} into Go struct field {holder}.{at} of type {go_type}"))
        }
        (Texts, Value::Object(texts)) => {
            texts.values().find(|text| !text.is_string() && !text.is_null()).and_then(|text| wrong(text, "string"))
        }
        (Names, Value::Array(names)) => {
            names.iter().find(|name| !name.is_string() && !name.is_null()).and_then(|name| wrong(name, "string"))
        }
        (Objects(go_type), Value::Array(items)) => {
            items.iter().find(|item| !item.is_object() && !item.is_null()).and_then(|item| wrong(item, go_type))
        }
        (Containers, Value::Array(items)) => {
            // An item that goes is never decoded.
            let kept = items.iter().filter_map(Value::as_object).filter(|item| !item.contains_key("$patch"));
            kept.into_iter().find_map(|item| type_error_in(item, CONTAINER, "Container", at))
        }
        (Text(go_type) | Object(go_type), _) => wrong(value, go_type),
        (Flag, _) => wrong(value, "bool"),
        (Int32, _) => wrong(value, "int32"),
        (Int64, _) => wrong(value, "int64"),
        (Texts, _) => wrong(value, "map[string]string"),
        (Names, _) => wrong(value, "[]string"),
        (Objects(go_type), _) => wrong(value, &format!("[]{go_type}")),
        (Containers, _) => wrong(value, "[]v1.Container"),
    }
}

fn message(value: &Value, holder: &str, at: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field {holder}.{at} of type {go_type}", json_type(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(patch: &Value) -> Option<String> {
        type_error(patch.as_object().unwrap())
    }

    #[test]
    fn a_value_of_another_type_is_told_in_gos_words() {
        for (spec, message) in [
            (
                json!({"containers": "nope"}),
                "string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (json!({"hostNetwork": "yes"}), "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
            (json!({"priority": 1.5}), "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
            (
                json!({"terminationGracePeriodSeconds": "5"}),
                "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
            ),
            (
                json!({"nodeSelector": {"a": true}}),
                "bool into Go struct field PodSpec.spec.nodeSelector of type string",
            ),
            (
                json!({"tolerations": {}}),
                "object into Go struct field PodSpec.spec.tolerations of type []v1.Toleration",
            ),
            (json!({"tolerations": [1]}), "number into Go struct field PodSpec.spec.tolerations of type v1.Toleration"),
            (
                json!({"containers": [{"name": "a", "image": 5}]}),
                "number into Go struct field Container.spec.containers.image of type string",
            ),
            (json!({"affinity": []}), "array into Go struct field PodSpec.spec.affinity of type v1.Affinity"),
        ] {
            assert_eq!(of(&json!({ "spec": spec })), Some(format!("json: cannot unmarshal {message}")), "{spec}");
        }
        let labels = "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string";
        assert_eq!(of(&json!({"metadata": {"labels": {"a": 5}}})).as_deref(), Some(labels));
        let whole = "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec";
        assert_eq!(of(&json!({"spec": "x"})).as_deref(), Some(whole));
    }

    #[test]
    fn what_a_pod_can_hold_fits() {
        let patch = json!({
            "metadata": {"labels": {"a": "b", "c": null}, "finalizers": ["x"], "$deleteFromPrimitiveList/finalizers": ["y"]},
            "spec": {"hostNetwork": true, "priority": 5, "terminationGracePeriodSeconds": 5, "nodeSelector": null,
                "tolerations": [{"key": "x"}], "affinity": {"$patch": "delete"}, "unknown": [{}],
                "containers": [{"name": "a", "env": [{"name": "A"}]}, {"name": 5, "$patch": "delete"}]},
        });
        assert_eq!(of(&patch), None);
    }
}
