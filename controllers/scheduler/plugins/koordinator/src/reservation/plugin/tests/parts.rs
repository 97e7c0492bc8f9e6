//! CPUs, NUMA nodes and devices of reservations and their owners.

use koord_config::scheduler::DeviceShareArgs;
use koord_scheduler_allocation::{
    devices::{AllocatedDevices, Kind},
    numa::state::NumaHold,
};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};

use koord_scheduler_testing::devices::report;

use super::*;

/// A node of NUMA nodes with four cores of two CPUs each, this policy, and these devices.
pub(super) fn machine(numa_nodes: u32, policy: &str, devices: &str) -> World {
    equipped(World::new(&[]), numa_nodes, policy, devices)
}

fn equipped(mut world: World, numa_nodes: u32, policy: &str, devices: &str) -> World {
    let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
    let zone = |node: u32| {
        let resources = [resource("cpu", "8"), resource("memory", "512Gi")];
        json!({"name": format!("node-{node}"), "type": "Node", "resources": resources})
    };
    let place = |id: u32| json!({"id": id, "core": id / 2, "node": id / 8, "socket": 0});
    let detail: Vec<Value> = (0..8 * numa_nodes).map(place).collect();
    let topology: NodeResourceTopology = serde_json::from_value(json!({
        "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": "n1", "annotations": {"node.koordinator.sh/cpu-topology": json!({"detail": detail}).to_string()}},
        "topologyPolicies": [], "zones": (0..numa_nodes).map(zone).collect::<Vec<_>>(),
    }))
    .unwrap();
    let gpus = (100 * devices.matches("gpu").count()).to_string();
    let members = json!({
        "metadata": {"labels": {"node.koordinator.sh/numa-topology-policy": policy}},
        "status": {"allocatable": {
            "cpu": (8 * numa_nodes).to_string(), "memory": "1Ti", "pods": "110",
            "koordinator.sh/gpu-core": gpus, "koordinator.sh/gpu-memory-ratio": gpus, "koordinator.sh/gpu-memory": "10Ti",
        }},
    });
    world.engine.set_node(node("n1", &members), world.now);
    let topology = Object::new(ObjectKey::cluster("n1"), Uid::from("n1"), false, Arc::new(topology));
    world.engine.set_object(topology, world.now);
    if !devices.is_empty() {
        let devices: Arc<Device> = Arc::new(report(devices));
        world.engine.set_object(Object::new(ObjectKey::cluster("n1"), Uid::from("n1"), false, devices), world.now);
    }
    world
}

/// A container with these requests, in a pod whose CPUs are its own.
fn spec(requests: &Value) -> Value {
    json!({"priority": 9500, "containers": [{"name": "c", "resources": {"requests": requests}}]})
}

const OWN_CPUS: (&str, &str) = ("koordinator.sh/qosClass", "LSR");
const IGNORING: (&str, &str) = ("scheduling.koordinator.sh/reservation-ignored", "true");
const MANY: &str = r#"{"allocateOnce": false}"#;
pub(super) const RESTRICTED: &str = r#"{"allocateOnce": false, "allocatePolicy": "Restricted"}"#;
const BY_NAME: &str = r#"{"name":"r"}"#;

impl World {
    /// A Reservation for pods of this app with these requests and members of its spec is placed.
    pub(super) fn keep(&mut self, name: &str, app: &str, requests: &Value, members: &str) -> String {
        let mut all: Value = serde_json::from_str(members).unwrap();
        all["owners"] = json!([{"labelSelector": {"matchLabels": {"app": app}}}]);
        all["template"] = json!({"metadata": {"labels": {OWN_CPUS.0: OWN_CPUS.1}}, "spec": spec(requests)});
        let labels = all.as_object_mut().unwrap().remove("labels");
        let object = json!({"metadata": {"name": name, "uid": name, "labels": labels}, "spec": all, "status": {}});
        self.objects.insert(name.to_owned(), object);
        self.update(name, &|_| {});
        let placed = self.attempt();
        format!("{placed}: {}", self.part(name))
    }

