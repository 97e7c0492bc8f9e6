//! What would unblock a pod, according to `koordctl why`: each answer holds when its change is made. Pods of files, gangs and
//! reservations.

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::why::AT;

pub(crate) fn node(name: &str, members: &Value) -> Value {
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "10", "koordinator.sh/gpu": "200"});
    let labels = json!({"kubernetes.io/hostname": name});
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    });
    merge(&mut node, members);
    node
}

pub(crate) fn pod(name: &str, members: &Value) -> Value {
    let container = json!({"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "1"}}});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"schedulerName": "koord-scheduler", "containers": [container]},
    });
    merge(&mut pod, members);
    pod
}

pub(crate) fn requesting(name: &str, requests: &Value) -> Value {
    pod(name, &json!({"spec": {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": requests}}]}}))
}

pub(crate) fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

pub(crate) fn merge(object: &mut Value, members: &Value) {
    for (key, value) in members.as_object().unwrap() {
        match &mut object[key] {
            known @ Value::Object(_) if value.is_object() => merge(known, value),
            known => *known = value.clone(),
        }
    }
}

fn asked(objects: &[Value], line: &[&str]) -> Result<Answer, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.json");
    std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    let file = file.display().to_string();
    let line = ["koordctl", "why", AT, "-n", "shop", "-f", &*file].into_iter().chain(line.iter().copied());
    let cli = <Cli as clap::Parser>::try_parse_from(line).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
}

fn document(objects: &[Value], name: &str) -> Value {
    serde_json::from_str(&asked(objects, &[name, "-o", "json"]).unwrap().text).unwrap()
}

/// The answers. Each is also made by hand, and holds.
fn unblock(objects: &[Value], name: &str) -> Vec<String> {
    let answer = document(objects, name);
    assert_eq!(answer["placed"], false, "{answer:#}");
    let all = answer["unblock"].as_array().unwrap();
    for one in
        all.iter().filter(|one| one["changes"].as_array().unwrap().iter().all(|change| change["added"] == json!([])))
    {
        let changed = changed(objects, one);
        if one["changes"][0]["kind"] == "gangMinimum" {
            assert_eq!(asked(&changed, &["gang", "train"]).unwrap().code, 0, "{}", one["text"]);
            continue;
        }
        let after = document(&changed, name);
        let decided = after["outcome"]["bind"]["node"].as_str().or_else(|| after["outcome"]["wait"]["node"].as_str());
        assert_eq!(decided, one["node"].as_str(), "{}: {after:#}", one["text"]);
    }
    all.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

fn changed(objects: &[Value], one: &Value) -> Vec<Value> {
    let mut objects = objects.to_vec();
    let edits = one["changes"].as_array().unwrap().iter().flat_map(|change| change["edits"].as_array().unwrap());
    for edit in edits {
        let key = |object: &Value| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if namespace.is_empty() { name } else { format!("{namespace}/{name}") }
        };
        let wanted =
            |object: &&mut Value| object["kind"] == edit["kind"] && *key(object) == *edit["object"].as_str().unwrap();
        let object = objects.iter_mut().find(wanted).unwrap();
        let (parent, last) = edit["path"].as_str().unwrap().rsplit_once('/').unwrap();
        let last = last.replace("~1", "/");
        let mut at = &mut *object;
        for token in parent.split('/').skip(1) {
            at = match at {
                Value::Array(list) => &mut list[token.parse::<usize>().unwrap()],
                other => &mut other[token.replace("~1", "/")],
            };
        }
        match at {
            Value::Array(list) => list.push(edit["value"].clone()),
            at if last == "-" => *at = json!([edit["value"]]),
            at if edit["value"].is_null() => _ = at.as_object_mut().unwrap().remove(&last),
            at => at[last] = edit["value"].clone(),
        }
    }
    objects
}

#[test]
fn a_request_becomes_as_small_as_the_largest_gap() {
    let objects = [
        node("n1", &json!({})),
        node("n2", &json!({})),
        on("n1", requesting("a", &json!({"cpu": "3"}))),
        on("n2", requesting("b", &json!({"cpu": "1500m"}))),
        requesting("large", &json!({"cpu": "3", "memory": "1Gi"})),
    ];
    assert_eq!(
        unblock(&objects, "large"),
        [
            "would be placed on n2 if it requested at most 2500m of cpu (it requests 3) [2 nodes are alike]",
            "would be placed on n1-like if there were another node like n1, with nothing on it",
            "would be placed on n2 if pod shop/b ended",
            "would be placed on n1 if pod shop/a ended",
        ]
    );
    let text = asked(&objects, &["large"]).unwrap().text;
    assert!(
        text.contains("\nwould be placed on n1-like if there were another node like n1, with nothing on it\n"),
        "{text}"
    );
    assert!(text.ends_with("\nwould be placed on n1 if pod shop/a ended\n"), "{text}");
}

/// What would unblock `p` by the ends of others.
fn ends(objects: &[Value]) -> Vec<String> {
    unblock(objects, "p").into_iter().filter(|text| text.contains(" ended")).collect()
}

#[test]
fn what_is_in_the_way_is_named_with_when_it_ends() {
    let running = |name: &str, cpu: &str| on("n1", requesting(name, &json!({"cpu": cpu})));
    let mut timed = running("timed", "3");
    let limits = json!({
        "metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]},
        "spec": {"activeDeadlineSeconds": 600}, "status": {"startTime": "2026-01-01T00:00:00Z"},
    });
    merge(&mut timed, &limits);
    let job = |seconds: u32| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop", "uid": "j"},
            "spec": {"activeDeadlineSeconds": seconds}, "status": {"startTime": "2026-01-01T00:00:00Z"},
        })
    };
    let of = |job: Value| {
        [node("n1", &json!({})), running("small", "1"), timed.clone(), job, requesting("p", &json!({"cpu": "3"}))]
    };
    let expected =
        |at: &str| vec![format!("would be placed on n1 if pod shop/timed ended (expected by 2026-01-01T00:{at}:00Z)")];
    assert_eq!(ends(&of(job(3600))), expected("10"), "its own deadline comes first");
    assert_eq!(ends(&of(job(300))), expected("05"), "the deadline of its Job comes first");
    let answer = document(&of(job(300)), "p");
    let change = &answer["unblock"].as_array().unwrap().last().unwrap()["changes"][0];
    assert_eq!((&change["kind"], &change["expectedAt"]), (&json!("podEnded"), &json!("2026-01-01T00:05:00Z")));
    assert_eq!(answer["unblockLimits"], json!([]));
}

