//! `/validate-pod`: pods whose QoS, priority, resources or quota contradict each other are refused.
//!
//! The checks run in the original's order, and the first that finds something answers, with code 400.

mod colocation;
mod devices;
mod quota;
mod required_labels;
#[cfg(test)]
mod tests;

pub(crate) use self::required_labels::RequiredLabels;
use jiff::Timestamp;
use koord_resource::{
    admission::{Denial, Operation, Request, Stopwatch, Verdict},
    field::{Errors, Path},
};

use super::{
    Parts, Pod, PodView,
    charge::{self, Charge},
    warnings,
};
use crate::Ctx;

/// Checks pods. Admitted pods are charged to their quota; a ConfigMap names the labels that they must have.
#[koord_resource::admission(
    path = "/validate-pod",
    gate = "PodValidatingWebhook",
    within = Ctx::pods,
    failure_policy = Fail,
    name = "vpod.koordinator.sh",
    on = [Create, Update],
    object_type = "pod", groups = [""], versions = ["v1"], resources = ["pods"],
    namespace_selector("control-plane", DoesNotExist),
    match_condition(name = "outside-kube-system", expression = "request.namespace != 'kube-system'"),
    rbac(group = "scheduling.sigs.k8s.io", resource = "elasticquotas", verbs = [get, list, patch, watch]),
    rbac(group = "", resource = "pods", verbs = [list, watch]),
    rbac(group = "", resource = "configmaps", verbs = [list, watch]),
)]
pub fn validate_pod(request: &Request<'_>, view: PodView<'_>) -> Verdict {
    decide(request, view, None).0
}

/// What is decided about a pod, and what it costs its quota where it is to be charged at this time.
pub(crate) fn decide(
    request: &Request<'_>,
    view: PodView<'_>,
    charged: Option<Timestamp>,
) -> (Verdict, Option<Charge>) {
    let mut watch = Stopwatch::default();
    match validate(request, view, charged, &mut watch) {
        Ok((charge, warnings)) => (Verdict { steps: watch.stop(), warnings, ..Verdict::allow() }, charge),
        Err(denial) => (Verdict { steps: watch.stop(), ..Verdict::deny(denial) }, None),
    }
}

/// What the pod costs and what the user should know although it is admitted, or why it is not.
fn validate(
    request: &Request<'_>,
    view: PodView<'_>,
    charged: Option<Timestamp>,
    watch: &mut Stopwatch,
) -> Result<(Option<Charge>, Vec<String>), Denial> {
    let of_pods = request.sub_resource.is_empty() && request.resource.resource == "pods";
    let gone = request.operation == Operation::Delete && request.old_object.is_none();
    if !of_pods || gone {
        return Ok((None, Vec::new()));
    }
    let mut pod = Pod::read(request.object)?;
    // QUIRK: of another operation, such as CONNECT, only the classes of the pod are checked (`connect`).
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    let old = match request.operation {
        Operation::Update => Some(Pod::read(request.old_object)?),
        _ => None,
    };
    watch.begin("ClusterReservation");
    if is_written {
        refuse(&no_reserve_pod(&pod))?;
    }
    watch.begin("ClusterColocationProfile");
    refuse(&colocation::check(&pod, old.as_ref(), view))?;
    watch.begin("ElasticQuota");
    quota::check(&pod, old.as_ref(), request, view)?;
    let charge = match charged {
        Some(now) => charge::of(&mut pod, old.as_ref(), request, view, now)?,
        None => None,
    };
    if is_written && view.switches.validate_pod_device_resource {
        watch.begin("DeviceResource");
        refuse(&devices::check(&pod))?;
    }
    if is_written && view.switches.pod_enhanced_validator {
        watch.begin("EnhancedValidation");
        let own = &pod.metadata.namespace;
        required_labels::check(&pod, if own.is_empty() { &request.namespace } else { own }, view)?;
    }
    if !view.warns {
        return Ok((charge, Vec::new()));
    }
    Ok((charge, warnings::of_admitted_pod(&pod, old.as_ref(), &view.quotas.read())))
}

fn refuse(errors: &Errors) -> Result<(), Denial> {
    if errors.is_empty() { Ok(()) } else { Err(Denial::bad_request(errors.to_string())) }
}

/// Pods that stand for reservations exist only inside the scheduler.
fn no_reserve_pod(pod: &Parts<'_>) -> Errors {
    const RESERVE_POD: &str = "scheduling.koordinator.sh/reserve-pod";
    let mut errors = Errors::new();
    if pod.metadata.annotations.get(RESERVE_POD).is_some() {
        errors.forbidden(&Path::root("annotations").child(RESERVE_POD), "cannot set in annotations");
    }
    errors
}
