//! `koordctl up --scenario descheduling`: the hot node becomes calm by migrations, and what has moved stays where it is.

use crate::{
    program::{Api, folder},
    tour::Tour,
};

/// The nodes of the pods of the scenario's ReplicaSet.
fn nodes(api: &Api) -> Vec<String> {
    let list = api.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb");
    let pods = list["items"].as_array().unwrap().iter();
    pods.map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The evictions that `koordctl deschedule history` shows.
fn evictions(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains("ReplicaSet/web")).collect()
}

#[test]
fn every_step_has_the_outcome_that_it_tells() {
    let kubeconfig = folder("descheduling").join("koord.kubeconfig");
    let mut scenario = Tour::of(("descheduling", 4), &kubeconfig, &["--step", "--nodes=10"]);
    scenario.prints();
    let api = Api::of(&kubeconfig);

    scenario.step("Three pods move in together");
    assert_eq!(nodes(&api), ["hollow-0"; 3]);

    let text = scenario.step("Their node becomes hot");
    assert!(text.contains("$ koordctl deschedule plan --passes 4"), "{text}");

    let moved = scenario.step("Pods move");
    assert!(!evictions(&moved).is_empty(), "{moved}");
    assert!(evictions(&moved).iter().all(|line| line.contains("hollow-0") && line.contains("LowNodeLoad")), "{moved}");
    assert!(nodes(&api).iter().filter(|node| *node == "hollow-0").count() < 3, "{:?}", nodes(&api));

    scenario.press("\n");
    let calm = scenario.prints();
    assert!(calm.contains("It stays calm") && calm.contains("That was descheduling."), "{calm}");
    assert_eq!(evictions(&calm).len(), evictions(&moved).len(), "{calm}");
    assert!(calm.contains("no pod would be evicted"), "{calm}");
    assert!(scenario.ends(), "it ends by itself where nobody watches");
}