#[test]
fn two_pods_of_a_node_a_gang_and_a_reservation_may_end_for_a_pod() {
    let running = |name: &str, cpu: &str| on("n1", requesting(name, &json!({"cpu": cpu})));
    let whole = requesting("p", &json!({"cpu": "4"}));
    let pair = [node("n1", &json!({})), running("a", "2"), running("b", "2"), whole.clone()];
    assert_eq!(ends(&pair), ["would be placed on n1 if pod shop/a ended and pod shop/b ended"]);
    let mut daemon = running("b", "2");
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    merge(&mut daemon, &json!({"metadata": {"ownerReferences": owner}}));
    assert_eq!(
        ends(&[node("n1", &json!({})), running("a", "2"), daemon, whole.clone()]),
        [""; 0],
        "it would come again"
    );

    let mut members = gang(3, 3, "1");
    for member in members.iter_mut().filter(|object| object["kind"] == "Pod") {
        member["spec"]["nodeName"] = json!("n1");
    }
    members.push(whole);
    assert_eq!(ends(&members), ["would be placed on n1 if gang shop/train (3 pods) ended"]);

    let template = json!({"spec": {
        "schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
    }});
    let reservation = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": "r", "uid": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"template": template, "owners": [{"labelSelector": {"matchLabels": {"app": "db"}}}], "ttl": "1h"},
        "status": {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "3"}},
    });
    let objects = [node("n1", &json!({})), reservation, requesting("p", &json!({"cpu": "2"}))];
    assert_eq!(ends(&objects), ["would be placed on n1 if reservation r ended (expected by 2026-01-01T01:00:00Z)"]);
}

#[test]
fn it_is_said_that_not_every_end_was_tried() {
    let container = json!([{"name": "c", "image": "app:1"}]);
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let mut objects = vec![node("n1", &json!({"status": {"allocatable": {"pods": "100"}}}))];
    objects.extend(
        (0..60).map(|number| on("n1", pod(&format!("q{number}"), &json!({"spec": {"containers": container}})))),
    );
    objects.push(pod("p", &json!({"spec": {"containers": container, "affinity": apart}})));
    let limits = document(&objects, "p")["unblockLimits"].clone();
    let limit = limits[0].as_str().unwrap_or_default();
    assert!(limit.starts_with("only 48 of ") && limit.ends_with(" that might let it in were tried"), "{limits}");
    assert!(asked(&objects, &["p"]).unwrap().text.contains(limit));
}

