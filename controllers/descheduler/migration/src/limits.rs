//! How many pods may migrate at a time: in all, of a node, of a namespace and of a workload.

mod amount;
mod migrating;

use koord_config::descheduler::{EvictionGate, MigrationControllerArgs};
use koord_descheduler_framework::{Pod, PodId, ReasonCode, Refusal};

pub(crate) use self::{amount::WorkloadLimit, migrating::Migrating};
use crate::{
    args_error::ArgsError,
    workloads::{KnownWorkload, Unresolved, Workloads},
};

/// The limits of the arguments. Those whose gate is skipped do not hold.
#[derive(Clone, Debug)]
pub(crate) struct MigrationLimits {
    /// `None` is no limit, here and below.
    globally: Option<usize>,
    per_node: Option<usize>,
    per_namespace: Option<usize>,
    max_migrating: WorkloadLimit,
    max_unavailable: WorkloadLimit,
    skips_max_migrating: bool,
    skips_max_unavailable: bool,
    /// Whether the gate of expected replicas is open.
    skips_replicas: bool,
    /// Whether a workload may lose all its replicas.
    allows_all_replicas: bool,
}

impl MigrationLimits {
    pub(crate) fn new(args: &MigrationControllerArgs) -> Result<Self, ArgsError> {
        let skips = |gate| args.skip_eviction_gates.contains(&gate);
        let limit = |limit: i32, gate| usize::try_from(limit).ok().filter(|limit| *limit > 0 && !skips(gate));
        let of_workload = |field, value: &Option<serde_json::Value>| {
            WorkloadLimit::of(value.as_ref()).ok_or(ArgsError::WorkloadLimit { field })
        };
        Ok(Self {
            globally: limit(args.max_migrating_globally, EvictionGate::MaxMigratingGlobally),
            per_node: limit(args.max_migrating_per_node, EvictionGate::MaxMigratingPerNode),
            per_namespace: limit(args.max_migrating_per_namespace, EvictionGate::MaxMigratingPerNamespace),
            max_migrating: of_workload("maxMigratingPerWorkload", &args.max_migrating_per_workload)?,
            max_unavailable: of_workload("maxUnavailablePerWorkload", &args.max_unavailable_per_workload)?,
            skips_max_migrating: skips(EvictionGate::MaxMigratingPerWorkload),
            skips_max_unavailable: skips(EvictionGate::MaxUnavailablePerWorkload),
            skips_replicas: skips(EvictionGate::ExpectedReplicas),
            allows_all_replicas: args.skip_check_expected_replicas,
        })
    }

    /// How many pods of a workload may migrate.
    pub(crate) fn max_migrating(&self) -> WorkloadLimit {
        self.max_migrating
    }

    /// Whether the workload of a pod could lose all its replicas. A pod that fails this cannot migrate later either.
    pub(crate) fn check_expected_replicas(
        &self,
        workloads: &Workloads<'_>,
        id: PodId,
        pod: &Pod,
    ) -> Result<(), Refusal> {
        if self.skips_replicas {
            return Ok(());
        }
        let Some(resolution) = workloads.of(id, pod) else { return Ok(()) };
        let workload = match &*resolution {
            Ok(workload) => workload,
            // A workload that does not exist counts as one of no replicas, all of which might migrate.
            Err(Unresolved::Missing) if self.allows_all_replicas => return Ok(()),
            Err(unresolved) => return Err(unresolved_refusal(*unresolved, pod)),
        };
        if self.allows_all_replicas {
            return Ok(());
        }
        if workload.replicas <= 1 {
            return Err(Refusal::new(ReasonCode::SingleReplica).with("replicas", workload.replicas));
        }
        let limits = [("maxMigrating", self.max_migrating), ("maxUnavailable", self.max_unavailable)];
        // A limit above the replicas is no demand to let all of them go: it is meant for larger workloads.
        match limits.into_iter().find(|(_, limit)| limit.uncapped(workload.replicas) == i64::from(workload.replicas)) {
            Some((name, _)) => {
                let refusal = Refusal::new(ReasonCode::LimitEqualsReplicas);
                Err(refusal.with(name, workload.replicas).with("replicas", workload.replicas))
            }
            None => Ok(()),
        }
    }

