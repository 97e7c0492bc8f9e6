//! Requests for GPUs must be ones that the scheduler can fulfil (gate `ValidatePodDeviceResource`).

use koord_resource::{
    Quantity,
    field::{Errors, FieldError, Path},
};
use koord_types::resource_names::{GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED, HUAWEI_NPU_CORE};

use crate::{pod::Parts, resources::Amounts};

/// The same error of two containers is reported once.
pub(super) fn check(pod: &Parts<'_>) -> Errors {
    let mut all: Vec<FieldError> = Vec::new();
    for container in &pod.spec.containers {
        for error in &check_container(&container.resources.requests) {
            if !all.contains(error) {
                all.push(error.clone());
            }
        }
    }
    let mut errors = Errors::new();
    for error in all {
        errors.add(error);
    }
    errors
}

fn check_container(requests: &Amounts<'_>) -> Errors {
    let pod = Path::root("pod");
    let spec = pod.child("spec");
    let containers = spec.child("containers[*]");
    let resources = containers.child("resources");
    let at = resources.child("requests");
    let amount = |name: &str| requests.get(name).map_or(0, Quantity::value);
    let mut errors = Errors::new();
    let invalid = |errors: &mut Errors, name: &str, detail: &str| {
        errors.invalid(&at, requests.get(name).map(ToString::to_string).unwrap_or_default(), detail);
    };
    match (requests.contains(GPU), requests.contains(GPU_SHARED)) {
        (true, true) => errors.forbidden(&at, "Forbidden declare GPU and GPU share at same time"),
        (true, false) => {
            let gpu = amount(GPU);
            if gpu == 0 {
                invalid(&mut errors, GPU, "the requested GPU must be greater than zero");
            } else if gpu > 100 && gpu % 100 != 0 {
                invalid(&mut errors, GPU, "the requested GPU must be percentage of 100");
            }
        }
        (false, true) => {
            let shared = amount(GPU_SHARED);
            if shared == 0 {
                invalid(&mut errors, GPU_SHARED, "the requested GPU must be greater than zero");
            }
            if amount(HUAWEI_NPU_CORE) != 0 {
                return errors;
            }
            let (memory, ratio) = (amount(GPU_MEMORY), amount(GPU_MEMORY_RATIO));
            if memory == 0 && ratio == 0 {
                errors.forbidden(&at, "GPU memory and GPU memory ratio all is zero");
            } else if memory != 0 && ratio != 0 {
                errors.forbidden(&at, "declare GPU memory and GPU memory ratio at same time");
            }
            let multiple = |name| shared == 0 || amount(name).checked_rem(shared) == Some(0);
            if !multiple(GPU_CORE) {
                invalid(&mut errors, GPU_CORE, "the requested gpuCore must multiple of shared");
            }
            if !multiple(GPU_MEMORY_RATIO) {
                invalid(&mut errors, GPU_MEMORY_RATIO, "the requested gpuMemoryRatio must multiple of shared");
            }
        }
        (false, false) => {}
    }
    errors
}
