//! ElasticQuota: the guaranteed and the maximum resources of a group of pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Quantity, Resource, ResourceList, Schema, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};

use crate::{
    attached::not_negative,
    protocol::{Key, Labels, Text},
    quota::{ADMISSION, MAX_STRICT_CHECK_RESOURCE_KEYS, NAMESPACES, SHARED_WEIGHT},
};

/// Limits the resources of a group of pods, and guarantees a part of them. Quotas form a tree: a child shares the resources
/// of its parent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "scheduling.sigs.k8s.io", version = "v1alpha1", scope = "Namespaced")]
#[koord(admission(
    mutate(
        path = "/mutate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
        name = "melasticquota.koordinator.sh",
        on = [Create],
        gate = "ElasticMutatingWebhook",
        failure_policy = Fail,
        snapshot
    ),
    validate(
        path = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
        name = "velasticquota.koordinator.sh",
        on = [Create, Update, Delete],
        gate = "ElasticValidatingWebhook",
        failure_policy = Fail,
        code = 400,
        snapshot
    )
))]
#[koord(check(annotations_are_legal))]
#[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"))]
pub struct ElasticQuota {
    /// Standard object metadata. Labels name the parent quota and the tree.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The guaranteed and the maximum resources.
    #[serde(default)]
    pub spec: ElasticQuotaSpec,
    /// The observed usage.
    #[serde(default)]
    pub status: ElasticQuotaStatus,
}

/// The guaranteed and the maximum resources of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[koord(check(min_is_within_max))]
pub struct ElasticQuotaSpec {
    /// The guaranteed resources: pods of the quota may use these even under contention.
    #[koord(check(not_negative))]
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub min: ResourceList,
    /// The maximum resources: pods of the quota may never use more.
    #[koord(check(not_negative))]
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub max: ResourceList,
}

/// The observed usage of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ElasticQuotaStatus {
    /// The resources requested by the pods of the quota.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub used: ResourceList,
}

/// What is guaranteed is allowed as well.
fn min_is_within_max(spec: &ElasticQuotaSpec, at: &Path<'_>, errors: &mut Errors) {
    for (name, promised) in &spec.min {
        let field = at.child("min");
        match spec.max.get(name) {
            None => errors.invalid(&field.key(name), promised.to_string(), "spec.max must name the resource too"),
            Some(bound) if promised > bound => {
                errors.invalid(
                    &field.key(name),
                    promised.to_string(),
                    format!("must not be more than spec.max, {bound}"),
                );
            }
            Some(_) => {}
        }
    }
}

/// The annotations that say what the quota's pods may use can be read, and what is in use is allowed where that is asked for.
fn annotations_are_legal(quota: &ElasticQuota, at: &Path<'_>, errors: &mut Errors) {
    let Some(annotations) = &quota.metadata.annotations else { return };
    let metadata = at.child("metadata");
    let at = metadata.child("annotations");
    read(&NAMESPACES, annotations, &at, errors);
    for key in [&SHARED_WEIGHT, &ADMISSION] {
        if let Some(amounts) = read(key, annotations, &at, errors)
            && amounts.iter().any(|(_, quantity)| Quantity::is_negative(quantity))
        {
            errors.invalid(&at.key(key.name()), annotations[key.name()].as_str(), "no amount may be negative");
        }
    }
    for name in read(&MAX_STRICT_CHECK_RESOURCE_KEYS, annotations, &at, errors).unwrap_or_default() {
        let Some(used) = quota.status.used.get(&name) else { continue };
        if quota.spec.max.get(&name).is_none_or(|bound| bound < used) {
            let strict = MAX_STRICT_CHECK_RESOURCE_KEYS.name();
            let words =
                format!("{used} of {name} is used, and spec.max must allow it because of the annotation {strict}");
            errors.invalid(&Path::root("spec").child("max"), quota.spec.max.get(&name).map(ToString::to_string), words);
        }
    }
}

