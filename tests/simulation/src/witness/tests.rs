use koord_runtime::key::ObjectKey;

use super::*;

/// A life that was shown a node of two CPUs, a quota of one, and these pods.
fn life(pods: &[Value]) -> BindingWitness {
    let mut witness = BindingWitness::default();
    let status = json!({"allocatable": {"cpu": "2", "pods": "10"}});
    let node = json!({"metadata": {"name": "n", "uid": "n", "resourceVersion": "1", "labels": {"zone": "a"}}, "status": status});
    let quota = json!({"metadata": {"name": "q", "resourceVersion": "2"}, "spec": {"max": {"cpu": "1"}}});
    let group = json!({"metadata": {"name": "g", "resourceVersion": "2"}, "spec": {"minMember": 2}});
    for (plural, items) in
        [("nodes", vec![node]), ("elasticquotas", vec![quota]), ("podgroups", vec![group]), ("pods", pods.to_vec())]
    {
        witness.list_begins(plural);
        let page = json!({"metadata": {"resourceVersion": "10"}, "items": items});
        witness.page(plural, &page.to_string(), true, 10);
    }
    witness
}

fn pod(name: &str, cpu: &str, labels: &Value) -> Value {
    let container = json!({"resources": {"requests": {"cpu": cpu}}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    json!({"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "3", "labels": labels}, "spec": spec})
}

fn bound(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("n");
    pod
}

fn binding(name: &str) -> Write {
    let action = Action::Bind { uid: name.into(), node: "n".to_owned(), annotations: BTreeMap::new() };
    Write { kind: ResourceKind::POD, key: ObjectKey::new("default", name), action }
}

/// What is wrong with the binding of a pod.
fn judged(witness: &mut BindingWitness, name: &str) -> String {
    witness.decides(&binding(name), Moment::default()).err().unwrap_or_default()
}

#[test]
fn a_node_gives_out_what_it_has_once() {
    let mut witness = life(&[bound(pod("a", "1", &json!({}))), pod("b", "1", &json!({})), pod("c", "1", &json!({}))]);
    assert_eq!(judged(&mut witness, "b"), "");
    assert!(judged(&mut witness, "c").contains("gives out 3000 of 2000 cpu"));
    assert!(judged(&mut witness, "a").contains("was known to be bound"));
}

#[test]
fn a_pod_that_has_ended_uses_nothing_wherever_it_is_bound() {
    let mut ended = pod("b", "2", &json!({}));
    ended["status"] = json!({"phase": "Succeeded"});
    let mut witness = life(&[bound(pod("a", "1", &json!({}))), ended, pod("c", "1", &json!({}))]);
    assert_eq!([judged(&mut witness, "b"), judged(&mut witness, "c")], [String::new(), String::new()]);
}

#[test]
fn a_binding_counts_when_it_arrived_whatever_was_answered() {
    let pods = [pod("a", "2", &json!({})), pod("b", "2", &json!({}))];
    for (arrived, expected) in [(true, false), (false, true)] {
        let mut witness = life(&pods);
        assert_eq!(judged(&mut witness, "a"), "");
        witness.sent(&binding("a"), arrived, true);
        assert_eq!(judged(&mut witness, "b").is_empty(), expected);
    }
}

#[test]
fn what_is_gone_does_not_count() {
    let pods = [bound(pod("a", "2", &json!({}))), pod("b", "2", &json!({}))];
    let mut gone = pods[0].clone();
    gone["metadata"]["resourceVersion"] = json!("11");
    let mut witness = life(&pods);
    witness.line("pods", &json!({"type": "DELETED", "object": gone}).to_string());
    assert_eq!(judged(&mut witness, "b"), "");
    let mut witness = life(&pods);
    witness.line("pods", &json!({"type": "DELETED", "object": pods[0]}).to_string());
    assert_ne!(judged(&mut witness, "b"), "", "an event of the past is no news");
}

#[test]
fn quotas_and_cordons_are_kept() {
    let in_quota = json!({ QUOTA: "q" });
    let mut witness = life(&[
        bound(pod("a", "1", &in_quota)),
        pod("b", "1", &in_quota),
        pod("c", "1", &json!({})),
        pod("d", "1", &json!({})),
    ]);
    assert!(judged(&mut witness, "b").contains("q is used by 2000 of 1000 cpu"));
    witness.sent(&binding("b"), false, true);
    for revision in 11..14 {
        let metadata = json!({"name": "n", "resourceVersion": revision.to_string()});
        let node = json!({"metadata": metadata, "spec": {"unschedulable": true}});
        assert_eq!(judged(&mut witness, "c"), "", "the decision may be as old as that");
        witness.sent(&binding("c"), false, false);
        witness.line("nodes", &json!({"type": "MODIFIED", "object": node}).to_string());
    }
    assert!(judged(&mut witness, "d").contains("cordoned"));
    witness.sent(&binding("d"), false, true);
    assert_eq!(judged(&mut witness, "c"), "", "it is sent again, and was decided before");
    witness.sent(&binding("c"), false, true);
    assert!(judged(&mut witness, "c").contains("cordoned"), "it was refused for certain, and is decided anew");
}

#[test]
fn nothing_follows_from_versions_that_nobody_may_have_seen() {
    let mut witness = life(&[pod("a", "1", &json!({}))]);
    let cordoned = |revision: u64| {
        let metadata = json!({"name": "n", "resourceVersion": revision.to_string()});
        json!({"metadata": metadata, "spec": {"unschedulable": true}})
    };
    witness.is_lost("nodes");
    witness.page(
        "nodes",
        &json!({"metadata": {"resourceVersion": "20"}, "items": [cordoned(19)]}).to_string(),
        true,
        20,
    );
    assert_eq!(judged(&mut witness, "a"), "", "what was before that list may have been seen, and was not cordoned");
    witness.sent(&binding("a"), false, true);
    for revision in 21..23 {
        witness.line("nodes", &json!({"type": "MODIFIED", "object": cordoned(revision)}).to_string());
    }
    assert!(judged(&mut witness, "a").contains("cordoned"));
}

#[test]
fn a_gang_is_not_there_in_part_for_long() {
    let of_gang = || json!({ GANG: "g" });
    let late = Moment::at(std::time::Duration::from_hours(1));
    for (second, expected) in [(false, false), (true, true)] {
        let mut witness = life(&[pod("a", "1", &of_gang()), pod("b", "1", &of_gang())]);
        assert_eq!(judged(&mut witness, "a"), "");
        if second {
            assert_eq!(judged(&mut witness, "b"), "");
        }
        let went = (0..=DECISIONS_MIN).try_for_each(|_| witness.goes_on(late, Timestamp::UNIX_EPOCH));
        assert_eq!(went.is_ok(), expected);
    }
}
