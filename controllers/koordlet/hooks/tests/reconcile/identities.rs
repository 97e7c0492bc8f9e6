//! Group identities, and what is computed again.

use std::sync::Arc;

use koord_koordlet_hooks::{Hook, SCHED_GROUP_IDENTITY};
use koord_koordlet_system::{CgroupPath, QosFolder};
use serde_json::{Value as Json, json};

use crate::fixture::{LAYOUT, NodeOfTest, STATUS, batch, be, identity, plain};

fn all_identities() -> Json {
    let class = |identity: i64| json!({"cpuQOS": {"enable": true, "groupIdentity": identity}});
    json!({"resourceQOSStrategy": {"lsrClass": class(2), "lsClass": class(2), "beClass": class(-1)},
        "hostApplications": [{"name": "a", "qos": "LS"}, {"name": "b", "qos": "BE"}, {"name": "d", "qos": "SYSTEM"},
            {"name": "bad", "cgroupPath": {"parentDir": "../x"}}]})
}

#[test]
fn everything_below_a_pod_has_its_group_identity() {
    let (ls, be) = (plain("ls", "LS", "Burstable", &[]), plain("be", "BE", "BestEffort", &[]));
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    let pods = [Arc::clone(&ls), Arc::clone(&be)];
    node.add(&pods);
    let left = LAYOUT.pod(QosFolder::BestEffort, "gone");
    node.kernel.add(&left.child("x"));
    let outcome = node.reconcile(&pods);
    for (cgroup, value) in [
        (LAYOUT.kubepods(), 0),
        (LAYOUT.qos(QosFolder::Burstable), 2),
        (LAYOUT.qos(QosFolder::BestEffort), -1),
        (ls.cgroup.clone(), 2),
        (ls.cgroup.child("sandbox"), 2),
        (ls.containers[0].cgroup.clone().unwrap(), 2),
        (be.cgroup.clone(), -1),
        (be.cgroup.child("sandbox"), -1),
        (left.clone(), -1),
        (left.child("x"), -1),
        (CgroupPath::new("host-latency-sensitive/a"), 2),
        (CgroupPath::new("host-best-effort/b"), -1),
        (CgroupPath::new("d"), 0),
    ] {
        assert_eq!(identity(&outcome, &cgroup), Some(value), "{cgroup}");
    }
    assert_eq!(
        outcome.refused[0].to_string(),
        "host application bad: NodeSLO hostApplications.cgroupPath: \"/../x/\" leaves the hierarchy of cgroups"
    );
}

#[test]
fn the_annotation_changes_the_containers_too() {
    // In the original containers keep the value of the class.
    let annotation = [("koordinator.sh/cpuQOS", r#"{"enable":true,"groupIdentity":-1}"#)];
    let pod = plain("ls", "LS", "Burstable", &annotation);
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    node.add(&[Arc::clone(&pod)]);
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    for cgroup in [pod.cgroup.clone(), pod.cgroup.child("sandbox"), pod.containers[0].cgroup.clone().unwrap()] {
        assert_eq!(identity(&outcome, &cgroup), Some(-1), "{cgroup}");
    }
}

#[test]
fn group_identities_wait_for_their_switch() {
    let pods = [plain("be", "BE", "BestEffort", &[])];
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    node.switches.group_identity = Some(false);
    let outcome = node.reconcile(&pods);
    assert_eq!((outcome.switches[0].file, outcome.switches[0].value), (SCHED_GROUP_IDENTITY, true));
    assert_eq!(outcome.constraints.0.len(), 0);
    node.switches.group_identity = Some(true);
    let outcome = node.reconcile(&pods);
    assert_eq!((outcome.switches.len(), identity(&outcome, &pods[0].cgroup)), (0, Some(-1)));
}

#[test]
fn what_did_not_change_is_not_computed_again() {
    let pods = [
        plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]),
        be(&json!([batch(1500, "1Gi")]), &json!([])),
    ];
    let mut node = NodeOfTest::new(&[Hook::BatchResource, Hook::CpuSetAllocator, Hook::GroupIdentity])
        .slo(all_identities())
        .topology("0,4");
    node.add(&pods);
    let first = node.reconcile(&pods);
    let rules = node.rules.clone().unwrap();
    let second = node.reconcile(&pods);
    assert!(Arc::ptr_eq(&rules, node.rules.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&first.constraints, &second.constraints));
    // Without its pod a folder has nothing but the identity of its class.
    let third = node.reconcile(&pods[1..]);
    let of_lsr =
        third.constraints.0.iter().filter(|constraint| constraint.target.cgroup().unwrap().is_within(&pods[0].cgroup));
    assert!(of_lsr.map(|constraint| constraint.target.to_string()).all(|target| target.ends_with("cpu.bvt_warp_ns")));
    node.kernel.remove(&pods[0].cgroup);
    let fourth = node.reconcile(&pods[1..]);
    assert!(
        fourth.constraints.0.iter().all(|constraint| !constraint.target.cgroup().unwrap().is_within(&pods[0].cgroup))
    );
}
