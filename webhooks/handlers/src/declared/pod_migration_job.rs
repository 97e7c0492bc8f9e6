//! PodMigrationJobs: which pod, how, and for how long.

use koord_api::pod_migration_job::{PodMigrationJob, PodMigrationJobMode};
use koord_resource::{
    admission::{Denial, Handler, Operation, Patch, Request, WebhookEntry, WebhookKind, or_default},
    field::{Errors, Path},
};
use serde::Deserialize;

use super::{check_duration, entry, fill, handler, validate};
use crate::{Ctx, decode};

const RESOURCE: &str = "podmigrationjobs";
const VALIDATE_ENTRY: WebhookEntry =
    entry("vpodmigrationjob.koordinator.sh", &["scheduling.koordinator.sh"], &[RESOURCE]);
const MUTATE_ENTRY: WebhookEntry = WebhookEntry {
    kind: WebhookKind::Mutating,
    name: "mpodmigrationjob.koordinator.sh",
    operations: &[Operation::Create],
    ..VALIDATE_ENTRY
};

/// The handler that fills in what the descheduler would assume.
pub const MUTATE: Handler<Ctx> = handler(
    "/mutate-scheduling-koordinator-sh-v1alpha1-podmigrationjob",
    "podmigrationjob",
    &[MUTATE_ENTRY],
    |request, _| mutate(request).into(),
);

/// The handler that checks.
pub const VALIDATE: Handler<Ctx> = handler(
    "/validate-scheduling-koordinator-sh-v1alpha1-podmigrationjob",
    "podmigrationjob",
    &[VALIDATE_ENTRY],
    |request, _| validate::<PodMigrationJob>(request, RESOURCE, check, check_update),
);

/// What the descheduler assumes where nothing is said.
const DEFAULT_TTL: &str = "5m0s";
const DEFAULT_MODE: &str = "ReservationFirst";

#[derive(Default, Deserialize)]
#[serde(default)]
struct View {
    spec: Option<SpecView>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecView {
    #[serde(deserialize_with = "or_default")]
    ttl: String,
    #[serde(deserialize_with = "or_default")]
    mode: String,
}

fn mutate(request: &Request<'_>) -> Result<Patch, Denial> {
    let mut patch = Patch::default();
    let concerned = request.sub_resource.is_empty() && request.resource.resource == RESOURCE;
    if !concerned || request.operation != Operation::Create {
        return Ok(patch);
    }
    let View { spec } = decode::object(request.object)?;
    let at = Path::root("spec");
    if spec.is_none() {
        patch.add(&at, &serde_json::Map::new())?;
    }
    let spec = spec.unwrap_or_default();
    fill(&mut patch, &at.child("ttl"), !spec.ttl.is_empty(), DEFAULT_TTL)?;
    fill(&mut patch, &at.child("mode"), !spec.mode.is_empty(), DEFAULT_MODE)?;
    Ok(patch)
}

fn check(job: &PodMigrationJob, errors: &mut Errors) {
    let spec = Path::root("spec");
    let pod = spec.child("podRef");
    for (name, value) in [("namespace", &job.spec.pod_ref.namespace), ("name", &job.spec.pod_ref.name)] {
        if value.as_deref().unwrap_or_default().is_empty() {
            errors.required(&pod.child(name), "the job must name the pod that it moves");
        }
    }
    check_duration(&spec.child("ttl"), job.spec.ttl.as_deref(), errors);
    if let Some(PodMigrationJobMode::Other(mode)) = &job.spec.mode
        && !mode.is_empty()
    {
        errors.not_supported(&spec.child("mode"), mode, &["ReservationFirst", "EvictDirectly"]);
    }
}

/// The pod stays the same. Its uid may be added by who finds the pod.
fn check_update(job: &PodMigrationJob, old: &PodMigrationJob, errors: &mut Errors) {
    let (new, old) = (&job.spec.pod_ref, &old.spec.pod_ref);
    let known = old.uid.as_deref().is_some_and(|uid| !uid.is_empty());
    if new.namespace != old.namespace || new.name != old.name || (known && new.uid != old.uid) {
        let spec = Path::root("spec");
        errors.forbidden(&spec.child("podRef"), "field is immutable; create another job for another pod");
    }
}
