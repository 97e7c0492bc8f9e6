//! `/mutate-…-elasticquota`: new quotas get their place in the tree and their shared weight.

use koord_api::{
    elastic_quota::ElasticQuota,
    quota::{PARENT, ROOT_QUOTA as ROOT, TREE_ID},
};
use koord_resource::{
    ResourceList,
    admission::{Denial, Operation, Patch, Request, Verdict},
    field::Path,
    go_json,
};

use super::{
    Forest, QuotaView, Quotas as _, Refused, World, advice,
    manifest::{QuotaManifest, QuotaMetadata, QuotaSpec, SHARED_WEIGHT},
};
use crate::{Ctx, decode};

/// Gives new quotas their place in the tree and their shared weight.
#[koord_resource::admission(
    declared = ElasticQuota::MUTATING,
    within = Ctx::quotas,
    rbac(group = "scheduling.sigs.k8s.io", resource = "elasticquotas", verbs = [list, watch]),
    rbac(group = "", resource = "pods", verbs = [list, watch]),
)]
pub fn mutate_elastic_quota(request: &Request<'_>, view: QuotaView<'_>) -> Verdict {
    mutate(request, view).map_or_else(Verdict::from, Verdict::patched)
}

fn mutate(request: &Request<'_>, view: QuotaView<'_>) -> Result<Patch, Refused> {
    if !request.sub_resource.is_empty() || request.resource.resource != "elasticquotas" {
        return Ok(Patch::default());
    }
    let mut quota: QuotaManifest<'_> = decode::object(request.object)?;
    quota.check_kind()?;
    if request.operation != Operation::Create || quota.metadata.name == ROOT {
        return Ok(Patch::default());
    }
    let QuotaMetadata { is_present, name, labels, annotations, .. } = &mut quota.metadata;
    let parent = match labels.get(PARENT) {
        Some(parent) if !parent.is_empty() => parent.to_owned(),
        _ => {
            labels.set(PARENT, ROOT);
            ROOT.to_owned()
        }
    };
    if labels.get(TREE_ID).unwrap_or_default().is_empty() && parent != ROOT {
        let quotas = view.quotas.read();
        let mut admitted = view.admitted.lock();
        let forest = Forest::new(&quotas, admitted.settle(&quotas, view.clock.moment()));
        let Some(above) = forest.tree(World::Expected).find(&parent) else {
            let message = format!("fill quota {name} failed, parent not exist");
            return Err(Refused::missing(Denial::bad_request(message).advise(advice::NO_PARENT)));
        };
        if !above.tree_id.is_empty() {
            labels.set(TREE_ID, above.tree_id.clone());
        }
    }
    let current = annotations.get(SHARED_WEIGHT).unwrap_or_default();
    if let Some(weight) = shared_weight(current, &quota.spec)? {
        annotations.set(SHARED_WEIGHT, weight);
    }
    let mut patch = Patch::default();
    let metadata = Path::root("metadata");
    if !*is_present {
        patch.add(&metadata, &serde_json::Map::new())?;
    }
    labels.write(&metadata.child("labels"), &mut patch)?;
    annotations.write(&metadata.child("annotations"), &mut patch)?;
    let spec = Path::root("spec");
    for (name, bounds) in [("max", &quota.spec.max), ("min", &quota.spec.min)] {
        if let Some(bounds) = bounds {
            bounds.write_as_texts(&spec.child(name), &mut patch)?;
        }
    }
    Ok(patch)
}

/// The weights where they must change: those of `max` by default, and always exactly its resources.
fn shared_weight(current: &str, spec: &QuotaSpec<'_>) -> Result<Option<String>, Denial> {
    let max = spec.max();
    if current.is_empty() {
        // QUIRK: a quota without bounds gets the weight `null` (`mutate-no-max`).
        return Ok(Some(if spec.max.is_none() { "null".to_owned() } else { go_json::to_string(&max)? }));
    }
    let mut weights: ResourceList = serde_json::from_str::<Option<ResourceList>>(current)
        .map_err(|error| {
            let reason = go_json::reason(current, &error);
            Denial::bad_request(format!("fillDefaultQuotaInfo unmarshal sharedWeight failed:{reason}"))
                .advise(advice::WEIGHTS)
        })?
        .unwrap_or_default();
    let surplus: Vec<String> = weights.names().filter(|name| !max.contains(name)).map(str::to_owned).collect();
    let missing: Vec<_> = max.iter().filter(|(name, _)| !weights.contains(name)).collect();
    if surplus.is_empty() && missing.is_empty() {
        return Ok(None);
    }
    for name in &surplus {
        weights.remove(name);
    }
    for (name, quantity) in missing {
        weights.insert(name.clone(), quantity.clone());
    }
    Ok(Some(go_json::to_string(&weights)?))
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;

    use super::*;

    fn patched(object: &str) -> Verdict {
        let object = serde_json::value::RawValue::from_string(object.to_owned()).unwrap();
        let resource = GroupVersionResource { resource: "elasticquotas".into(), ..GroupVersionResource::default() };
        let request = Request { operation: Operation::Create, object: Some(&object), resource, ..Request::default() };
        (MUTATE_ELASTIC_QUOTA.call)(&request, &Ctx::detached(|_| false))
    }

    #[test]
    fn a_quota_without_metadata_gets_what_its_labels_stand_in() {
        for object in [r#"{"spec":{"max":{"cpu":1}}}"#, r#"{"metadata":null,"spec":{"max":{"cpu":1}}}"#] {
            let patch = patched(object).patch;
            assert!(
                patch.as_str().starts_with(r#"[{"op":"add","path":"/metadata","value":{}},"#),
                "{}",
                patch.as_str()
            );
        }
        assert!(!patched(r#"{"metadata":{}}"#).patch.as_str().contains(r#""path":"/metadata","#));
    }

    #[test]
    fn a_shared_weight_of_null_is_filled_where_the_original_breaks_off() {
        let weight = r#"{"quota.scheduling.koordinator.sh/shared-weight":"null"}"#;
        let quota = format!(r#"{{"metadata":{{"annotations":{weight}}},"spec":{{"max":{{"cpu":"1"}}}}}}"#);
        let patch = patched(&quota).patch;
        assert!(patch.as_str().contains(r#""value":"{\"cpu\":\"1\"}""#), "{}", patch.as_str());
    }

    #[test]
    fn an_array_is_no_quota_and_no_part_of_one() {
        for object in ["[]", r#"{"metadata":[]}"#, r#"{"spec":[]}"#, r#"{"status":[null]}"#] {
            assert_eq!(patched(object).denial.map(|denial| denial.code), Some(400), "{object}");
        }
    }
}
