//! Quotas of the corpus and of `spec/scheduler.md` 6.4, with pods that come and go.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use koord_api::{
    elastic_quota::ElasticQuota,
    quota::{DEFAULT_QUOTA, ROOT_QUOTA},
};
use koord_engine::plugin::ReasonCode;
use koord_quota::{Demand, Quota, Snapshot};
use koord_resource::ResourceList;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Claim, Counted, Forest, Ledger, Overuse, QuotaStatus, Running, Settings, check, revoked};

fn list(amounts: Value) -> ResourceList {
    serde_json::from_value(amounts).unwrap()
}

/// A quota with these amounts; labels and annotations without the domain.
fn quota(name: &str, min: Value, max: Value, labels: Value, annotations: Value) -> Quota {
    let domain = |texts: Value| -> Value {
        let texts = texts.as_object().unwrap().clone().into_iter();
        texts.map(|(key, text)| (format!("quota.scheduling.koordinator.sh/{key}"), text)).collect()
    };
    let metadata =
        json!({"name": name, "namespace": "default", "labels": domain(labels), "annotations": domain(annotations)});
    let object: ElasticQuota = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    Quota { min: list(min), max: list(max), ..Quota::from(&object) }
}

fn cores(name: &str, min: i64, max: i64, labels: Value) -> Quota {
    let amounts = |cpu: i64, memory: &str| json!({"cpu": cpu.to_string(), "memory": memory});
    quota(name, amounts(min, "10Gi"), amounts(max, "400Gi"), labels, json!({}))
}

/// A cluster with these quotas and one node of 100 cores.
struct World {
    ledger: Ledger,
    quotas: Vec<Quota>,
}

impl World {
    fn new(settings: Settings, quotas: impl IntoIterator<Item = Quota>) -> Self {
        let mut ledger = Ledger::new(settings);
        ledger.offer(None, Some(&list(json!({"cpu": "100", "memory": "400Gi", "pods": "110"}))));
        Self { ledger, quotas: quotas.into_iter().collect() }
    }

    fn of(quotas: impl IntoIterator<Item = Quota>) -> Self {
        Self::new(Settings::default(), quotas)
    }

    fn forest(&self) -> &Forest {
        self.ledger.forest(&self.quotas)
    }

    /// A pod comes, and is placed if its quota has room. The message otherwise.
    fn arrive(&mut self, quota: &str, requests: Value) -> String {
        self.arrive_as(quota, requests, true)
    }

    fn arrive_as(&mut self, quota: &str, requests: Value, is_preemptible: bool) -> String {
        let claim = Claim { label: quota.into(), namespace: "default".into() };
        let requests = list(requests);
        let pod = Counted { claim: &claim, requests: &requests, is_preemptible };
        self.ledger.request(pod);
        let checked = self.forest().check(self.ledger.settings(), pod);
        if checked.is_ok() {
            self.ledger.place(pod);
        }
        checked.err().map(|shortage| shortage.to_string()).unwrap_or_default()
    }

    fn leave(&mut self, quota: &str, requests: Value) {
        let claim = Claim { label: quota.into(), namespace: "default".into() };
        let requests = list(requests);
        let pod = Counted { claim: &claim, requests: &requests, is_preemptible: true };
        self.ledger.unplace(pod);
        self.ledger.unrequest(pod);
    }

    /// The object of a quota that was written before as `old`.
    fn status(&self, name: &str, old: &QuotaStatus) -> Value {
        let status = QuotaStatus::of(self.forest(), self.ledger.settings(), name).unwrap();
        let Some(status) = status.instead_of(old) else { return json!({}) };
        let annotations = status.annotations.iter().map(|(name, list)| {
            let name = name.strip_prefix("quota.scheduling.koordinator.sh/").unwrap();
            (name.to_owned(), json!(list))
        });
        let mut written: Value = annotations.collect();
        if !status.used.is_empty() {
            written["used"] = json!(status.used);
        }
        written
    }

    fn written(&self, name: &str) -> Value {
        self.status(name, &QuotaStatus::default())
    }
}

fn cpu(cpu: i64) -> Value {
    json!({"cpu": cpu.to_string(), "memory": "1Gi"})
}

