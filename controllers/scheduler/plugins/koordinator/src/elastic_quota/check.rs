//! Whether a quota suffices for a pod (`spec/scheduler.md` 3D.6).

use std::{fmt, sync::Arc};

use koord_resource::{Quantity, ResourceList};
use koord_scheduler_framework::{Reason, ReasonCode};

use super::{Counted, Forest, Node, QuotaSettings, sums::masked};

/// Quotas that are named as borrowers.
const BORROWERS_MAX: usize = 8;

/// Why a pod is refused: a quota has less left than it requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage(Box<Details>);

#[derive(Clone, Debug, PartialEq)]
struct Details {
    bound: Bound,
    /// The quota that the pod belongs to, or the path from the quota that is short down to it.
    path: Vec<Arc<str>>,
    limit: ResourceList,
    used: ResourceList,
    request: ResourceList,
    exceeded: Vec<String>,
}

/// What a pod must fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// What its quota may use: the runtime.
    Runtime,
    /// The `max` of its quota, which is all that counts.
    Max,
    /// What a quota above may use.
    Above,
    /// The `min` of its quota, within which pods must stay that do not give way.
    NonPreemptible,
}

impl Forest {
    /// Whether a pod fits into what its quota itself may use.
    pub fn check_runtime(&self, pod: Counted<'_>) -> Result<(), Shortage> {
        let Some((name, node)) = self.quota_of(pod.claim).and_then(|name| Some((name, self.node(name)?))) else {
            return Ok(());
        };
        let check = Check { requests: pod.requests, max: &node.quota.max };
        let limit = self.limit(name);
        let bound = if *limit == node.quota.max { Bound::Max } else { Bound::Runtime };
        let named = || (vec![Arc::clone(name)], self.shown_limit(name).into_owned());
        check.within(bound, named, &limit, &node.sums.used)
    }

    /// Whether a pod fits into its quota. A pod that belongs to none always does.
    pub fn check(&self, settings: &QuotaSettings, pod: Counted<'_>) -> Result<(), Shortage> {
        self.check_leaf(pod)?;
        self.check_above(settings, pod)
    }

    /// Whether a pod fits into what its quota itself may use, and into its `min` where it does not give way.
    pub(super) fn check_leaf(&self, pod: Counted<'_>) -> Result<(), Shortage> {
        self.check_runtime(pod)?;
        if pod.is_preemptible {
            return Ok(());
        }
        let Some((name, node)) = self.quota_of(pod.claim).and_then(|name| Some((name, self.node(name)?))) else {
            return Ok(());
        };
        let check = Check { requests: pod.requests, max: &node.quota.max };
        let min = &node.quota.min;
        let named = || (vec![Arc::clone(name)], min.clone());
        check.within(Bound::NonPreemptible, named, min, &node.sums.non_preemptible_used)
    }

    /// Whether a pod fits into the quotas above its own, where these are looked at.
    pub(super) fn check_above(&self, settings: &QuotaSettings, pod: Counted<'_>) -> Result<(), Shortage> {
        if !settings.checks_parents {
            return Ok(());
        }
        let Some((name, node)) = self.quota_of(pod.claim).and_then(|name| Some((name, self.node(name)?))) else {
            return Ok(());
        };
        let check = Check { requests: pod.requests, max: &node.quota.max };
        let mut path = vec![Arc::clone(name)];
        for (above, node) in self.upwards(name).skip(1) {
            path.insert(0, Arc::clone(above));
            let named = || (path.clone(), self.shown_limit(above).into_owned());
            check.within(Bound::Above, named, &self.limit(above), &node.sums.used)?;
        }
        Ok(())
    }
}

/// What a pod requests of its quota: what the quota's `max` names.
struct Check<'a> {
    requests: &'a ResourceList,
    max: &'a ResourceList,
}

