//! Preemption beside another scheduler.

use koord_core::key::ObjectKey;
use koord_scheduler_framework::policy::Policy;

use super::tests::*;

fn of_another(name: &str, cpu: &str, priority: i32, node: Option<&str>) -> Arc<Pod> {
    let pod = pod(name, cpu, priority, node);
    let template = Template { scheduler: "default-scheduler".into(), ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) })
}

/// Two nodes: one with a pod of another scheduler, one with a more important pod of this one.
fn beside_another(policy: Policy) -> Engine {
    let mut engine = engine(&["n1", "n2"]).with_policy(policy);
    engine.set_pod(of_another("theirs", "4", 1, Some("n1")), NOW);
    engine.set_pod(pod("ours", "4", 3, Some("n2")), NOW);
    engine
}

#[test]
fn a_pod_of_another_scheduler_is_evicted_only_with_the_gate() {
    let mut engine = beside_another(Policy::default());
    engine.set_pod(pod("high", "4", 10, None), NOW);
    assert_eq!(victims(&refused(&mut engine)), ["ours"], "though it is more important");

    let mut alone = beside_another(Policy::default());
    alone.remove_pod(&Uid::from("ours"), NOW);
    alone.remove_node("n2", NOW);
    alone.set_pod(pod("high", "4", 10, None), NOW);
    let waits = refused(&mut alone);
    assert_eq!((waits.nominated.as_deref(), victims(&waits)), (None, vec![]));
    let words = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert!(waits.message.ends_with(words), "{}", waits.message);

    let mut engine = beside_another(Policy { evicts_foreign: true, ..Policy::default() });
    engine.set_pod(pod("high", "4", 10, None), NOW);
    assert_eq!(victims(&refused(&mut engine)), ["theirs"]);
}

#[test]
fn the_policy_counts_after_everything_was_forgotten() {
    let mut engine = beside_another(Policy { evicts_foreign: true, ..Policy::default() });
    engine.clear();
    engine.set_node(
        koord_scheduler_testing::node("n1", &json!({"status": {"allocatable": {"cpu": "4", "pods": "9"}}})),
        NOW,
    );
    engine.set_pod(of_another("theirs", "4", 1, Some("n1")), NOW);
    engine.set_pod(pod("high", "4", 10, None), NOW);
    assert_eq!(victims(&refused(&mut engine)), ["theirs"]);
}

#[test]
fn a_terminating_pod_of_another_scheduler_is_a_victim_already() {
    let mut engine = beside_another(Policy::default());
    let going = of_another("theirs", "4", 1, Some("n1"));
    engine.set_pod(Arc::new(Pod { deleting: true, ..Pod::clone(&going) }), NOW);
    engine.set_pod(pod("high", "4", 10, None), NOW);
    let attempt = refused(&mut engine);
    assert_eq!((attempt.nominated.as_deref(), victims(&attempt)), (Some("n1"), vec![]), "nobody else is evicted");
}

#[test]
fn the_scheduler_never_evicts_its_own_pod() {
    let with = |scheduler_pod: Option<&str>, key: &str| {
        let scheduler_pod = scheduler_pod.map(|name| ObjectKey::new("ns", name));
        let mut engine = engine(&["n1", "n2"]).with_policy(Policy { scheduler_pod, ..Policy::default() });
        engine.set_pod(pod(key, "4", 1, Some("n1")), NOW);
        engine.set_pod(pod("other", "4", 3, Some("n2")), NOW);
        engine.set_pod(pod("high", "4", 10, None), NOW);
        victims(&refused(&mut engine)).concat()
    };
    assert_eq!(with(None, "koord-scheduler-0"), "koord-scheduler-0");
    assert_eq!(with(Some("koord-scheduler-0"), "koord-scheduler-0"), "other");
    assert_eq!(with(Some("koord-scheduler-0"), "koord-scheduler-1"), "koord-scheduler-1", "a replica that waits");
}

