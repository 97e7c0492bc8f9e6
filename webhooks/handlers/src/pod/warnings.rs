//! Warnings about pods: labels and annotations without effect, and what profiles overwrite.

use std::sync::Arc;

use koord_profile::Profile;
use koord_runtime::cache::Cache;
use koord_types::quota::{DEFAULT_QUOTA, NAME as QUOTA_NAME, is_reserved};

use super::Parts;
use crate::{ignored_keys::reason, profile, quota::CachedQuota};

/// Warnings about a new pod: what profiles overwrite.
pub(crate) fn of_new_pod(pod: &Parts<'_>, applied: &[Arc<Profile>]) -> Vec<String> {
    let spec = [("schedulerName", &*pod.spec.scheduler_name), ("priorityClassName", &*pod.spec.priority_class_name)];
    profile::warnings(&pod.metadata.labels, &pod.metadata.annotations, &spec, applied)
}

/// Warnings about an admitted pod: labels and annotations without effect, and a quota that does not exist. An update is
/// warned about its changes only.
pub(crate) fn of_admitted_pod(pod: &Parts<'_>, old: Option<&Parts<'_>>, quotas: &Cache<CachedQuota>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (part, texts, before) in [
        ("labels", &pod.metadata.labels, old.map(|old| &old.metadata.labels)),
        ("annotations", &pod.metadata.annotations, old.map(|old| &old.metadata.annotations)),
    ] {
        let changed = texts.iter().filter(|(key, value)| before.and_then(|before| before.get(key)) != Some(value));
        for (key, value) in changed {
            let found = match key {
                QUOTA_NAME if part == "labels" => missing_quota(value, quotas),
                _ => reason(key, value),
            };
            warnings.extend(found.map(|reason| format!("metadata.{part}[{key}]: {reason}")));
        }
    }
    warnings
}

