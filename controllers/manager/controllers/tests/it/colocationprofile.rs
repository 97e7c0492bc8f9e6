//! What the colocationprofile controller promises beyond what was recorded.

use std::time::Duration;

use koord_manager_controllers::colocationprofile::Settings;
use serde_json::{Value, json};

use crate::stage::Stage;

const GATE: &str = "ColocationProfileController=true";
const ROUND: Duration = Duration::from_secs(31);
const FORCED: Duration = Duration::from_mins(5);

fn stage(settings: Settings) -> Stage {
    Stage::with_profiles(GATE, settings)
}

fn profile(stage: &mut Stage, name: &str, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    stage
        .put(&json!({"apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile", "spec": spec,
                      "metadata": {"name": name, "labels": {"config.koordinator.sh/controller-managed": "true"}}}));
    stage.settle();
}

fn pod(name: &str, labels: &Value) -> Value {
    let mut metadata = json!({"name": name, "namespace": "default", "labels": {"app": "web"}});
    metadata["labels"].as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
           "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn labels(stage: &mut Stage, name: &str) -> Value {
    let mut labels = stage.observe(&pod(name, &json!({})))["metadata"]["labels"].clone();
    labels.as_object_mut().unwrap().remove("app");
    labels
}

#[test]
fn a_pod_that_comes_later_is_changed_in_the_next_round() {
    let mut stage = stage(Settings::default());
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    stage.put(&pod("web", &json!({})));
    stage.settle();
    assert_eq!(labels(&mut stage, "web"), json!({}));
    stage.wait(ROUND);
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b"}));
}

#[test]
fn a_pod_that_needed_no_change_is_changed_when_somebody_takes_away_what_it_had() {
    let mut stage = stage(Settings::default());
    stage.put(&pod("web", &json!({"a": "b"})));
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    let by_hand = json!({"metadata": {"labels": {"a": "hand"}}});
    stage.send("PATCH", "/api/v1/namespaces/default/pods/web", &by_hand);
    stage.wait(ROUND);
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b"}));
}

#[test]
fn after_long_enough_the_profile_is_applied_again_and_its_suffix_stands_once() {
    let mut stage = stage(Settings::default());
    stage.put(&pod("web", &json!({"x": "v"})));
    profile(&mut stage, "p", json!({"labels": {"a": "b"}, "labelSuffixes": {"x": "-s"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b", "x": "v-s"}));
    let by_hand = json!({"metadata": {"labels": {"a": "hand"}}});
    stage.send("PATCH", "/api/v1/namespaces/default/pods/web", &by_hand);
    stage.wait(ROUND);
    assert_eq!(labels(&mut stage, "web"), json!({"a": "hand", "x": "v-s"}), "remembered");
    stage.wait(FORCED);
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b", "x": "v-s"}));
}

#[test]
fn without_a_force_update_duration_a_profile_is_applied_once() {
    let mut stage = stage(Settings { force_after: Duration::ZERO, ..Settings::default() });
    stage.put(&pod("web", &json!({})));
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b"}));
    let by_hand = json!({"metadata": {"labels": {"a": "hand"}}});
    stage.send("PATCH", "/api/v1/namespaces/default/pods/web", &by_hand);
    for _ in 0..40 {
        stage.wait(ROUND);
    }
    assert_eq!(labels(&mut stage, "web"), json!({"a": "hand"}));
    profile(&mut stage, "p", json!({"labels": {"a": "c"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "c"}));
}

#[test]
fn a_pod_that_is_being_deleted_is_changed_too() {
    let mut stage = stage(Settings::default());
    let mut kept = pod("web", &json!({}));
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    stage.put(&kept);
    stage.send("DELETE", "/api/v1/namespaces/default/pods/web", &Value::Null);
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "b"}));
}

#[test]
fn an_edited_profile_is_applied_at_once() {
    let mut stage = stage(Settings::default());
    stage.put(&pod("web", &json!({"x": "v"})));
    profile(&mut stage, "p", json!({"labels": {"a": "b"}, "labelSuffixes": {"x": "-s"}}));
    profile(&mut stage, "p", json!({"labels": {"a": "c"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "c", "x": "v-s"}));
}

#[test]
fn of_two_profiles_the_later_name_wins_and_goes_on_winning() {
    let mut stage = stage(Settings::default());
    stage.put(&pod("web", &json!({})));
    profile(&mut stage, "q", json!({"labels": {"a": "q"}}));
    profile(&mut stage, "p", json!({"labels": {"a": "p", "b": "p"}}));
    assert_eq!(labels(&mut stage, "web"), json!({"a": "q", "b": "p"}));
    stage.writes.clear();
    for _ in 0..40 {
        stage.wait(ROUND);
    }
    assert_eq!(stage.writes, [""; 0], "a quiet cluster sees no write");
}

#[test]
fn no_more_pods_are_changed_than_the_flags_allow() {
    let mut stage = stage(Settings { per_second: 0.5, burst: 2, ..Settings::default() });
    for number in 0..5 {
        stage.put(&pod(&format!("web-{number}"), &json!({})));
    }
    let changed = |stage: &mut Stage| {
        let pods = (0..5).map(|number| labels(stage, &format!("web-{number}")));
        pods.filter(|labels| *labels == json!({"a": "b"})).count()
    };
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    assert_eq!(changed(&mut stage), 2);
    stage.wait(Duration::from_millis(1_900));
    assert_eq!(changed(&mut stage), 2);
    stage.wait(Duration::from_millis(100));
    assert_eq!(changed(&mut stage), 3);
    stage.wait(ROUND);
    assert_eq!(changed(&mut stage), 5);
}

#[test]
fn a_pod_on_a_node_is_left_alone() {
    let mut stage = stage(Settings::default());
    let mut bound = pod("web", &json!({}));
    bound["spec"]["nodeName"] = "n".into();
    stage.put(&bound);
    profile(&mut stage, "p", json!({"labels": {"a": "b"}}));
    assert_eq!((labels(&mut stage, "web"), stage.writes.len()), (json!({}), 0));
}

#[test]
fn what_the_api_server_refuses_is_told_and_keeps_no_other_pod_waiting() {
    let mut stage = stage(Settings::default());
    stage.refusals_allowed = true;
    stage.put(&pod("bad", &json!({})));
    let mut gated = pod("good", &json!({}));
    gated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    stage.put(&gated);
    // Of a pod that waits at a gate, the choice of nodes may still be narrowed.
    profile(&mut stage, "p", json!({"labels": {"a": "b"}, "patch": {"spec": {"nodeSelector": {"disk": "ssd"}}}}));
    stage.wait(Duration::from_secs(1));
    assert_eq!(stage.reasons("bad"), ["ProfileNotApplied"]);
    assert_eq!((labels(&mut stage, "bad"), labels(&mut stage, "good")), (json!({}), json!({"a": "b"})));
    stage.writes.clear();
    stage.wait(ROUND);
    assert_eq!(stage.writes, [""; 0], "not asked again before its time");
}

#[test]
fn a_probability_that_is_none_is_told() {
    let mut stage = stage(Settings::default());
    stage.put(&pod("web", &json!({})));
    profile(&mut stage, "p", json!({"labels": {"a": "b"}, "probability": "half"}));
    assert_eq!((stage.reasons("p"), labels(&mut stage, "web")), (vec!["InvalidProbability"], json!({})));
}
