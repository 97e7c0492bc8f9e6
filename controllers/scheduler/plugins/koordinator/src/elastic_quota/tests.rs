//! Quotas of the corpus and of `spec/scheduler.md` 6.4, with pods that come and go.

mod properties;
mod revocation;
mod status;
mod trees;

use koord_quota::Quota;
use koord_resource::ResourceList;
use koord_scheduler_framework::ReasonCode;
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{DEFAULT_QUOTA, ROOT_QUOTA},
};
use serde_json::{Value, json};

use super::{Claim, Counted, Forest, Ledger, QuotaSettings, QuotaStatus, check};

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
    fn new(settings: QuotaSettings, quotas: impl IntoIterator<Item = Quota>) -> Self {
        let mut ledger = Ledger::new(settings);
        ledger.offer(None, Some(&list(json!({"cpu": "100", "memory": "400Gi", "pods": "110"}))));
        Self { ledger, quotas: quotas.into_iter().collect() }
    }

    fn of(quotas: impl IntoIterator<Item = Quota>) -> Self {
        Self::new(QuotaSettings::default(), quotas)
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
fn mins_beyond_the_cluster_shrink_or_stay() {
    let quotas = || [cores("q1", 100, 100, json!({})), cores("q2", 100, 100, json!({}))];
    let mut world = World::of(quotas());
    world.arrive("q2", cpu(60));
    assert!(world.arrive("q1", cpu(51)).contains("runtime: cpu:50,"));
    assert_eq!(json!(world.forest().scaled_min("q1")), json!({"cpu": "50", "memory": "10Gi"}));
    let mut world = World::new(QuotaSettings { scales_min: false, ..QuotaSettings::default() }, quotas());
    assert_eq!(json!(world.forest().scaled_min("q1")), json!({"cpu": "100", "memory": "10Gi"}));
    world.arrive("q2", cpu(60));
    assert_eq!(world.arrive("q1", cpu(51)), "");
}

#[test]
fn without_runtimes_only_max_counts_though_it_is_called_runtime() {
    let never = cores("q2", 90, 100, json!({"allow-lent-resource": "false"}));
    let settings = QuotaSettings { uses_runtime: false, ..QuotaSettings::default() };
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
fn a_quota_whose_parent_does_not_exist_is_limited_by_its_max() {
    let mut world = World::of([cores("q1", 5, 10, json!({"parent": "ghost"}))]);
    assert_eq!(world.arrive("q1", cpu(10)), "");
    assert!(world.arrive("q1", cpu(1)).contains("runtime: cpu:10"));
}

#[test]
fn undecodable_amounts_of_annotations_are_written_anew() {
    let mut world = World::of([cores("q1", 5, 10, json!({}))]);
    world.arrive("q1", cpu(6));
    let annotations = json!({"quota.scheduling.koordinator.sh/runtime": "x"});
    let object = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
    assert_eq!(world.status("q1", &QuotaStatus::written(&object))["runtime"]["cpu"], json!("6"));
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
