//! `/mutate-…-elasticquota`: new quotas get their place in the tree and their shared weight.

use std::{borrow::Cow, collections::BTreeMap};

use koord_resource::{
    ResourceList,
    admission::{Denial, Operation, Patch, Request, Verdict},
    field::Path,
    go_json,
};
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{PARENT, ROOT_QUOTA as ROOT, TREE_ID},
};
use serde_json::value::RawValue;

use super::{
    Forest, QuotaView, Quotas as _, Refused, TreeView, advice,
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
    let (Operation::Create, Some(object)) = (request.operation, request.object) else { return Ok(Patch::default()) };
    if quota.metadata.name == ROOT {
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
        let Some(above) = forest.tree(TreeView::Expected).find(&parent) else {
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
    if labels.unchanged() && annotations.unchanged() {
        return Ok(patch);
    }
    let metadata = Path::root("metadata");
    if !*is_present {
        patch.add(&metadata, &serde_json::Map::new())?;
    }
    labels.write(&metadata.child("labels"), &mut patch)?;
    annotations.write(&metadata.child("annotations"), &mut patch)?;
    write_as_decoded(&quota, object.get(), &mut patch)?;
    Ok(patch)
}

/// QUIRK: a quota that is changed is written as it was decoded: amounts in canonical form, and without fields that no
/// quota has (`mutate-number-quantities`).
fn write_as_decoded(quota: &QuotaManifest<'_>, object: &str, patch: &mut Patch) -> Result<(), serde_json::Error> {
    type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
    let (spec, status) = (Path::root("spec"), Path::root("status"));
    for (at, amounts) in [
        (spec.child("max"), &quota.spec.max),
        (spec.child("min"), &quota.spec.min),
        (status.child("used"), &quota.status.used),
    ] {
        if let Some(amounts) = amounts {
            amounts.write_canonically(&at, patch)?;
        }
    }
    let all: Fields<'_> = serde_json::from_str(object)?;
    for (part, known) in [("spec", &["max", "min"][..]), ("status", &["used"])] {
        let fields: Option<Fields<'_>> =
            all.get(part).map(|raw| serde_json::from_str(raw.get())).transpose()?.flatten();
        for name in fields.iter().flatten().map(|(name, _)| name).filter(|name| !known.contains(&&***name)) {
            patch.remove(&Path::root(part).key(name))?;
        }
    }
    for name in all.keys().filter(|name| !["apiVersion", "kind", "metadata", "spec", "status"].contains(&&***name)) {
        patch.remove(&Path::root(name))?;
    }
    Ok(())
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
        weights.insert(name, quantity.clone());
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
    fn a_quota_that_is_changed_is_written_as_it_was_decoded() {
        let patch = patched(
            r#"{"extra":1,"spec":{"max":{"cpu":"1000m","memory":"1Gi"},"min":{"cpu":0.5},"more":{}},"status":{"used":{"cpu":"+1"},"x":[]}}"#,
        )
        .patch;
        let operations: Vec<serde_json::Value> = serde_json::from_slice(patch.as_bytes()).unwrap();
        let at = |path: &str| {
            let found = operations.iter().find(|operation| operation["path"] == path);
            found.map(|operation| (operation["op"].as_str().unwrap(), operation["value"].as_str()))
        };
        assert_eq!(at("/spec/max/cpu"), Some(("replace", Some("1"))));
        assert_eq!(at("/spec/max/memory"), None);
        assert_eq!(at("/spec/min/cpu"), Some(("replace", Some("500m"))));
        for unknown in ["/extra", "/spec/more", "/status/x"] {
            assert_eq!(at(unknown), Some(("remove", None)), "{unknown}");
        }
    }

    #[test]
    fn a_quota_that_is_not_changed_stays_as_it_was_written() {
        let labels = r#"{"quota.scheduling.koordinator.sh/parent":"koordinator-root-quota"}"#;
        let weight = r#"{"quota.scheduling.koordinator.sh/shared-weight":"{ \"cpu\": \"1\" }"}"#;
        let quota = format!(
            r#"{{"metadata":{{"labels":{labels},"annotations":{weight}}},"spec":{{"max":{{"cpu":1}},"unknown":1}}}}"#
        );
        assert!(patched(&quota).patch.is_empty());
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