#[test]
fn what_keeps_a_pod_from_a_node_is_named_by_what_would_let_it_there() {
    let taint = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    let tainted = node("n1", &json!({"spec": {"taints": taint}}));
    let cordon = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    let cordoned = node("n1", &json!({"spec": {"unschedulable": true, "taints": cordon}}));
    let plain = node("n1", &json!({}));
    let port = json!([{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}]);
    let with_port = |name: &str| pod(name, &json!({"spec": {"containers": port}}));
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let selected = json!({"matchExpressions": [{"key": "disk", "operator": "Exists"}]});
    let disk =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selected]}}});
    let affinity = "scheduling.koordinator.sh/reservation-affinity";
    let cases: &[(&str, Vec<Value>, &str)] = &[
        ("taint", vec![tainted.clone(), pod("p", &json!({}))], "it tolerated the taint gpu=yes:NoSchedule"),
        ("cordon", vec![cordoned, pod("p", &json!({}))], "n1 were uncordoned"),
        (
            "selector",
            vec![plain.clone(), pod("p", &json!({"spec": {"nodeSelector": {"example.com/disk": "ssd"}}}))],
            "it were without nodeSelector example.com/disk=ssd",
        ),
        (
            "affinity",
            vec![plain.clone(), pod("p", &json!({"spec": {"affinity": disk}}))],
            "it were without its required node affinity",
        ),
        ("port", vec![plain.clone(), on("n1", with_port("q")), with_port("p")], "it did not use host port 8080"),
        (
            "anti-affinity",
            vec![plain.clone(), on("n1", pod("q", &json!({}))), pod("p", &json!({"spec": {"affinity": apart}}))],
            "it were without its required pod anti-affinity term (topologyKey kubernetes.io/hostname)",
        ),
        (
            "gate",
            vec![plain.clone(), pod("p", &json!({"spec": {"schedulingGates": [{"name": "example.com/g"}]}}))],
            "its scheduling gate example.com/g were removed",
        ),
        (
            "volume",
            vec![
                plain.clone(),
                pod(
                    "p",
                    &json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}),
                ),
            ],
            "it did not need the volume of claim data",
        ),
        (
            "two at once",
            vec![tainted, on("n1", requesting("q", &json!({"cpu": "3"}))), requesting("p", &json!({"cpu": "2"}))],
            "it tolerated the taint gpu=yes:NoSchedule and it requested at most 1 of cpu (it requests 2)",
        ),
        (
            "too many pods",
            vec![
                node("n1", &json!({"status": {"allocatable": {"pods": "1"}}})),
                on("n1", pod("q", &json!({}))),
                pod("p", &json!({})),
            ],
            "n1 allowed 2 pods",
        ),
        (
            "against the pod and its nodes alike",
            vec![
                plain.clone(),
                pod(
                    "p",
                    &json!({"metadata": {"annotations": {(affinity): "{\"reservationSelector\":{\"pool\":\"x\"}}"}}}),
                ),
            ],
            "it were without the annotation scheduling.koordinator.sh/reservation-affinity",
        ),
        (
            "what no node offers",
            vec![plain, requesting("p", &json!({"example.com/card": "1", "example.com/key": "1"}))],
            "it did not request example.com/card, example.com/key, of which no node offers any",
        ),
    ];
    for (name, objects, expected) in cases {
        let answers = unblock(objects, "p");
        assert_eq!(answers.first(), Some(&format!("would be placed on n1 if {expected}")), "{name}: {answers:#?}");
    }
}

