use proptest::prelude::*;
use serde_json::{Value, json};

use koord_scheduler_testing::devices::list;

use super::*;
use crate::devices::{
    gpus::Each,
    testing::{Case, allocation, node, request},
};

/// Four GPUs on two NUMA nodes, each with a network card of two virtual functions.
const MACHINE: &str = "gpu0@0/0 gpu1@0/0 gpu2@1/3 gpu3@1/3 rdma0@0/0+f1+f2 rdma1@1/3+f3+f4";

/// An allocator of all NUMA nodes for a node without labels.
fn plain<'a>(node: &'a NodeDevices, request: &'a DeviceRequest, scorer: &'a DeviceScorer) -> Allocator<'a> {
    let labels = NodeLabels::default();
    Allocator { node, labels, request, scorer, templates: None, numa_nodes: None, is_reserving: true }
}

fn near(gpus: i64, rdma: i64, scope: &str) -> Value {
    json!({
        "requests": {"koordinator.sh/gpu": (100 * gpus).to_string(), "koordinator.sh/rdma": rdma.to_string()},
        "hints": {"rdma": {"vfSelector": {}}},
        "joint": {"deviceTypes": ["gpu", "rdma"], "requiredScope": scope},
    })
}

#[test]
fn network_cards_are_those_of_the_switches_of_the_gpus() {
    let allocated = |used: &str, pod: Value| Case::new(MACHINE).used(used).allocate(&pod);
    assert_eq!(allocated("gpu0 gpu1", near(1, 1, "")), "gpu2 rdma1:1+f3");
    assert_eq!(allocated("", near(3, 1, "SamePCIe")), "gpu0 gpu1 gpu2 rdma0:1+f1 rdma1:1+f3");
    assert_eq!(
        allocated("", near(3, 1, "")),
        "gpu0 gpu1 gpu2 rdma0:1+f1 rdma1:1+f3",
        "one of each switch if there is one"
    );
    assert_eq!(allocated("rdma1:1+f3+f4", near(3, 1, "SamePCIe")), "U Insufficient rdma devices");
    assert_eq!(allocated("rdma1:1+f3+f4", near(3, 1, "")), "gpu0 gpu1 gpu2 rdma0:1+f1", "no more than there are");
    assert_eq!(allocated("rdma0:1+f1+f2", near(2, 1, "SamePCIe")), "U node(s) Device Joint-Allocate rules violation");
    assert_eq!(allocated("rdma0:1+f1+f2", near(2, 1, "")), "gpu0 gpu1 rdma1:1+f3");
}

#[test]
fn that_there_are_too_few_devices_is_said_before_that_others_are_far_away() {
    let mut pod = near(1, 1, "SamePCIe");
    pod["requests"]["koordinator.sh/fpga"] = json!("100");
    pod["joint"]["deviceTypes"] = json!(["gpu", "rdma", "fpga"]);
    let case = |used: &str| Case::new("gpu0@0/0 rdma0@1/3+f1 fpga0@0/0").used(used);
    assert_eq!(case("").allocate(&pod), "U node(s) Device Joint-Allocate rules violation");
    assert_eq!(case("fpga0").allocate(&pod), "U Insufficient fpga devices");
    assert_eq!(Case::new("gpu0@0/0 rdma0@0/0+f1 fpga0@0/0").allocate(&pod), "gpu0 rdma0:1+f1 fpga0:100");
}

#[test]
fn devices_that_are_reported_no_more_count_while_pods_have_them() {
    let case = |used: &str| Case::new("fpga0@0/0").used(used);
    let gpu = json!({"requests": {"koordinator.sh/gpu": "100"}});
    let rdma = |hints: Value| json!({"requests": {"koordinator.sh/rdma": "100"}, "hints": hints});
    assert_eq!(case("").allocate(&gpu), "UU Insufficient gpu devices");
    assert_eq!(case("gpu0:50").allocate(&gpu), "U Insufficient gpu devices");
    assert_eq!(case("rdma0:1").allocate(&rdma(json!({}))), "U Insufficient rdma devices");
    let functions = json!({"rdma": {"vfSelector": {}}});
    assert_eq!(case("rdma0:1").allocate(&rdma(functions)), "UU Insufficient rdma VirtualFunctions");
    // Counted as much as looked for.
    let (mut devices, scorer, request) = (node("fpga0"), DeviceScorer::default(), request(&gpu));
    for expected in [Refused::NoDevices(Kind::Gpu), Refused::Devices(Kind::Gpu)] {
        let gpus = request.any_gpus().unwrap();
        assert_eq!(devices.has_any_gpus(gpus, &mut Each::of(gpus)), Err(expected));
        assert_eq!(plain(&devices, &request, &scorer).allocate(&DeviceLimits::default()), Err(expected));
        devices.allocate(&allocation("gpu0"));
    }
}

