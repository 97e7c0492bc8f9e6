//! What a test with a cluster sees and shows, by the runtime's example operator, whose nodes have name cards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../controllers/runtime/examples/name_cards/controller.rs"]
mod name_cards;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use koord_testing::{
    Cluster, Result, Setup,
    gates::{Gate, Gates},
    run,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use name_cards::{COMPONENT, NAMESPACE, NameCards};
use serde_json::{Value, json};

/// What the operator's `main` gives to `run_controllers`.
fn add(setup: &mut Setup) -> Result<()> {
    setup.core().add(NameCards::SPEC, COMPONENT, NameCards::wire)?;
    Ok(())
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "blue"}}})
}

fn cards(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), NAMESPACE)
}

fn has_pool(pool: &str) -> impl Fn(&ConfigMap) -> bool {
    move |card| card.data.as_ref().and_then(|data| data.get("pool")).is_some_and(|found| found == pool)
}

#[test]
fn what_an_operator_makes_repairs_and_removes_is_waited_for() -> Result<()> {
    run(async {
        let cluster = Cluster::start("cards", &[namespace()], add).await?;
        let begin = cluster.clock().now();
        cluster.create(&node("a")).await?;
        let cards = cards(&cluster);
        cluster.until(&cards, "a", "names the pool", has_pool("blue")).await?;
        cluster.quiet(Duration::from_hours(1)).await?;
        assert!(cluster.clock().now().as_second() - begin.as_second() > 3600);

        let spoiled = json!({"data": {"pool": "wrong"}});
        cards.patch("a", &PatchParams::default(), &Patch::Merge(&spoiled)).await?;
        cluster.until(&cards, "a", "names the pool again", has_pool("blue")).await?;
        Api::<Node>::all(cluster.client()).delete("a", &DeleteParams::default()).await?;
        cluster.until_gone(&cards, "a").await?;
        Ok(())
    })
}

#[test]
fn a_wait_in_vain_shows_the_object_and_its_events() -> Result<()> {
    run(async {
        let cluster = Cluster::start("cards", &[namespace()], add).await?.with_patience(Duration::from_secs(5));
        cluster.create(&node("a")).await?;
        let failure = cluster.until(&cards(&cluster), "a", "is green", has_pool("green")).await.unwrap_err();
        let text = format!("{failure:?}");
        for part in [
            "configmaps a: it did not come true within 5s that it is green\nthe object:\n",
            "    pool: blue\n",
            "its events:\n  Normal NameCard of the Node: the node gets a new name card\n",
            "the operator's log:\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("managedFields"), "{text}");

        let failure = cluster.until(&cards(&cluster), "b", "is there", |_| true).await.unwrap_err();
        assert!(failure.to_string().contains("the object:\n  there is none\nits events:\n  none\n"), "{failure}");
        Ok(())
    })
}

#[test]
fn an_operator_has_the_permissions_of_its_roles_alone_and_the_log_shows_what_it_lacks() -> Result<()> {
    run(async {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "cards"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}],
        });
        let cluster = Cluster::start("cards", &[namespace(), role], add).await?;
        cluster.create(&node("a")).await?;
        let failure = cluster.until(&cards(&cluster), "a", "is there", |_| true).await.unwrap_err();
        let lacks = r#"configmaps is forbidden: User \"cards\" cannot "#;
        assert!(failure.to_string().contains(lacks), "{failure}");
        Ok(())
    })
}

#[test]
fn a_write_that_no_role_permits_is_tried_again_and_logged_once() -> Result<()> {
    run(async {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "cards"},
            "rules": [{"apiGroups": [""], "resources": ["nodes", "configmaps"], "verbs": ["list", "watch"]}],
        });
        let cluster = Cluster::start("cards", &[namespace(), role], add).await?;
        for name in ["a", "b"] {
            cluster.create(&node(name)).await?;
        }
        let failure = cluster.until(&cards(&cluster), "a", "is there", |_| true).await.unwrap_err().to_string();
        assert_eq!(failure.matches("reconcile failed").count(), 1, "{failure}");
        assert!(failure.contains("kubectl") && failure.contains("--resource=configmaps"), "{failure}");
        Ok(())
    })
}

#[test]
fn what_is_written_where_all_should_be_quiet_is_shown() -> Result<()> {
    run(async {
        let cluster = Cluster::start("cards", &[namespace()], add).await?;
        let client = cluster.client();
        let somebody = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let node: Node = serde_json::from_value(node("late"))?;
            Api::all(client).create(&kube::api::PostParams::default(), &node).await?;
            Ok::<(), koord_testing::Error>(())
        });
        let failure = cluster.quiet(Duration::from_secs(10)).await.unwrap_err();
        somebody.await??;
        let text = failure.to_string();
        assert!(text.starts_with("within 10s nothing was to be written\nwhat was written:\n"), "{text}");
        assert!(text.contains("Added /nodes ") && text.contains("Added /configmaps "), "{text}");
        Ok(())
    })
}

#[test]
fn an_operator_that_is_stopped_does_nothing_until_it_runs_again() -> Result<()> {
    run(async {
        let mut cluster = Cluster::start("cards", &[namespace()], add).await?;
        let error = cluster.run(add).unwrap_err();
        assert_eq!(error.to_string(), "cards runs already; stop it before it runs again");
        cluster.stop().await?;
        cluster.create(&node("a")).await?;
        cluster.quiet(Duration::from_mins(10)).await?;
        cluster.run(add)?;
        cluster.until(&cards(&cluster), "a", "is there", |_| true).await?;
        Ok(())
    })
}

#[test]
fn features_are_off_unless_the_test_switches_them_on() -> Result<()> {
    const GATES: &[Gate] = &[Gate::beta("Cards", true)];
    let gated = |setup: &mut Setup| if setup.gates().enabled("Cards") { add(setup) } else { Ok(()) };
    run(async {
        let mut cluster = Cluster::start("cards", &[namespace()], gated).await?;
        cluster.create(&node("a")).await?;
        cluster.quiet(Duration::from_mins(10)).await?;
        cluster.stop().await?;
        let mut cluster = cluster.with_gates(Gates::new(GATES));
        cluster.run(gated)?;
        cluster.until(&cards(&cluster), "a", "is there", |_| true).await?;
        Ok(())
    })
}
