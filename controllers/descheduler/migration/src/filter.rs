//! Which pods may migrate: the checks that the filter of strategies and arbitration share.

use koord_config::descheduler::{EvictionGate, MigrationControllerArgs, PriorityThreshold};
use koord_descheduler_framework::{
    ByClass, Cluster, NamespaceSelection, Pod, PodId, ReasonCode, Refusal,
    objects::PriorityClass,
    pod::{EVICT, Phase, SYSTEM_CRITICAL_PRIORITY},
};
use koord_scheduling::Selector;

use crate::{
    args_error::ArgsError,
    jobs::MigrationJob,
    limits::{Migrating, MigrationLimits},
    workloads::Workloads,
};

/// What the arguments say of pods, where gates that are skipped have been opened.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    namespaces: NamespaceSelection,
    labels: Option<Selector>,
    bare: BarePods,
    evicts_system_critical: bool,
    threshold: Option<PriorityThreshold>,
    evicts_local_storage: bool,
    ignores_volume_claims: bool,
}

/// Which pods without owners may migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarePods {
    None,
    Failed,
    All,
}

impl Rules {
    pub(crate) fn new(args: &MigrationControllerArgs) -> Result<Self, ArgsError> {
        let skips = |gate| args.skip_eviction_gates.contains(&gate);
        let namespaces = args.namespaces.as_ref().filter(|_| !skips(EvictionGate::Namespaces));
        let labels = args.label_selector.as_ref().filter(|_| !skips(EvictionGate::LabelSelector));
        let labels = labels.map(Selector::new).transpose();
        let labels =
            labels.map_err(|error| ArgsError::Selector { field: "labelSelector", error: error.to_string() })?;
        let bare = match (args.evict_all_bare_pods || skips(EvictionGate::BarePods), args.evict_failed_bare_pods) {
            (true, _) => BarePods::All,
            (false, true) => BarePods::Failed,
            (false, false) => BarePods::None,
        };
        Ok(Self {
            namespaces: namespaces.map_or_else(NamespaceSelection::default, |namespaces| {
                NamespaceSelection::new(&namespaces.include, &namespaces.exclude)
            }),
            labels: labels.filter(|labels| !labels.is_everything()),
            bare,
            evicts_system_critical: args.evict_system_critical_pods || skips(EvictionGate::SystemCritical),
            threshold: args.priority_threshold.clone().filter(|_| !skips(EvictionGate::PriorityThreshold)),
            evicts_local_storage: args.evict_local_storage_pods || skips(EvictionGate::LocalStorage),
            ignores_volume_claims: args.ignore_pvc_pods && !skips(EvictionGate::Pvc),
        })
    }

    /// The priority from which on pods stay. A class that does not exist protects every pod.
    fn threshold(&self, cluster: &Cluster) -> i32 {
        match &self.threshold {
            None => SYSTEM_CRITICAL_PRIORITY,
            Some(PriorityThreshold { value: Some(value), .. }) => *value,
            Some(PriorityThreshold { value: None, name }) if name.is_empty() => SYSTEM_CRITICAL_PRIORITY,
            Some(PriorityThreshold { value: None, name }) => {
                cluster.objects().get::<PriorityClass>(name).map_or(i32::MIN, |class| class.value)
            }
        }
    }

