//! CPU and memory of batch and mid pods become the resources that those classes use.

use koord_resource::{Quantity, quantity::Format};
use koord_types::resource_names::{NativeNames, native_in};

use crate::{
    pod::Parts,
    resources::{Amounts, Resources},
};

/// Translates requests, limits and overhead by the pod's priority class.
pub(super) fn translate(pod: &mut Parts<'_>) {
    let Some(names) = native_in(pod.class()) else { return };
    for container in pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers) {
        let Resources { requests, limits } = &mut container.resources;
        replace(requests, names);
        replace(limits, names);
        // A limit without a request stands for both.
        for name in [names.cpu, names.memory] {
            if !requests.contains(name) {
                requests.copy(name, limits);
            }
        }
    }
    replace(&mut pod.spec.overhead, names);
}

/// CPU is counted in whole milli-cores, memory stays as it is.
fn replace(amounts: &mut Amounts<'_>, names: NativeNames) {
    if let Some(cpu) = amounts.remove("cpu") {
        amounts.set(names.cpu, Quantity::new(cpu.milli_value(), Format::DecimalSI));
    }
    amounts.rename("memory", names.memory);
}