#[test]
fn a_pod_must_fit_into_the_runtime_of_its_quota() {
    let mut world = World::of([cores("q1", 5, 10, json!({}))]);
    assert_eq!(world.arrive("q1", cpu(6)), "");
    let runtime = "Insufficient quotas, quotaName: q1, runtime: cpu:10,memory:2Gi, used: cpu:6,memory:1Gi, \
                   pod's request: cpu:6,memory:1Gi, exceedDimensions: [cpu]";
    assert_eq!(world.arrive("q1", cpu(6)), runtime);
    let expected = json!({
        "child-request": {"cpu": "12", "memory": "2Gi"},
        "request": {"cpu": "12", "memory": "2Gi"},
        "runtime": {"cpu": "10", "memory": "2Gi"},
        "used": {"cpu": "6", "memory": "1Gi"},
    });
    assert_eq!(world.written("q1"), expected);
    let root = json!({"request": {"cpu": "10", "memory": "2Gi"}, "used": {"cpu": "6", "memory": "1Gi"}});
    assert_eq!(world.written(ROOT_QUOTA), root);
    assert_eq!((world.written(DEFAULT_QUOTA), world.written("koordinator-system-quota")), (json!({}), json!({})));
}

#[test]
fn all_resources_that_are_short_are_named() {
    let small = json!({"cpu": "5", "memory": "4Gi"});
    let mut world = World::of([quota("q1", json!({"cpu": "1", "memory": "1Gi"}), small, json!({}), json!({}))]);
    let message = world.arrive("q1", json!({"cpu": "6", "memory": "6Gi"}));
    let expected = "Insufficient quotas, quotaName: q1, runtime: cpu:5,memory:4Gi, used: <empty>, \
                    pod's request: cpu:6,memory:6Gi, exceedDimensions: [cpu memory]";
    assert_eq!(message, expected);
}

#[test]
fn a_resource_that_the_quota_does_not_name_is_not_limited() {
    let mut world = World::of([quota("q1", json!({"cpu": "5"}), json!({"cpu": "10"}), json!({}), json!({}))]);
    assert_eq!(world.arrive("q1", json!({"cpu": "6", "memory": "300Gi"})), "");
    let expected =
        json!({"child-request": {"cpu": "6"}, "request": {"cpu": "6"}, "runtime": {"cpu": "6"}, "used": {"cpu": "6"}});
    assert_eq!(world.written("q1"), expected);
}

#[test]
fn runtimes_are_written_with_the_suffixes_of_their_resource() {
    let amounts = |cpu, memory| json!({"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": memory});
    let mut world = World::of([quota("q1", amounts("5000", "10Gi"), amounts("10000", "20Gi"), json!({}), json!({}))]);
    world.ledger.offer(None, Some(&list(amounts("50000", "100Gi"))));
    assert_eq!(world.arrive("q1", amounts("6000", "1Gi")), "");
    let message = world.arrive("q1", amounts("6000", "1Gi"));
    assert!(
        message.contains("runtime: kubernetes.io/batch-cpu:10k,kubernetes.io/batch-memory:2147483648, used"),
        "{message}"
    );
    assert_eq!(world.written("q1")["request"], amounts("12k", "2Gi"));
}

#[test]
fn what_a_quota_does_not_request_others_borrow_unless_it_does_not_lend() {
    let idle = |lends: &str| cores("idle", 40, 80, json!({"allow-lent-resource": lends}));
    let mut world = World::of([cores("q1", 60, 96, json!({})), idle("true")]);
    assert_eq!(world.arrive("q1", cpu(70)), "");
    let mut world = World::of([cores("q1", 60, 96, json!({})), idle("false")]);
    assert!(world.arrive("q1", cpu(70)).contains("runtime: cpu:60,memory:1Gi, used: <empty>"));
    assert_eq!(world.written("idle")["request"], json!({"cpu": "40", "memory": "10Gi"}));
    assert_eq!(world.written("idle")["runtime"], json!({"cpu": "40", "memory": "10Gi"}));
    assert_eq!(world.written("idle")["child-request"], Value::Null);
    assert_eq!(world.written(ROOT_QUOTA)["request"], json!({"cpu": "110", "memory": "11Gi"}));
}