    /// Whether one more pod may migrate now, beside those that do. A pod that fails this may migrate later.
    pub(crate) fn check(
        &self,
        migrating: &Migrating,
        workloads: &Workloads<'_>,
        id: PodId,
        pod: &Pod,
    ) -> Result<(), Refusal> {
        let node = workloads.cluster().bound_to(id);
        let checks = [
            (self.globally.map(|limit| (limit, migrating.jobs_of_others(id))), ReasonCode::MigratingGlobally),
            (
                self.per_node.zip(node).map(|(limit, node)| (limit, migrating.on_node(node, id))),
                ReasonCode::MigratingPerNode,
            ),
            (
                self.per_namespace.map(|limit| (limit, migrating.in_namespace(pod.namespace(), id))),
                ReasonCode::MigratingPerNamespace,
            ),
        ];
        for (check, code) in checks {
            if let Some((limit, count)) = check
                && count >= limit
            {
                return Err(Refusal::new(code).with("migrating", count).with("limit", limit));
            }
        }
        if self.skips_max_migrating && self.skips_max_unavailable {
            return Ok(());
        }
        let Some(resolution) = workloads.of(id, pod) else { return Ok(()) };
        match &*resolution {
            Ok(workload) => self.check_workload(migrating, workload, id, pod),
            // QUIRK: of an unknown workload, which is taken for one of no replicas, no pod may be unavailable. A pod that passed the check of expected
            // replicas by skipCheckExpectedReplicas waits for ever: `pods_of_unknown_workloads_wait_where_all_replicas_may_go`.
            Err(Unresolved::Missing) if self.skips_max_unavailable => match pod.controller() {
                Some(owner) if migrating.of_workload(&owner.uid, id, pod).pods > 0 => {
                    Err(unresolved_refusal(Unresolved::Missing, pod))
                }
                _ => Ok(()),
            },
            Err(unresolved) => Err(unresolved_refusal(*unresolved, pod)),
        }
    }

    fn check_workload(
        &self,
        migrating: &Migrating,
        workload: &KnownWorkload,
        id: PodId,
        pod: &Pod,
    ) -> Result<(), Refusal> {
        let counts = migrating.of_workload(&workload.uid, id, pod);
        let max = self.max_migrating.capped(workload.replicas);
        if !self.skips_max_migrating && counts.pods > 0 && at_least(counts.pods, max) {
            let refusal = Refusal::new(ReasonCode::MigratingPerWorkload).with("migrating", counts.pods);
            return Err(refusal.with("limit", max).with("replicas", workload.replicas));
        }
        let unavailable = workload.unavailable + counts.available;
        let max = self.max_unavailable.capped(workload.replicas);
        if !self.skips_max_unavailable && at_least(unavailable, max) {
            let refusal = Refusal::new(ReasonCode::UnavailablePerWorkload).with("unavailable", unavailable);
            return Err(refusal.with("limit", max).with("replicas", workload.replicas));
        }
        Ok(())
    }
}

fn at_least(count: usize, limit: i64) -> bool {
    i64::try_from(count).unwrap_or(i64::MAX) >= limit
}

fn unresolved_refusal(unresolved: Unresolved, pod: &Pod) -> Refusal {
    let code = match unresolved {
        Unresolved::Missing => ReasonCode::WorkloadNotFound,
        Unresolved::LookupFailed => ReasonCode::WorkloadLookupFailed,
        Unresolved::NotLookedUp => ReasonCode::WorkloadNotLookedUp,
    };
    match pod.controller() {
        Some(owner) => Refusal::new(code).with("kind", &owner.kind).with("name", &owner.name),
        None => code.into(),
    }
}
