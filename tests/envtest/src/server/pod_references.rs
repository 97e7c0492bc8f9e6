//! The objects that a pod refers to, by which its node may read them.

use serde_json::Value;

/// Marks the pods that kubelets create for those of their own folder.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

/// Whether a kubelet has made the pod up for one of its own folder.
pub(crate) fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// A kind of objects that fields of a pod name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Referred {
    /// Secrets: of volumes, environments and registries.
    Secret,
    /// ConfigMaps: of volumes and environments.
    ConfigMap,
}

/// Whether the pod names this object, or any of the kind where `name` is none.
pub(crate) fn refers_to(pod: &Value, kind: Referred, name: Option<&str>) -> bool {
    names_in(&pod["spec"], kind, name)
}

fn names_in(value: &Value, kind: Referred, wanted: Option<&str>) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(field, value)| is_name(field, value, kind, wanted) || names_in(value, kind, wanted))
        }
        Value::Array(items) => items.iter().any(|item| names_in(item, kind, wanted)),
        _ => false,
    }
}

/// Whether a field is such a reference.
fn is_name(field: &str, value: &Value, kind: Referred, wanted: Option<&str>) -> bool {
    let is_wanted = |name: &Value| name.as_str().is_some_and(|name| wanted.is_none_or(|wanted| wanted == name));
    match (kind, field) {
        (Referred::Secret, "secretName") => is_wanted(value),
        (Referred::Secret, "secret" | "secretRef" | "secretKeyRef" | "nodePublishSecretRef")
        | (Referred::ConfigMap, "configMap" | "configMapRef" | "configMapKeyRef") => is_wanted(&value["name"]),
        (Referred::Secret, "imagePullSecrets") => {
            value.as_array().into_iter().flatten().any(|it| is_wanted(&it["name"]))
        }
        _ => false,
    }
}

/// The claims that a pod's volumes are made of.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = String> + '_ {
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    pod["spec"]["volumes"].as_array().into_iter().flatten().filter_map(move |volume| {
        match volume["persistentVolumeClaim"]["claimName"].as_str() {
            Some(name) => Some(name.to_owned()),
            None if volume["ephemeral"].is_object() => {
                Some(format!("{pod_name}-{}", volume["name"].as_str().unwrap_or_default()))
            }
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_name_an_object_counts() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {
            "imagePullSecrets": [{"name": "registry"}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "key"}}}], "envFrom": [{"configMapRef": {"name": "env"}}]}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}]}],
            "volumes": [
                {"secret": {"secretName": "volume"}}, {"configMap": {"name": "map"}},
                {"projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "root"}}]}},
                {"persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "ephemeral": {}},
            ],
        }});
        for name in ["registry", "key", "init", "volume", "projected"] {
            assert!(refers_to(&pod, Referred::Secret, Some(name)), "{name}");
            assert!(!refers_to(&pod, Referred::ConfigMap, Some(name)), "{name}");
        }
        for name in ["env", "map", "root"] {
            assert!(refers_to(&pod, Referred::ConfigMap, Some(name)), "{name}");
        }
        assert!(!refers_to(&pod, Referred::Secret, Some("other")));
        assert!(!refers_to(&json!({"spec": {}}), Referred::Secret, None));
        assert_eq!(claims(&pod).collect::<Vec<_>>(), ["data", "p-tmp"]);
    }
}