impl Check<'_> {
    /// A resource that the limit does not name, or that is neither used nor requested, is not compared. `named` is the path, and the limit as it
    /// is shown.
    fn within(
        &self,
        bound: Bound,
        named: impl FnOnce() -> (Vec<Arc<str>>, ResourceList),
        limit: &ResourceList,
        used: &ResourceList,
    ) -> Result<(), Shortage> {
        let request = |name: &str| self.requests.get(name).filter(|_| self.max.contains(name));
        let is_over = |(name, limit): &(&str, &Quantity)| match (used.get(name), request(name)) {
            (Some(used), Some(request)) => used.clone() + request > **limit,
            (Some(amount), None) | (None, Some(amount)) => amount > limit,
            (None, None) => false,
        };
        let exceeded: Vec<String> = limit.iter().filter(is_over).map(|(name, _)| name.to_owned()).collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let request = masked(self.requests, self.max);
        let ((path, limit), used) = (named(), used.clone());
        Err(Shortage(Box::new(Details { bound, path, limit, used, request, exceeded })))
    }
}

impl Shortage {
    /// The reason of a refusal by a quota of this forest.
    pub(super) fn reason(&self, forest: &Forest) -> Reason {
        let Details { bound, path, limit, used, request, exceeded } = &*self.0;
        let code = match bound {
            Bound::Runtime => ReasonCode::QuotaRuntimeExceeded,
            Bound::Max => ReasonCode::QuotaMaxExceeded,
            Bound::Above => ReasonCode::ParentQuotaExceeded,
            Bound::NonPreemptible => ReasonCode::QuotaMinExceeded,
        };
        let quota = if *bound == Bound::Above { path.first() } else { path.last() };
        let reason = code.reason(self.to_string()).with("quota", quota.map_or("", |name| name));
        let reason = reason.with("limit", Listed(limit)).with("used", Listed(used));
        let reason = reason.with("request", Listed(request)).with("exceeded", exceeded.join(" "));
        if *bound != Bound::Runtime {
            return reason;
        }
        let borrowers = quota.map(|quota| borrowers(forest, quota, exceeded)).unwrap_or_default();
        reason.with("borrowed_by", borrowers.join(" "))
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { bound, path, limit, used, request, exceeded } = &*self.0;
        let quota_name = path.last().map_or("", |name| name);
        match bound {
            // QUIRK: the limit is called the runtime where it is the `max` too
            // (`without_runtimes_only_max_counts_though_it_is_called_runtime`).
            Bound::Runtime | Bound::Max => write!(f, "Insufficient quotas, quotaName: {quota_name}, runtime: ")?,
            Bound::Above => write!(f, "Insufficient quotas, quotaNameTopo: [{}], runtime: ", path.join(" "))?,
            Bound::NonPreemptible => write!(f, "Insufficient non-preemptible quotas, quotaName: {quota_name}, min: ")?,
        }
        let used_name = if *bound == Bound::NonPreemptible { "nonPreemptibleUsed" } else { "used" };
        let (limit, used, request) = (Listed(limit), Listed(used), Listed(request));
        let exceeded = exceeded.join(" ");
        write!(f, "{limit}, {used_name}: {used}, pod's request: {request}, exceedDimensions: [{exceeded}]")
    }
}

/// The reason of a shortage for a pod that names a quota which is not there, and so counts in another.
pub(super) fn of_unknown(shortage: &Reason, unknown: &str) -> Reason {
    let counted_in = shortage.operand("quota").unwrap_or_default();
    let reason = ReasonCode::QuotaNotFound.reason(&shortage.text).with("quota", unknown).with("counted_in", counted_in);
    reason.with_further(&shortage.operands)
}

/// The quotas beside this one that use more than their `min` of one of these resources.
fn borrowers<'f>(forest: &'f Forest, quota: &'f str, resources: &[String]) -> Vec<&'f str> {
    let borrows = |node: &Node| resources.iter().any(|name| node.sums.used.amount(name) > node.quota.min.amount(name));
    let others = forest.siblings(quota).filter(|(_, node)| borrows(node));
    others.map(|(name, _)| &**name).take(BORROWERS_MAX).collect()
}

/// `cpu:4,memory:8Gi`.
struct Listed<'a>(&'a ResourceList);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<empty>");
        }
        // In the order of what is written, in which `gpu-memory-ratio:` comes before `gpu-memory:`.
        let mut listed: Vec<String> = self.0.iter().map(|(name, amount)| format!("{name}:{amount}")).collect();
        listed.sort_unstable();
        f.write_str(&listed.join(","))
    }
}
