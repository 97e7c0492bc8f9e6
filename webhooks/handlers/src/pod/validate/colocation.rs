//! QoS class, priority class and colocated resources must fit together, and the classes of a pod do not change.

use koord_resource::field::{Errors, Path};
use koord_types::{
    priority::{PriorityClass, SUB_PRIORITY_LABEL},
    qos::{QOS_LABEL, QosClass},
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};

use crate::pod::{Parts, PodView, request_of};

pub(super) fn check(pod: &Parts<'_>, old: Option<&Parts<'_>>, view: PodView<'_>) -> Errors {
    let mut errors = Errors::new();
    if let Some(old) = old {
        classes_stay(pod, old, view, &mut errors);
    }
    let (qos, class) = (pod.declared_qos(), pod.declared_class());
    let labels = Path::root("labels");
    let colocated = [BATCH_CPU, BATCH_MEMORY].iter().any(|name| !request_of(&pod.spec, name).is_zero());
    if colocated && qos != Some(QosClass::Be) {
        errors.required(
            &labels.child(QOS_LABEL),
            "must specify koordinator QoS BE with koordinator colocation resources",
        );
    }
    if let Some(qos) = &qos {
        if !fits(qos, class) {
            let detail = format!("{QOS_LABEL}={qos} and priorityClass={} cannot be used in combination", shown(class));
            errors.forbidden(&Path::root("Pod"), detail);
        }
        if matches!(qos, QosClass::Lsr | QosClass::Lse) {
            whole_cpus(pod, &mut errors);
        }
    }
    errors
}

fn shown(class: Option<PriorityClass>) -> &'static str {
    class.map_or("", PriorityClass::as_str)
}

/// QUIRK: LSE fits every class, as recorded (`combo-lse-batch`).
fn fits(qos: &QosClass, class: Option<PriorityClass>) -> bool {
    match qos {
        QosClass::Be => !matches!(class, None | Some(PriorityClass::Prod)),
        QosClass::Lsr => class == Some(PriorityClass::Prod),
        _ => true,
    }
}

fn whole_cpus(pod: &Parts<'_>, errors: &mut Errors) {
    let spec = Path::root("pod");
    let spec = spec.child("spec");
    let containers = spec.child("containers[*]");
    let resources = containers.child("resources");
    let at = resources.child("requests");
    let cpu = request_of(&pod.spec, "cpu");
    if cpu.is_zero() {
        errors.required(&at, "LSR Pod must declare the requested CPUs");
    } else if cpu.value().wrapping_mul(1000) != cpu.milli_value() {
        // QUIRK: both are rounded up, so that what is less than a thousandth short of whole passes.
        errors.invalid(&at, cpu.to_string(), "the requested CPUs of LSR Pod must be integer");
    }
}

fn classes_stay(pod: &Parts<'_>, old: &Parts<'_>, view: PodView<'_>, errors: &mut Errors) {
    const IMMUTABLE: &str = "field is immutable";
    let labels = Path::root("labels");
    let qos = |pod: &Parts<'_>| pod.declared_qos().map(|qos| qos.as_str().to_owned()).unwrap_or_default();
    if qos(pod) != qos(old) {
        errors.invalid(&labels.child(QOS_LABEL), qos(pod), IMMUTABLE);
    }
    if pod.declared_class() != old.declared_class() {
        errors.invalid(&Path::root("spec").child("priority"), shown(pod.declared_class()), IMMUTABLE);
    }
    let priority = |pod: &Parts<'_>| pod.metadata.labels.get(SUB_PRIORITY_LABEL).unwrap_or_default().to_owned();
    if !view.switches.skip_validating_priority && priority(pod) != priority(old) {
        errors.invalid(&labels.child(SUB_PRIORITY_LABEL), priority(pod), IMMUTABLE);
    }
}