#[test]
fn a_skew_and_a_threshold_are_as_small_as_they_may_be() {
    let zone = |name: &str, zone: &str| node(name, &json!({"metadata": {"labels": {"zone": zone}}}));
    let constraint = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let mut objects = vec![
        zone("n1", "a"),
        node("n2", &json!({"metadata": {"labels": {"zone": "b"}}, "spec": {"unschedulable": true}})),
    ];
    objects.extend((0..3).map(|number| on("n1", pod(&format!("q{number}"), &json!({})))));
    objects.push(pod("p", &json!({"spec": {"topologySpreadConstraints": constraint}})));
    let answers = unblock(&objects, "p");
    assert!(
        answers.contains(&"would be placed on n1 if its maxSkew over zone were 4 (it is 1)".to_owned()),
        "{answers:#?}"
    );
    assert!(answers.contains(&"would be placed on n2 if n2 were uncordoned".to_owned()), "{answers:#?}");

    let usage = json!({"nodeMetric": {"nodeUsage": {"resources": {"cpu": "3", "memory": "1Gi"}}}, "updateTime": "2026-01-01T00:00:30Z"});
    let metric = json!({
        "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"},
        "spec": {}, "status": usage,
    });
    let thresholds = json!({"scheduling.koordinator.sh/usage-thresholds": "{\"usageThresholds\":{\"cpu\":65}}"});
    let objects = [node("n1", &json!({"metadata": {"annotations": thresholds}})), metric, pod("p", &json!({}))];
    let answers = unblock(&objects, "p");
    let threshold = answers.iter().find(|answer| answer.contains("usage threshold of cpu of n1 were at least "));
    assert!(threshold.is_some(), "{answers:#?}");
}

#[test]
fn a_pod_may_need_fewer_devices() {
    let whole = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi"});
    let half = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"});
    let gpu = json!({"type": "gpu", "id": "g0", "minor": 0, "health": true, "resources": whole});
    let device = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n1"},
        "spec": {"devices": [gpu]},
    });
    let mut user = on("n1", requesting("q", &half));
    let allocated = json!({"gpu": [{"minor": 0, "resources": half}]}).to_string();
    merge(&mut user, &json!({"metadata": {"annotations": {"scheduling.koordinator.sh/device-allocated": allocated}}}));
    let wanted = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"});
    let objects = [node("n1", &json!({"status": {"allocatable": whole}})), device, user, requesting("p", &wanted)];
    let answers = unblock(&objects, "p");
    let fewer = "would be placed on n1 if it requested at most 50 of koordinator.sh/gpu-core (it requests 100) \
                 and it requested at most 50 of koordinator.sh/gpu-memory-ratio (it requests 100)";
    assert!(answers.contains(&fewer.to_owned()), "{answers:#?}");
}

#[test]
fn a_quota_is_as_large_as_it_must_be() {
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"max": {"cpu": "2", "memory": "8Gi"}, "min": {"cpu": "1", "memory": "1Gi"}},
    });
    let label = json!({"metadata": {"labels": {"quota.scheduling.koordinator.sh/name": "team"}}});
    let labelled = |name: &str, cpu: &str| {
        let mut pod = requesting(name, &json!({"cpu": cpu}));
        merge(&mut pod, &label);
        pod
    };
    let objects = [node("n1", &json!({})), quota, on("n1", labelled("q", "1500m")), labelled("p", "1")];
    let answers = unblock(&objects, "p");
    assert_eq!(
        answers[..2],
        [
            "would be placed on n1 if the max of quota shop/team were 2500m of cpu (it is 2)",
            "would be placed on n1 if it requested at most 500m of cpu (it requests 1)",
        ]
    );
}

pub(crate) fn gang(members: usize, min: u32, cpu: &str) -> Vec<Value> {
    let label = json!({"metadata": {"labels": {"pod-group.scheduling.sigs.k8s.io": "train"}}});
    let group = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"}, "spec": {"minMember": min},
    });
    let member = |number: usize| {
        let mut pod = requesting(&format!("m{number}"), &json!({"cpu": cpu}));
        merge(&mut pod, &label);
        pod
    };
    [node("n1", &json!({})), group].into_iter().chain((0..members).map(member)).collect()
}