    /// Whether the arguments let a pod go, whatever else migrates.
    fn check(&self, pod: &Pod, threshold: i32) -> Result<(), Refusal> {
        if !self.namespaces.selects_pod(pod) {
            return Err(ReasonCode::NamespaceNotSelected.into());
        }
        let is_bare = match self.bare {
            BarePods::All => false,
            BarePods::Failed => pod.owners.is_empty() && pod.state.phase != Phase::Failed,
            BarePods::None => pod.owners.is_empty(),
        };
        let rules = [
            (pod.eviction_cost() == i32::MAX, ReasonCode::EvictionCost),
            (pod.is_deleting, ReasonCode::Terminating),
            (pod.is_mirror(), ReasonCode::MirrorPod),
            (pod.is_static(), ReasonCode::StaticPod),
            (pod.is_owned_by("DaemonSet"), ReasonCode::DaemonSetPod),
            (is_bare, ReasonCode::BarePod),
            (!self.evicts_system_critical && pod.is_system_critical(), ReasonCode::SystemCritical),
        ];
        if let Some((_, code)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
            return Err(code.into());
        }
        // QUIRK: without protection of critical pods the threshold does not hold either:
        // `the_threshold_does_not_hold_where_critical_pods_may_go`.
        if !self.evicts_system_critical && pod.priority() >= threshold {
            let refusal = Refusal::new(ReasonCode::PriorityThreshold);
            return Err(refusal.with("priority", pod.priority()).with("threshold", threshold));
        }
        let rules = [
            (!self.evicts_local_storage && pod.template.has_local_storage, ReasonCode::LocalStorage),
            (self.ignores_volume_claims && !pod.template.claims.is_empty(), ReasonCode::PersistentVolumeClaim),
            (
                self.labels.as_ref().is_some_and(|labels| !labels.selects(|key| pod.label(key))),
                ReasonCode::LabelsNotSelected,
            ),
        ];
        rules.into_iter().find(|(is_broken, _)| *is_broken).map_or(Ok(()), |(_, code)| Err(code.into()))
    }
}

/// The checks against one snapshot.
pub(crate) struct Checks<'a> {
    rules: &'a Rules,
    limits: &'a MigrationLimits,
    pub(crate) cluster: &'a Cluster,
    threshold: i32,
    pub(crate) workloads: Workloads<'a>,
    pub(crate) migrating: Migrating,
    /// What is found of pods without annotations that neither fail nor are deleted.
    plain: ByClass<Result<(), Refusal>>,
}

impl<'a> Checks<'a> {
    /// Checks where these jobs count for the limits.
    pub(crate) fn new(
        rules: &'a Rules,
        limits: &'a MigrationLimits,
        cluster: &'a Cluster,
        jobs: impl Iterator<Item = &'a MigrationJob>,
    ) -> Self {
        let workloads = Workloads::new(cluster);
        let migrating = Migrating::new(&workloads, jobs);
        let (threshold, plain) = (rules.threshold(cluster), ByClass::default());
        Self { rules, limits, cluster, threshold, workloads, migrating, plain }
    }

    /// Whether a pod may migrate at all. What is against it does not pass.
    pub(crate) fn check_lasting(&self, id: PodId, pod: &Pod) -> Result<(), Refusal> {
        // Most pods have nothing of their own that these checks look at.
        if pod.annotations.is_empty() && !pod.is_deleting && pod.state.phase != Phase::Failed {
            self.plain.of(self.cluster, id, || self.compute_lasting(id, pod))
        } else {
            self.compute_lasting(id, pod)
        }
    }

    fn compute_lasting(&self, id: PodId, pod: &Pod) -> Result<(), Refusal> {
        if is_evicted_anyway(pod) {
            return Ok(());
        }
        self.rules.check(pod, self.threshold)?;
        self.limits.check_expected_replicas(&self.workloads, id, pod)
    }

    /// Whether a pod may migrate now, beside those that do.
    pub(crate) fn check_limits(&self, id: PodId, pod: &Pod) -> Result<(), Refusal> {
        if is_evicted_anyway(pod) {
            return Ok(());
        }
        self.limits.check(&self.migrating, &self.workloads, id, pod)
    }

    /// From now on a pod migrates.
    pub(crate) fn add(&mut self, id: PodId) {
        if let Some(pod) = self.cluster.pod(id) {
            self.migrating.add(&self.workloads, id, pod);
        }
    }
}

/// Whether the pod's annotation lets it go past all of these checks.
fn is_evicted_anyway(pod: &Pod) -> bool {
    pod.annotation(EVICT).is_some()
}
