//! What a user wrote and what has no effect: told in the answer, where the flag `--admission-warnings` asks for it.
//!
//! Nothing here refuses anything. API servers cut long warnings, so each is one short sentence that names the field.

pub(crate) mod configuration;
pub(crate) mod quota;

use std::sync::Arc;

use koord_api::{
    catalogue,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    qos::{QOS_LABEL, QosClass},
    quota::{DEFAULT_QUOTA, NAME as QUOTA_NAME, TREE_ID, is_reserved},
};
use koord_profile::{Field, Profile, Texts, overridden};
use koord_runtime::cache::Cache;

use crate::{pod::Parts, quota::CachedQuota};

/// The scheduler that the API server gives pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Of an object to which profiles are applied: what they overwrite.
pub(crate) fn of_profiles(
    labels: &Texts<'_>,
    annotations: &Texts<'_>,
    spec: &[(&'static str, &str)],
    applied: &[Arc<Profile>],
) -> Vec<String> {
    let labels = labels.iter().map(|(key, value)| (Field::Label(key.to_owned()), value.to_owned()));
    let annotations = annotations.iter().map(|(key, value)| (Field::Annotation(key.to_owned()), value.to_owned()));
    let spec = spec.iter().filter(|(_, value)| !value.is_empty() && *value != DEFAULT_SCHEDULER);
    let spec = spec.map(|(field, value)| (Field::Spec(field), (*value).to_owned()));
    let written = labels.chain(annotations).chain(spec);
    overridden(written, applied.iter().map(|profile| &**profile)).iter().map(ToString::to_string).collect()
}

/// The same of a new pod.
pub(crate) fn of_new_pod(pod: &Parts<'_>, applied: &[Arc<Profile>]) -> Vec<String> {
    let spec = [("schedulerName", &*pod.spec.scheduler_name), ("priorityClassName", &*pod.spec.priority_class_name)];
    of_profiles(&pod.metadata.labels, &pod.metadata.annotations, &spec, applied)
}

/// Of a pod that is admitted: labels and annotations that nobody can read, and a quota that does not exist. What
/// stood there before is not told again.
pub(crate) fn of_admitted_pod(pod: &Parts<'_>, old: Option<&Parts<'_>>, quotas: &Cache<CachedQuota>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (part, texts, before) in [
        ("labels", &pod.metadata.labels, old.map(|old| &old.metadata.labels)),
        ("annotations", &pod.metadata.annotations, old.map(|old| &old.metadata.annotations)),
    ] {
        let changed = texts.iter().filter(|(key, value)| before.and_then(|before| before.get(key)) != Some(value));
        for (key, value) in changed {
            let reason = match key {
                QUOTA_NAME if part == "labels" => missing_quota(value, quotas),
                _ => unread(key, value),
            };
            warnings.extend(reason.map(|reason| format!("metadata.{part}[{key}]: {reason}")));
        }
    }
    warnings
}

fn missing_quota(name: &str, quotas: &Cache<CachedQuota>) -> Option<String> {
    let known = name.is_empty() || name == DEFAULT_QUOTA || is_reserved(name) || quotas.index().named(name).is_some();
    (!known).then(|| format!("there is no ElasticQuota {name:?}; the pod counts to none until it is created"))
}

/// Why a label or annotation has no effect.
fn unread(key: &str, value: &str) -> Option<String> {
    let ignored = |expected: &str| Some(format!("{value:?} is ignored; expected {expected}"));
    match key {
        QOS_LABEL => match QosClass::of_label(Some(value)) {
            Some(_) => None,
            None => ignored("LSE, LSR, LS, BE or SYSTEM"),
        },
        PRIORITY_CLASS_LABEL => match PriorityClass::declared(Some(value), None) {
            Some(_) => None,
            None => ignored("koord-prod, koord-mid, koord-batch or koord-free"),
        },
        _ => match catalogue::find(key) {
            Some(entry) => entry.rewrite(value).err().and_then(|error| ignored(error.expected)),
            None => meant(key).map(|known| format!("this key has no effect; {known} is meant")),
        },
    }
}

/// The key of the protocol that a slip of case, dashes or dots has made unknown.
fn meant(key: &str) -> Option<&'static str> {
    if !key.split_once('/').is_some_and(|(domain, _)| domain.to_ascii_lowercase().ends_with("koordinator.sh")) {
        return None;
    }
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let others = [QOS_LABEL, PRIORITY_CLASS_LABEL, QUOTA_NAME, TREE_ID];
    let known = catalogue::KEYS.iter().map(|entry| entry.name()).chain(others);
    let wanted = letters(key);
    known.filter(|known| *known != key).find(|known| letters(known) == wanted)
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
        let told = |on| warned("/mutate-pod", &ctx(on), Operation::Create, &pod, &Value::Null);
        assert_eq!(
            told(true),
            [
                r#"metadata.labels[koordinator.sh/qosClass]: "LSR" of the object has no effect, ClusterColocationProfile "p" sets "LS""#,
                r#"spec.schedulerName: "mine" of the object has no effect, ClusterColocationProfile "p" sets "koord-scheduler""#,
                r#"metadata.labels[koordinator.sh/qosClass]: "LS" of ClusterColocationProfile "p" has no effect, ClusterColocationProfile "q" sets "BE""#,
            ]
        );
        assert_eq!(told(false), [""; 0]);
    }

    #[test]
    fn what_nobody_can_read_and_a_quota_that_is_missing_are_told() {
        let labels = json!({"koordinator.sh/qosClass": "BEST", "koordinator.sh/priority-class": "batch",
                            "koordinator.sh/priority": "high", "quota.scheduling.koordinator.sh/name": "nope",
                            "koordinator.sh/priorityClass": "koord-batch", "app": "x"});
        let pod = pod(&labels, &json!({"node.koordinator.sh/extended-resource-spec": "{"}));
        let told = |on| warned("/validate-pod", &ctx(on), Operation::Create, &pod, &Value::Null);
        let mut found = told(true);
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
        assert_eq!(told(false), [""; 0]);
    }

    #[test]
    fn an_update_tells_only_what_it_changes() {
        let old = pod(&json!({"quota.scheduling.koordinator.sh/name": "nope"}), &json!({}));
        let mut new = old.clone();
        let told = |new: &Value| warned("/validate-pod", &ctx(true), Operation::Update, new, &old);
        assert_eq!(told(&new), [""; 0]);
        new["metadata"]["labels"]["koordinator.sh/QOSCLASS"] = "BE".into();
        assert_eq!(
            told(&new),
            ["metadata.labels[koordinator.sh/QOSCLASS]: this key has no effect; koordinator.sh/qosClass is meant"]
        );
    }
}
