//! The plugin MigrationController: which pods may migrate, and the jobs that migrate them.

use std::sync::Arc;

use jiff::Timestamp;
use koord_config::descheduler::{EvictionGate, JobMode, MigrationControllerArgs};
use koord_core::uid::Uid;
use koord_descheduler_framework::{
    Cluster, Evict, Filter, Means, NodeId, ObjectType as _, Plugin, Pod, PodId, PreEvictionFilter, PreparedEvict,
    PreparedFilter, PreparedPreEvictionFilter, Reason, ReasonCode, Refusal, Registration, fit::Rule,
    objects::PriorityClass,
};
use koord_resource::controller::ResourceKind;
use koord_scheduling::Selector;
use koord_types::pod_migration_job::PodMigrationJobMode;
use serde_json::Value;

use crate::{
    args_error::ArgsError,
    filter::{Checks, Rules},
    jobs::MigrationJob,
    limiter::{HeldUp, LimiterSettings, ObjectLimiters},
    limits::MigrationLimits,
    workloads::WORKLOAD_KINDS,
};

/// The plugin of this name. Profiles that use it share one state: the jobs of the cluster and the object limiters.
#[derive(Clone, Debug)]
pub struct MigrationController {
    is_dry_run: bool,
    mode: PodMigrationJobMode,
    ttl_ms: i64,
    delete_options: Option<Value>,
    /// The schedulers that serve Reservations; `None` where jobs need none.
    schedulers: Option<Vec<String>>,
    /// The nodes of which a pod has to fit another one; `None` where it need not.
    fit: Option<Selector>,
    pub(crate) rules: Rules,
    pub(crate) limits: MigrationLimits,
    pub(crate) limiters: LimiterSettings,
}

impl MigrationController {
    /// # Errors
    ///
    /// A selector or a limit cannot be read.
    pub fn new(args: &MigrationControllerArgs) -> Result<Self, ArgsError> {
        let nodes = Selector::parse(&args.node_selector);
        let nodes = nodes.map_err(|error| ArgsError::Selector { field: "nodeSelector", error })?;
        let has_fit = args.node_fit && !args.skip_eviction_gates.contains(&EvictionGate::NodeFit);
        let mode = match args.default_job_mode {
            JobMode::ReservationFirst => PodMigrationJobMode::ReservationFirst,
            JobMode::EvictDirectly => PodMigrationJobMode::EvictDirectly,
        };
        let limits = MigrationLimits::new(args)?;
        Ok(Self {
            is_dry_run: args.dry_run,
            schedulers: (mode == PodMigrationJobMode::ReservationFirst).then(|| args.scheduler_names.clone()),
            mode,
            ttl_ms: args.default_job_ttl.as_nanos() / 1_000_000,
            delete_options: args.default_delete_options.clone(),
            fit: has_fit.then_some(nodes),
            rules: Rules::new(args)?,
            limiters: LimiterSettings::new(args, limits.max_migrating())?,
            limits,
        })
    }

    /// Whether its scheduler serves Reservations, where a job would make one.
    fn check_scheduler(&self, scheduler: &Arc<str>) -> Result<(), Refusal> {
        match &self.schedulers {
            Some(known) if !known.iter().any(|name| **name == **scheduler) => {
                Err(Refusal::new(ReasonCode::SchedulerWithoutReservations).with("scheduler", scheduler))
            }
            _ => Ok(()),
        }
    }
}

impl MigrationController {
    /// How long object limiters hold up the eviction of a pod, and which of them does; `None` where none does. A job is not held up by its own eviction.
    pub fn hold_up(
        &self,
        limiters: &ObjectLimiters,
        cluster: &Cluster,
        pod: &Pod,
        job: Option<&Uid>,
        now: Timestamp,
    ) -> Option<HeldUp> {
        self.limiters.hold_up(limiters, cluster, pod, job, now)
    }

    /// A pod was evicted, for a job or not. The pod is the one that was evicted, as it was known before.
    pub fn count_eviction(
        &self,
        limiters: &mut ObjectLimiters,
        cluster: &Cluster,
        pod: &Pod,
        job: Option<&Uid>,
        now: Timestamp,
    ) {
        self.limiters.count_eviction(limiters, cluster, pod, job, now);
    }
}

impl Plugin for MigrationController {
    fn name(&self) -> &'static str {
        "MigrationController"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).filter(&self).pre_eviction_filter(&self).evict(&self).reading(READS)
    }
}

