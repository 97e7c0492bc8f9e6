//! Defaults of a pod's spec, wherever it stands: in a pod or in a template.

use serde_json::{Map, Value, json};

/// Sets an absent field.
pub(super) fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
}

/// The items of a list of objects, for change.
pub(super) fn items<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    fields.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// An object below, for change.
pub(super) fn below<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    fields.get_mut(name).and_then(Value::as_object_mut)
}

/// Fills in a pod's spec.
pub(super) fn set_defaults(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else { return };
    fill(spec, "dnsPolicy", json!("ClusterFirst"));
    fill(spec, "restartPolicy", json!("Always"));
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", json!(30));
    fill(spec, "schedulerName", json!("default-scheduler"));
    for (from, to) in [("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")] {
        if let Some(name) = spec.get(from).cloned() {
            fill(spec, to, name);
        }
    }
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(spec, list) {
            container_defaults(container, on_host);
        }
    }
    for volume in items(spec, "volumes") {
        volume_defaults(volume);
    }
}

fn container_defaults(container: &mut Map<String, Value>, on_host: bool) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", json!(policy));
    fill(container, "terminationMessagePath", json!("/dev/termination-log"));
    fill(container, "terminationMessagePolicy", json!("File"));
    fill(container, "resources", json!({}));
    for port in items(container, "ports") {
        fill(port, "protocol", json!("TCP"));
        if on_host && let Some(number) = port.get("containerPort").cloned() {
            fill(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = below(container, probe) else { continue };
        handler_defaults(probe);
        for (field, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            fill(probe, field, json!(value));
        }
    }
    if let Some(lifecycle) = below(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = below(lifecycle, hook) {
                handler_defaults(hook);
            }
        }
    }
    for variable in items(container, "env") {
        let Some(source) = below(variable, "valueFrom") else { continue };
        if let Some(reference) = below(source, "fieldRef") {
            fill(reference, "apiVersion", json!("v1"));
        }
        if let Some(reference) = below(source, "resourceFieldRef") {
            fill(reference, "divisor", json!("0"));
        }
    }
}

fn handler_defaults(handler: &mut Map<String, Value>) {
    if let Some(get) = below(handler, "httpGet") {
        fill(get, "path", json!("/"));
        fill(get, "scheme", json!("HTTP"));
    }
    if let Some(grpc) = below(handler, "grpc") {
        fill(grpc, "service", json!(""));
    }
}

fn volume_defaults(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = below(volume, source) {
            fill(source, "defaultMode", json!(420));
            field_references(source);
            for part in items(source, "sources") {
                if let Some(token) = below(part, "serviceAccountToken") {
                    fill(token, "expirationSeconds", json!(3600));
                }
                if let Some(downward) = below(part, "downwardAPI") {
                    field_references(downward);
                }
            }
        }
    }
    if let Some(path) = below(volume, "hostPath") {
        fill(path, "type", json!(""));
    }
    if let Some(claim) = below(volume, "ephemeral").and_then(|source| below(source, "volumeClaimTemplate"))
        && let Some(spec) = below(claim, "spec")
    {
        fill(spec, "volumeMode", json!("Filesystem"));
    }
}

fn field_references(source: &mut Map<String, Value>) {
    for item in items(source, "items") {
        if let Some(reference) = below(item, "fieldRef") {
            fill(reference, "apiVersion", json!("v1"));
        }
        if let Some(reference) = below(item, "resourceFieldRef") {
            fill(reference, "divisor", json!("0"));
        }
    }
}

/// Whether an image may change under the same name: it has the tag `latest`, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_moving_images_are_always_pulled() {
        for (image, moves) in
            [("img", true), ("r:5000/img", true), ("img:latest", true), ("img:1", false), ("img@sha256:0", false)]
        {
            assert_eq!(is_latest(image), moves, "{image}");
        }
    }

    #[test]
    fn what_is_set_stays() {
        let mut spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 1}]}], "volumes": [{"name": "v"}]});
        set_defaults(&mut spec);
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
    }
}
