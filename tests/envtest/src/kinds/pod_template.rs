//! Defaults of a pod's spec, wherever it stands: in a pod or in a template.

use serde_json::{Map, Value, json};

/// Sets an absent field.
pub(super) fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
}

/// Sets a text that is absent or empty, as Go does where the field is no pointer.
pub(super) fn fill_text(fields: &mut Map<String, Value>, name: &str, text: &str) {
    if fields.get(name).is_none_or(|known| known.as_str() == Some("")) {
        fields.insert(name.to_owned(), json!(text));
    }
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
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", json!(30));
    fill_text(spec, "schedulerName", "default-scheduler");
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
    fill_text(container, "imagePullPolicy", policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    for port in items(container, "ports") {
        fill_text(port, "protocol", "TCP");
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
            fill_text(reference, "apiVersion", "v1");
        }
        if let Some(reference) = below(source, "resourceFieldRef") {
            fill_text(reference, "divisor", "0");
        }
    }
}

fn handler_defaults(handler: &mut Map<String, Value>) {
    if let Some(get) = below(handler, "httpGet") {
        fill_text(get, "path", "/");
        fill_text(get, "scheme", "HTTP");
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
            fill_text(reference, "apiVersion", "v1");
        }
        if let Some(reference) = below(item, "resourceFieldRef") {
            fill_text(reference, "divisor", "0");
        }
    }
}

/// Whether an image may change under the same name: it has the tag `latest`, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let (front, last) = image.rsplit_once('/').unwrap_or(("", image));
    let (name, tag) = last.split_once(':').unwrap_or((last, "latest"));
    tag == "latest" && is_repository(front, name)
}

/// Whether an image can be named so: lower-case words behind an address, which may be left out.
fn is_repository(front: &str, name: &str) -> bool {
    let is_word = |word: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let bytes = word.as_bytes();
        let is_inner = |byte: &u8| is_end(Some(byte)) || matches!(byte, b'.' | b'_' | b'-');
        is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
    };
    let is_address = |text: &str| {
        let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-'));
        letters
            && (text.contains(['.', ':']) || text == "localhost" || text.bytes().any(|byte| byte.is_ascii_uppercase()))
    };
    let mut parts = front.split('/').filter(|_| !front.is_empty()).peekable();
    parts.next_if(|first| is_address(first));
    is_word(name) && parts.all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_moving_images_are_always_pulled() {
        for (image, moves) in [
            ("img", true),
            ("r:5000/img", true),
            ("img:latest", true),
            ("img:1", false),
            ("img@sha256:0", false),
            ("UPPER", false),
            ("R/img", true),
            ("a b", false),
            ("", false),
        ] {
            assert_eq!(is_latest(image), moves, "{image}");
        }
    }

    #[test]
    fn what_is_set_stays() {
        let mut spec = json!({"restartPolicy": "Never", "dnsPolicy": "", "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 1}]}], "volumes": [{"name": "v"}]});
        set_defaults(&mut spec);
        assert_eq!((&spec["restartPolicy"], &spec["dnsPolicy"]), (&json!("Never"), &json!("ClusterFirst")));
        assert_eq!(spec["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
    }
}