/// The kinds that the plugin reads. Those of Kruise are not served everywhere.
const READS: &[ResourceKind] = &{
    let mut kinds = [MigrationJob::KIND; 2 + WORKLOAD_KINDS.len()];
    kinds[1] = PriorityClass::KIND;
    let mut at = 0;
    while at < WORKLOAD_KINDS.len() {
        kinds[2 + at] = WORKLOAD_KINDS[at];
        at += 1;
    }
    kinds
};

// === filter ===

/// The checks of one pass. They know the jobs of the snapshot and those that the pass makes.
struct PassChecks<'a> {
    plugin: &'a MigrationController,
    checks: Checks<'a>,
    /// By the number of a pod: whether one of its jobs has not ended. Paused jobs that have not started are among them, and take up no room.
    has_job: Vec<bool>,
}

impl Filter for MigrationController {
    fn prepare_filter<'a>(&'a self, cluster: &'a Cluster, _: Timestamp) -> Box<dyn PreparedFilter + 'a> {
        let live = || MigrationJob::all(cluster).filter(|job| job.is_live());
        let mut has_job = vec![false; cluster.pods_max()];
        for (id, _) in live().filter_map(|job| job.pod_in(cluster)) {
            if let Some(has_job) = has_job.get_mut(id.index()) {
                *has_job = true;
            }
        }
        let counted = live().filter(|job| job.is_running() || !job.is_paused);
        Box::new(PassChecks { plugin: self, checks: Checks::new(&self.rules, &self.limits, cluster, counted), has_job })
    }
}

impl PreparedFilter for PassChecks<'_> {
    fn filter(&self, id: PodId) -> Result<(), Refusal> {
        let Some(pod) = self.checks.cluster.pod(id) else { return Ok(()) };
        if self.has_job.get(id.index()).is_some_and(|has_job| *has_job) {
            return Err(ReasonCode::MigratingAlready.into());
        }
        self.plugin.check_scheduler(&pod.template.placement.scheduler)?;
        self.checks.check_lasting(id, pod)?;
        self.checks.check_limits(id, pod)
    }

    fn evicted(&mut self, id: PodId) {
        if let Some(has_job) = self.has_job.get_mut(id.index()) {
            *has_job = true;
        }
        self.checks.add(id);
    }
}

// === pre-eviction filter ===

/// The nodes of one pass of which a pod has to fit another one; `None` where it need not.
struct OtherNodes<'a> {
    cluster: &'a Cluster,
    nodes: Option<Vec<NodeId>>,
}

impl PreEvictionFilter for MigrationController {
    fn prepare_pre_eviction_filter<'a>(
        &'a self,
        cluster: &'a Cluster,
        _: Timestamp,
    ) -> Box<dyn PreparedPreEvictionFilter + 'a> {
        let nodes = self.fit.as_ref().map(|selector| {
            let nodes = cluster.nodes().filter(|(_, node)| node.is_ready && selector.selects(|key| node.label(key)));
            nodes.map(|(id, _)| id).collect()
        });
        Box::new(OtherNodes { cluster, nodes })
    }
}

impl PreparedPreEvictionFilter for OtherNodes<'_> {
    fn pre_eviction_filter(&self, id: PodId) -> Result<(), Refusal> {
        let Some(nodes) = &self.nodes else { return Ok(()) };
        Rule::Kubernetes.fits_other(self.cluster, id, nodes.iter().copied()).map(|_| ())
    }
}

// === evict ===

/// The jobs of one pass.
struct Jobs<'a> {
    plugin: &'a MigrationController,
    cluster: &'a Cluster,
    now: Timestamp,
}

impl Evict for MigrationController {
    fn prepare_evict<'a>(&'a self, cluster: &'a Cluster, now: Timestamp) -> Box<dyn PreparedEvict + 'a> {
        Box::new(Jobs { plugin: self, cluster, now })
    }
}

impl PreparedEvict for Jobs<'_> {
    fn evict(&mut self, id: PodId, _: &Reason) -> Result<Means, Refusal> {
        let plugin = self.plugin;
        if plugin.is_dry_run {
            return Ok(Means::DryRun);
        }
        if let (Some(limiters), Some(pod)) = (ObjectLimiters::of(self.cluster), self.cluster.pod(id))
            && let Some(held_up) = plugin.hold_up(limiters, self.cluster, pod, None, self.now)
        {
            return Err(held_up.into());
        }
        let mode = plugin.mode.clone();
        Ok(Means::Job { mode, ttl_ms: plugin.ttl_ms, delete_options: plugin.delete_options.clone() })
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
