//! Pods belong to leaves of the quota tree, and stay preemptible or not.

use koord_api::quota::{DEFAULT_QUOTA, NAME, PREEMPTIBLE};
use koord_resource::admission::{Denial, Operation, Request};
use koord_runtime::cache::Cache;

use crate::{Ctx, pod::Parts, quota::CachedQuota};

pub(super) fn check(pod: &Parts<'_>, old: Option<&Parts<'_>>, request: &Request<'_>, ctx: &Ctx) -> Result<(), Denial> {
    if old.is_some_and(|old| old.metadata.labels.get(PREEMPTIBLE.name()) != pod.metadata.labels.get(PREEMPTIBLE.name()))
    {
        return Err(Denial::bad_request("Preemptible label is forbidden modify now."));
    }
    let concerned = matches!(request.operation, Operation::Create | Operation::Update);
    if !concerned || ctx.switches.support_parent_quota_submit_pod {
        return Ok(());
    }
    let quotas = ctx.quotas.read();
    let quota = quota_of(pod, request, ctx, &quotas);
    let found = quotas.index().named(&quota).and_then(|key| quotas.get(key.as_str()));
    if quota == DEFAULT_QUOTA || !found.is_some_and(|entry| entry.value.is_parent) {
        return Ok(());
    }
    let name = &pod.metadata.name;
    Err(Denial::bad_request(format!("pod can not be linked to a parentQuotaGroup,quota:{quota}, pod:{name}")))
}

/// The pod's quota: named by its label, else with the name of the namespace and in it, else bound to the namespace, else
/// the default. Empty where only the label counts and there is none.
pub(crate) fn quota_of(pod: &Parts<'_>, request: &Request<'_>, ctx: &Ctx, quotas: &Cache<CachedQuota>) -> String {
    let namespace = if pod.metadata.namespace.is_empty() { &request.namespace } else { &pod.metadata.namespace };
    let label = pod.metadata.labels.get(NAME).filter(|name| !name.is_empty());
    match label {
        Some(name) => name.to_owned(),
        None if ctx.switches.disable_default_quota => String::new(),
        None if quotas.get(&format!("{namespace}/{namespace}")).is_some() => namespace.clone().into_owned(),
        None => quotas.index().bound_to(namespace).map_or(DEFAULT_QUOTA, |key| key.name()).to_owned(),
    }
}
