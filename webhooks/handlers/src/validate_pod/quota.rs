//! Pods belong to leaves of the quota tree, and stay preemptible or not.

use koord_resource::admission::{Denial, Operation, Request};

use koord_api::quota::NAME as QUOTA_NAME;

use crate::{Ctx, pod::Parts};

/// Takes the pods that belong to no other quota, whatever its labels say.
const DEFAULT_QUOTA: &str = "koordinator-default-quota";
const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

pub(super) fn check(pod: &Parts<'_>, old: Option<&Parts<'_>>, request: &Request<'_>, ctx: &Ctx) -> Result<(), Denial> {
    if old.is_some_and(|old| old.metadata.labels.get(PREEMPTIBLE) != pod.metadata.labels.get(PREEMPTIBLE)) {
        return Err(Denial::bad_request("Preemptible label is forbidden modify now."));
    }
    let concerned = matches!(request.operation, Operation::Create | Operation::Update);
    if !concerned || ctx.switches.support_parent_quota_submit_pod {
        return Ok(());
    }
    let namespace = if pod.metadata.namespace.is_empty() { &request.namespace } else { &pod.metadata.namespace };
    let Some(quota) = parent_quota(pod, namespace, ctx) else { return Ok(()) };
    let name = &pod.metadata.name;
    Err(Denial::bad_request(format!("pod can not be linked to a parentQuotaGroup,quota:{quota}, pod:{name}")))
}

/// The pod's quota when it is a parent: named by the label, else with the name of the namespace and in it, else bound
/// to the namespace.
fn parent_quota(pod: &Parts<'_>, namespace: &str, ctx: &Ctx) -> Option<String> {
    let quotas = ctx.quotas.read();
    let label = pod.metadata.labels.get(QUOTA_NAME).filter(|name| !name.is_empty());
    let name = match label {
        Some(name) => name.to_owned(),
        None if ctx.switches.disable_default_quota => return None,
        None if quotas.get(&format!("{namespace}/{namespace}")).is_some() => namespace.to_owned(),
        None => quotas.index().bound_to(namespace)?.name().to_owned(),
    };
    if name == DEFAULT_QUOTA {
        return None;
    }
    let key = quotas.index().named(&name)?;
    quotas.get(key.as_str()).filter(|entry| entry.value.is_parent).map(|_| name)
}
