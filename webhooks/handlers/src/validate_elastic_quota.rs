//! `/validate-…-elasticquota`: quotas that contradict themselves are refused.

use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, Handler, Operation, Patch, Request},
};

use crate::{
    Ctx, decode, entries,
    mutate_elastic_quota::{PARENT, QuotaView, ROOT, SHARED_WEIGHT},
};

/// The handler.
pub const HANDLER: Handler<Ctx> = Handler {
    path: "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
    gate: Some("ElasticValidatingWebhook"),
    entries: &[entries::VALIDATE_QUOTA],
    rbac: &entries::QUOTA_RULES,
    object_type: "elasticquota",
    call: |request, _| validate(request).map(|()| Patch::default()).into(),
};

const SYSTEM: &str = "koordinator-system-quota";
const DEFAULT: &str = "koordinator-default-quota";
const STRICT_KEYS: &str = "quota.scheduling.koordinator.sh/max-strict-check-resource-keys";

fn validate(request: &Request<'_>) -> Result<(), Denial> {
    if !request.sub_resource.is_empty() || request.resource.resource != "elasticquotas" {
        return Ok(());
    }
    match request.operation {
        Operation::Create => {
            let quota: QuotaView<'_> = decode::object(request.object)?;
            quota.check_kind()?;
            check(&quota)
        }
        Operation::Update => {
            let quota: QuotaView<'_> = decode::object(request.object)?;
            quota.check_kind()?;
            let old: QuotaView<'_> = decode::object(request.old_object).map_err(|denial| {
                Denial::bad_request(format!("failed to get quota from old object, err:{}", denial.message))
            })?;
            // QUIRK: changes of anything else are not looked at (`validate-update-only-weight`).
            if !placement_or_amounts_changed(&quota, &old) {
                return Ok(());
            }
            if [SYSTEM, ROOT].contains(&quota.metadata.name.as_ref()) {
                return Err(Denial::bad_request(format!("invalid quota {}", quota.metadata.name)));
            }
            check(&quota)
        }
        Operation::Delete => {
            let quota: QuotaView<'_> = decode::object(request.old_object)?;
            let name = &quota.metadata.name;
            if [SYSTEM, ROOT, DEFAULT].contains(&name.as_ref()) {
                return Err(Denial::bad_request(format!("can not delete quotaGroup :{name}")));
            }
            Ok(())
        }
        Operation::Connect | Operation::Other => Ok(()),
    }
}

fn placement_or_amounts_changed(new: &QuotaView<'_>, old: &QuotaView<'_>) -> bool {
    const LABELS: [&str; 3] = [PARENT, "quota.scheduling.koordinator.sh/is-parent", crate::ctx::TREE_ID];
    const NAMESPACES: &str = "quota.scheduling.koordinator.sh/namespaces";
    LABELS.iter().any(|label| new.metadata.labels.get(label) != old.metadata.labels.get(label))
        || new.metadata.annotations.get(NAMESPACES) != old.metadata.annotations.get(NAMESPACES)
        || (new.spec.min(), new.spec.max()) != (old.spec.min(), old.spec.max())
}

/// What a quota must be by itself, whatever the tree looks like.
fn check(quota: &QuotaView<'_>) -> Result<(), Denial> {
    let name = &quota.metadata.name;
    let (max, min, used) = (quota.spec.max(), quota.spec.min(), &quota.status.used);
    let refuse = |message: String| Err(Denial::bad_request(message));
    if let Some(negative) = negatives(&max) {
        return refuse(format!("{name} quota.Spec.Max's value < 0, in dimensions :{negative}"));
    }
    if let Some(negative) = negatives(&min) {
        return refuse(format!("{name} quota.Spec.Min's value < 0, in dimensions :{negative}"));
    }
    if let Some(text) = quota.metadata.annotations.get(SHARED_WEIGHT) {
        let weights: ResourceList = serde_json::from_str::<Option<ResourceList>>(text)
            .map_err(|error| Denial::bad_request(decode::json_reason(text, &error)))?
            .unwrap_or_default();
        if let Some(negative) = negatives(&weights) {
            return refuse(format!("{name} quota.Annotation[{SHARED_WEIGHT}]'s value < 0, in dimension :{negative}"));
        }
    }
    for (key, promised) in &min {
        match max.get(key) {
            None => {
                return refuse(format!(
                    "resourceKey {key} of quota {name} is included in min, which is not included in max"
                ));
            }
            Some(bound) if promised > bound => {
                return refuse(format!("resourceKey {key} of quota {name} min {promised} > max {bound}"));
            }
            Some(_) => {}
        }
    }
    for key in strict_keys(quota)? {
        let Some(in_use) = used.get(&key) else { continue };
        match max.get(&key) {
            None => {
                return refuse(format!(
                    "resourceKey {key} of quota {name} is included in used, which is not included in max but should check max >= used"
                ));
            }
            Some(bound) if bound < in_use => {
                return refuse(format!("resourceKey {key} of quota {name} max {bound} < used {in_use}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The resources with negative amounts, as Go prints a list.
fn negatives(amounts: &ResourceList) -> Option<String> {
    let negative: Vec<&str> =
        amounts.iter().filter(|(_, quantity)| Quantity::is_negative(quantity)).map(|(name, _)| name.as_str()).collect();
    (!negative.is_empty()).then(|| format!("[{}]", negative.join(" ")))
}

fn strict_keys(quota: &QuotaView<'_>) -> Result<Vec<String>, Denial> {
    let text = quota.metadata.annotations.get(STRICT_KEYS).unwrap_or_default();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let keys = serde_json::from_str::<Option<Vec<String>>>(text).map_err(|error| {
        let (name, reason) = (&quota.metadata.name, decode::json_reason(text, &error));
        Denial::bad_request(format!("{name} quota.Annotation[{STRICT_KEYS}]'s value is invalid: {reason}"))
    })?;
    Ok(keys.unwrap_or_default())
}
