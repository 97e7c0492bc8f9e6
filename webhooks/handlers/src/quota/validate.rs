//! `/validate-…-elasticquota`: quotas that contradict themselves or their tree are refused.

use std::collections::BTreeSet;

use koord_profile::Texts;
use koord_quota::{Amounts, check_amounts};
use koord_resource::admission::{self, Declaration, Denial, Operation, Request, Verdict};
use koord_runtime::{
    cache::{Cache, Revision},
    key::ObjectKey,
    uid::Uid,
};
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{
        self, ALLOW_FORCE_UPDATE, DEFAULT_QUOTA, IS_PARENT, MAX_STRICT_CHECK_RESOURCE_KEYS, NAMESPACES, PARENT, TREE_ID,
    },
};

use super::{
    Change, Forest, PlacedPod, Pods, Proposal, Quota, QuotaView, Quotas as _, Refusal, Refused, Rules, Tree, advice,
    key_of,
    manifest::{QuotaManifest, SHARED_WEIGHT},
    warnings,
};
use crate::{Ctx, Declared, decode};

/// Decides by what is known now, and remembers what it admits until the cache shows it.
#[koord_resource::admission(
    declared = ElasticQuota::VALIDATING,
    within = Ctx::quotas,
    rbac(group = "scheduling.sigs.k8s.io", resource = "elasticquotas", verbs = [list, watch]),
    rbac(group = "", resource = "pods", verbs = [list, watch]),
)]
pub fn validate_elastic_quota(request: &Request<'_>, view: QuotaView<'_>) -> Verdict {
    let (quotas, pods, now) = (view.quotas.read(), view.pods.read(), view.clock.moment());
    let mut admitted = view.admitted.lock();
    let forest = Forest::new(&quotas, admitted.settle(&quotas, now));
    let rules = Rules {
        fewer_keys_below: view.switches.update_quota_resource_keys,
        guarantee: view.switches.guarantee_quota_usage,
        unforced: false,
    };
    let delta = match decide(request, forest, &pods, rules) {
        Ok(delta) => delta,
        Err(refused) => return refused.into(),
    };
    let mut unenforced = broken_rules_of_the_type(request, view.declared);
    if view.declared == Declared::Enforce
        && let Some(denial) = unenforced.take()
    {
        return Verdict::deny(denial);
    }
    let mut warnings = Vec::new();
    if view.warns {
        warnings = warnings::of_admitted(request, view);
        if let Some(Denial { causes, .. }) = &unenforced {
            // A mistake is reported once.
            warnings.retain(|warning| !causes.iter().any(|cause| warning.starts_with(&format!("{}: ", cause.field))));
        }
        if let Some(Delta { change: Change::Put(quota), .. }) = &delta
            && quota.forced
        {
            let forest = Forest::new(&quotas, admitted.settle(&quotas, now));
            warnings.extend(broken_by_force(decide(request, forest, &pods, Rules { unforced: true, ..rules })));
        }
    }
    if let Some(Delta { key, change, before }) = delta.filter(|_| !request.dry_run) {
        let before = before.or_else(|| admitted.removed(&key).cloned());
        admitted.add(key, change, before, now);
    }
    Verdict { unenforced, warnings, ..Verdict::allow() }
}

/// The rules that stand on the type are asked of what the tree admits: the original looks at no changes of annotations, and refuses the others
/// that the type states in words of its own, with 400. What cannot be decoded is left to the schema.
fn broken_rules_of_the_type(request: &Request<'_>, declared: Declared) -> Option<Denial> {
    const RULES: Declaration = Declaration { code: 422, ..ElasticQuota::VALIDATING };
    if declared == Declared::Off || request.resource.resource != "elasticquotas" {
        return None;
    }
    admission::validate::<ElasticQuota>(request, &RULES).denial.filter(|denial| denial.code == RULES.code)
}

/// What would be refused, were it not for the label by which a quota may break promises.
fn broken_by_force(unforced: Result<Option<Delta>, Refused>) -> Option<String> {
    let denial = Verdict::from(unforced.err()?).denial?;
    Some(format!("admitted because of the label {}: {}", ALLOW_FORCE_UPDATE.name(), denial.message))
}

/// What an admitted request does to the tree.
struct Delta {
    key: ObjectKey,
    change: Change,
    before: Option<(Uid, Revision)>,
}

