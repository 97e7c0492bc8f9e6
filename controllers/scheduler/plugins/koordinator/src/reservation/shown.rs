//! What is known of the reservations of a node, in the shape of the original's.

use koord_core::uid::Uid;
use koord_resource::ResourceList;
use koord_scheduler_allocation::{ReservationCache, ReservationInfo, ResourceAmounts};
use koord_scheduler_framework::{cluster::Cluster, pod::Pod, shown};
use koord_scheduling::quantity;
use koord_types::{
    reservation::{Reservation, ReservationAllocatePolicy, ReservationOwner},
    reservation_protocol::RESERVATION_OWNERS,
};
use serde_json::{Value, json};

/// The reservations of a node: what they keep, for whom, and who uses them. Nothing where there are none, or no such node.
pub(super) fn on_node(cache: &ReservationCache, cluster: &Cluster, node: &str) -> Value {
    let items = cache.exact_on(node).map(|(info, allocatable)| item(info, allocatable, cluster));
    shown::without_empty(json!({"items": items.collect::<Vec<_>>()}))
}

fn item(info: &ReservationInfo, exact: &ResourceList, cluster: &Cluster) -> Value {
    let pod = cluster.pod(&info.uid).map(|placed| &*placed.pod);
    let (owners, policy) = if info.is_pod { of_pod(pod) } else { of_object(info, cluster) };
    let list = |amounts: &ResourceAmounts| -> ResourceList {
        let usual = shown::quantities(amounts.iter().map(|(name, amount)| (&**name, amount)));
        let as_reserved = amounts.iter().map(|(name, amount)| {
            let format = exact.get(name).or_else(|| usual.get(name)).map(koord_resource::Quantity::format);
            (&**name, quantity(name, amount, format.unwrap_or_default()))
        });
        as_reserved.collect()
    };
    let resource = |amounts: &ResourceAmounts| shown::resource(amounts.iter().map(|(name, amount)| (&**name, amount)));
    let assigned = || info.assigned().map(|uid| (uid, cluster.pod(uid).map(|placed| &*placed.pod)));
    let ports = assigned().filter_map(|(_, pod)| pod).flat_map(|pod| &pod.template.host_ports);
    shown::without_empty(json!({
        "name": *info.name,
        "namespace": pod.filter(|_| info.is_pod).map(|pod| pod.key.namespace()),
        "uid": info.uid.to_string(),
        "kind": if info.is_pod { "Pod" } else { "Reservation" },
        "available": info.is_available,
        "allocateOnce": info.allocate_once,
        "allocatable": exact,
        "reserved": list(&info.withheld),
        "allocated": list(info.allocated()),
        "allocatablePorts": shown::ports(pod.into_iter().flat_map(|pod| &pod.template.host_ports)),
        "allocatedPorts": shown::ports(ports),
        "availableResource": resource(&info.available()),
        "allocatedResource": resource(info.allocated()),
        "owners": owners,
        "allocatePolicy": policy,
        "assignedPods": assigned().map(|(uid, pod)| requirement(uid, pod)).collect::<Vec<_>>(),
        "isAssumed": info.is_assumed,
        "isMatchable": info.is_matchable(),
    }))
}

/// Who may use a Reservation, and how they take from it, as it says.
fn of_object(info: &ReservationInfo, cluster: &Cluster) -> (Vec<ReservationOwner>, String) {
    let object = cluster.objects().get::<Reservation>(&info.name);
    let policy = object.and_then(|object| object.spec.allocate_policy.as_ref());
    let owners = object.map(|object| object.spec.owners.clone()).unwrap_or_default();
    (owners, policy.map(ToString::to_string).unwrap_or_default())
}

/// The same of a pod that keeps what it has.
fn of_pod(pod: Option<&Pod>) -> (Vec<ReservationOwner>, String) {
    let text = pod.and_then(|pod| pod.template.annotations.get(RESERVATION_OWNERS.name()));
    let owners = text.and_then(|text| RESERVATION_OWNERS.read(text).ok()).unwrap_or_default();
    (owners.0, ReservationAllocatePolicy::Aligned.to_string())
}

/// A pod that uses a reservation.
fn requirement(uid: &Uid, pod: Option<&Pod>) -> Value {
    let ports = pod.map(|pod| &pod.template.host_ports).filter(|ports| !ports.is_empty());
    json!({
        "Namespace": pod.map_or("", |pod| pod.key.namespace()),
        "Name": pod.map_or("", |pod| pod.key.name()),
        "UID": uid.to_string(),
        "Requests": pod.map(|pod| &pod.template.requests),
        "Ports": ports.map_or(Value::Null, shown::ports),
    })
}
