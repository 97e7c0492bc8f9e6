//! Of an ElasticQuota that is admitted: what it says and what has no effect.

use koord_resource::{
    ResourceList,
    admission::{Operation, Request},
};
use koord_types::quota::{
    ADMISSION, ALLOW_FORCE_UPDATE, ALLOW_LENT_RESOURCE, IS_PARENT, IS_ROOT, MAX_STRICT_CHECK_RESOURCE_KEYS, NAMESPACES,
    PARENT, SHARED_WEIGHT, TREE_ID,
};

use super::{Quota, QuotaView, manifest::QuotaManifest};
use crate::{decode, ignored_keys::reason};

/// Keys that are read among the labels only.
const LABELS: [&str; 6] =
    [IS_PARENT.name(), ALLOW_LENT_RESOURCE.name(), IS_ROOT.name(), ALLOW_FORCE_UPDATE.name(), PARENT, TREE_ID];

/// Keys that are read among the annotations only.
const ANNOTATIONS: [&str; 4] =
    [SHARED_WEIGHT.name(), NAMESPACES.name(), ADMISSION.name(), MAX_STRICT_CHECK_RESOURCE_KEYS.name()];

/// Warnings about the request's quota. An update is warned about its changes only.
pub(crate) fn of_admitted(request: &Request<'_>, view: QuotaView<'_>) -> Vec<String> {
    let warnings = |raw| {
        let quota: Option<QuotaManifest<'_>> = decode::object(raw).ok();
        quota.map(|quota| of_quota(&quota, &quota.place(&request.namespace), view)).unwrap_or_default()
    };
    match request.operation {
        Operation::Create => warnings(request.object),
        Operation::Update => {
            let before = warnings(request.old_object);
            warnings(request.object).into_iter().filter(|warning| !before.contains(warning)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_quota(manifest: &QuotaManifest<'_>, quota: &Quota, view: QuotaView<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (part, texts, elsewhere, other) in [
        ("labels", &manifest.metadata.labels, &ANNOTATIONS[..], "an annotation"),
        ("annotations", &manifest.metadata.annotations, &LABELS[..], "a label"),
    ] {
        for (key, value) in texts.iter() {
            let found = if elsewhere.contains(&key) {
                Some(format!("this key has no effect here; it is {other}"))
            } else {
                reason(key, value)
            };
            warnings.extend(found.map(|reason| format!("metadata.{part}[{key}]: {reason}")));
        }
    }
    let mut say = |key: &str, reason: String| warnings.push(format!("metadata.annotations[{key}]: {reason}"));
    let beyond_max = |amounts: &ResourceList| {
        amounts.names().filter(|name| !quota.max.contains(name)).collect::<Vec<_>>().join(", ")
    };
    let limits = quota.admission.as_ref().map(beyond_max).unwrap_or_default();
    for (key, names) in [(ADMISSION.name(), limits), (SHARED_WEIGHT.name(), beyond_max(&quota.shared_weight))] {
        if !names.is_empty() {
            say(key, format!("{names} has no effect, because spec.max does not name it"));
        }
    }
    if quota.is_parent && !quota.namespaces.is_empty() && !view.switches.support_parent_quota_submit_pod {
        say(NAMESPACES.name(), "pods of these namespaces are refused, because the quota is a parent".to_owned());
    }
    if view.switches.multi_quota_tree && !quota.tree_id.is_empty() && !is_a_profiles_tree(&quota.tree_id, view) {
        let tree = &quota.tree_id;
        warnings.push(format!(
            "metadata.labels[{TREE_ID}]: no ElasticQuotaProfile has the tree {tree:?}; pods of this quota run on any node"
        ));
    }
    warnings
}

fn is_a_profiles_tree(tree_id: &str, view: QuotaView<'_>) -> bool {
    view.quota_profiles.read().iter().any(|(_, entry)| entry.value.tree_id == tree_id)
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;
    use serde_json::{Value, json, value::RawValue};

    use super::*;
    use crate::{Ctx, HANDLERS};

    const PATH: &str = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota";

    fn warned(ctx: &Ctx, operation: Operation, new: &Value, old: &Value) -> Vec<String> {
        let raw = |quota: &Value| RawValue::from_string(quota.to_string()).unwrap();
        let (object, old) = (raw(new), raw(old));
        let request = Request {
            namespace: "d".into(),
            operation,
            object: Some(&object),
            old_object: Some(&old),
            resource: GroupVersionResource { resource: "elasticquotas".into(), ..GroupVersionResource::default() },
            dry_run: true,
            ..Request::default()
        };
        let verdict = (HANDLERS.iter().find(|handler| handler.path == PATH).unwrap().call)(&request, ctx);
        assert_eq!(verdict.denial, None);
        verdict.warnings
    }

    fn ctx(gate: impl Fn(&str) -> bool) -> Ctx {
        let mut ctx = Ctx::detached(gate);
        ctx.settings.admission_warnings = true;
        ctx
    }

    fn quota(labels: &Value, annotations: &Value) -> Value {
        json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
               "metadata": {"name": "q", "namespace": "d", "labels": labels, "annotations": annotations},
               "spec": {"max": {"cpu": "4"}, "min": {"cpu": "1"}}})
    }

    #[test]
    fn what_has_no_effect_is_told() {
        let labels = json!({"quota.scheduling.koordinator.sh/is-parent": "yes",
                            "quota.scheduling.koordinator.sh/allowLentResource": "false",
                            "quota.scheduling.koordinator.sh/admission": "x"});
        let annotations = json!({"quota.scheduling.koordinator.sh/shared-weight": r#"{"cpu":"1","memory":"1"}"#,
                                 "quota.scheduling.koordinator.sh/admission": r#"{"nvidia.com/gpu":"1"}"#,
                                 "quota.scheduling.koordinator.sh/tree-id": "t"});
        let mut warnings = warned(&ctx(|_| false), Operation::Create, &quota(&labels, &annotations), &Value::Null);
        warnings.sort();
        assert_eq!(
            warnings,
            [
                "metadata.annotations[quota.scheduling.koordinator.sh/admission]: nvidia.com/gpu has no effect, because spec.max does not name it",
                "metadata.annotations[quota.scheduling.koordinator.sh/shared-weight]: memory has no effect, because spec.max does not name it",
                "metadata.annotations[quota.scheduling.koordinator.sh/tree-id]: this key has no effect here; it is a label",
                "metadata.labels[quota.scheduling.koordinator.sh/admission]: this key has no effect here; it is an annotation",
                "metadata.labels[quota.scheduling.koordinator.sh/allowLentResource]: this key has no effect; quota.scheduling.koordinator.sh/allow-lent-resource is meant",
                r#"metadata.labels[quota.scheduling.koordinator.sh/is-parent]: "yes" is ignored; expected "true" or "false""#,
            ]
        );
    }

    #[test]
    fn a_parent_with_namespaces_and_a_tree_without_a_profile_are_told_once() {
        let labels = json!({"quota.scheduling.koordinator.sh/is-parent": "true", "quota.scheduling.koordinator.sh/tree-id": "t"});
        let quota = quota(&labels, &json!({"quota.scheduling.koordinator.sh/namespaces": r#"["a"]"#}));
        let trees = ctx(|gate| gate == "MultiQuotaTree");
        assert_eq!(
            warned(&trees, Operation::Create, &quota, &Value::Null),
            [
                "metadata.annotations[quota.scheduling.koordinator.sh/namespaces]: pods of these namespaces are refused, because the quota is a parent",
                r#"metadata.labels[quota.scheduling.koordinator.sh/tree-id]: no ElasticQuotaProfile has the tree "t"; pods of this quota run on any node"#,
            ]
        );
        assert_eq!(warned(&trees, Operation::Update, &quota, &quota), [""; 0]);
        let profile = r#"{"metadata":{"name":"p","namespace":"d","uid":"u","resourceVersion":"1","labels":{"quota.scheduling.koordinator.sh/tree-id":"t"}}}"#;
        trees.put("ElasticQuotaProfile", profile).unwrap();
        assert_eq!(warned(&trees, Operation::Create, &quota, &Value::Null).len(), 1);
        let pods_of_parents = ctx(|gate| gate == "SupportParentQuotaSubmitPod");
        assert_eq!(warned(&pods_of_parents, Operation::Create, &quota, &Value::Null), [""; 0]);
    }

    #[test]
    fn a_promise_that_is_broken_by_force_is_told() {
        let ctx = ctx(|_| false);
        let parent = json!({"metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "1",
            "labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}}, "spec": {"max": {"cpu": "9"}, "min": {"cpu": "1"}}});
        ctx.put("ElasticQuota", &parent.to_string()).unwrap();
        let labels = |forced: &str| json!({"quota.scheduling.koordinator.sh/parent": "p", "quota.scheduling.koordinator.sh/allow-force-update": forced});
        let mut child = quota(&labels("true"), &json!({}));
        assert_eq!(warned(&ctx, Operation::Create, &child, &Value::Null), [""; 0]);
        child["spec"]["min"]["cpu"] = "2".into();
        assert_eq!(
            warned(&ctx, Operation::Create, &child, &Value::Null),
            [
                "admitted because of the label quota.scheduling.koordinator.sh/allow-force-update: checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: p"
            ]
        );
    }
}