    /// A pod of this app with these requests is placed; `*` ignores reservations.
    pub(super) fn take(&mut self, name: &str, app: &str, requests: &Value, affinity: &str) -> String {
        let spec = serde_json::from_value(spec(requests)).unwrap();
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", affinity)].into_iter();
        let annotations = annotations.filter(|(_, text)| !text.is_empty()).collect();
        let labels = [("app", app), OWN_CPUS].into_iter().chain((app == "*").then_some(IGNORING)).collect();
        let template = Arc::new(Template::of("ns", labels, &annotations, &spec).unwrap());
        let pod = Pod { key: ObjectKey::new("ns", name), uid: Uid::from(name), template, ..Pod::default() };
        self.engine.set_pod(Arc::new(pod), self.now);
        let placed = self.attempt();
        let part = self.part(name);
        if part.is_empty() { placed } else { format!("{placed}: {part}") }
    }

    /// The CPUs or GPUs that a pod has.
    fn part(&self, name: &str) -> String {
        let Some(placed) = self.engine.cluster().pod(&Uid::from(name)) else { return String::new() };
        let cpus = placed.holds.get::<NumaHold>().map(|hold| hold.cpus.to_string());
        let gpus = placed.holds.get::<AllocatedDevices>().map(|allocation| {
            let minors = allocation.of(Kind::Gpu).iter().map(|share| format!("gpu{}", share.minor));
            minors.collect::<Vec<_>>().join(" ")
        });
        cpus.into_iter().chain(gpus).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn cpu(cpus: u32) -> Value {
    json!({"cpu": cpus.to_string()})
}

pub(super) fn gpu(percent: u32) -> Value {
    let percent = percent.to_string();
    json!({"koordinator.sh/gpu-core": percent, "koordinator.sh/gpu-memory-ratio": percent})
}

#[test]
fn devices_of_a_reservation_that_is_too_small_are_not_counted_on() {
    let requests = |memory: &str| {
        let mut all = gpu(200);
        all["memory"] = json!(memory);
        all
    };
    let devices = "gpu0@0/0 gpu1@0/0";
    let mut world = machine(1, "", devices);
    assert_eq!(world.keep("r", "x", &requests("1Gi"), RESTRICTED), "n1: gpu0 gpu1");
    let mut members = json!({"status": {"allocatable": gpu(200)}});
    for (name, amount) in [("cpu", "8"), ("memory", "8Gi"), ("pods", "110"), ("koordinator.sh/gpu-memory", "10Ti")] {
        members["status"]["allocatable"][name] = json!(amount);
    }
    world.engine.set_node(node("n2", &members), world.now);
    let devices: Arc<Device> = Arc::new(report(devices));
    world.engine.set_object(Object::new(ObjectKey::cluster("n2"), Uid::from("n2"), false, devices), world.now);
    assert_eq!(world.take("p", "x", &requests("2Gi"), ""), "n2: gpu0 gpu1", "n1 is emptier, and its GPUs are kept");
}

#[test]
fn an_unknown_policy_is_the_default_one() {
    let mut world = machine(2, "", "");
    assert_eq!(world.keep("r", "x", &cpu(4), r#"{"allocatePolicy": ""}"#), "n1: 0-3");
    assert_eq!(world.keep("s", "x", &cpu(4), r#"{"allocatePolicy": ""}"#), "n1: 8-11");
    let beside = world.keep("t", "x", &cpu(4), RESTRICTED);
    assert!(beside.contains("node(s) reservation allocate policy conflict"), "{beside}");
}

#[test]
fn owners_take_the_cpus_of_their_reservation_and_no_two_the_same() {
    let mut world = machine(2, "", "");
    assert_eq!(world.take("early", "y", &cpu(4), ""), "n1: 0-3");
    assert_eq!(world.keep("r", "x", &cpu(4), MANY), "n1: 8-11");
    assert_eq!(world.take("other", "y", &cpu(4), ""), "n1: 4-7", "what is kept is not there for others");
    world.engine.remove_pod(&Uid::from("early"), world.now);
    assert_eq!(world.take("p", "x", &cpu(2), ""), "n1 in r: 8-9");
    assert_eq!(world.take("q", "x", &cpu(2), ""), "n1 in r: 10-11", "what the first has is not there for the second");
    assert_eq!(world.take("s", "x", &cpu(2), ""), "n1 in r: 0-1", "an Aligned owner takes the rest from the node");
    assert_eq!(world.take("late", "y", &cpu(4), ""), "n1: 12-15");
    world.engine.remove_pod(&Uid::from("p"), world.now);
    assert!(world.take("t", "y", &cpu(4), "").contains("not enough cpus"), "what an owner gave back is kept");
    assert_eq!(world.take("u", "x", &cpu(2), ""), "n1 in r: 8-9");
}

#[test]
fn an_owner_with_more_cpus_than_its_reservation_takes_those_and_others() {
    let mut world = machine(1, "", "");
    assert_eq!(world.take("early", "y", &cpu(2), ""), "n1: 0-1");
    assert_eq!(world.keep("r", "x", &cpu(2), "{}"), "n1: 2-3");
    world.engine.remove_pod(&Uid::from("early"), world.now);
    assert_eq!(world.take("p", "x", &cpu(4), ""), "n1 in r: 0-3");
}

#[test]
fn restricted_owners_find_cpus_in_the_reservation_alone() {
    let mut world = machine(1, "", "");
    assert_eq!(world.keep("r", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    assert_eq!(world.take("p", "x", &cpu(2), BY_NAME), "n1 in r: 0-1");
    assert_eq!(world.take("q", "x", &cpu(2), ""), "n1 in r: 2-3");
    assert!(world.take("s", "x", &cpu(2), BY_NAME).contains("Reservation(s) "), "it is used up");
    assert_eq!(
        world.take("t", "x", &cpu(2), ""),
        "n1: 4-5",
        "without a need it goes to the node, and uses no reservation"
    );
}

#[test]
fn cpus_of_another_reservation_of_the_same_owner_stay_where_they_are() {
    let mut world = machine(1, "", "");
    let ordered = r#"{"allocateOnce": false, "labels": {"scheduling.koordinator.sh/reservation-order": "1"}}"#;
    assert_eq!([world.keep("r1", "x", &cpu(2), MANY), world.keep("r2", "x", &cpu(2), ordered)], ["n1: 0-1", "n1: 2-3"]);
    assert_eq!(world.take("p", "x", &cpu(2), ""), "n1 in r2: 2-3");
    assert_eq!(world.take("q", "x", &cpu(4), ""), "n1 in r2: 4-7", "the CPUs of r1 are kept for its owners");
    assert_eq!(world.take("s", "x", &cpu(2), r#"{"name":"r1"}"#), "n1 in r1: 0-1");
}

#[test]
fn what_owners_have_of_numa_nodes_counts_once_for_others() {
    let mut world = machine(2, "SingleNUMANode", "");
    assert_eq!(world.keep("r", "x", &cpu(6), MANY), "n1: 0-5");
    assert_eq!(world.take("p", "x", &cpu(4), ""), "n1 in r: 0-3");
    assert_eq!(world.take("large", "y", &cpu(8), ""), "n1: 8-15");
    assert_eq!(world.take("small", "y", &cpu(2), ""), "n1: 6-7", "6 of 8 CPUs are kept there, not 10");
    assert_eq!(world.take("q", "x", &cpu(2), ""), "n1 in r: 4-5");
}

#[test]
fn an_owner_stays_on_the_numa_node_of_its_reservation() {
    let mut world = machine(2, "SingleNUMANode", "");
    assert_eq!(world.take("early", "y", &cpu(4), ""), "n1: 0-3");
    assert_eq!(world.keep("r", "x", &cpu(6), RESTRICTED), "n1: 8-13");
    world.engine.remove_pod(&Uid::from("early"), world.now);
    assert_eq!(world.take("p", "x", &cpu(4), ""), "n1 in r: 8-11", "the other one is emptier");
    assert_eq!(
        world.take("q", "x", &cpu(4), BY_NAME),
        "0/1 nodes are available: 1 Unsatisfied NUMA cpu. 1 Reservation(s) exactly matches the requested reservation name, \
         1 Reservation(s) for node reason that Unsatisfied NUMA cpu, 1 Reservation(s) matched owner total",
        "there are 2 left"
    );
    assert_eq!(world.take("s", "x", &cpu(2), BY_NAME), "n1 in r: 12-13");
}

#[test]
fn an_owner_beside_its_reservation_leaves_what_that_has_left() {
    let mut world = machine(2, "SingleNUMANode", "");
    assert_eq!(world.keep("r", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    assert_eq!(world.take("p", "x", &cpu(2), BY_NAME), "n1 in r: 0-1");
    assert_eq!(world.take("other", "y", &cpu(6), ""), "n1: 8-13");
    let said = world.take("large", "x", &cpu(5), "");
    assert!(said.contains("NUMA"), "the 2 that are left of r are kept: {said}");
    assert_eq!(world.take("q", "x", &cpu(4), ""), "n1: 4-7", "those of p are not taken off once more");
}

#[test]
fn a_reservation_whose_cpus_are_on_several_numa_nodes_is_not_used_by_a_pod_that_needs_one() {
    let mut world = machine(2, "", "");
    assert_eq!([world.take("a", "y", &cpu(6), ""), world.take("b", "y", &cpu(6), "")], ["n1: 0-5", "n1: 8-13"]);
    let first = r#"{"allocateOnce": false, "allocatePolicy": "Restricted",
        "labels": {"scheduling.koordinator.sh/reservation-order": "1"}}"#;
    assert_eq!(world.keep("r1", "x", &cpu(4), first), "n1: 6-7,14-15");
    world.engine.remove_pod(&Uid::from("a"), world.now);
    assert_eq!(world.keep("r2", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    let policy = r#"{"numaTopologyPolicy":"SingleNUMANode","singleNUMANodeExclusive":"Preferred"}"#;
    let annotations = [("scheduling.koordinator.sh/numa-topology-spec", policy)].into_iter().collect();
    let labels = [("app", "x"), OWN_CPUS].into_iter().collect();
    let spec = serde_json::from_value(spec(&cpu(4))).unwrap();
    let template = Arc::new(Template::of("ns", labels, &annotations, &spec).unwrap());
    let pod = Pod { key: ObjectKey::new("ns", "p"), uid: Uid::from("p"), template, ..Pod::default() };
    world.engine.set_pod(Arc::new(pod), world.now);
    assert_eq!((world.attempt(), world.part("p")), ("n1 in r2".to_owned(), "0-3".to_owned()));
}

#[test]
fn cpus_of_an_owner_that_goes_are_those_of_the_next_one() {
    let mut world = equipped(pods::preempting(&[]), 1, "", "");
    assert_eq!(world.keep("r", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    assert_eq!(world.take("p", "x", &cpu(4), BY_NAME), "n1 in r: 0-3");
    let low = Arc::clone(&world.engine.cluster().pod(&Uid::from("p")).unwrap().pod);
    let spec = ("scheduling.koordinator.sh/resource-spec", r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#);
    let annotations = low.template.annotations.iter().chain([spec]).collect();
    let template = Arc::new(Template { priority: 9900, annotations, ..Template::clone(&low.template) });
    let high = Pod { key: ObjectKey::new("ns", "high"), uid: Uid::from("high"), template, ..Pod::default() };
    world.engine.set_pod(Arc::new(high), world.now);
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("the CPUs are taken") };
    assert_eq!(refused.nominated.as_deref(), Some("n1"), "both the reservation and its owner have them");
    world.engine.remove_pod(&Uid::from("p"), world.now);
    world.now = world.now + std::time::Duration::from_mins(1);
    assert_eq!((world.attempt(), world.part("high")), ("n1 in r".to_owned(), "0-3".to_owned()));
}

#[test]
fn a_pod_that_ignores_reservations_may_have_their_cpus_and_devices() {
    let mut world = machine(1, "", "gpu0");
    assert_eq!(world.keep("r", "x", &cpu(8), "{}"), "n1: 0-7");
    assert_eq!(world.keep("g", "x", &gpu(100), "{}"), "n1: gpu0");
    assert_eq!([world.take("p", "*", &cpu(2), ""), world.take("q", "*", &gpu(100), "")], ["n1: 0-1", "n1: gpu0"]);
}

#[test]
fn a_reservation_has_the_cpus_of_the_pods_that_it_takes_over() {
    let mut world = machine(1, "", "");
    for (name, app) in [("a", "y"), ("b", "x"), ("c", "y"), ("d", "x")] {
        world.take(name, app, &cpu(2), "");
    }
    let over = r#"{"allocatePolicy": "Restricted", "preAllocation": true,
        "labels": {"scheduling.koordinator.sh/pre-allocation-required": "true"}}"#;
    assert_eq!(world.keep("r", "x", &cpu(2), over), "n1: 2-3", "those of b alone, though d might go too");
}

#[test]
fn owners_take_the_devices_of_their_reservation_and_no_two_the_same() {
    let mut world = machine(1, "", "gpu0 gpu1 gpu2 gpu3");
    assert_eq!(world.take("early", "y", &gpu(100), ""), "n1: gpu0");
    assert_eq!(world.keep("r", "x", &gpu(200), MANY), "n1: gpu1 gpu2");
    world.engine.remove_pod(&Uid::from("early"), world.now);
    assert_eq!(world.take("p", "x", &gpu(100), ""), "n1 in r: gpu1");
    assert_eq!(world.take("q", "x", &gpu(100), ""), "n1 in r: gpu2");
    assert_eq!(world.take("s", "x", &gpu(100), ""), "n1 in r: gpu0", "an Aligned owner takes the rest from the node");
    assert_eq!(world.take("other", "y", &gpu(100), ""), "n1: gpu3");
    world.engine.remove_pod(&Uid::from("q"), world.now);
    assert!(world.take("late", "y", &gpu(100), "").contains("Insufficient"), "it is kept for the next owner");
    assert_eq!(world.take("t", "x", &gpu(100), ""), "n1 in r: gpu2");
}

#[test]
fn of_two_reservations_the_one_is_used_whose_devices_are_better_too() {
    let mut small = gpu(100);
    small["cpu"] = json!("8");
    let mut world = machine(1, "", "gpu0 gpu1 gpu2 gpu3");
    assert_eq!(world.keep("a", "x", &small, RESTRICTED), "n1: 0-7 gpu0");
    assert_eq!(world.keep("b", "x", &gpu(200), RESTRICTED), "n1: gpu1 gpu2");
    // a becomes fuller, by two thirds to a half, but b keeps an idle GPU.
    assert_eq!(world.take("p", "x", &gpu(100), ""), "n1 in b: gpu1");
}

#[test]
fn restricted_owners_find_devices_in_the_reservation_alone() {
    let mut world = machine(1, "", "gpu0 gpu1");
    assert_eq!(world.keep("r", "x", &gpu(100), RESTRICTED), "n1: gpu0");
    assert_eq!(world.take("p", "x", &gpu(60), BY_NAME), "n1 in r: gpu0");
    let said = world.take("q", "x", &gpu(60), BY_NAME);
    assert!(said.contains("Reservation(s) Insufficient"), "{said}");
    assert_eq!(world.take("s", "x", &gpu(40), BY_NAME), "n1 in r: gpu0");
    assert_eq!(world.take("t", "x", &gpu(60), ""), "n1: gpu1");
}

#[test]
fn what_owners_leave_of_several_devices_is_not_one_device() {
    let mut world = machine(1, "", "gpu0 gpu1");
    assert_eq!(world.keep("r", "x", &gpu(200), RESTRICTED), "n1: gpu0 gpu1");
    for name in ["p", "q"] {
        let placed = world.take(name, "x", &gpu(60), BY_NAME);
        assert!(placed.starts_with("n1 in r: gpu"), "{placed}");
    }
    let said = world.take("s", "x", &gpu(50), BY_NAME);
    assert!(said.starts_with("0/1 nodes are available: "), "40 percent are left of each: {said}");
    let placed = world.take("t", "x", &gpu(40), BY_NAME);
    assert!(placed.starts_with("n1 in r: gpu"), "{placed}");
}

#[test]
fn shares_of_a_gpu_that_owners_have_count_once_for_others() {
    let mut world = machine(1, "", "gpu0");
    assert_eq!(world.keep("r", "x", &gpu(50), MANY), "n1: gpu0");
    assert_eq!(world.take("p", "x", &gpu(30), ""), "n1 in r: gpu0");
    assert_eq!(world.take("other", "y", &gpu(50), ""), "n1: gpu0", "50 percent are kept, not 80");
    assert_eq!(world.take("q", "x", &gpu(20), ""), "n1 in r: gpu0");
    assert!(world.take("s", "x", &gpu(10), "").contains("Insufficient"), "nothing is left");
}

#[test]
fn with_a_gate_a_reservation_reserves_the_devices_that_were_allocated_to_it_and_not_its_requests() {
    let cache = |gate: &'static str| {
        let devices = DeviceShare::with_gates(&DeviceShareArgs::default(), &|name| name == gate);
        let world = World::of_plugins(Reservation::default(), devices, &[]);
        let mut world = equipped(world, 1, "", "gpu0 gpu1");
        let requests = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"});
        assert_eq!(world.keep("r", "x", &requests, RESTRICTED), "n1: gpu0");
        let id = world.engine.cluster().resources().get("koordinator.sh/gpu-memory");
        let row = world.engine.cluster().row("n1").unwrap();
        let memory = id.map_or(0, |id| world.engine.cluster().requested(id, row)) >> 30;
        let status = world.objects["r"]["status"]["allocatable"].clone();
        assert_eq!(world.take("p", "x", &gpu(100), BY_NAME), "n1 in r: gpu0");
        assert_eq!(world.take("q", "x", &gpu(50), ""), "n1: gpu1", "nothing is left in the reservation");
        assert_eq!(world.used(), 0);
        (status, memory)
    };
    let mut amounts = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"});
    assert_eq!(cache(""), (amounts.clone(), 0));
    amounts["koordinator.sh/gpu-memory"] = json!("80Gi");
    assert_eq!(cache("ResizePod"), (amounts, 80));
}

#[test]
fn an_annotation_of_a_reservation_overrides_the_amounts_that_it_reserves() {
    let mut world = World::new(&[8]);
    world.create("r", 2, &json!({}));
    let text = r#"{"resources":{"memory":"1Gi"}}"#;
    let annotations = json!({"scheduling.koordinator.sh/reservation-resize-allocatable": text});
    world.update("r", &|object| object["metadata"]["annotations"] = annotations.clone());
    while world.attempt() != "-" {}
    assert_eq!(world.objects["r"]["status"]["allocatable"], json!({"cpu": "2", "memory": "1Gi"}));
}

#[test]
fn a_reservation_is_bound_whatever_its_annotation_for_another_size_says() {
    let mut world = World::new(&[8]);
    world.create("r", 2, &json!({}));
    let annotations = json!({"scheduling.koordinator.sh/reservation-resize-allocatable": "{bad"});
    world.update("r", &|object| object["metadata"]["annotations"] = annotations.clone());
    while world.attempt() != "-" {}
    assert_eq!(world.objects["r"]["status"]["allocatable"], json!({"cpu": "2"}));
}
