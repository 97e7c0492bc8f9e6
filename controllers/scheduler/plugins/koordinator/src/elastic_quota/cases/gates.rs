//! What feature gates change, and edge cases of `spec/scheduler.md` 7.

use super::*;

impl World {
    fn limit(&self, quota: &str, resource: &str) -> String {
        self.quotas().forest().limit(quota).amount(resource).to_string()
    }

    fn used(&self, quota: &str) -> i64 {
        self.quotas().forest().node(quota).unwrap().sums.used.amount("cpu").value()
    }

    fn quotas(&self) -> &Quotas {
        self.engine.cluster().state().unwrap()
    }

    /// The pod that is placed after some time.
    fn revived(&mut self) -> Option<String> {
        self.seconds += 60;
        let attempt = self.engine.attempt(self.now())?;
        matches!(attempt.outcome, Outcome::Bind { .. }).then(|| attempt.pod.key.name().to_owned())
    }

    fn say(&mut self, pod: Arc<Pod>) {
        let now = self.now();
        self.engine.set_pod(pod, now);
    }
}

fn bound(pod: &Arc<Pod>) -> Arc<Pod> {
    Arc::new(Pod { node: Some("n1".into()), ..Pod::clone(pod) })
}

fn settings(gate: &str) -> QuotaSettings {
    QuotaSettings::new(&ElasticQuotaArgs::default(), &|name| name == gate)
}

#[test]
fn each_gate_is_a_setting_of_its_own() {
    let default = QuotaSettings::default();
    assert_eq!(settings("SupportParentQuotaSubmitPod"), default, "webhooks alone ask for it");
    for (gate, changed) in [
        ("MultiQuotaTree", QuotaSettings { has_trees: true, ..default.clone() }),
        ("DisableDefaultQuota", QuotaSettings { has_default: false, ..default.clone() }),
        ("ElasticQuotaGuaranteeUsage", QuotaSettings { guarantees_usage: true, ..default.clone() }),
        ("ElasticQuotaIgnorePodOverhead", QuotaSettings { counts_overhead: false, ..default.clone() }),
        ("ElasticQuotaIgnoreTerminatingPod", QuotaSettings { deleting: Deleting::CountsForItsTime, ..default.clone() }),
        (
            "ElasticQuotaImmediateIgnoreTerminatingPod",
            QuotaSettings { deleting: Deleting::CountsNot, ..default.clone() },
        ),
    ] {
        assert_eq!(settings(gate), changed, "{gate}");
    }
}

#[test]
fn a_pod_that_is_being_deleted_counts_as_long_as_its_gate_says() {
    let used = |gate: &str| {
        let mut world = World::new(settings(gate));
        world.quota("q1", "10", "10", &json!({}));
        let running = bound(&pod("a", "q1", "6", 0));
        world.say(Arc::clone(&running));
        world.say(Arc::new(Pod { deleting: true, ends: Some(30), ..Pod::clone(&running) }));
        let at = [0, 29, 30, 31].map(|second| {
            world.tick(second);
            world.used("q1")
        });
        let request = world.quotas().forest().node("q1").unwrap().sums.request.amount("cpu").value();
        world.delete("a");
        (at, request, world.used("q1"), world.engine.tick_at())
    };
    assert_eq!(used(""), ([6, 6, 6, 6], 6, 0, None));
    assert_eq!(used("ElasticQuotaIgnoreTerminatingPod"), ([6, 6, 0, 0], 0, 0, None));
    assert_eq!(used("ElasticQuotaImmediateIgnoreTerminatingPod"), ([0, 0, 0, 0], 0, 0, None));
}

