//! Pods below another cgroup than the root.

use std::fs;

use koord_koordlet_runtime::Input;
use koord_koordlet_system::PressureResource;

use super::node::FixtureNode;

#[test]
fn pods_are_found_below_the_cgroup_that_the_kubelet_names() {
    let mut node = FixtureNode::new("foo/kubepods", 4, &[]);
    assert_eq!(node.agent.layout().kubepods().as_str(), "kubepods.slice", "no folder of pods was found at the start");
    node.settle();
    assert_eq!(node.agent.layout().kubepods().as_str(), "foo/kubepods");
    assert_eq!(node.quota(), Some(8.4), "16 × 65 % − 2");
    node.advance(300, 8.0);
    node.take(Input::Pressure(PressureResource::Cpu));
    assert_eq!(node.quota(), Some(2.4), "samples are those of the new folders");
    let pods: Vec<_> = node.agent.pods().iter().map(|pod| pod.cgroup.to_string()).collect();
    assert_eq!(pods[0], "foo/kubepods/besteffort/pod0");
    let weight = fs::read_to_string(node.best_effort("pod0/cpu.weight")).unwrap();
    assert_eq!(weight.trim(), "39", "hooks write there: 1000 of batch-cpu");
}

#[test]
fn folders_that_are_there_count_where_none_is_below_the_cgroup_that_the_kubelet_names() {
    let mut node = FixtureNode::new("kubepods", 4, &[]);
    node.kubelet_root = "/kubelet".to_owned();
    node.settle();
    assert_eq!(node.agent.layout().kubepods().as_str(), "kubepods");
    assert_eq!(node.quota(), Some(8.4));
}
