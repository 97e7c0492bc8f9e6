//! Pods belong to leaves of the quota tree, and stay preemptible or not.

use koord_resource::admission::{Denial, Operation, Request};
use koord_types::quota::{DEFAULT_QUOTA, PREEMPTIBLE};

use crate::pod::{Parts, PodView, quota_of::quota_of};

pub(super) fn check(
    pod: &Parts<'_>,
    old: Option<&Parts<'_>>,
    request: &Request<'_>,
    view: PodView<'_>,
) -> Result<(), Denial> {
    let preemptible = |pod: &Parts<'_>| pod.metadata.labels.get(PREEMPTIBLE.name()).unwrap_or_default().to_owned();
    if old.is_some_and(|old| preemptible(old) != preemptible(pod)) {
        return Err(Denial::bad_request("Preemptible label is forbidden modify now."));
    }
    let concerned = matches!(request.operation, Operation::Create | Operation::Update);
    if !concerned || view.switches.support_parent_quota_submit_pod {
        return Ok(());
    }
    let quotas = view.quotas.read();
    let quota = quota_of(pod, request, view, &quotas);
    let found = quotas.index().named(&quota).and_then(|key| quotas.get(key.as_str()));
    if quota == DEFAULT_QUOTA || !found.is_some_and(|entry| entry.value.is_parent) {
        return Ok(());
    }
    let name = &pod.metadata.name;
    Err(Denial::bad_request(format!("pod can not be linked to a parentQuotaGroup,quota:{quota}, pod:{name}")))
}
