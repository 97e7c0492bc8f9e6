use super::*;

const NOW: &str = "2026-01-01T00:10:00Z";

fn pod(name: &str, scheduler: &str, node: Option<&str>, more: &Value) -> Value {
    let mut pod = json!({
        "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedulerName": scheduler, "containers": [{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    merge(&mut pod, more);
    pod
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

fn lease(namespace: &str, name: &str) -> Value {
    json!({
        "kind": "Lease", "metadata": {"name": name, "namespace": namespace},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:09:58.000000Z"},
    })
}

fn shipped() -> Ours {
    Ours::of(None)
}

/// Severity, object and problem of what is found of these objects, each with the name of its check.
fn found(objects: &[Value], ours: &Ours) -> Vec<String> {
    let world = World::of_objects(objects);
    let situation = Situation::of(&world, ours, NOW.parse().unwrap());
    let found = Findings::of(situation.findings(), Vec::new()).to_json();
    let lines = found["findings"].as_array().unwrap().iter().map(|finding| {
        let word = |field: &str| finding[field].as_str().unwrap();
        assert!(word("remedy").len() > 10, "{finding}");
        format!("{} {}: {}: {}", word("severity"), word("check"), word("object"), word("problem"))
    });
    lines.collect()
}

/// Exactly one thing is found, and it begins and goes on like this.
#[track_caller]
fn finds(objects: &[Value], begins: &str, says: &str) {
    let found = found(objects, &shipped());
    let [one] = &found[..] else { panic!("not one finding: {found:#?}") };
    assert!(one.starts_with(begins) && one.contains(says), "{begins} … {says}\n{one}");
}

#[test]
fn schedulers_with_nodes_of_their_own_are_no_finding() {
    let none = json!({});
    let daemon = json!({"metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "agent"}]}});
    let ended = json!({"status": {"phase": "Succeeded"}});
    let objects = [
        pod("a", "koord-scheduler", Some("n1"), &none),
        pod("b", "default-scheduler", Some("n2"), &none),
        pod("agent", "default-scheduler", Some("n1"), &daemon),
        pod("static", "default-scheduler", Some("n1"), &annotated("kubernetes.io/config.mirror", "x")),
        pod("done", "default-scheduler", Some("n1"), &ended),
        lease("kube-system", "kube-scheduler"),
        lease("koordinator-system", "koord-scheduler"),
    ];
    assert_eq!(found(&objects, &shipped()), [""; 0]);
    let world = World::of_objects(&objects);
    let ours = shipped();
    let situation = Situation::of(&world, &ours, NOW.parse().unwrap());
    let schedulers = to_json(&situation)["schedulers"].clone();
    let expected = json!([
        {"name": "default-scheduler", "isOurs": false, "pods": 1, "daemonSetPods": 1, "waiting": 0, "nodes": 1, "sharedNodes": 0},
        {"name": "koord-scheduler", "isOurs": true, "pods": 1, "daemonSetPods": 0, "waiting": 0, "nodes": 1, "sharedNodes": 0},
    ]);
    assert_eq!(schedulers, expected);
}

#[test]
fn nodes_of_two_schedulers_are_found_and_counted() {
    let none = json!({});
    let objects = [
        pod("a", "koord-scheduler", Some("n1"), &none),
        pod("b", "koord-scheduler", Some("n1"), &none),
        pod("c", "default-scheduler", Some("n1"), &none),
    ];
    finds(&objects, "warning schedulers: Node n1: ", "shares them with default-scheduler");
    let (world, ours) = (World::of_objects(&objects), shipped());
    let situation = Situation::of(&world, &ours, NOW.parse().unwrap());
    let expected = json!([{"name": "n1", "pods": {"default-scheduler": 1, "koord-scheduler": 2}}]);
    assert_eq!(to_json(&situation)["sharedNodes"], expected);
    let text = to_text(&situation, Screen::ENDLESS);
    assert!(text.contains("\nn1           default-scheduler 1, koord-scheduler 2\n"), "{text}");
    let both = Ours { names: vec!["koord-scheduler".to_owned(), "default-scheduler".to_owned()], lease: None };
    assert_eq!(found(&objects, &both), [""; 0], "two profiles are one scheduler");
}

#[test]
fn pods_of_a_scheduler_that_does_not_run_are_found() {
    let reported = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}});
    let gated = json!({"spec": {"schedulingGates": [{"name": "example.com/gate"}]}});
    let new = json!({"metadata": {"creationTimestamp": "2026-01-01T00:09:30Z"}});
    let others = [&reported, &gated, &new].map(|more| pod("other", "koord-schedule", None, more));
    assert_eq!(found(&others, &shipped()), [""; 0]);
    let waits = pod("a", "koord-schedule", None, &json!({}));
    finds(&[waits], "error schedulers: Pod shop/a: ", "schedulerName is \"koord-schedule\"");
}

#[test]
fn members_of_incomplete_gangs_do_not_mean_that_no_scheduler_runs() {
    let member = |name: &str, gang: &str, min: &str| {
        let annotations =
            json!({"gang.scheduling.koordinator.sh/name": gang, "gang.scheduling.koordinator.sh/min-available": min});
        pod(name, "koord-scheduler", None, &json!({"metadata": {"annotations": annotations}}))
    };
    let of_group = |name: &str| {
        pod(
            name,
            "koord-scheduler",
            None,
            &json!({"metadata": {"labels": {"pod-group.scheduling.sigs.k8s.io": "job"}}}),
        )
    };
    let group = |min: u32, groups: &str| {
        let metadata = json!({"name": "job", "namespace": "shop", "annotations": {"gang.scheduling.koordinator.sh/groups": groups}});
        json!({"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": min}})
    };
    finds(&[member("a", "g", "3"), member("b", "g", "3")], "note schedulers: Pod shop/a, shop/b: ", "2 of the 3 pods");
    finds(&[of_group("a"), group(2, "[]")], "note schedulers: Pod shop/a: ", "gang shop/job has 1 of the 2 pods");
    finds(&[of_group("a")], "note schedulers: Pod shop/a: ", "nothing declares how many pods gang shop/job needs");
    let others = r#"["shop/job","shop/other"]"#;
    finds(&[of_group("a"), group(1, others)], "note schedulers: Pod shop/a: ", "gang shop/other has no pods");
    // Nothing holds these up.
    finds(&[of_group("a"), group(1, "[]")], "error schedulers: Pod shop/a: ", "none of this name runs");
    finds(&[member("a", "g", "1")], "error schedulers: Pod shop/a: ", "none of this name runs");
}

#[test]
fn leaders_that_fight_are_found() {
    let ours = lease("koordinator-system", "koord-scheduler");
    let original = lease("koord-go", "koord-scheduler");
    finds(&[ours.clone(), original], "error leases: Lease: ", "koord-scheduler by koord-go/koord-scheduler");
    let mut old = lease("koord-go", "koord-scheduler");
    old["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z".into();
    assert_eq!(found(&[ours, old], &shipped()), [""; 0], "nobody holds the other");

    let kube = lease("kube-system", "kube-scheduler");
    let of = |name: &str, lease: (&str, &str)| Ours {
        names: vec![name.to_owned()],
        lease: Some((lease.0.to_owned(), lease.1.to_owned())),
    };
    let both = found(std::slice::from_ref(&kube), &of("default-scheduler", ("koordinator-system", "koord-scheduler")));
    assert!(both.len() == 1 && both[0].contains("both place the same pods"), "{both:?}");
    let objects = [kube, pod("a", "default-scheduler", Some("n1"), &json!({}))];
    let shared = found(&objects, &of("koord-scheduler", ("kube-system", "kube-scheduler")));
    assert!(shared.len() == 1 && shared[0].contains("with the Lease of kube-scheduler"), "{shared:?}");
}

#[test]
fn what_another_scheduler_ignores_is_found() {
    let gpu = json!({"spec": {"containers": [{"resources": {"limits": {"koordinator.sh/gpu-core": "50"}}}]}});
    let affinity = annotated("scheduling.koordinator.sh/reservation-affinity", "{}");
    for (more, name) in [(gpu, "koordinator.sh/gpu-core"), (affinity, "reservation-affinity")] {
        let objects =
            [pod("a", "default-scheduler", Some("n1"), &more), pod("b", "koord-scheduler", Some("n2"), &more)];
        finds(&objects, "warning pods: Pod shop/a: default-scheduler places them and ignores", name);
    }
}

/// What is found of the allocations of a node that two schedulers share.
fn allocations(objects: &[Value]) -> Vec<String> {
    found(objects, &shipped()).into_iter().filter(|line| line.contains(" allocations: ")).collect()
}

#[test]
fn cpus_devices_and_reservations_that_others_do_not_know_are_found() {
    let whole = json!({"status": {"qosClass": "Guaranteed"}});
    let topology = |policy: &str| {
        let text = json!({ "policy": policy }).to_string();
        let mut topology = annotated("kubelet.koordinator.sh/cpu-manager-policy", &text);
        merge(&mut topology, &json!({"kind": "NodeResourceTopology", "metadata": {"name": "n1"}}));
        topology
    };
    let cpuset = annotated("scheduling.koordinator.sh/resource-status", r#"{"cpuset":"0-1"}"#);
    let pods = [pod("a", "koord-scheduler", Some("n1"), &cpuset), pod("b", "default-scheduler", Some("n1"), &whole)];
    let with = |object: Value| [pods.to_vec(), vec![object]].concat();
    assert_eq!(allocations(&with(topology("none"))), [""; 0]);
    let line = allocations(&with(topology("static"))).concat();
    assert!(line.starts_with("warning allocations: Node n1: the kubelet's CPU manager"), "{line}");

    let card = json!({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}});
    let given = annotated("scheduling.koordinator.sh/device-allocated", r#"{"gpu":[{"minor":0}]}"#);
    let device = json!({"kind": "Device", "metadata": {"name": "n1"}});
    let objects =
        [pod("a", "koord-scheduler", Some("n1"), &given), pod("b", "default-scheduler", Some("n1"), &card), device];
    assert_eq!(allocations(&objects[..2]), [""; 0], "DeviceShare gives out nothing there");
    let line = allocations(&objects).concat();
    assert!(line.contains("the vendor's device plugin"), "{line}");

    let reservation = |cpu: &str| {
        json!({
            "kind": "Reservation", "metadata": {"name": "r"},
            "status": {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "4"}, "allocated": {"cpu": cpu}},
        })
    };
    let node =
        json!({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "5", "memory": "8Gi"}}});
    let foreign = pod("b", "default-scheduler", Some("n1"), &json!({}));
    let objects = |cpu| [node.clone(), reservation(cpu), foreign.clone()];
    assert_eq!(allocations(&objects("1")), [""; 0], "3 of 5 cores are kept, and 2 requested");
    let line = allocations(&objects("0")).concat();
    assert!(line.contains("use what Reservations keep there"), "{line}");
}

#[test]
fn priorities_of_others_are_held_against_bands_and_evictions() {
    let class = json!({"kind": "PriorityClass", "metadata": {"name": "important"}, "value": 9100});
    let koord = json!({"kind": "PriorityClass", "metadata": {"name": "koord-prod"}, "value": 9999});
    finds(
        &[class.clone(), koord.clone()],
        "note priorities: PriorityClass important: ",
        "in the band 9000–9999 of koord-prod",
    );
    let important = json!({"spec": {"priorityClassName": "important", "priority": 9100}});
    let objects = [class, koord, pod("a", "default-scheduler", Some("n2"), &important)];
    finds(&objects, "warning priorities: PriorityClass important: ", "1 of other schedulers among them");

    let none = json!({});
    let never = json!({"spec": {"priority": 9100, "preemptionPolicy": "Never"}});
    let evictions = |more: &Value| {
        let objects = [pod("a", "koord-scheduler", Some("n1"), &none), pod("b", "other", Some("n1"), more)];
        found(&objects, &shipped()).into_iter().filter(|line| line.contains(" priorities: ")).collect::<Vec<_>>()
    };
    assert_eq!(evictions(&never), [""; 0]);
    let line = evictions(&important).concat();
    assert!(line.starts_with("note priorities: Pod: pods of other schedulers have priorities up to 9100"), "{line}");
}

#[test]
fn a_webhook_that_may_be_skipped_is_found_where_a_profile_chooses_the_scheduler() {
    let entry = |policy: &str| {
        json!({
            "kind": "MutatingWebhookConfiguration", "metadata": {"name": "koordinator"},
            "webhooks": [{"name": "mpod.koordinator.sh", "failurePolicy": policy, "clientConfig": {"service": {"path": "/mutate-pod"}}}],
        })
    };
    let profile = json!({"kind": "ClusterColocationProfile", "metadata": {"name": "batch"}, "spec": {"schedulerName": "koord-scheduler"}});
    assert_eq!(found(&[entry("Ignore")], &shipped()), [""; 0]);
    finds(
        &[entry("Ignore"), profile.clone()],
        "warning webhooks: MutatingWebhookConfiguration koordinator, entry mpod",
        "batch",
    );
    assert_eq!(found(&[entry("Fail"), profile.clone()], &shipped()), [""; 0]);
    let foreign = pod("a", "default-scheduler", Some("n1"), &json!({}));
    finds(&[entry("Fail"), profile, foreign], "note webhooks: ", "pods of other schedulers cannot be created either");
}