/// The value of an annotation; none where there is none, or where it says nothing, as the original writes it too.
fn read<T: Text>(key: &Key<T>, annotations: &Labels, at: &Path<'_>, errors: &mut Errors) -> Option<T> {
    let text = annotations.get(key.name()).filter(|text| !matches!(text.as_str(), "" | "null"))?;
    let value = key.read(text);
    value.map_err(|_| errors.invalid(&at.key(key.name()), text.as_str(), format!("must be {}", key.expected()))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn broken(annotations: &Value, spec: &Value, used: &Value) -> Vec<String> {
        let quota =
            json!({"metadata": {"name": "q", "annotations": annotations}, "spec": spec, "status": {"used": used}});
        let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
        quota.validate().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_original_writes_is_legal() {
        let weight = json!({"quota.scheduling.koordinator.sh/shared-weight": "null", "quota.scheduling.koordinator.sh/namespaces": ""});
        assert_eq!(broken(&weight, &json!({}), &json!({})), [""; 0]);
        let spec = json!({"min": {"cpu": "1"}, "max": {"cpu": "1", "memory": "9223372036854775807"}});
        let annotations = json!({
            "quota.scheduling.koordinator.sh/shared-weight": r#"{"cpu":"1","memory":"9223372036854775807"}"#,
            "quota.scheduling.koordinator.sh/namespaces": r#"["a"]"#,
            "quota.scheduling.koordinator.sh/max-strict-check-resource-keys": r#"["cpu"]"#,
        });
        assert_eq!(broken(&annotations, &spec, &json!({"cpu": "1", "memory": "1"})), [""; 0]);
    }

    #[test]
    fn amounts_are_not_negative_and_what_is_guaranteed_is_allowed() {
        assert_eq!(
            broken(
                &Value::Null,
                &json!({"min": {"cpu": "-1", "memory": "2Gi", "pods": "1"}, "max": {"cpu": "-2", "memory": "1Gi"}}),
                &json!({})
            ),
            [
                r#"spec.min[cpu]: Invalid value: "-1": must be greater than or equal to 0"#,
                r#"spec.max[cpu]: Invalid value: "-2": must be greater than or equal to 0"#,
                r#"spec.min[cpu]: Invalid value: "-1": must not be more than spec.max, -2"#,
                r#"spec.min[memory]: Invalid value: "2Gi": must not be more than spec.max, 1Gi"#,
                r#"spec.min[pods]: Invalid value: "1": spec.max must name the resource too"#,
            ]
        );
    }

    #[test]
    fn annotations_are_read_and_what_is_in_use_is_allowed_where_that_is_asked_for() {
        let annotations = json!({
            "quota.scheduling.koordinator.sh/shared-weight": r#"{"cpu":"-1"}"#,
            "quota.scheduling.koordinator.sh/admission": "much",
            "quota.scheduling.koordinator.sh/namespaces": "a,b",
            "quota.scheduling.koordinator.sh/max-strict-check-resource-keys": r#"["cpu","memory","pods"]"#,
        });
        assert_eq!(
            broken(
                &annotations,
                &json!({"max": {"cpu": "1", "pods": "3"}}),
                &json!({"cpu": "2", "memory": "1", "pods": "3"})
            ),
            [
                r#"metadata.annotations[quota.scheduling.koordinator.sh/namespaces]: Invalid value: "a,b": must be a JSON list such as ["team-a"]"#,
                r#"metadata.annotations[quota.scheduling.koordinator.sh/shared-weight]: Invalid value: "{\"cpu\":\"-1\"}": no amount may be negative"#,
                r#"metadata.annotations[quota.scheduling.koordinator.sh/admission]: Invalid value: "much": must be a JSON object such as {"cpu":"4","memory":"8Gi"}"#,
                r#"spec.max: Invalid value: "1": 2 of cpu is used, and spec.max must allow it because of the annotation quota.scheduling.koordinator.sh/max-strict-check-resource-keys"#,
                "spec.max: Invalid value: null: 1 of memory is used, and spec.max must allow it because of the annotation quota.scheduling.koordinator.sh/max-strict-check-resource-keys",
            ]
        );
    }
}