fn missing_quota(name: &str, quotas: &Cache<CachedQuota>) -> Option<String> {
    let known = name.is_empty() || name == DEFAULT_QUOTA || is_reserved(name) || quotas.index().named(name).is_some();
    (!known).then(|| format!("there is no ElasticQuota {name:?}; the pod counts to none until it is created"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use koord_resource::admission::{GroupVersionResource, Operation, Request};
    use serde_json::{Value, json, value::RawValue};

    use crate::{Ctx, HANDLERS};

    /// The warnings of a path about a pod with these labels and annotations.
    fn warned(path: &str, ctx: &Ctx, operation: Operation, pod: &Value, old: &Value) -> Vec<String> {
        let raw = |pod: &Value| RawValue::from_string(pod.to_string()).unwrap();
        let (object, old) = (raw(pod), raw(old));
        let request = Request {
            namespace: "default".into(),
            operation,
            object: Some(&object),
            old_object: (operation == Operation::Update).then_some(&old),
            resource: GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() },
            uid: Cow::Borrowed("u"),
            ..Request::default()
        };
        let handler = HANDLERS.iter().find(|handler| handler.path == path).unwrap();
        let verdict = (handler.call)(&request, ctx);
        assert_eq!(verdict.denial, None);
        verdict.warnings
    }

    fn ctx(on: bool) -> Ctx {
        let mut ctx = Ctx::detached(|_| false);
        ctx.settings.admission_warnings = on;
        for (name, qos) in [("p", "LS"), ("q", "BE")] {
            let spec = json!({"qosClass": qos, "schedulerName": "koord-scheduler"});
            let object = json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "spec": spec});
            ctx.put("ClusterColocationProfile", &object.to_string()).unwrap();
        }
        ctx
    }

    fn pod(labels: &Value, annotations: &Value) -> Value {
        json!({"metadata": {"name": "web", "labels": labels, "annotations": annotations},
               "spec": {"schedulerName": "mine", "containers": [{"name": "c"}]}})
    }

    #[test]
    fn profiles_that_overwrite_the_pod_or_each_other_are_told_where_it_is_asked_for() {
        let pod = pod(&json!({"koordinator.sh/qosClass": "LSR"}), &json!({}));
        let warnings = |on| warned("/mutate-pod", &ctx(on), Operation::Create, &pod, &Value::Null);
        assert_eq!(
            warnings(true),
            [
                r#"metadata.labels[koordinator.sh/qosClass]: "LSR" of the object has no effect, ClusterColocationProfile "p" sets "LS""#,
                r#"spec.schedulerName: "mine" of the object has no effect, ClusterColocationProfile "p" sets "koord-scheduler""#,
                r#"metadata.labels[koordinator.sh/qosClass]: "LS" of ClusterColocationProfile "p" has no effect, ClusterColocationProfile "q" sets "BE""#,
            ]
        );
        assert_eq!(warnings(false), [""; 0]);
    }

    #[test]
    fn what_nobody_can_read_and_a_quota_that_is_missing_are_told() {
        let labels = json!({"koordinator.sh/qosClass": "BEST", "koordinator.sh/priority-class": "batch",
                            "koordinator.sh/priority": "high", "quota.scheduling.koordinator.sh/name": "nope",
                            "koordinator.sh/priorityClass": "koord-batch", "app": "x"});
        let pod = pod(&labels, &json!({"node.koordinator.sh/extended-resource-spec": "{"}));
        let warnings = |on| warned("/validate-pod", &ctx(on), Operation::Create, &pod, &Value::Null);
        let mut found = warnings(true);
        found.sort();
        assert_eq!(found.len(), 6, "{found:#?}");
        for (found, start) in found.iter().zip([
            r#"metadata.annotations[node.koordinator.sh/extended-resource-spec]: "{" is ignored; expected "#,
            r#"metadata.labels[koordinator.sh/priority-class]: "batch" is ignored; expected koord-prod, "#,
            "metadata.labels[koordinator.sh/priorityClass]: this key has no effect; koordinator.sh/priority-class is meant",
            r#"metadata.labels[koordinator.sh/priority]: "high" is ignored; expected "#,
            r#"metadata.labels[koordinator.sh/qosClass]: "BEST" is ignored; expected LSE, "#,
            r#"metadata.labels[quota.scheduling.koordinator.sh/name]: there is no ElasticQuota "nope"; "#,
        ]) {
            assert!(found.starts_with(start), "{found}");
        }
        assert_eq!(warnings(false), [""; 0]);
    }

    #[test]
    fn what_the_scheduler_must_read_makes_the_pod_wait() {
        let keys = [
            "gang.scheduling.koordinator.sh/min-available",
            "scheduling.koordinator.sh/device-allocate-hint",
            "scheduling.koordinator.sh/device-allocated",
            "scheduling.koordinator.sh/gpu-partition-spec",
            "scheduling.koordinator.sh/reservation-affinity",
            "scheduling.koordinator.sh/resource-spec",
            "scheduling.koordinator.sh/resource-status",
        ];
        for key in keys {
            let pod = pod(&json!({}), &json!({key: "["}));
            let warnings = warned("/validate-pod", &ctx(true), Operation::Create, &pod, &Value::Null);
            let start = r#""[" cannot be read, and the pod waits until it is corrected; expected "#;
            let start = format!("metadata.annotations[{key}]: {start}");
            assert!(warnings.len() == 1 && warnings[0].starts_with(&start), "{warnings:?}");
        }
    }

    #[test]
    fn values_that_can_be_read_and_hardly_do_what_was_meant_are_told() {
        for (key, value, expected) in [
            ("gang.scheduling.koordinator.sh/mode", "strict", r#""strict" is not known; did you mean Strict?"#),
            (
                "gang.scheduling.koordinator.sh/total-number",
                "-2",
                r#""-2" is below 0; expected a number of at least 0"#,
            ),
            (
                "gang.scheduling.koordinator.sh/network-topology-spec",
                r#"{"gatherStrategy":[{"layer":"rack","podCountMultipl":2,"strategy":"Must"}]}"#,
                r#"gatherStrategy[0].podCountMultipl: there is no such field; did you mean podCountMultiple?; and gatherStrategy[0].strategy: "Must" is not known; expected one of MustGather, PreferGather"#,
            ),
        ] {
            let pod = pod(&json!({}), &json!({key: value}));
            let warnings = warned("/validate-pod", &ctx(true), Operation::Create, &pod, &Value::Null);
            assert_eq!(warnings, [format!("metadata.annotations[{key}]: {expected}")]);
        }
    }

    #[test]
    fn an_update_tells_only_what_it_changes() {
        let old = pod(&json!({"quota.scheduling.koordinator.sh/name": "nope"}), &json!({}));
        let mut new = old.clone();
        let warnings = |new: &Value| warned("/validate-pod", &ctx(true), Operation::Update, new, &old);
        assert_eq!(warnings(&new), [""; 0]);
        new["metadata"]["labels"]["koordinator.sh/QOSCLASS"] = "BE".into();
        assert_eq!(
            warnings(&new),
            ["metadata.labels[koordinator.sh/QOSCLASS]: this key has no effect; koordinator.sh/qosClass is meant"]
        );
    }
}
