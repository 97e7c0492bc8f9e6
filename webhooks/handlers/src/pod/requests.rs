//! What a pod requests as a whole.

use koord_resource::Quantity;
use koord_scheduling::PodRequests;

use super::{Container, view::Spec};

/// The request of the pod for one resource.
pub(crate) fn request_of(spec: &Spec<'_>, name: &str) -> Quantity {
    let of = |container: &Container<'_>| container.resources.requests.get(name).cloned().unwrap_or_default();
    let mut requests = PodRequests::default();
    for container in &spec.containers {
        requests.container(of(container));
    }
    for container in &spec.init_containers {
        requests.init_container(of(container), container.restart_policy == "Always");
    }
    // Other resources cannot be requested for a pod as a whole.
    let can_be_whole = matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let whole = spec.resources.as_ref().and_then(|whole| whole.requests.get(name)).filter(|_| can_be_whole).cloned();
    requests.total(|sum| whole.unwrap_or(sum), spec.overhead.get(name))
}