/// What comes of pods of this scheduler, where another one nominates a pod of priority 5 to the only node.
fn beside_a_nomination(policy: Policy) -> impl Fn(&str, i32) -> bool {
    move |cpu, priority| {
        let mut engine = engine(&["n1"]).with_policy(policy.clone());
        let theirs = of_another("theirs", "3", 5, None);
        engine.set_pod(Arc::new(Pod { nominated: Some("n1".into()), ..Pod::clone(&theirs) }), NOW);
        engine.set_pod(pod("ours", cpu, priority, None), NOW);
        matches!(engine.attempt(NOW), Some(Attempt { outcome: Outcome::Bind { .. }, .. }))
    }
}

#[test]
fn nominations_of_another_scheduler_count_only_with_the_gate_and_for_a_higher_priority() {
    let placed = beside_a_nomination(Policy::default());
    assert!(placed("2", 1), "what others nominate is not known");
    let placed = beside_a_nomination(Policy { keeps_foreign_nominations: true, ..Policy::default() });
    assert!(!placed("2", 4) && placed("1", 4), "three of four cores are kept");
    assert!(placed("2", 5), "nobody waits for a pod of the same priority");
}

#[test]
fn nominations_of_another_scheduler_follow_its_writes_and_are_not_withdrawn_here() {
    let policy = Policy { keeps_foreign_nominations: true, ..Policy::default() };
    let mut engine = engine(&["n1", "n2"]).with_policy(policy);
    let theirs = of_another("theirs", "4", 5, None);
    let nominated = |node: Option<&str>| Arc::new(Pod { nominated: node.map(Arc::from), ..Pod::clone(&theirs) });
    let kept = |engine: &Engine| {
        let cluster = engine.cluster();
        cluster.nominated().filter_map(|(_, row)| cluster.name(row)).map(|name| &**name).collect::<String>()
    };
    engine.set_pod(nominated(Some("n1")), NOW);
    engine.set_pod(pod("low", "4", 1, Some("n1")), NOW);
    engine.set_pod(pod("on-n2", "4", 20, Some("n2")), NOW);
    engine.set_pod(pod("high", "4", 10, None), NOW);
    assert_eq!(victims(&refused(&mut engine)), ["low"], "for a pod of a higher priority than theirs");
    assert_eq!(kept(&engine), "n1n1", "which scheduler is first is seen when the room is there");
    engine.set_pod(nominated(Some("n2")), NOW);
    engine.remove_pod(&Uid::from("high"), NOW);
    assert_eq!(kept(&engine), "n2");
    engine.set_pod(nominated(None), NOW);
    assert_eq!(kept(&engine), "");
    engine.set_pod(nominated(Some("n1")), NOW);
    engine.remove_pod(&theirs.uid, NOW);
    assert_eq!(kept(&engine), "", "the pod is gone");
    assert!(engine.queue().depths().active == 0 && engine.attempt(NOW).is_none(), "it is never tried here");
}

#[test]
fn nominated_pods_are_ignored_with_the_gate_that_skips_them() {
    let placed = |ignores_nominated| {
        let mut engine = engine(&["n1"]).with_policy(Policy { ignores_nominated, ..Policy::default() });
        engine.set_pod(pod("low", "4", 1, Some("n1")), NOW);
        engine.set_pod(pod("high", "4", 10, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["low"]);
        engine.remove_pod(&Uid::from("low"), NOW);
        engine.set_pod(pod("late", "1", 1, None), NOW);
        let attempts = std::iter::from_fn(|| engine.attempt(NOW)).map(|attempt| match attempt.outcome {
            Outcome::Bind { .. } => attempt.pod.key.name().to_owned(),
            _ => String::new(),
        });
        attempts.collect::<Vec<_>>()
    };
    assert_eq!(placed(false), ["", "high"]);
    assert_eq!(placed(true), ["late", ""], "and the pod for which room was made waits again");
}
