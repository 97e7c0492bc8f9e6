//! `koordctl up --scenario scheduling`: each step has the outcome that it tells, on a cluster that a test can ask as well.

use serde_json::Value;

use crate::{
    program::{Api, fails, folder, koordctl},
    tour::Tour,
};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn node_of(api: &Api, pod: &str) -> Value {
    api.get(&format!("{PODS}/{pod}"))["spec"]["nodeName"].clone()
}

#[test]
fn every_step_has_the_outcome_that_it_tells() {
    let kubeconfig = folder("scheduling").join("koord.kubeconfig");
    let mut scenario = Tour::of(("scheduling", 9), &kubeconfig, &["--step", "--speed=60"]);
    scenario.prints();
    let api = Api::of(&kubeconfig);

    scenario.step("Three nodes join");
    assert_eq!(api.get("/api/v1/nodes/gamma")["status"]["allocatable"]["cpu"], "8");

    let text = scenario.step("A Reservation keeps room");
    assert!(text.contains("Reservation for-shop is on alpha"), "{text}");

    let text = scenario.step("It is not for strangers");
    assert!(text.contains("default/stranger waits: ") && text.contains("1 Insufficient cpu"), "{text}");
    assert!(text.contains("would be placed on alpha if it requested at most 2 of cpu (it requests 4)"), "{text}");
    assert!(node_of(&api, "stranger").is_null());

    let text = scenario.step("Its owner comes");
    assert!(text.contains("phase of reservation for-shop is Succeeded"), "{text}");
    assert_eq!(node_of(&api, "shop-0"), "alpha");
    let reservation = api.get("/apis/scheduling.koordinator.sh/v1alpha1/reservations/for-shop");
    assert_eq!(reservation["status"]["currentOwners"][0]["name"], "shop-0");

    let text = scenario.step("A quota borrows what another does not use");
    assert!(text.contains(r#"{"cpu":"6","#), "{text}");
    let quotas = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
    let research = api.get(&format!("{quotas}/research"));
    assert_eq!((&research["spec"]["min"]["cpu"], &research["status"]["used"]["cpu"]), (&"4".into(), &"6".into()));

    let text = scenario.step("The lender comes back");
    assert!(text.contains("Insufficient quotas, quotaName: research, runtime: cpu:6"), "{text}");
    assert!(text.contains("$ koordctl explain quota research"), "{text}");
    assert!(!node_of(&api, "sales-0").is_null() && node_of(&api, "research-2").is_null());

    let text = scenario.step("A gang waits for its last member");
    assert!(text.contains("gang default/train has 2 members and needs 3"), "{text}");
    assert!(node_of(&api, "train-0").is_null() && node_of(&api, "train-1").is_null());

    let text = scenario.step("The last member comes");
    assert!(text.contains("3 have their places"), "{text}");
    assert!(["train-0", "train-1", "train-2"].iter().all(|pod| !node_of(&api, pod).is_null()));

    scenario.press("\n");
    let text = scenario.prints();
    assert!(text.contains("CPUs of one NUMA node") && text.contains("That was scheduling."), "{text}");
    assert!(text.contains(r#""cpuset":"0-1""#), "{text}");
    assert!(text.contains("NodeNUMAResource  ") && text.contains("Unaligned NUMA Hint cause cpu"), "{text}");
    assert!(!text.contains("Insufficient cpu"), "the node has room for it: {text}");
    assert!(scenario.ends(), "it ends by itself where nobody watches");
    assert!(!kubeconfig.exists());
}

#[test]
fn without_the_scheduler_there_is_nothing_to_show() {
    let line = ["up", "--port=0", "--scenario=scheduling", "--no-scheduler"];
    let text = fails(&koordctl().args(line).output().unwrap());
    assert!(text.contains("leave --no-scheduler out"), "{text}");
}
