//! What a pod requests as a whole, as the scheduler counts it.

use koord_resource::Quantity;

use super::view::Parts;

/// The request of the pod: the containers that run together, or an init container where that needs more, and the
/// overhead. An init container that is restarted runs beside all that come after it.
pub(crate) fn request_of(pod: &Parts<'_>, name: &str) -> Quantity {
    let of = |container: &super::Container<'_>| container.resources.requests.get(name).cloned().unwrap_or_default();
    // The first amount keeps the form in which it was written, as long as nothing is added to it.
    let mut containers = pod.spec.containers.iter().map(of);
    let mut running = containers.next().unwrap_or_default();
    for request in containers {
        running += &request;
    }
    let (mut sidecars, mut starting) = (Quantity::ZERO, Quantity::ZERO);
    for container in &pod.spec.init_containers {
        let request = of(container);
        let needed = if container.restart_policy == "Always" {
            running += &request;
            sidecars += &request;
            sidecars.clone()
        } else {
            request + &sidecars
        };
        starting = starting.max(needed);
    }
    let mut total = running.max(starting);
    if let Some(overhead) = pod.spec.overhead.get(name) {
        total += overhead;
    }
    total
}