#[test]
fn a_pod_that_ends_too_late_frees_its_quota_and_is_subtracted_once() {
    let mut world = World::new(settings("ElasticQuotaIgnoreTerminatingPod"));
    world.quota("q1", "10", "10", &json!({}));
    let running = bound(&pod("a", "q1", "6", 0));
    world.say(Arc::clone(&running));
    world.say(Arc::new(Pod { deleting: true, ends: Some(30), ..Pod::clone(&running) }));
    world.refuse(pod("b", "q1", "6", 0));
    assert!(!world.revives());
    assert_eq!(world.engine.tick_at().map(jiff::Timestamp::as_second), Some(30));
    world.tick(90);
    assert!(world.revives());
    world.say(Arc::new(Pod { deleting: true, ends: Some(30), started: Some(1), ..Pod::clone(&running) }));
    assert_eq!(world.used("q1"), 6);
    world.delete("a");
    assert_eq!(world.used("q1"), 6);
    world.say(running);
    assert_eq!(world.used("q1"), 12, "another pod that has its uid, as after a restart of the watch");
}

#[test]
fn a_pod_counts_with_its_overhead_unless_that_is_ignored() {
    let request = |gate: &str| {
        let mut world = World::new(settings(gate));
        world.quota("q1", "10", "10", &json!({}));
        let overhead = json!({"cpu": "1", "memory": "1Gi"});
        let requests = json!({"cpu": "3"});
        let spec = json!({
            "containers": [{"resources": {"requests": requests}}], "overhead": overhead, "schedulerName": "test",
        });
        let label = [("quota.scheduling.koordinator.sh/name", "q1")];
        world.place(koord_scheduler_testing::labelled("ns", "a", &label, &spec));
        let used = world.quotas().forest().node("q1").unwrap().sums.used.clone();
        world.delete("a");
        assert_eq!(world.used("q1"), 0);
        serde_json::to_value(used).unwrap()
    };
    assert_eq!(request(""), json!({"cpu": "4", "memory": "1Gi"}));
    assert_eq!(request("ElasticQuotaIgnorePodOverhead"), json!({"cpu": "3"}));
}

#[test]
fn without_a_default_quota_pods_that_name_none_are_not_limited() {
    let default_max = [("cpu", "5".parse().unwrap())].into_iter().collect();
    let mut world = World::new(QuotaSettings { default_max, ..settings("DisableDefaultQuota") });
    world.quota("q1", "5", "5", &json!({}));
    world.place(pod("a", "", "50", 0));
    world.place(pod("b", "unknown", "20", 0));
    assert!(world.refuse(pod("c", "q1", "6", 0)).message.contains("quotaName: q1"));
    assert_eq!(world.used("koordinator-default-quota"), 0);
    let said = world.refuse(pod("large", "", "40", 0)).message;
    assert!(
        said.contains("preemption: 0/1 nodes are available: 1 No victims found on node n1"),
        "it may make room among its like: {said}"
    );
}

#[test]
fn pods_of_a_quota_that_is_deleted_count_in_the_default_quota_from_then_on() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "5", "50", &json!({}));
    world.place(pod("a", "q1", "6", 0));
    assert_eq!([world.used("q1"), world.used("koordinator-default-quota")], [6, 0]);
    let now = world.now();
    world.engine.remove_object(TypeId::of::<ElasticQuota>(), "ns/q1", now);
    assert_eq!(world.used("koordinator-default-quota"), 6);
}

#[test]
fn a_quota_that_is_being_deleted_counts_as_it_is_until_it_is_gone() {
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/kept"]});
    for before in [Some("50"), None] {
        let mut world = World::new(QuotaSettings::default());
        if let Some(max) = before {
            world.quota("q1", "5", max, &json!({}));
        }
        world.quota("q1", "5", "10", &going);
        world.place(pod("a", "q1", "6", 0));
        assert_eq!([world.used("q1"), world.used("koordinator-default-quota")], [6, 0]);
        let message = world.refuse(pod("b", "q1", "6", 0)).message;
        assert!(message.contains("quotaName: q1, runtime: cpu:10,"), "{message}");
    }
}

