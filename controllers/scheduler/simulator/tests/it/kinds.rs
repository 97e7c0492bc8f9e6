//! What the scheduler writes has its effect: gangs, Reservations, quotas, evictions.

use serde_json::{Value, json};

use crate::{node, place, played, pod, scenario, with};

#[test]
fn a_gang_is_placed_when_its_last_member_has_come() {
    let group = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"}, "spec": {"minMember": 3},
    });
    let member = |name: &str, second| {
        with(pod(name, second, 1), "/metadata/labels", &json!({"pod-group.scheduling.sigs.k8s.io": "train"}))
    };
    let two = vec![node("n", 8), group.clone(), member("a", 0), member("b", 60)];
    let outcome = played(&scenario(two));
    assert_eq!(outcome.pods.waiting, 2);
    assert_eq!((outcome.reasons[0].pods, outcome.reasons[0].plugins.as_slice()), (2, &["Coscheduling".to_owned()][..]));
    assert_eq!(outcome.reasons[0].reason, "gang shop/train has 2 of 3 members");
    let all = vec![node("n", 8), group, member("a", 0), member("b", 60), member("c", 120)];
    let outcome = played(&scenario(all));
    for name in ["a", "b", "c"] {
        let (_, at) = place(&outcome, name).unwrap();
        assert!((120.0..125.0).contains(&at), "{name} at {at}");
    }
}

fn reservation() -> Value {
    let resources = json!({"requests": {"cpu": "6", "memory": "1Gi"}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i", "resources": resources}]});
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "kept"},
        "spec": {"ttl": "24h", "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}], "template": {"spec": spec}},
    })
}

#[test]
fn what_is_reserved_is_for_its_owner() {
    let owner = with(pod("owner", 120, 6), "/metadata/labels", &json!({"app": "web"}));
    let outcome = played(&scenario(vec![node("n", 8), reservation(), pod("stranger", 60, 4), owner]));
    assert!(place(&outcome, "stranger").is_none());
    let (_, at) = place(&outcome, "owner").unwrap();
    assert!((120.0..122.0).contains(&at), "{at}");
}

#[test]
fn a_quota_bounds_its_pods_and_is_reported() {
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"min": {"cpu": "2", "memory": "8Gi"}, "max": {"cpu": "3", "memory": "8Gi"}},
    });
    let of_team = |name: &str| {
        with(pod(name, 0, 2), "/metadata/labels", &json!({"quota.scheduling.koordinator.sh/name": "team"}))
    };
    let outcome = played(&scenario(vec![node("n", 16), quota, of_team("a"), of_team("b"), pod("free", 0, 2)]));
    assert_eq!((outcome.pods.placed, outcome.pods.waiting), (2, 1));
    assert!(outcome.reasons[0].message.contains("Insufficient quotas, quotaName: team"), "{:?}", outcome.reasons);
    assert_eq!(outcome.reasons[0].plugins, ["ElasticQuota"]);
    let team = &outcome.fairness.quotas[0];
    assert_eq!((team.name.as_str(), team.pods, team.placed), ("team", 2, 1));
    assert!((team.served - 0.5).abs() < 1e-6);
}

#[test]
fn a_pod_that_is_evicted_is_gone() {
    let important = with(pod("important", 60, 3), "/spec/priority", &json!(1000));
    let outcome = played(&scenario(vec![node("n", 4), pod("small", 0, 2), important]));
    let pods = outcome.pods;
    assert_eq!((pods.placed, pods.evicted, pods.ended, pods.waiting), (2, 1, 0, 0));
    let small = outcome.placements.iter().find(|placement| placement.pod == "shop/small").unwrap();
    assert!(small.evicted && small.left_s.is_some_and(|left| (60.0..75.0).contains(&left)), "{small:?}");
    assert_eq!(place(&outcome, "important").unwrap().0, "n");
}