#[test]
fn surplus_is_shared_by_weight_and_a_weight_of_one_resource_is_none_of_the_others() {
    let weighted = |name, weights: &str| {
        let amounts = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
        quota(name, amounts("10", "10Gi"), amounts("100", "400Gi"), json!({}), json!({"shared-weight": weights}))
    };
    let mut world =
        World::of([weighted("q1", r#"{"cpu":30,"memory":30}"#), weighted("q2", r#"{"cpu":10,"memory":10}"#)]);
    for _ in 0..4 {
        world.arrive("q1", cpu(25));
        world.arrive("q2", cpu(25));
    }
    assert_eq!(["q1", "q2"].map(|name| world.forest().limit(name).amount("cpu").value()), [70, 30]);
    let mut world = World::of([weighted("q1", r#"{"memory":1}"#), cores("q2", 10, 100, json!({}))]);
    assert!(world.arrive("q1", cpu(20)).contains("runtime: cpu:10,memory:1Gi"));
    for none in ["no json", r#"{"cpu":0}"#, "{}"] {
        let mut world = World::of([weighted("q1", none), cores("q2", 10, 100, json!({}))]);
        for _ in 0..4 {
            world.arrive("q1", cpu(25));
            world.arrive("q2", cpu(25));
        }
        assert_eq!(["q1", "q2"].map(|name| world.forest().limit(name).amount("cpu").value()), [50, 50], "{none}");
    }
}

#[test]
fn mins_beyond_the_cluster_shrink_or_are_kept() {
    let quotas = || [cores("q1", 100, 100, json!({})), cores("q2", 100, 100, json!({}))];
    let mut world = World::of(quotas());
    world.arrive("q2", cpu(60));
    assert!(world.arrive("q1", cpu(51)).contains("runtime: cpu:50,"));
    assert_eq!(json!(world.forest().scaled_min("q1")), json!({"cpu": "50", "memory": "10Gi"}));
    let mut world = World::new(Settings { scales_min: false, ..Settings::default() }, quotas());
    assert_eq!(json!(world.forest().scaled_min("q1")), json!({"cpu": "100", "memory": "10Gi"}));
    world.arrive("q2", cpu(60));
    assert_eq!(world.arrive("q1", cpu(51)), "");
}

#[test]
fn without_runtimes_only_max_counts_though_it_is_called_runtime() {
    let never = cores("q2", 90, 100, json!({"allow-lent-resource": "false"}));
    let settings = Settings { uses_runtime: false, ..Settings::default() };
    let mut world = World::new(settings, [cores("q1", 10, 40, json!({})), never]);
    assert_eq!(world.arrive("q1", cpu(30)), "");
    assert!(
        world.arrive("q1", cpu(20)).starts_with("Insufficient quotas, quotaName: q1, runtime: cpu:40,memory:400Gi")
    );
    assert_eq!(world.written("q1")["runtime"], Value::Null);
    assert_eq!(world.written(ROOT_QUOTA)["request"], json!({"cpu": "130", "memory": "12Gi"}));
}

#[test]
fn pods_that_do_not_give_way_stay_within_min() {
    let mut world = World::of([cores("q1", 20, 50, json!({}))]);
    assert_eq!(world.arrive_as("q1", cpu(15), false), "");
    let message = world.arrive_as("q1", cpu(6), false);
    let expected = "Insufficient non-preemptible quotas, quotaName: q1, min: cpu:20,memory:10Gi, \
                    nonPreemptibleUsed: cpu:15,memory:1Gi, pod's request: cpu:6,memory:1Gi, exceedDimensions: [cpu]";
    assert_eq!(message, expected);
    assert_eq!(world.arrive("q1", cpu(6)), "");
    assert_eq!(world.written("q1")["non-preemptible-request"], json!({"cpu": "21", "memory": "2Gi"}));
    assert_eq!(world.written(ROOT_QUOTA)["non-preemptible-used"], json!({"cpu": "15", "memory": "1Gi"}));
}

#[test]
fn requests_and_use_add_up_to_the_top_and_each_max_limits_requests() {
    let below = |parent: &str, is_parent: &str| json!({"parent": parent, "is-parent": is_parent});
    let mut world = World::of([
        cores("top", 40, 60, json!({"is-parent": "true"})),
        cores("mid", 30, 50, below("top", "true")),
        cores("leaf", 10, 40, below("mid", "false")),
    ]);
    assert_eq!(world.arrive("leaf", cpu(25)), "");
    assert!(world.arrive("leaf", cpu(20)).contains("quotaName: leaf, runtime: cpu:40,memory:2Gi"));
    for (name, request) in [("leaf", "45"), ("mid", "40"), ("top", "40")] {
        let used = json!({"cpu": "25", "memory": "1Gi"});
        let expected = json!({"cpu": request, "memory": "2Gi"});
        assert_eq!((&world.written(name)["used"], &world.written(name)["child-request"]), (&used, &expected), "{name}");
    }
}

#[test]
fn a_child_may_be_checked_by_the_quotas_above_it() {
    let child = |name| cores(name, 5, 50, json!({"parent": "par"}));
    let quotas = || [cores("par", 20, 20, json!({"is-parent": "true"})), child("c1"), child("c2")];
    let settings = Settings { checks_parents: true, uses_runtime: false, ..Settings::default() };
    let mut world = World::new(settings, quotas());
    assert_eq!(world.arrive("c1", cpu(15)), "");
    let expected = "Insufficient quotas, quotaNameTopo: [par c2], runtime: cpu:20,memory:400Gi, \
                    used: cpu:15,memory:1Gi, pod's request: cpu:10,memory:1Gi, exceedDimensions: [cpu]";
    assert_eq!(world.arrive("c2", cpu(10)), expected);
    let mut world = World::new(Settings { uses_runtime: false, ..Settings::default() }, quotas());
    world.arrive("c1", cpu(15));
    assert_eq!(world.arrive("c2", cpu(10)), "");
}

#[test]
fn the_classic_tree() {
    let quota = |name, min, lends: bool, more: Value| {
        let mut labels = json!({"allow-lent-resource": lends.to_string()});
        labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cores(name, min, 100, labels)
    };
    let child = |name, lends| quota(name, 20, lends, json!({"parent": "par"}));
    let runtimes = |world: &World| ["par", "c1", "c2"].map(|name| world.forest().limit(name).amount("cpu").value());
    // Whether the parent lends, whether its second child does, and the runtimes while the first requests 0, 40 and 60.
    for (parent_lends, second_lends, expected) in [
        (false, false, [[60, 20, 20], [60, 40, 20], [80, 60, 20]]),
        (true, false, [[40, 20, 20], [60, 40, 20], [80, 60, 20]]),
        (true, true, [[20, 20, 0], [40, 40, 0], [60, 60, 0]]),
    ] {
        let parent = quota("par", 60, parent_lends, json!({"is-parent": "true"}));
        let mut world = World::of([parent, child("c1", false), child("c2", second_lends)]);
        assert_eq!(runtimes(&world), expected[0]);
        world.arrive("c1", cpu(40));
        assert_eq!(runtimes(&world), expected[1]);
        world.arrive("c1", cpu(20));
        assert_eq!(runtimes(&world), expected[2]);
        if !second_lends {
            assert_eq!(world.written("par")["child-request"], json!({"cpu": "80", "memory": "20Gi"}));
        }
    }
}

#[test]
fn a_quota_takes_what_it_uses_along_to_another_parent() {
    let parent = |name| cores(name, 20, 50, json!({"is-parent": "true"}));
    let child = |above: &str| cores("c1", 5, 40, json!({"parent": above}));
    let mut world = World::of([parent("p1"), parent("p2"), child("p1")]);
    world.arrive("c1", cpu(10));
    let before = QuotaStatus::of(world.forest(), world.ledger.settings(), "p1").unwrap();
    world.quotas[2] = child("p2");
    world.ledger.quotas_changed();
    let nothing = json!({"cpu": "0", "memory": "0"});
    let moved = world.status("p1", &before);
    for key in ["used", "child-request", "request"] {
        assert_eq!(moved[key], nothing, "{key}");
    }
    assert_eq!(moved["runtime"], Value::Null, "nobody asks what it may use");
    assert_eq!(world.written("p2")["used"], json!({"cpu": "10", "memory": "1Gi"}));
    assert_eq!(world.written(ROOT_QUOTA)["used"], json!({"cpu": "10", "memory": "1Gi"}));
}

#[test]
fn pods_find_their_quota_by_label_namespace_or_annotation() {
    let named =
        |namespace: &str, name: &str| Quota { namespace: namespace.to_owned(), ..cores(name, 1, 10, json!({})) };
    let bound = Quota { namespaces: vec!["team-b".to_owned()], ..cores("q2", 1, 10, json!({})) };
    let quotas = [named("default", "q1"), named("team-a", "team-a"), named("elsewhere", "team-c"), bound];
    let found = |settings, label: &str, namespace: &str| {
        let world = World::new(settings, quotas.clone());
        let claim = Claim { label: label.into(), namespace: namespace.into() };
        world.forest().quota_of(&claim).map(ToString::to_string)
    };
    for (label, namespace, quota) in [
        ("q1", "team-a", "q1"),
        ("", "team-a", "team-a"),
        ("", "team-b", "q2"),
        ("", "team-c", DEFAULT_QUOTA),
        ("", "default", DEFAULT_QUOTA),
        ("unknown", "team-a", DEFAULT_QUOTA),
    ] {
        assert_eq!(found(Settings::default(), label, namespace).as_deref(), Some(quota), "{label} {namespace}");
    }
    let strict = || Settings { has_default: false, ..Settings::default() };
    assert_eq!(found(strict(), "q1", "team-a").as_deref(), Some("q1"));
    assert_eq!((found(strict(), "", "team-a"), found(strict(), "unknown", "x")), (None, None));
}

#[test]
fn pods_that_came_before_their_quota_are_counted_when_it_appears() {
    let mut world = World::of([]);
    assert_eq!(world.arrive("q1", cpu(6)), "", "by the default quota");
    world.quotas.push(cores("q1", 5, 10, json!({})));
    world.ledger.quotas_changed();
    assert_eq!(world.written("q1")["used"], json!({"cpu": "6", "memory": "1Gi"}));
    assert!(world.arrive("q1", cpu(6)).contains("used: cpu:6,memory:1Gi"));
    world.quotas.clear();
    world.ledger.quotas_changed();
    assert_eq!(world.written(DEFAULT_QUOTA)["used"], json!({"cpu": "6", "memory": "1Gi"}));
}

#[test]
fn what_pods_without_a_quota_use_is_not_divided() {
    let mut world = World::of([cores("q1", 10, 100, json!({}))]);
    world.arrive("q1", cpu(0));
    world.arrive("", cpu(30));
    assert!(world.arrive("q1", cpu(71)).contains("runtime: cpu:70,"));
    world.leave("", cpu(30));
    assert_eq!(world.arrive("q1", cpu(20)), "");
    world.ledger.offer(Some(&list(json!({"cpu": "100"}))), Some(&list(json!({"cpu": "50"}))));
    assert_eq!(world.forest().limit("q1").amount("cpu").value(), 50);
}

#[test]
fn another_tree_has_a_total_of_its_own() {
    let labels = |more: Value| {
        let mut labels = json!({"tree-id": "ta"});
        labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        labels
    };
    let begin = |more: Value| {
        let amounts = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
        let total = json!({"total-resource": r#"{"cpu":"40","memory":"100Gi"}"#});
        let mut own = json!({"is-root": "true", "is-parent": "true"});
        own.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        quota("root-a", amounts("50", "100Gi"), amounts("100", "400Gi"), labels(own), total)
    };
    let quotas =
        |more| [begin(more), cores("qa", 10, 100, labels(json!({"parent": "root-a"}))), cores("qd", 1, 100, json!({}))];
    let with_trees = || Settings { has_trees: true, ..Settings::default() };
    let mut world = World::new(with_trees(), quotas(json!({})));
    assert_eq!(world.arrive("qa", cpu(30)), "");
    assert!(world.arrive("qa", cpu(15)).contains("quotaName: qa, runtime: cpu:40,memory:2Gi, used: cpu:30,memory:1Gi"));
    assert_eq!(world.written(ROOT_QUOTA), json!({}), "the root is that of the default tree");
    assert!(world.arrive("qd", cpu(70)).contains("runtime: cpu:60,"), "the tree's total is not the default tree's");
    let mut world = World::new(with_trees(), quotas(json!({"ignore-default-tree": "true"})));
    assert_eq!(world.arrive("qd", cpu(70)), "");
    let mut world = World::new(Settings::default(), quotas(json!({})));
    assert_eq!(world.arrive("qa", cpu(50)), "", "without the gate all quotas are in one tree");
}

#[test]
fn quotas_that_no_root_reaches_are_limited_by_their_max() {
    let below = |name, parent: &str| cores(name, 1, 10, json!({"parent": parent}));
    let mut world = World::of([below("lost", "nobody"), below("x", "y"), below("y", "x")]);
    for name in ["lost", "x"] {
        assert_eq!(world.arrive(name, cpu(10)), "");
        assert!(world.arrive(name, cpu(1)).contains("runtime: cpu:10,memory:400Gi"));
    }
    assert_eq!(world.written("y")["used"], Value::Null);
}

#[test]
fn what_is_divided_and_a_quota_does_not_name_is_shown_as_zero_once_it_requests_something() {
    let amounts = |cpu: &str| json!({"cpu": cpu});
    let of_cpu = |name, labels| quota(name, amounts("10"), amounts("40"), labels, json!({}));
    let mut world = World::of([of_cpu("q1", json!({})), of_cpu("q2", json!({})), cores("q3", 10, 40, json!({}))]);
    assert_eq!(world.arrive("q1", cpu(6)), "");
    assert_eq!(world.written("q1")["runtime"], json!({"cpu": "6", "memory": "0"}));
    assert_eq!(world.written("q2")["runtime"], Value::Null);
    assert!(world.arrive("q1", cpu(60)).contains("runtime: cpu:40,memory:0, used: cpu:6, pod's request: cpu:60,"));

    let parent = of_cpu("par", json!({"is-parent": "true"}));
    let mut world = World::of([parent, cores("child", 1, 40, json!({"parent": "par"}))]);
    assert_eq!(world.arrive("child", cpu(1)), "");
    for name in ["par", ROOT_QUOTA] {
        assert_eq!(world.written(name)["request"], json!({"cpu": "1", "memory": "1Gi"}), "{name}");
    }
}

#[test]
fn a_parent_without_leaves_has_no_runtime() {
    let parent = cores("par", 10, 40, json!({"is-parent": "true", "allow-lent-resource": "false"}));
    let written = World::of([parent.clone()]).written("par");
    assert_eq!((&written["request"]["cpu"], &written["runtime"]), (&json!("10"), &Value::Null));
    let leaf = cores("leaf", 5, 40, json!({"parent": "par"}));
    assert_eq!(World::of([parent, leaf]).written("par")["runtime"]["cpu"], json!("10"));
}

#[test]
fn amounts_are_listed_in_the_order_of_what_is_written() {
    let gpus = |part: i64| json!({"koordinator.sh/gpu-memory": format!("{part}Gi"), "koordinator.sh/gpu-memory-ratio": part.to_string()});
    let mut world = World::of([quota("q1", gpus(1), gpus(10), json!({}), json!({}))]);
    let said = world.arrive("q1", gpus(20));
    assert!(
        said.contains("pod's request: koordinator.sh/gpu-memory-ratio:20,koordinator.sh/gpu-memory:20Gi"),
        "{said}"
    );
}

#[test]
fn where_usage_is_guaranteed_nothing_is_lent_and_the_root_says_what_is_guaranteed() {
    let settings = Settings { guarantees_usage: true, ..Settings::default() };
    let mut world = World::new(settings, [cores("q1", 20, 100, json!({})), cores("q2", 0, 100, json!({}))]);
    world.arrive("q2", cpu(90));
    assert_eq!(["q1", "q2"].map(|name| world.forest().limit(name).amount("cpu").value()), [20, 80]);
    assert_eq!(world.written("q1")["request"]["cpu"], json!("20"));
    world.arrive("q2", cpu(30));
    assert_eq!(world.written(ROOT_QUOTA)["allocated"]["cpu"], json!("50"));
    world.arrive("", cpu(1));
    assert_eq!(world.written(DEFAULT_QUOTA)["allocated"], cpu(1));
}

#[test]
fn annotations_that_say_the_same_are_not_written_again() {
    let mut world = World::of([quota("q1", json!({}), json!({"cpu": "40"}), json!({}), json!({}))]);
    world.arrive("q1", cpu(6));
    let before = QuotaStatus::of(world.forest(), world.ledger.settings(), "q1").unwrap();
    world.arrive_as("q1", json!({"cpu": "2"}), false);
    let written = world.status("q1", &before);
    let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
    let expected = ["child-request", "non-preemptible-request", "non-preemptible-used", "request", "runtime", "used"];
    assert_eq!(keys, expected, "{written}");
    world.arrive_as("q1", json!({"memory": "1Gi"}), true);
    let before = QuotaStatus::of(world.forest(), world.ledger.settings(), "q1").unwrap();
    world.quotas[0].min = list(json!({"cpu": "1"}));
    world.ledger.quotas_changed();
    assert_eq!(world.status("q1", &before), json!({}));
}

#[test]
fn a_quota_whose_parent_does_not_exist_is_limited_by_its_max() {
    let mut world = World::of([cores("q1", 5, 10, json!({"parent": "ghost"}))]);
    assert_eq!(world.arrive("q1", cpu(10)), "");
    assert!(world.arrive("q1", cpu(1)).contains("runtime: cpu:10"));
}

#[test]
fn amounts_of_annotations_that_nobody_can_read_are_written_anew() {
    let mut world = World::of([cores("q1", 5, 10, json!({}))]);
    world.arrive("q1", cpu(6));
    let annotations = json!({"quota.scheduling.koordinator.sh/runtime": "x"});
    let object = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
    assert_eq!(world.status("q1", &QuotaStatus::written(&object))["runtime"]["cpu"], json!("6"));
}

#[test]
fn a_status_is_written_only_when_something_else_is_to_be_said() {
    let mut world = World::of([cores("q1", 5, 10, json!({}))]);
    world.arrive("q1", cpu(6));
    let status = QuotaStatus::of(world.forest(), world.ledger.settings(), "q1").unwrap();
    let written = |change: &dyn Fn(&mut Value)| {
        let mut object = status.patch(&"u".into());
        change(&mut object);
        QuotaStatus::written(&serde_json::from_value(object).unwrap())
    };
    assert_eq!(status.instead_of(&written(&|_| ())), None);
    assert!(status.instead_of(&written(&|object| object["metadata"] = json!({}))).is_some());
    assert!(status.instead_of(&written(&|object| object["status"] = json!({}))).is_some());
}

#[test]
fn a_quota_loses_pods_only_after_it_has_used_too_much_for_long() {
    let mut world = World::of([cores("q1", 30, 100, json!({})), cores("q2", 60, 100, json!({}))]);
    world.arrive("q1", cpu(70));
    let mut overuse = Overuse::default();
    let looks = |overuse: &mut Overuse, world: &World, now| {
        let now = Timestamp::from_second(now).unwrap();
        overuse.late(world.forest(), now, SignedDuration::from_secs(3)).len()
    };
    assert_eq!(looks(&mut overuse, &world, 0), 0);
    world.arrive("q2", cpu(60));
    assert_eq!([10, 13, 14, 15, 18].map(|now| looks(&mut overuse, &world, now)), [0, 0, 1, 0, 1]);
    world.leave("q1", cpu(70));
    assert_eq!(looks(&mut overuse, &world, 30), 0);
    assert_eq!(overuse, Overuse::default());
}

#[test]
fn the_default_quota_loses_no_pods() {
    let mut world = World::of([cores("koordinator-default-quota", 0, 5, json!({}))]);
    world.arrive("koordinator-default-quota", cpu(7));
    let mut overuse = Overuse::default();
    let looks = [0, 60].map(|now| {
        overuse.late(world.forest(), Timestamp::from_second(now).unwrap(), SignedDuration::from_secs(3)).len()
    });
    assert_eq!(looks, [0, 0]);
}

#[test]
fn the_least_important_pods_go_until_the_others_fit() {
    let revoked = |limit: i64, pods: &[(i64, bool)]| {
        let running = pods.iter().enumerate().map(|(index, (cores, is_preemptible))| Running {
            pod: index,
            used: list(cpu(*cores)),
            is_preemptible: *is_preemptible,
        });
        let used = list(json!({"cpu": pods.iter().map(|(cores, _)| cores).sum::<i64>().to_string()}));
        revoked(running.collect(), &used, &list(json!({"cpu": limit.to_string()})))
    };
    assert_eq!(revoked(40, &[(40, true), (30, true)]), [0]);
    assert_eq!(revoked(70, &[(40, true), (30, true)]), [0; 0]);
    assert_eq!(revoked(40, &[(40, false), (30, true)]), [1], "pods that do not give way stay");
    // 10 and 40 were taken; the 10 fits again.
    assert_eq!(revoked(40, &[(10, true), (40, true), (30, true)]), [1]);
    assert_eq!(revoked(5, &[(10, true), (20, true)]), [1, 0]);
}

proptest! {
    #[test]
    fn sums_follow_every_change_and_runtimes_are_those_of_the_whole_tree(
        quotas in proptest::collection::vec((0..6_usize, 0..30_i64, 0..60_i64, any::<bool>(), 0..3_i64), 1..6),
        steps in proptest::collection::vec((0..7_usize, 0..30_i64, any::<bool>(), 0..4_u8, any::<bool>()), 1..40),
        (scales_min, guarantees_usage) in any::<(bool, bool)>(),
    ) {
        let settings = || Settings { scales_min, guarantees_usage, ..Settings::default() };
        let name = |index: usize| format!("q{index}");
        // A quota's parent comes before it, or is the root.
        let quotas: Vec<Quota> = quotas.into_iter().enumerate().map(|(index, (parent, min, max, lends, weight))| {
            let mut labels = json!({"allow-lent-resource": lends.to_string()});
            if parent < index {
                labels["parent"] = json!(name(parent));
            }
            let weights = json!({"shared-weight": format!(r#"{{"cpu":"{weight}"}}"#)});
            let amounts = |cpu: i64| json!({"cpu": cpu.to_string(), "memory": "9Gi"});
            quota(&name(index), amounts(min.min(max)), amounts(max), labels, weights)
        }).collect();
        let mut world = World::new(settings(), quotas.clone());
        let mut pods = Vec::new();
        for (which, cpu, is_preemptible, action, changes) in steps {
            let claim = Claim { label: name(which).into(), namespace: "default".into() };
            let requests = list(json!({"cpu": cpu.to_string(), "memory": "1Gi"}));
            if action == 0 && !pods.is_empty() {
                let (claim, requests, is_preemptible): (Claim, ResourceList, bool) = pods.swap_remove(which % pods.len());
                let pod = Counted { claim: &claim, requests: &requests, is_preemptible };
                world.ledger.unplace(pod);
                world.ledger.unrequest(pod);
            } else {
                let pod = Counted { claim: &claim, requests: &requests, is_preemptible };
                world.ledger.request(pod);
                world.ledger.place(pod);
                pods.push((claim, requests, is_preemptible));
            }
            if changes {
                world.ledger.quotas_changed();
            }
            let forest = world.forest();
            let mut rebuilt = World::new(settings(), quotas.clone());
            for (claim, requests, is_preemptible) in &pods {
                let pod = Counted { claim, requests, is_preemptible: *is_preemptible };
                rebuilt.ledger.request(pod);
                rebuilt.ledger.place(pod);
            }
            let zero_free = |list: &ResourceList| list.filtered(|_, amount| !amount.is_zero());
            for (name, node) in forest.nodes() {
                let twin = rebuilt.forest().node(name).unwrap();
                for kind in super::Kind::ALL {
                    prop_assert_eq!(zero_free(node.sums.get(kind)), zero_free(twin.sums.get(kind)), "{} {:?}", name, kind);
                }
                prop_assert_eq!(forest.limit(name), rebuilt.forest().limit(name), "{}", name);
            }
            if guarantees_usage {
                continue;
            }
            let own: BTreeMap<String, ResourceList> = quotas.iter().map(|quota| {
                let mut sum = ResourceList::new();
                pods.iter().filter(|(claim, ..)| *claim.label == *quota.name).for_each(|(_, requests, _)| sum.add(requests));
                (quota.name.clone(), sum)
            }).collect();
            let default: i64 = pods.iter().filter(|(claim, ..)| world.forest().node(&claim.label).is_none())
                .map(|(_, requests, _)| requests.amount("cpu").value()).sum();
            let memory = pods.iter().filter(|(claim, ..)| world.forest().node(&claim.label).is_none()).count();
            let total = list(json!({"cpu": (100 - default).to_string(), "memory": format!("{}Gi", 400 - i64::try_from(memory).unwrap())}));
            let requests = own.iter().map(|(name, list)| (name.as_str(), list.clone())).collect();
            let tree: Snapshot = quotas.iter().cloned().collect();
            let demand = Demand { total: &total, requests: &requests, scale_min: scales_min, guarantee: false };
            for (name, runtime) in koord_quota::runtime(&tree, demand) {
                prop_assert_eq!(&*forest.limit(name), &runtime, "{}", name);
            }
        }
    }
}

#[test]
fn a_quota_is_shown_with_what_it_may_use_and_uses() {
    let mut world = World::of([cores("team", 20, 40, json!({}))]);
    assert_eq!(world.arrive("team", json!({"cpu": "3"})), "");
    let summary = super::summary::summary(world.forest(), "team", world.forest().node("team").unwrap());
    let (min, max) = (json!({"cpu": "20", "memory": "10Gi"}), json!({"cpu": "40", "memory": "400Gi"}));
    let expected = json!({
        "name": "team", "parentName": "koordinator-root-quota", "tree": "", "isParent": false, "runtimeVersion": 1,
        "allowLentResource": true, "min": min, "autoScaleMin": min, "max": max, "sharedWeight": max,
        "runtime": {"cpu": "3", "memory": "0"}, "request": {"cpu": "3"}, "childRequest": {"cpu": "3"},
        "nonPreemptibleRequest": {}, "used": {"cpu": "3"}, "nonPreemptibleUsed": {}, "allocated": {}, "guaranteed": min,
        "podCache": {},
    });
    assert_eq!(summary, expected);
    let figures = super::summary::figures(world.forest(), "team", world.forest().node("team").unwrap());
    let value = |metric: &str, field: &str| {
        let labels = ["team", "cpu", "", "false", "koordinator-root-quota", field];
        figures.iter().find(|figure| figure.name == metric && figure.labels == labels).map(|figure| figure.value)
    };
    let (spec, status) = ("scheduler_elastic_quota_spec", "scheduler_elastic_quota_status");
    assert_eq!([value(spec, "min"), value(spec, "max")], [Some(20_000.0), Some(40_000.0)], "{figures:?}");
    assert_eq!([value(status, "used"), value(status, "child-request")], [Some(3000.0), Some(3000.0)], "{figures:?}");
}

#[test]
fn a_shortage_names_who_uses_more_than_its_min() {
    let mut world =
        World::of([cores("q1", 10, 100, json!({})), cores("q2", 10, 100, json!({})), cores("q3", 10, 100, json!({}))]);
    assert_eq!(world.arrive("q2", cpu(90)), "");
    let (claim, requests) = (Claim { label: "q1".into(), namespace: "default".into() }, list(cpu(60)));
    let pod = Counted { claim: &claim, requests: &requests, is_preemptible: true };
    world.ledger.request(pod);
    let shortage = world.forest().check(world.ledger.settings(), pod).unwrap_err();
    let reason = shortage.reason(world.forest());
    assert_eq!(reason.code, ReasonCode::QuotaRuntimeExceeded);
    let operands = ["quota", "exceeded", "borrowed_by"].map(|name| reason.operand(name).unwrap_or_default());
    assert_eq!(operands, ["q1", "cpu", "q2"]);
    let unknown = check::of_unknown(&reason, "typo");
    assert_eq!((unknown.code, &unknown.text), (ReasonCode::QuotaNotFound, &reason.text));
    let operands = ["quota", "counted_in", "exceeded"].map(|name| unknown.operand(name).unwrap_or_default());
    assert_eq!(operands, ["typo", "q1", "cpu"]);
}