#[test]
fn the_total_of_another_tree_is_taken_from_the_default_tree_and_given_back() {
    let tree = |total: &str| {
        let labels = json!({
            "quota.scheduling.koordinator.sh/tree-id": "ta", "quota.scheduling.koordinator.sh/is-root": "true",
        });
        let total = json!({"quota.scheduling.koordinator.sh/total-resource": format!(r#"{{"cpu":"{total}"}}"#)});
        json!({"labels": labels, "annotations": total})
    };
    let mut world = World::new(settings("MultiQuotaTree"));
    world.quota("q1", "1", "200", &json!({}));
    let now = world.now();
    world.engine.set_pod(with(&pod("w", "q1", "150", 0), |template| template.scheduler = "other".into()), now);
    assert_eq!(world.limit("q1", "cpu"), "100");
    world.quota("root-a", "40", "40", &tree("40"));
    assert_eq!(world.limit("q1", "cpu"), "60");
    world.quota("root-a", "40", "40", &tree("30"));
    assert_eq!(world.limit("q1", "cpu"), "70");
    world.engine.remove_object(TypeId::of::<ElasticQuota>(), "ns/root-a", now);
    assert_eq!(world.limit("q1", "cpu"), "100");
}

#[test]
fn a_tree_has_what_all_quotas_that_begin_it_name() {
    let mut world = World::new(settings("MultiQuotaTree"));
    let labels = |is_root: &str| json!({"quota.scheduling.koordinator.sh/tree-id": "ta", "quota.scheduling.koordinator.sh/is-root": is_root});
    world.quota("q1", "1", "200", &json!({}));
    world.quota("qa", "1", "200", &json!({"labels": labels("false")}));
    for quota in ["q1", "qa"] {
        world.say(with(&pod(quota, quota, "150", 0), |template| template.scheduler = "other".into()));
    }
    for (name, total) in [("root-a", r#"{"cpu":"20"}"#), ("root-b", r#"{"cpu":"10"}"#)] {
        let annotations = json!({"quota.scheduling.koordinator.sh/total-resource": total});
        world.quota(name, "1", "20", &json!({"labels": labels("true"), "annotations": annotations}));
    }
    assert_eq!((world.limit("q1", "cpu"), world.limit("qa", "cpu")), ("70".to_owned(), "30".to_owned()));
}

#[test]
fn a_quota_that_names_another_tree_is_in_that_tree() {
    let of = |tree: &str| json!({"labels": {"quota.scheduling.koordinator.sh/tree-id": tree}});
    let mut world = World::new(settings("MultiQuotaTree"));
    world.quota("q1", "10", "200", &json!({}));
    world.place(pod("a", "q1", "50", 0));
    assert_eq!(world.quotas().forest().root().unwrap().used.amount("cpu").value(), 50);
    world.quota("q1", "10", "200", &of("ta"));
    assert_eq!(world.quotas().forest().root().unwrap().used.amount("cpu").value(), 0);
    assert_eq!(world.used("q1"), 50);
}

#[test]
fn a_resource_that_max_names_from_now_on_is_limited_and_one_that_it_names_no_more_is_not() {
    let mut world = World::new(settings("ElasticQuotaGuaranteeUsage"));
    let change = |world: &mut World, max: Value| {
        let quota = json!({"metadata": {"name": "q1", "namespace": "ns"}, "spec": {"max": max}});
        let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
        let now = world.now();
        let object = Object::new(ObjectKey::new("ns", "q1"), Uid::from("q1"), false, Arc::new(quota));
        world.engine.set_object(object, now);
    };
    let written = |world: &World, list: fn(&Node) -> &koord_resource::ResourceList| {
        serde_json::to_value(list(world.quotas().forest().node("q1").unwrap())).unwrap()
    };
    change(&mut world, json!({"cpu": "10"}));
    world.place(pod("a", "q1", "6", 0));
    assert_eq!(written(&world, |node| &node.allocated), json!({"cpu": "6"}));
    change(&mut world, json!({"cpu": "10", "memory": "1Gi"}));
    assert_eq!(written(&world, |node| &node.allocated), json!({"cpu": "6", "memory": "1Gi"}));
    assert!(world.refuse(pod("b", "q1", "1", 0)).message.contains("exceedDimensions: [memory]"));
    world.delete("b");
    change(&mut world, json!({"memory": "4Gi"}));
    assert_eq!(written(&world, |node| &node.allocated), json!({"memory": "1Gi"}));
    world.place(pod("c", "q1", "50", 0));
    assert_eq!(written(&world, |node| &node.sums.used), json!({"memory": "2Gi"}));
}

#[test]
fn a_resource_that_the_parent_does_not_divide_is_not_limited() {
    let mut world = World::new(QuotaSettings::default());
    let now = world.now();
    let mut quota = |name: &str, parent: &str, max: Value| {
        let labels = json!({"quota.scheduling.koordinator.sh/parent": parent});
        let quota = json!({"metadata": {"name": name, "namespace": "ns", "labels": labels}, "spec": {"max": max}});
        let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
        let object = Object::new(ObjectKey::new("ns", name), Uid::from(name), false, Arc::new(quota));
        world.engine.set_object(object, now);
    };
    quota("par", "", json!({"cpu": "50"}));
    quota("q1", "par", json!({"cpu": "20", "memory": "1"}));
    world.place(pod("a", "q1", "6", 0));
    let used = &world.quotas().forest().node("q1").unwrap().sums.used;
    assert_eq!(serde_json::to_value(used).unwrap(), json!({"cpu": "6", "memory": "1Gi"}));
}

#[test]
fn pods_of_a_quota_that_has_children_count_after_its_tree_has_changed() {
    let of = |parent: &str| json!({"labels": {"quota.scheduling.koordinator.sh/parent": parent}});
    let mut world = World::new(QuotaSettings::default());
    for name in ["p1", "p2"] {
        world.quota(name, "20", "50", &json!({}));
    }
    world.quota("c1", "5", "40", &of("p1"));
    world.place(pod("own", "p1", "3", 0));
    world.place(pod("child", "c1", "10", 0));
    assert_eq!(["p1", "p2", "c1"].map(|name| world.used(name)), [13, 0, 10]);
    world.quota("c1", "5", "40", &of("p2"));
    assert_eq!(["p1", "p2", "c1"].map(|name| world.used(name)), [3, 10, 10]);
    world.quota("p1", "20", "60", &json!({"labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}}));
    assert_eq!(["p1", "p2", "c1"].map(|name| world.used(name)), [3, 10, 10]);
}

#[test]
fn a_node_counts_once_and_with_what_it_offered_last() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "1", "900", &json!({}));
    world.say(with(&pod("w", "q1", "800", 0), |template| template.scheduler = "other".into()));
    let node =
        |name: &str, cpu: &str| koord_scheduler_testing::node(name, &json!({"status": {"allocatable": {"cpu": cpu}}}));
    let now = world.now();
    for (cpu, total) in [("50", "150"), ("50", "150"), ("70", "170")] {
        world.engine.set_node(node("n2", cpu), now);
        assert_eq!(world.limit("q1", "cpu"), total);
    }
    world.engine.remove_node("n2", now);
    world.engine.remove_node("n2", now);
    assert_eq!(world.limit("q1", "cpu"), "100");
}

#[test]
fn only_events_that_free_its_quota_wake_a_pod() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "5", "10", &json!({}));
    world.quota("q2", "5", "10", &json!({}));
    world.place(pod("a", "q1", "6", 0));
    world.place(pod("sibling", "q2", "6", 0));
    world.refuse(pod("b", "q1", "6", 0));
    world.say(with(&pod("unplaced", "q1", "1", 0), |template| template.scheduler = "other".into()));
    world.delete("unplaced");
    assert!(!world.revives(), "it used nothing");
    world.delete("sibling");
    assert!(!world.revives(), "another quota");
    world.quota("q2", "5", "90", &json!({}));
    assert!(!world.revives(), "another quota");
    world.say(pod("b", "q1", "4", 0));
    assert!(world.revives(), "it requests less");
}

#[test]
fn the_deletion_of_a_pod_of_its_quota_wakes_a_pod_whose_words_are_not_true_any_more() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "5", "10", &json!({}));
    world.place(pod("a", "q1", "3", 0));
    world.place(pod("b", "q1", "3", 0));
    assert!(world.refuse(pod("c", "q1", "8", 0)).message.contains("used: cpu:6"));
    world.delete("a");
    world.seconds += 60;
    let Some(Outcome::Refused(refused)) = world.attempt() else { panic!("it is not tried") };
    assert!(refused.message.contains("used: cpu:3"), "{}", refused.message);
}

#[test]
fn a_pod_that_only_requested_frees_its_quota_when_it_is_gone() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "100", &json!({}));
    world.quota("q2", "90", "100", &json!({}));
    world.say(with(&pod("waits", "q2", "90", 0), |template| template.scheduler = "other".into()));
    world.refuse(pod("a", "q1", "20", 0));
    world.refuse(pod("b", "q1", "95", 0));
    assert!(!world.revives());
    world.delete("waits");
    assert_eq!(world.revived().as_deref(), Some("a"));
    world.delete("a");
    assert_eq!(world.revived().as_deref(), Some("b"));
    assert_eq!(world.revived(), None);
}

