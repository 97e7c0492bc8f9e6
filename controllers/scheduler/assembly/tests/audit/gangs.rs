//! The members of gangs, those that are bound, and those that wait.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn cast() -> Cast {
    let group = |annotations: Value, members: i32| json!({"metadata": {"annotations": annotations}, "spec": {"minMember": members, "scheduleTimeoutSeconds": 30}});
    let domain = "gang.scheduling.koordinator.sh";
    let together = |ids: &str| json!({format!("{domain}/groups"): ids});
    let groups = vec![
        group(json!({}), 2),
        group(together(r#"["ns/g0","ns/g1"]"#), 1),
        group(together("["), 2),
        group(json!({format!("{domain}/match-policy"): "only-waiting", format!("{domain}/mode"): "NonStrict"}), 2),
        group(json!({}), -1),
    ];
    let cpu = || json!({"cpu": "1"});
    let of = |group: &str| pod(json!({"pod-group.scheduling.sigs.k8s.io": group}), json!({}), cpu());
    let declares = |name: &str, members: &str, groups: &str| {
        let annotations = json!({
            format!("{domain}/name"): name, format!("{domain}/min-available"): members, format!("{domain}/groups"): groups,
        });
        pod(json!({}), annotations, cpu())
    };
    let near = json!({"scheduling.koordinator.sh/network-topology-selector": "s"});
    let mut near_too = of("g0");
    near_too["metadata"]["annotations"] = near.clone();
    let layers = json!([{"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "rack"}, {"topologyLayer": "rack", "labelKey": ["rack"]}]);
    Cast {
        nodes: vec![node("3", json!({"rack": "a"}), json!({})), node("1", json!({"rack": "b"}), json!({}))],
        pods: vec![
            of("g0"),
            of("g1"),
            declares("g2", "2", ""),
            declares("g2", "many", "["),
            declares("g0", "1", r#"["ns/g0","ns/g2"]"#),
            near_too,
            pod(json!({}), near, cpu()),
            pod(json!({}), json!({}), cpu()),
        ],
        objects: vec![
            ("podgroup", "g0", groups.clone()),
            ("podgroup", "g1", groups),
            (
                "network",
                "default",
                vec![json!({"spec": {"networkTopologySpec": layers}}), json!({"spec": {"networkTopologySpec": []}})],
            ),
        ],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn gangs_have_the_members_that_are_known(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
