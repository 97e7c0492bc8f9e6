//! The codes and details of refusals.

use super::*;

#[test]
fn a_refusal_says_what_is_too_much_or_since_when_nothing_is_known() {
    let args = json!({"usageThresholds": {"cpu": 65}, "nodeMetricExpirationSeconds": 300});
    let mut world = World::new(&args, &["busy", "mute", "old", "without"]);
    world.use_of("busy", "70", "10Gi");
    world.report("old", 400, &json!({"nodeMetric": {"nodeUsage": {"resources": {"cpu": "1"}}}}));
    let silent: node_metric::NodeMetric = serde_json::from_value(json!({"metadata": {"name": "mute"}})).unwrap();
    let silent = Object::new(ObjectKey::cluster("mute"), Uid::from("mute"), false, Arc::new(silent));
    let now = world.now();
    world.engine.set_object(silent, now);
    world.engine.set_pod(small("p"), now);
    let agent =
        koord_scheduler_testing::labelled("koordinator-system", "koordlet", &[("koord-app", "koordlet")], &json!({}));
    world.engine.set_pod(Arc::new(Pod { node: Some("mute".into()), ..Pod::clone(&agent) }), now);
    assert_eq!(
        koord_scheduler_testing::coded(&world.engine, "p", now),
        [
            "remark: NodeMetricMissing nodes=1 example=without agent_state=absent",
            "busy: NodeHot resource=cpu measure=average age=20s value=71% threshold=65%",
            "mute: NodeMetricMissing policy=refuse agent_state=unready",
            "old: NodeMetricStale policy=refuse age=400s",
        ]
    );
    let ready = Pod { node: Some("mute".into()), is_ready: true, ..Pod::clone(&agent) };
    world.engine.set_pod(Arc::new(ready), now);
    let said = koord_scheduler_testing::coded(&world.engine, "p", now);
    assert!(said.contains(&"mute: NodeMetricMissing policy=refuse agent_state=ready".to_owned()), "{said:?}");
    let mut without = World::new(&args, &["n1"]);
    let now = without.now();
    without.engine.set_pod(small("p"), now);
    assert_eq!(
        koord_scheduler_testing::coded(&without.engine, "p", now),
        [""; 0],
        "nobody reports: there is no koordlet"
    );
    let now = world.now();
    world.engine.remove_node("without", now);
    assert_eq!(
        world.create(small("q")),
        "0/3 nodes are available: 1 node(s) cpu usage exceed threshold, 2 node(s) nodeMetric expired.",
        "the words do not tell the two apart"
    );
}
