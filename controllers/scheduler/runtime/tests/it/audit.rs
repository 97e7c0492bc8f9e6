//! A sum that is wrong is found, reported and set right.

use koord_engine::{cluster::Cluster, columns::Row, plugin::Plugin, state::State};
use koord_runtime::metrics::Audience;

use super::*;

/// A plugin whose sum of every node is wrong at first.
struct Careless;

#[derive(Clone, Debug)]
struct Sums {
    wrong: Vec<Row>,
}

impl Plugin for Careless {
    fn name(&self) -> &'static str {
        "Careless"
    }

    fn state(&self) -> Option<Box<dyn State>> {
        Some(Box::new(Sums { wrong: Vec::new() }))
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
}

#[tokio::test(start_paused = true)]
async fn a_wrong_sum_is_counted_told_and_set_right() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let mut profile = default_profile("koord-scheduler").unwrap();
    profile.plugins.push(Arc::new(Careless));
    let (manager, metrics, _) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(20).await;
    let text = metrics.text(&[Audience::Runtime]);
    let count = r#"koord_scheduler_audit_mismatches_total{sum="careless"} 1"#;
    assert!(text.lines().any(|line| line == count), "once, for it is right then:\n{text}");
    let round = text.lines().find(|line| line.starts_with("koord_scheduler_audit_last_round_timestamp_seconds "));
    let round: f64 = round.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default();
    assert!((10.0..=20.0).contains(&round), "a round ends every second: {round}");
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let corrected: Vec<_> = events.iter().filter(|event| event["reason"] == "SumCorrected").collect();
    let [event] = corrected[..] else { panic!("{events:?}") };
    assert_eq!(event["involvedObject"]["name"], json!("only"));
    assert_eq!(
        event["message"],
        json!("the scheduler's sum careless of the node was wrong and is corrected: 3 instead of 2")
    );
    stop.cancel();
    running.await.unwrap().unwrap();
}