#[test]
fn a_victim_that_is_going_matters_to_pods_of_its_quota_only() {
    let refused = |quota: &str, is_preempted: bool| {
        let mut world = World::new(QuotaSettings::default());
        world.quota("q1", "10", "10", &json!({}));
        world.quota("q2", "10", "10", &json!({}));
        world.place(pod("firm", "q1", "6", 20));
        let going = bound(&pod("going", quota, "1", 1));
        world.say(Arc::new(Pod { deleting: true, is_preempted, ..Pod::clone(&going) }));
        let higher = pod("h", "q1", "6", 10);
        world.refuse(Arc::new(Pod { nominated: Some("n1".into()), ..Pod::clone(&higher) }))
    };
    let waits = "exceedDimensions: [cpu]. preemption: not eligible due to a terminating pod on the nominated node.";
    let waiting = refused("q1", true).message;
    assert!(waiting.contains(waits), "{waiting}");
    let deleted = refused("q1", false);
    assert_eq!(deleted.nominated.as_deref(), Some("n1"), "whoever deleted it");
    assert!(deleted.message.ends_with(EXPECTED), "DefaultPreemption does not wait: {}", deleted.message);
    let tried = "exceedDimensions: [cpu]. preemption: 0/1 nodes are available: 1 No victims found on node n1";
    let of_another = refused("q2", true).message;
    assert!(of_another.contains(tried), "{of_another}");
}

#[test]
fn a_pod_of_the_default_quota_stays_nominated_while_its_victims_are_going() {
    let mut world = World::new(QuotaSettings::default());
    let low = bound(&pod("low", "", "100", 1));
    world.say(Arc::clone(&low));
    let evicting = world.refuse(pod("high", "", "100", 10));
    assert_eq!((victims(&evicting), evicting.nominated.as_deref()), (vec!["low"], Some("n1")));
    world.say(Arc::new(Pod { deleting: true, is_preempted: true, ..Pod::clone(&low) }));
    world.seconds += 60;
    let status = json!({"allocatable": {"cpu": "101", "memory": "400Gi", "pods": "110"}});
    let now = world.now();
    world.engine.set_node(koord_scheduler_testing::node("n1", &json!({"status": status})), now);
    let Some(Outcome::Refused(again)) = world.attempt() else { panic!() };
    let words = "preemption: not eligible due to a terminating pod on the nominated node.";
    assert_eq!(again.message, format!("0/1 nodes are available: 1 Insufficient cpu. {words}, {words}"));
    assert_eq!(again.nominated.as_deref(), Some("n1"));
}
