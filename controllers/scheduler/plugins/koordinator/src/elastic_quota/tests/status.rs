//! What is written about quotas.

use super::*;

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
fn where_usage_is_guaranteed_nothing_is_lent_and_the_root_says_what_is_guaranteed() {
    let settings = QuotaSettings { guarantees_usage: true, ..QuotaSettings::default() };
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
fn unchanged_annotations_are_not_written_again() {
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
fn what_a_quota_may_use_is_shown_anew_as_soon_as_another_one_requests_more() {
    let mut world = World::of([cores("q1", 10, 100, json!({})), cores("q2", 10, 100, json!({}))]);
    world.arrive("q1", cpu(90));
    assert_eq!(world.written("q1")["runtime"]["cpu"], "90");
    world.arrive("q2", cpu(60));
    assert_eq!(world.written("q1")["runtime"]["cpu"], "50");
}

#[test]
fn a_status_is_written_only_when_it_changes() {
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