#[test]
fn devices_of_several_kinds_need_not_be_near() {
    let pod =
        json!({"requests": {"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "100", "koordinator.sh/fpga": "50"}});
    assert_eq!(Case::new("gpu0@0/0 rdma0@1/1 fpga3").allocate(&pod), "gpu0 rdma0:100 fpga3:50");
    assert_eq!(Case::new("gpu0@0/0 rdma0@1/1").allocate(&pod), "UU Insufficient fpga devices");
    assert_eq!(
        Case::new("rdma0").allocate(&json!({"requests": {"koordinator.sh/gpu": "100"}})),
        "UU Insufficient gpu devices"
    );
}

#[test]
fn cards_that_are_planned_in_pairs_are_looked_for_when_the_pod_stays() {
    let planned = |used: &str| {
        Case::new(MACHINE).labelled("node.koordinator.sh/secondary-device-well-planned", "true").used(used)
    };
    assert_eq!(planned("").before_reserving().allocate(&near(1, 1, "")), "gpu0");
    assert_eq!(planned("").allocate(&near(1, 1, "")), "gpu0 rdma0:1+f1");
    let mut shared = near(1, 1, "");
    shared["requests"]["koordinator.sh/gpu"] = json!("50");
    assert_eq!(planned("").before_reserving().allocate(&shared), "gpu0:50 rdma0:1+f1");
}

#[test]
fn a_share_of_memory_is_a_percentage_too() {
    let memory = |used: &str, amount: &str| {
        let pod = json!({"requests": {"koordinator.sh/gpu-memory": amount}});
        Case::new("gpu0@0/0").used(used).allocate(&pod)
    };
    assert_eq!(memory("", "20Gi"), "gpu0:25");
    assert_eq!(memory("gpu0:75", "20Gi"), "gpu0:25");
    assert_eq!(memory("gpu0:76", "20Gi"), "U Insufficient GPU Devices");
}

#[test]
fn a_percentage_of_memory_that_is_more_than_is_left_is_refused() {
    let mut node = node("gpu0@0/0");
    let request = |text: Value| request(&json!({"requests": text}));
    let memory = request(json!({"koordinator.sh/gpu-memory": "27Gi"}));
    let ratio = |percent: i64| request(json!({"koordinator.sh/gpu-memory-ratio": percent.to_string()}));
    let allocate = |node: &NodeDevices, request: &DeviceRequest| {
        let scorer = DeviceScorer::default();
        let allocator = plain(node, request, &scorer);
        allocator.allocate(&DeviceLimits::default())
    };
    node.allocate(&allocate(&node, &memory).unwrap());
    // 27 of 80 GiB are 33.75 percent, of which 33 are written.
    assert_eq!(allocate(&node, &ratio(67)), Err(Refused::Gpus));
    assert!(allocate(&node, &ratio(66)).is_ok());
}

#[test]
fn numa_nodes_narrow_the_choice() {
    let on = |numa_node: u32, devices: &str| {
        let pod = json!({"requests": {"koordinator.sh/gpu": "200"}});
        Case::new(devices).on_numa_nodes(&[numa_node]).allocate(&pod)
    };
    assert_eq!(on(1, MACHINE), "gpu2 gpu3");
    assert_eq!(on(1, "gpu0@0/0 gpu1@-1/0 gpu2@1/1"), "gpu1 gpu2", "a device near all NUMA nodes");
    assert_eq!(on(1, "gpu0 gpu1"), "U Insufficient gpu devices", "nobody knows where they are");
}

#[test]
fn limits_order_and_narrow_the_choice() {
    let pod = request(&json!({"requests": {"koordinator.sh/rdma": "50"}}));
    let mut devices = node("rdma0 rdma1 rdma2");
    devices.allocate(&allocation("rdma0:100 rdma1:40"));
    let scorer = DeviceScorer::default();
    let allocator = plain(&devices, &pod, &scorer);
    let minor = |limits: &DeviceLimits| allocator.allocate(limits).map(|allocation| allocation.of(Kind::Rdma)[0].minor);
    let percent =
        |minor: i32, percent: i64| ((Kind::Rdma, minor), [(DeviceResource::Rdma, percent)].into_iter().collect());
    let one = |minor| BTreeSet::from([(Kind::Rdma, minor)]);
    assert_eq!(minor(&DeviceLimits::default()), Ok(2));
    assert_eq!(minor(&DeviceLimits { preferred: one(1), ..DeviceLimits::default() }), Ok(1));
    let only = |percent_of_third| Some(BTreeMap::from([percent(2, percent_of_third)]));
    assert_eq!(minor(&DeviceLimits { only: only(50), ..DeviceLimits::default() }), Ok(2));
    assert_eq!(minor(&DeviceLimits { only: only(49), ..DeviceLimits::default() }), Err(Refused::Devices(Kind::Rdma)));
}

#[test]
fn nodes_are_compared_by_what_one_device_takes() {
    let score = |used: &str, percent: i64| {
        Case::new("gpu0@0/0 gpu1@0/0")
            .used(used)
            .score(&json!({"requests": {"koordinator.sh/gpu": percent.to_string()}}))
    };
    // Of 200 percent, 100 stay; memory is not requested and counts by what is used.
    assert_eq!((score("", 100), score("", 200)), (75, 75));
    assert_eq!(score("gpu0", 100), 25);
}

#[test]
fn a_gpu_is_divided_by_the_one_template_that_fits() {
    let npu = |core: i64| {
        let requests = format!("gpu.shared=1 huawei.com/npu-core={core} huawei.com/npu-cpu=1 gpu-memory=8Gi");
        json!({"requests": list(&requests)})
    };
    let case = |model: &str| Case::new("gpu0@0/0").on_node("huawei", model, "");
    assert_eq!(case("Ascend-910B3").allocate(&npu(3)), "gpu0:10#small");
    assert_eq!(case("Ascend-910B4").allocate(&npu(3)), "gpu0:10", "two templates are alike");
    assert_eq!(case("Ascend-310").allocate(&npu(3)), "UU no matched GPU shared resource template");
}

/// Any pod that wants devices.
fn any_pod() -> impl Strategy<Value = Value> {
    let whole = (1..=4_i64).prop_map(|count| json!({"koordinator.sh/gpu": (100 * count).to_string()}));
    let share = (1..=100_i64).prop_map(|percent| json!({"koordinator.sh/gpu": percent.to_string()}));
    let memory = (1..=80_i64 << 10).prop_map(|mib| json!({"koordinator.sh/gpu-memory": format!("{mib}Mi")}));
    let ratio = (1..=100_i64).prop_map(|percent| json!({"koordinator.sh/gpu-memory-ratio": percent.to_string()}));
    let rdma = (1..=100_i64).prop_map(|percent| json!({"koordinator.sh/rdma": percent.to_string()}));
    let both = Just(near(1, 1, "SamePCIe")["requests"].clone());
    let requests = prop_oneof![whole, share, memory, ratio, rdma, both];
    let hints = prop_oneof![Just(Value::Null), Just(json!({"rdma": {"vfSelector": {}}}))];
    (requests, hints).prop_map(|(requests, hints)| json!({"requests": requests, "hints": hints}))
}

/// Any pod that wants GPUs, whichever they are.
fn any_gpus() -> impl Strategy<Value = Value> {
    let requests = |count: i64, percent: i64, form: u8| match form {
        0 => json!({"koordinator.sh/gpu": (100 * count).to_string()}),
        1 => json!({"koordinator.sh/gpu": percent.to_string()}),
        2 => json!({"koordinator.sh/gpu-memory": format!("{percent}Gi")}),
        _ => json!({
            "koordinator.sh/gpu.shared": count.to_string(), "koordinator.sh/gpu-memory-ratio": (count * percent).to_string(),
        }),
    };
    let pod = (1..=4_i64, 1..=100_i64, 0..4_u8);
    pod.prop_map(move |(count, percent, form)| json!({"requests": requests(count, percent, form)}))
}

proptest! {
    #[test]
    fn any_gpus_are_found_where_the_best_ones_are(
        machine in prop_oneof![Just(MACHINE), Just("gpu0 gpu1! gpu2 gpu3"), Just("gpu0! gpu1"), Just("rdma0"), Just("gpu0@0/0 gpu1")],
        pods in proptest::collection::vec(any_gpus(), 1..12),
    ) {
        let (mut devices, scorer) = (node(machine), DeviceScorer::default());
        for pod in &pods {
            let request = request(pod);
            let gpus = request.any_gpus().unwrap();
            let allocator = plain(&devices, &request, &scorer);
            let found = allocator.allocate(&DeviceLimits::default());
            let counted = devices.has_any_gpus(gpus, &mut Each::of(gpus));
            prop_assert_eq!(counted, found.clone().map(drop), "{} {:?}", machine, devices);
            let score = scorer.score(&gpus.each, &devices.gpus.total, &devices.gpus.free);
            prop_assert_eq!(score, allocator.score(&DeviceLimits::default()));
            if let Ok(allocation) = found {
                devices.allocate(&allocation);
            }
        }
    }

    #[test]
    fn nothing_is_given_out_twice_and_all_comes_back(pods in proptest::collection::vec(any_pod(), 1..12)) {
        let empty = node(MACHINE);
        let (mut devices, scorer) = (empty.clone(), DeviceScorer::default());
        let mut given = Vec::new();
        for pod in &pods {
            let request = request(pod);
            let allocator = plain(&devices, &request, &scorer);
            if let Ok(allocation) = allocator.allocate(&DeviceLimits::default()) {
                devices.allocate(&allocation);
                given.push(allocation);
            }
        }
        for kind in Kind::ALL {
            for (minor, device) in devices.of(kind) {
                prop_assert!(device.used.fits(&device.total), "{} {}: {:?}", kind, minor, device.used);
            }
        }
        let shares = given.iter().flat_map(AllocatedDevices::iter);
        let functions = shares.flat_map(|(_, share)| share.virtual_functions.clone());
        let mut functions: Vec<_> = functions.collect();
        functions.sort();
        let all = functions.len();
        functions.dedup();
        prop_assert_eq!(functions.len(), all);
        for given in &given {
            devices.release(given);
        }
        prop_assert_eq!(devices, empty);
    }
}
