//! Which quota pods belong to, and in which tree quotas are.

use super::*;

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
        assert_eq!(found(QuotaSettings::default(), label, namespace).as_deref(), Some(quota), "{label} {namespace}");
    }
    let strict = || QuotaSettings { has_default: false, ..QuotaSettings::default() };
    assert_eq!(found(strict(), "q1", "team-a").as_deref(), Some("q1"));
    assert_eq!((found(strict(), "", "team-a"), found(strict(), "unknown", "x")), (None, None));
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
    let with_trees = || QuotaSettings { has_trees: true, ..QuotaSettings::default() };
    let mut world = World::new(with_trees(), quotas(json!({})));
    assert_eq!(world.arrive("qa", cpu(30)), "");
    assert!(world.arrive("qa", cpu(15)).contains("quotaName: qa, runtime: cpu:40,memory:2Gi, used: cpu:30,memory:1Gi"));
    assert_eq!(world.written(ROOT_QUOTA), json!({}), "the root is that of the default tree");
    assert!(world.arrive("qd", cpu(70)).contains("runtime: cpu:60,"), "the tree's total is not the default tree's");
    let mut world = World::new(with_trees(), quotas(json!({"ignore-default-tree": "true"})));
    assert_eq!(world.arrive("qd", cpu(70)), "");
    let mut world = World::new(QuotaSettings::default(), quotas(json!({})));
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
fn a_child_may_be_checked_by_the_quotas_above_it() {
    let child = |name| cores(name, 5, 50, json!({"parent": "par"}));
    let quotas = || [cores("par", 20, 20, json!({"is-parent": "true"})), child("c1"), child("c2")];
    let settings = QuotaSettings { checks_parents: true, uses_runtime: false, ..QuotaSettings::default() };
    let mut world = World::new(settings, quotas());
    assert_eq!(world.arrive("c1", cpu(15)), "");
    let expected = "Insufficient quotas, quotaNameTopo: [par c2], runtime: cpu:20,memory:400Gi, \
                    used: cpu:15,memory:1Gi, pod's request: cpu:10,memory:1Gi, exceedDimensions: [cpu]";
    assert_eq!(world.arrive("c2", cpu(10)), expected);
    let mut world = World::new(QuotaSettings { uses_runtime: false, ..QuotaSettings::default() }, quotas());
    world.arrive("c1", cpu(15));
    assert_eq!(world.arrive("c2", cpu(10)), "");
}
