//! The strategy LeastFragmented.

use super::*;

const PREFERENCES: [ScoringType; 3] =
    [ScoringType::LeastFragmented, ScoringType::MostAllocated, ScoringType::LeastAllocated];

/// With this strategy, and with as many pods elsewhere that request each of these.
fn among(type_: ScoringType, pods: i64, requests: &[Value]) -> Scheduler {
    let mut args = DeviceShareArgs::default();
    args.scoring_strategy.type_ = type_;
    let mut scheduler = Scheduler::new(DeviceShare::new(&args));
    for number in 0..pods {
        for (kind, requests) in requests.iter().enumerate() {
            let running = json!({"requests": requests, "node": "elsewhere"});
            scheduler.engine.set_pod(pod(&format!("e{kind}-{number}"), &running), scheduler.now);
        }
    }
    scheduler
}

/// A pod that has a share of a GPU of a node.
fn used(scheduler: &mut Scheduler, node: &str, minor: i32, percent: i64) {
    let resources = list(&format!("gpu-core={percent} gpu-memory-ratio={percent}"));
    let given = json!({"gpu": [{"minor": minor, "resources": resources}]});
    let annotations = json!({"scheduling.koordinator.sh/device-allocated": given});
    let running = json!({"requests": share(percent), "node": node, "annotations": annotations});
    scheduler.engine.set_pod(pod(&format!("{node}-{minor}"), &running), scheduler.now);
}

#[test]
fn a_share_goes_where_the_rest_is_of_use_to_the_pods_that_come() {
    let chosen = PREFERENCES.map(|type_| {
        let mut scheduler = among(type_, 50, &[share(40), share(30)]);
        for node in ["n1", "n2", "n3"] {
            scheduler.node(node, "gpu0");
        }
        used(&mut scheduler, "n1", 0, 30);
        used(&mut scheduler, "n2", 0, 40);
        scheduler.schedule("p", &share(40))
    });
    assert_eq!(chosen, ["p on n1: gpu0:40", "p on n2: gpu0:40", "p on n3: gpu0:40"], "30 %, 20 % and 60 % are left");
}

#[test]
fn the_gpu_of_a_node_is_chosen_likewise() {
    for places in [["", "", ""], ["@0/0", "@0/0", "@0/0"], ["@0/0", "@0/1", "@1/2"]] {
        let devices: Vec<String> = places.iter().enumerate().map(|(at, place)| format!("gpu{at}{place}")).collect();
        let mut scheduler = among(ScoringType::LeastFragmented, 50, &[share(40), share(30)]);
        scheduler.node("n1", &devices.join(" "));
        used(&mut scheduler, "n1", 1, 40);
        used(&mut scheduler, "n1", 2, 30);
        assert_eq!(scheduler.schedule("p", &share(40)), "p on n1: gpu2:40", "{places:?}");
        assert_eq!(scheduler.schedule("whole", &gpus(1)), "whole on n1: gpu0", "{places:?}");
    }
}

#[test]
fn pods_without_gpus_leave_the_cpu_that_gpus_need() {
    let needs = |cpu: &str| json!({"koordinator.sh/gpu": "100", "cpu": cpu});
    let mut scheduler = among(ScoringType::LeastFragmented, 10, &[needs("30"), needs("20")]);
    for (node, devices) in [("n1", "gpu0 gpu1"), ("n2", "gpu0"), ("n3", "gpu0 gpu1")] {
        scheduler.node(node, devices);
    }
    assert_eq!(scheduler.schedule("p", &json!({"cpu": "24"})), "p on n2: -", "40 CPUs are enough for one GPU");
    used(&mut scheduler, "n3", 0, 100);
    used(&mut scheduler, "n3", 1, 100);
    assert_eq!(scheduler.schedule("q", &json!({"cpu": "32"})), "q on n3: -", "no GPU is left to need it");
}

#[test]
fn whole_gpus_are_kept_together_where_pods_want_several() {
    let mut scheduler = among(ScoringType::LeastFragmented, 10, &[gpus(1), gpus(4)]);
    scheduler.node("n1", FOUR);
    scheduler.node("n2", FOUR);
    let first = scheduler.schedule("a", &gpus(1));
    let node = if first.contains("n1") { "n1" } else { "n2" };
    for (name, gpu) in [("b", "gpu1"), ("c", "gpu2"), ("d", "gpu3")] {
        assert_eq!(scheduler.schedule(name, &gpus(1)), format!("{name} on {node}: {gpu}"));
    }
}

#[test]
fn only_pods_that_a_node_allows_count_there() {
    let mut args = DeviceShareArgs::default();
    args.scoring_strategy.type_ = ScoringType::LeastFragmented;
    let mut scheduler = Scheduler::new(DeviceShare::new(&args));
    for number in 0..20 {
        let (percent, model) = if number % 2 == 0 { (50, "a") } else { (30, "b") };
        let mut known =
            Pod::clone(&pod(&format!("e{number}"), &json!({"requests": share(percent), "node": "elsewhere"})));
        let spec = json!({"containers": [], "nodeSelector": {"model": model}});
        let affinity = koord_scheduling::NodeAffinity::required(&serde_json::from_value(spec).unwrap());
        known.template = Arc::new(Template { affinity, ..Template::clone(&known.template) });
        scheduler.engine.set_pod(Arc::new(known), scheduler.now);
    }
    for (node, model) in [("n1", "a"), ("n2", "b")] {
        scheduler.labelled(node, "gpu0", &json!({"model": model}));
        scheduler.report(node, "gpu0");
    }
    assert_eq!(scheduler.schedule("p", &share(50)), "p on n1: gpu0:50", "the other half is of use there alone");
    assert_eq!(scheduler.schedule("q", &share(40)), "q on n2: gpu0:40");
}