#[test]
fn a_gang_says_how_many_are_missing_and_what_becomes_of_its_members() {
    assert_eq!(
        unblock(&gang(2, 3, "1"), "m0"),
        [
            "would be placed on n1 if 1 more pod like it were in gang shop/train (2 of 3 are)",
            "would be placed on n1 if the minMember of PodGroup shop/train were 2 (it is 3)",
        ]
    );
    assert_eq!(
        unblock(&gang(2, 3, "2"), "m0"),
        ["would be placed on n1 if the minMember of PodGroup shop/train were 2 (it is 3)"],
        "a third member finds no room"
    );
    let representative = unblock(&gang(3, 3, "2"), "m2");
    assert_eq!(
        representative,
        [
            "would be placed on n1 if the minMember of PodGroup shop/train were 2 (it is 3)",
            "would be placed on n1 if there were another node like n1, with nothing on it",
        ]
    );
    let said = |objects: &[Value]| {
        let answer = asked(objects, &["gang", "shop/train"]).unwrap();
        (answer.code, answer.text.lines().next().unwrap().to_owned())
    };
    assert_eq!(
        said(&gang(2, 3, "1")),
        (
            1,
            "gang shop/train has 2 members and needs 3, 0 have their places: it has 2 of 3 members, so that none is tried"
                .to_owned()
        )
    );
    assert_eq!(
        said(&gang(3, 3, "2")).1,
        "gang shop/train has 3 members and needs 3, 0 have their places: it waits: not all of 3 members find a node"
    );
    assert_eq!(
        said(&gang(3, 3, "1")),
        (0, "gang shop/train has 3 members and needs 3, 0 have their places: it would be placed".to_owned())
    );
    let missing = "\nshop/m0 would be placed on n1 if 1 more pod like it were in gang shop/train (2 of 3 are)\n";
    let text = asked(&gang(2, 3, "1"), &["gang", "train"]).unwrap().text;
    assert!(text.contains(missing), "{text}");
    let json: Value =
        serde_json::from_str(&asked(&gang(2, 3, "1"), &["gang", "train", "-o", "json"]).unwrap().text).unwrap();
    let kinds = json["unblock"].as_array().unwrap().iter().map(|one| &one["changes"][0]["kind"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["gangMembers", "gangMinimum"]);
    assert_eq!(json["unblockOf"], json!("shop/m0"));
    let json: Value =
        serde_json::from_str(&asked(&gang(3, 3, "1"), &["gang", "train", "-o", "json"]).unwrap().text).unwrap();
    assert_eq!((&json["unblock"], &json["unblockOf"]), (&json!([]), &Value::Null));
    assert_eq!((&json["members"][0]["pod"], &json["members"][0]["wouldBe"]), (&json!("shop/m0"), &json!("n1")));
    assert_eq!(
        asked(&gang(1, 1, "1"), &["gang", "shop/trai"]).unwrap_err(),
        "there is no gang shop/trai; did you mean \"shop/train\"?"
    );
}

#[test]
fn a_pod_of_a_file_is_asked_about_before_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, object: &Value| {
        let file = folder.path().join(name);
        std::fs::write(&file, object.to_string()).unwrap();
        file.display().to_string()
    };
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000});
    let objects = [node("n1", &json!({})), class, on("n1", requesting("q", &json!({"cpu": "3"})))];
    let new = |priority: Option<&str>| {
        let mut pod = requesting("new", &json!({"cpu": "2"}));
        pod["spec"]["priorityClassName"] = json!(priority);
        pod
    };
    let of = |pod: &Value| asked(&objects, &["--file", &put("pod.json", pod)]);
    let low = of(&new(None)).unwrap();
    assert_eq!(low.code, 1);
    assert!(
        low.text.contains("would be placed on n1 if it requested at most 1 of cpu (it requests 2)"),
        "{}",
        low.text
    );
    let high = of(&new(Some("high"))).unwrap().text;
    assert!(high.contains("room would be made on n1 by the eviction of shop/q"), "{high}");
    assert_eq!(
        of(&new(Some("higher"))).unwrap_err(),
        "there is no PriorityClass higher; create it, or write spec.priority into the pod"
    );
    assert!(of(&node("n2", &json!({}))).unwrap_err().starts_with("--file takes a Pod, not Node"));
    let mut misspelt = new(None);
    misspelt["spec"]["contaners"] = json!([]);
    let refused = of(&misspelt).unwrap_err();
    assert!(refused.contains(r#"unknown field "spec.contaners""#), "{refused}");
    let refused = of(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": {}})).unwrap_err();
    assert!(refused.starts_with("an API server would not take the pod of --file: "), "{refused}");
    assert!(refused.contains("spec.containers: Required value"), "{refused}");
    let known = of(&requesting("q", &json!({"cpu": "1"}))).unwrap_err();
    assert_eq!(known, "there is a pod shop/q already; ask about it with koordctl why q -n shop");
}

#[test]
fn a_reservation_is_asked_about_as_a_pod_is() {
    let template = json!({"spec": {
        "schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}],
    }});
    let reservation = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": "r", "uid": "r"},
        "spec": {"template": template, "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}], "ttl": "1h"},
    });
    let objects = [node("n1", &json!({})), reservation];
    let answer = asked(&objects, &["reservation", "r"]).unwrap();
    assert!(
        answer.text.starts_with("Reservation r waits: 0/1 nodes are available: 1 Insufficient cpu"),
        "{}",
        answer.text
    );
    assert!(
        answer.text.contains("would be placed on n1 if it requested at most 4 of cpu (it requests 8)"),
        "{}",
        answer.text
    );
    assert!(
        asked(&objects, &["reservation", "s"]).unwrap_err().starts_with("there is no reservation s to be placed; ")
    );
}

#[test]
fn a_reservation_names_the_pods_that_use_it_and_why_others_do_not() {
    let template = json!({"spec": {
        "schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    }});
    let reservation = |name: &str, status: &Value| {
        json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "template": template, "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}], "ttl": "1h",
                "allocateOnce": false,
            },
            "status": status,
        })
    };
    let user = json!([{"namespace": "shop", "name": "user", "uid": "user"}]);
    let available = json!({"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "2"}, "currentOwners": user});
    let allocated = json!({"scheduling.koordinator.sh/reservation-allocated": "{\"name\":\"r\",\"uid\":\"r\"}"});
    let named = json!({"scheduling.koordinator.sh/reservation-affinity": "{\"name\":\"r\"}"});
    let ready =
        json!([{"type": "Ready", "status": "False", "reason": "Expired", "message": "it was not used in time"}]);
    let objects = [
        node("n1", &json!({})),
        node("n2", &json!({})),
        reservation("r", &available),
        reservation("old", &json!({"phase": "Failed", "nodeName": "n1", "conditions": ready})),
        on("n1", pod("user", &json!({"metadata": {"uid": "user", "annotations": allocated}}))),
        on("n2", pod("elsewhere", &json!({}))),
        requesting("waits", &json!({"cpu": "16"})),
        pod("named", &json!({"metadata": {"labels": {"app": "db"}, "annotations": named}})),
    ];
    let answer: Value =
        serde_json::from_str(&asked(&objects, &["reservation", "r", "-o", "json"]).unwrap().text).unwrap();
    let about = &answer["reservation"];
    assert_eq!(
        [&about["phase"], &about["node"], &about["accepted"]],
        [&json!("Available"), &json!("n1"), &json!(true)]
    );
    assert_eq!((&about["matching"], &about["users"]), (&json!(3), &json!(1)), "{about:#}");
    let pods = about["pods"].as_array().unwrap();
    let names: Vec<&Value> = pods.iter().map(|pod| &pod["pod"]).collect();
    assert_eq!(names, ["shop/user", "shop/named", "shop/waits", "shop/elsewhere"], "{about:#}");
    assert_eq!((&pods[0]["uses"], &pods[0]["reason"]), (&json!(true), &Value::Null));
    assert_eq!((&pods[1]["matches"], &pods[1]["code"]), (&json!(false), &json!("ReservationOwnerMismatch")));
    assert!(pods[2]["matches"] == true && pods[2]["code"].is_string(), "{about:#}");
    assert_eq!(pods[3]["reason"], json!("the pod is on n2, and the Reservation is on n1"));
    let text = asked(&objects, &["reservation", "r"]).unwrap().text;
    assert!(text.contains("\npods that match its owners: 3, that use it: 1\nPOD "), "{text}");

    let old = asked(&objects, &["reservation", "old"]).unwrap();
    assert_eq!(old.code, 1);
    assert!(old.text.starts_with("Reservation old (Failed) is on n1: it was not used in time\n"), "{}", old.text);
    assert!(old.text.contains("ReservationExpired"), "{}", old.text);
}

#[test]
fn what_cannot_be_asked_about_is_refused_with_what_can() {
    let objects = [node("n1", &json!({}))];
    let error = |line: &[&str]| asked(&objects, line).unwrap_err();
    assert!(error(&[]).starts_with("name a pod, or a file with one"));
    assert_eq!(error(&["gan", "shop/train"]), "\"gan\" cannot be asked about; did you mean \"gang\"?");
    assert_eq!(error(&["p", "--file", "pod.yaml"]), "--file names the pod already; leave p out");
    assert!(error(&["P"]).contains("a name: lower-case letters"));
}