fn decide(
    request: &Request<'_>,
    forest: Forest<'_>,
    pods: &Cache<PlacedPod>,
    rules: Rules,
) -> Result<Option<Delta>, Refused> {
    if !request.sub_resource.is_empty() || request.resource.resource != "elasticquotas" {
        return Ok(None);
    }
    let bound = Pods(pods);
    match request.operation {
        Operation::Create => {
            let view: QuotaManifest<'_> = decode::object(request.object)?;
            view.check_kind()?;
            let quota = view.place(&request.namespace);
            let key = key_of(&quota);
            // The API server does not create what still exists, so a quota whose removal is not shown yet is gone.
            let is_gone = forest.pending_change(&key) == Some(&Change::Gone);
            forest.without_creation_of(&key).check(|tree| {
                if tree.find(&quota.name).is_some_and(|known| !is_gone || key_of(known) != key) {
                    let message = format!("AddQuota quota already exist:{}", quota.name);
                    return Err(Refusal::broken(message, advice::NAME_TAKEN));
                }
                let proposal = Proposal { quota: &quota, old: None, tree, pods: &bound, rules };
                proposal.namespaces_are_free()?;
                check(&view, &quota)?;
                proposal.fits()
            })?;
            Ok(Some(Delta { key, change: Change::Put(quota.into()), before: None }))
        }
        Operation::Update => {
            let view: QuotaManifest<'_> = decode::object(request.object)?;
            view.check_kind()?;
            let old: QuotaManifest<'_> = decode::object(request.old_object).map_err(|denial| {
                Denial::bad_request(format!("failed to get quota from old object, err:{}", denial.message))
            })?;
            // QUIRK: changes of anything else are not looked at (`validate-update-only-weight`).
            if !placement_or_amounts_changed(&view, &old) {
                return Ok(None);
            }
            if quota::is_reserved(&view.metadata.name) {
                let message = format!("invalid quota {}", view.metadata.name);
                return Err(Denial::bad_request(message).advise(advice::RESERVED).into());
            }
            let (quota, before) = (view.place(&request.namespace), old.place(&request.namespace));
            let key = key_of(&quota);
            let is_coming = matches!(forest.pending_change(&key), Some(Change::Put(_)));
            forest.without_changes_of(&key).check(|tree| {
                let proposal = Proposal { quota: &quota, old: Some(&before), tree, pods: &bound, rules };
                proposal.namespaces_are_free()?;
                if !is_coming && tree.find(&quota.name).is_none() && !tree.is_unreadable(key.as_str()) {
                    let name = &quota.name;
                    let message = format!("UpdateQuota quota not exist in quotaInfoMap:{name}");
                    return Err(Refusal::missing(message, advice::UNKNOWN));
                }
                check(&view, &quota)?;
                proposal.fits()
            })?;
            Ok(Some(Delta { key, change: Change::Put(quota.into()), before: old.identity() }))
        }
        Operation::Delete => {
            let Some(old) = request.old_object else {
                // QUIRK: a review without the object is about a quota without a name.
                return Err(Denial::bad_request("not found quota:").advise(advice::UNKNOWN).into());
            };
            let old: QuotaManifest<'_> = decode::text(old.get())?;
            old.check_kind()?;
            let name = &old.metadata.name;
            if quota::is_reserved(name) || name == DEFAULT_QUOTA {
                let message = format!("can not delete quotaGroup :{name}");
                return Err(Denial::bad_request(message).advise(advice::RESERVED).into());
            }
            let key = ObjectKey::new(&request.namespace, name);
            let is_coming = matches!(forest.pending_change(&key), Some(Change::Put(_)));
            forest.without_changes_of(&key).check(|tree| {
                if !is_coming && tree.find(name).is_none() && !tree.is_unreadable(key.as_str()) {
                    return Err(Refusal::missing(format!("not found quota:{name}"), advice::UNKNOWN));
                }
                nothing_hangs_on(name, tree, pods)
            })?;
            Ok(Some(Delta { key, change: Change::Gone, before: old.identity() }))
        }
        Operation::Connect | Operation::Other => {
            decode::object::<QuotaManifest<'_>>(request.object)?.check_kind()?;
            Ok(None)
        }
    }
}

/// A quota that goes has neither quotas nor pods. QUIRK: pods of namespaces that are bound to it do not keep it
/// (`validate-delete-bound-namespace-pods`), and finished pods do (`validate-delete-succeeded-pod`).
fn nothing_hangs_on(name: &str, tree: Tree<'_>, pods: &Cache<PlacedPod>) -> Result<(), Refusal> {
    let below: BTreeSet<&str> = tree.below(name).iter().map(|quota| quota.name.as_str()).collect();
    if !below.is_empty() {
        let count = below.len();
        let message = format!("delete quota failed, quota {name} has {count} child quotas");
        return Err(Refusal::broken(message, advice::CHILDREN_LEFT));
    }
    let pods: Vec<&str> = pods.index().get(name).map(ObjectKey::name).collect();
    let named = match pods.as_slice() {
        [] => return Ok(()),
        [first, second, _, ..] => format!("{first}, {second}, ..."),
        few => few.join(", "),
    };
    let count = pods.len();
    let message = format!("delete quota failed, quota {name} has {count} child pods: {named}");
    Err(Refusal::broken(message, advice::PODS_LEFT))
}

/// An absent label is an empty one. QUIRK: another form of the same amount is a change.
fn placement_or_amounts_changed(new: &QuotaManifest<'_>, old: &QuotaManifest<'_>) -> bool {
    let same = |new: &Texts<'_>, old: &Texts<'_>, key: &str| {
        new.get(key).unwrap_or_default() == old.get(key).unwrap_or_default()
    };
    let (new_metadata, old_metadata) = (&new.metadata, &old.metadata);
    [PARENT, IS_PARENT.name(), TREE_ID].iter().any(|label| !same(&new_metadata.labels, &old_metadata.labels, label))
        || !same(&new_metadata.annotations, &old_metadata.annotations, NAMESPACES.name())
        || !new.spec.has_same_form(&old.spec)
}

/// What the amounts of a quota must be, whatever the tree looks like.
fn check(view: &QuotaManifest<'_>, quota: &Quota) -> Result<(), Denial> {
    let annotations = &view.metadata.annotations;
    check_amounts(&Amounts {
        name: &quota.name,
        min: &quota.min,
        max: &quota.max,
        used: &view.status.used(),
        shared_weight: annotations.get(SHARED_WEIGHT),
        strict_keys: annotations.get(MAX_STRICT_CHECK_RESOURCE_KEYS.name()),
    })
}

#[cfg(test)]
mod tests;
