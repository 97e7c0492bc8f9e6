//! PodMigrationJobs, as far as filters and arbitration read them.

use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_descheduler_framework::{Cluster, ObjectType, Pod, PodId, pod::EVICT};
use koord_resource::{Duration, controller::ResourceKind};
use koord_types::pod_migration_job::{PodMigrationJob, PodMigrationJobMode, PodMigrationJobPhase};

/// A job with this annotation, whose value is `true`, has passed arbitration.
pub const PASSED_ARBITRATION: &str = "descheduler.koordinator.sh/passed-arbitration";
/// Which process created a job. A job of a user does not have it.
pub const CREATED_BY: &str = "koordinator.sh/job-created-by";
/// Why a pod is migrated, as the strategy words it.
pub const EVICT_REASON: &str = "koordinator.sh/evict-reason";
/// The strategy that chose a pod.
pub const EVICT_TRIGGER: &str = "koordinator.sh/evict-trigger";

/// A PodMigrationJob.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationJob {
    pub name: Arc<str>,
    pub uid: Uid,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// The pod that it migrates; `None` where its reference lacks the namespace or the name.
    pub pod: Option<ObjectKey>,
    /// The uid in the reference to the pod; empty until the job has started, if its author did not give one.
    pub pod_uid: Uid,
    /// `Pending` where the status does not say.
    pub phase: PodMigrationJobPhase,
    /// `None` for that of the configuration.
    pub mode: Option<PodMigrationJobMode>,
    /// How long it may take; `None` where it does not say. 0 is no limit.
    pub ttl: Option<Duration>,
    /// Whether its annotation says that it has passed arbitration.
    pub has_passed_arbitration: bool,
    /// Whether it has the annotation `descheduler.alpha.kubernetes.io/evict`: object limiters do not hold it up.
    pub has_evict_annotation: bool,
    /// The process that created it; `None` for a job of a user.
    pub created_by: Option<Arc<str>>,
    pub is_paused: bool,
    pub is_deleting: bool,
}

impl MigrationJob {
    /// All jobs of a snapshot, by name.
    pub fn all(cluster: &Cluster) -> impl Iterator<Item = &Self> {
        cluster.objects().of::<Self>().map(|(_, job)| job)
    }

    /// Whether it has not ended.
    pub fn is_live(&self) -> bool {
        self.is_pending() || self.is_running()
    }

    /// Whether it has not started.
    pub fn is_pending(&self) -> bool {
        self.phase == PodMigrationJobPhase::Pending
    }

    pub fn is_running(&self) -> bool {
        self.phase == PodMigrationJobPhase::Running
    }

    /// The pod of the snapshot that it names; `None` where there is none. A pod with another uid than the job knows has its name by chance alone, but
    /// while the job is live it would be evicted in the other's place, so it counts as the job's.
    pub fn pod_in<'a>(&self, cluster: &'a Cluster) -> Option<(PodId, &'a Arc<Pod>)> {
        let id = cluster.pod_id(self.pod.as_ref()?.as_str())?;
        Some((id, cluster.pod(id)?))
    }
}

impl ObjectType for MigrationJob {
    const KIND: ResourceKind = ResourceKind::typed::<PodMigrationJob>();
    type Api = PodMigrationJob;

    fn of(object: &Self::Api) -> Self {
        let metadata = &object.metadata;
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
        let spec = &object.spec;
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&spec.pod_ref.namespace), text(&spec.pod_ref.name));
        Self {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            uid: Uid::from(metadata.uid.as_deref().unwrap_or_default()),
            created: metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            pod: (!namespace.is_empty() && !name.is_empty()).then(|| ObjectKey::new(&namespace, &name)),
            pod_uid: Uid::from(spec.pod_ref.uid.as_deref().unwrap_or_default()),
            phase: object
                .status
                .phase
                .clone()
                .filter(|phase| !phase.as_str().is_empty())
                .unwrap_or(PodMigrationJobPhase::Pending),
            mode: spec.mode.clone(),
            ttl: spec.ttl.as_deref().and_then(|ttl| ttl.parse().ok()),
            has_passed_arbitration: annotation(PASSED_ARBITRATION).is_some_and(|value| value == "true"),
            has_evict_annotation: annotation(EVICT).is_some(),
            created_by: annotation(CREATED_BY).map(|process| process.as_str().into()),
            is_paused: spec.paused,
            is_deleting: metadata.deletion_timestamp.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(changes: &Value) -> MigrationJob {
        let reference = json!({"namespace": "default", "name": "p"});
        let object =
            json!({"kind": "PodMigrationJob", "metadata": {"name": "j", "uid": "u"}, "spec": {"podRef": reference}});
        let object = koord_descheduler_testing::with(&object, changes);
        MigrationJob::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_job_without_phase_is_pending_and_a_job_of_another_phase_has_ended() {
        let of = |phase: &str| job(&json!({"status": {"phase": phase}}));
        assert!(job(&json!({})).is_pending() && of("").is_pending() && of("Pending").is_pending());
        assert!(of("Running").is_live() && !of("Running").is_pending());
        for phase in ["Succeeded", "Failed", "Aborted", "Succeed"] {
            assert!(!of(phase).is_live(), "{phase}");
        }
    }

    #[test]
    fn a_reference_without_namespace_or_name_names_no_pod() {
        assert_eq!(job(&json!({})).pod, Some(ObjectKey::new("default", "p")));
        assert_eq!(job(&json!({"spec": {"podRef": {"name": null}}})).pod, None);
        assert_eq!(job(&json!({"spec": {"podRef": {"namespace": ""}}})).pod, None);
    }

    #[test]
    fn annotations_say_what_has_become_of_a_job() {
        let with = |key: &str, value: &str| job(&json!({"metadata": {"annotations": {key: value}}}));
        assert!(with(PASSED_ARBITRATION, "true").has_passed_arbitration);
        assert!(!with(PASSED_ARBITRATION, "false").has_passed_arbitration);
        assert!(with(EVICT, "").has_evict_annotation);
        assert_eq!(with(CREATED_BY, "x").created_by.as_deref(), Some("x"));
        assert_eq!(job(&json!({"spec": {"ttl": "1m30s"}})).ttl, Some(Duration::from_secs(90)));
    }
}
