//! A sum that is wrong is found, reported and set right; what is given twice is reported.

use std::sync::Arc;

use std::collections::BTreeSet;

use koord_resource::controller::ResourceKind;
use koord_runtime::metrics::Audience;
use koord_scheduler_framework::{
    Audit, DoubleAllocation, Plugin, PluginState, Registration,
    cluster::{Cluster, Mismatch, Subject, state::State},
    columns::Row,
    pod::Pod,
};

use super::*;

/// A plugin whose sums of every node and of the cluster are wrong at first, and that gives the same seat of every node twice.
struct Careless;

#[derive(Clone, Debug)]
struct Sums {
    wrong: Vec<Row>,
    is_right: bool,
}

impl Plugin for Careless {
    fn name(&self) -> &'static str {
        "Careless"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).state(&self).audit(&self)
    }
}

impl PluginState for Careless {
    fn state(&self) -> Box<dyn State> {
        Box::new(Sums { wrong: Vec::new(), is_right: false })
    }
}

impl Audit for Careless {
    fn double_allocations(&self, _: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation> {
        let details = "seat 1 is given to ns/a, ns/b".to_owned();
        let given = |_| DoubleAllocation { what: "seat", details, pods: BTreeSet::new(), subject: None };
        row.map(given).into_iter().collect()
    }
}

impl State for Sums {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn node(&mut self, _: &Cluster, row: Row) {
        self.wrong.push(row);
    }

    fn audit(&mut self, _: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        let known = self.wrong.len();
        self.wrong.retain(|wrong| *wrong != row);
        if self.wrong.len() < known { vec![("careless", "3 instead of 2".to_owned())] } else { Vec::new() }
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let pods = cluster.known_pods().filter(|_| !std::mem::replace(&mut self.is_right, true));
        let object =
            |pod: &Arc<Pod>| Subject::Object { kind: ResourceKind::POD, key: pod.key.clone(), uid: pod.uid.clone() };
        let mut found: Vec<Mismatch> =
            pods.map(|pod| Mismatch::new(object(pod), "of_pods", "1 instead of 0")).collect();
        found.extend((0..found.len() * 20).map(|number| Mismatch::new(Subject::Cluster, "many", number.to_string())));
        found
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_sum_is_counted_reported_and_corrected() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("waits", "1");
    let mut profile = default_profile("koord-scheduler").unwrap();
    profile.plugins.push(Arc::new(Careless).register());
    let (manager, metrics, _) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(20).await;
    let text = metrics.text(&[Audience::Runtime]);
    for (sum, count) in [("careless", 1), ("of_pods", 1), ("many", 20)] {
        let line = format!(r#"koord_scheduler_audit_mismatches_total{{sum="{sum}"}} {count}"#);
        assert!(text.lines().any(|one| one == line), "once, for it is right then:\n{text}");
    }
    let round = text.lines().find(|line| line.starts_with("koord_scheduler_audit_last_round_timestamp_seconds "));
    let round: f64 = round.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default();
    assert!((10.0..=20.0).contains(&round), "a round ends every second: {round}");
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let line = r#"koord_scheduler_given_twice{what="seat",whose="own"} 1"#;
    assert!(text.lines().any(|one| one == line), "{text}");
    let twice = events.iter().filter(|event| event["reason"] == "GivenTwice");
    let twice: Vec<_> = twice
        .map(|event| (&event["involvedObject"]["name"], &event["message"], event["count"].as_u64().unwrap_or(1)))
        .collect();
    assert_eq!(twice, [(&json!("only"), &json!("seat 1 is given to ns/a, ns/b"), 1)], "once");
    let corrected: Vec<_> = events.iter().filter(|event| event["reason"] == "SumCorrected").collect();
    let mut said: Vec<(&Value, &Value)> =
        corrected.iter().map(|event| (&event["involvedObject"]["name"], &event["message"])).collect();
    said.sort_by_key(|(name, _)| name.to_string());
    let of_node = json!("the scheduler's sum careless of the node was wrong and is corrected: 3 instead of 2");
    let of_pod = json!("the scheduler's sum of_pods was wrong and is corrected: 1 instead of 0");
    assert_eq!(said, [(&json!("only"), &of_node), (&json!("waits"), &of_pod)]);
    stop.cancel();
    running.await.unwrap().unwrap();
}
