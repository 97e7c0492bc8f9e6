//! `koordctl coexist check` in a cluster: what it lists and finds, what it asks for, and what it says where it may not read.

use koordctl::Answer;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// The answer for programs, and the exit code.
fn checked(cluster: &Cluster) -> (Value, u8) {
    let Answer { text, code } = cluster.koordctl(&["coexist", "check", "-o", "json"]).unwrap();
    (serde_json::from_str(&text).unwrap(), code)
}

fn problems(found: &Value) -> Vec<&str> {
    found["findings"].as_array().unwrap().iter().map(|finding| finding["problem"].as_str().unwrap()).collect()
}

#[test]
fn schedulers_that_share_a_node_are_listed_and_found() {
    let cluster = Cluster::installed("coexist");
    let (found, code) = checked(&cluster);
    assert_eq!((&found["findings"], &found["schedulers"], code), (&json!([]), &json!([]), 0));
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    for (name, scheduler) in [("a", "koord-scheduler"), ("b", "koord-scheduler"), ("c", "default-scheduler")] {
        cluster.create(
            "/api/v1/namespaces/default/pods",
            &json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"nodeName": "n1", "schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]},
            }),
        );
    }
    let (found, code) = checked(&cluster);
    let shared = json!([{"name": "n1", "pods": {"default-scheduler": 1, "koord-scheduler": 2}}]);
    assert_eq!((&found["sharedNodes"], &found["warnings"], code), (&shared, &json!(1), 1));
    assert!(problems(&found)[0].starts_with("koord-scheduler shares them with default-scheduler"), "{found:#}");
    let text = cluster.koordctl(&["coexist", "check"]).unwrap().text;
    assert!(text.starts_with("SCHEDULER ") && text.contains("0 errors, 1 warning; looked at: schedulers, "), "{text}");
    let written = cluster.asked().into_iter().filter(|(verb, _)| !["get", "list"].contains(&verb.as_str()));
    assert_eq!(written.collect::<Vec<_>>(), [], "a cluster is only read");
}

#[test]
fn what_cannot_be_read_is_said_with_the_remedy() {
    let cluster = Cluster::installed("coexist-forbidden");
    let (found, code) = checked(&cluster.seen_by_a_stranger("nobody"));
    let problems = problems(&found);
    assert!(code == 1 && problems.len() >= 8, "{found:#}");
    assert!(problems.iter().all(|problem| problem.starts_with("cannot be looked at: ")), "{problems:?}");
    let error = cluster.koordctl(&["coexist", "check", "--config=/nonexistent"]).unwrap_err();
    assert!(error.contains("--config /nonexistent cannot be read"), "{error}");
}
