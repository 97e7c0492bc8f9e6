//! What is done with processes: OOM scores, resctrl groups, core scheduling.

use std::sync::Arc;

use koord_koordlet_hooks::{CookieChange, CoreSchedSupport, Hook, SCHED_CORE, SCHED_GROUP_IDENTITY, on_stop};
use koord_koordlet_system::{Kernel as _, QosFolder, Resource, Value};
use serde_json::json;

use crate::fixture::{LAYOUT, NodeOfTest, identity, plain, value};

#[test]
fn oom_scores_are_for_all_processes_of_a_container() {
    let (ls, be) = (
        plain("ls", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", "-500")]),
        plain("be", "BE", "BestEffort", &[("koordinator.sh/oom-score-adj", "900")]),
    );
    let bad = plain("bad", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", "1001")]);
    let mut node = NodeOfTest::new(&[Hook::OomScoreAdj]);
    for (pod, processes) in [(&ls, "501\n502\n"), (&be, "601\n"), (&bad, "701\n")] {
        node.kernel.set_text(pod.containers[0].cgroup.as_ref().unwrap(), Resource::Processes, processes);
        node.kernel.set_text(&pod.cgroup.child("sandbox"), Resource::Processes, "9\n");
    }
    let outcome = node.reconcile(&[ls, be, bad]);
    let scores: Vec<_> =
        outcome.oom_scores.iter().map(|score| (&*score.pod_name, score.processes.clone(), score.score)).collect();
    assert_eq!(scores, [("ls", vec![501, 502], -500), ("be", vec![601], 900)]);
    assert_eq!(
        outcome.refused[0].to_string(),
        "pod shop/bad: koordinator.sh/oom-score-adj: \"1001\" is wrong: 1001 is not from -1000 to 1000; expected an integer from -1000 to 1000"
    );
}

#[test]
fn a_score_that_cannot_be_read_keeps_its_last_value() {
    let with = |text| plain("ls", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", text)]);
    let mut node = NodeOfTest::new(&[Hook::OomScoreAdj]);
    node.kernel.set_text(with("1").containers[0].cgroup.as_ref().unwrap(), Resource::Processes, "501\n");
    for (text, score, refused) in
        [("x", None, 1), ("-500", Some(-500), 0), ("x", Some(-500), 1), ("y", Some(-500), 1), ("7", Some(7), 0)]
    {
        let outcome = node.reconcile(&[with(text)]);
        let found = outcome.oom_scores.first().map(|score| score.score);
        assert_eq!((found, outcome.refused.len()), (score, refused), "{text}");
    }
}

#[test]
fn pods_with_the_annotation_have_a_resctrl_group() {
    let limited =
        plain("be", "BE", "BestEffort", &[("node.koordinator.sh/resctrl", r#"{"llc":{"schemata":{"range":[0,50]}}}"#)]);
    let other = plain("other", "BE", "BestEffort", &[]);
    let mut node = NodeOfTest::new(&[Hook::Resctrl]);
    node.options.moves_tasks = true;
    node.kernel.set_text(limited.containers[0].cgroup.as_ref().unwrap(), Resource::Threads, "301\n302\n");
    node.kernel.set_text(&limited.cgroup.child("sandbox"), Resource::Threads, "300\n");
    let outcome = node.reconcile(&[Arc::clone(&limited), Arc::clone(&other)]);
    let [group] = outcome.groups.as_slice() else { panic!() };
    assert_eq!((group.name.as_str(), group.tasks.as_slice()), ("koordlet-be", &[300, 301, 302][..]));
    assert_eq!(group.schemata.l3_text().as_deref(), Some("L3:0=3f;1=3f;\n"));
    assert!(outcome.needed_groups.contains("koordlet-be"));
    assert!(node.reconcile(&[other]).needed_groups.is_empty());
}

#[test]
fn cores_are_scheduled_after_group_identities_are_gone() {
    let be = plain("be", "BE", "BestEffort", &[]);
    let mut node = NodeOfTest::new(&[Hook::CoreSched, Hook::GroupIdentity]).slo(json!({"resourceQOSStrategy": {
        "policies": {"cpuPolicy": "coreSched"}, "beClass": {"cpuQOS": {"enable": true, "schedIdle": 1}}}}));
    node.add(&[Arc::clone(&be)]);
    node.kernel.set_text(be.containers[0].cgroup.as_ref().unwrap(), Resource::Processes, "11\n12\n");
    node.kernel.set_text(&be.cgroup.child("sandbox"), Resource::Processes, "10\n");
    node.cookies = [(10, 0), (11, 0), (12, 0)].into();
    node.switches.group_identity = Some(true);
    node.switches.sched_core = Some(false);

    // A kernel without core scheduling keeps its switches.
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!((outcome.switches.len(), outcome.cookies.len(), outcome.core_sched_waits.as_deref()), (0, 0, None));
    let folder = LAYOUT.qos(QosFolder::BestEffort);
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), None);

    node.switches.core_sched = CoreSchedSupport::Supported;
    node.kernel.set(&be.cgroup, Resource::GroupIdentity, Value::Amount(-1));
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!(outcome.core_sched_waits.as_deref(), Some("cpu.bvt_warp_ns of kubepods/besteffort/podbe is not 0 yet"));
    assert_eq!((identity(&outcome, &be.cgroup), outcome.switches.len(), outcome.cookies.len()), (Some(0), 0, 0));
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), Some(Value::Amount(1)));

    node.kernel.set(&be.cgroup, Resource::GroupIdentity, Value::Amount(0));
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    let switches: Vec<_> = outcome.switches.iter().map(|switch| (switch.file, switch.value)).collect();
    assert_eq!((switches, outcome.cookies.len()), (vec![(SCHED_GROUP_IDENTITY, false), (SCHED_CORE, true)], 0));

    node.switches.group_identity = Some(false);
    node.switches.sched_core = Some(true);
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!(outcome.cookies, [CookieChange::Create { group: "".into(), first: 11, others: vec![12, 10] }]);
    node.cookies = [(10, 7), (11, 7), (12, 7)].into();
    assert_eq!(node.reconcile(&[Arc::clone(&be)]).cookies, []);

    node.slo = json!({});
    let outcome = node.reconcile(&[be]);
    assert_eq!(outcome.cookies, [CookieChange::Clear { processes: vec![11, 12, 10] }]);
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), Some(Value::Amount(0)));
    assert_eq!(on_stop(LAYOUT, &node.kernel).0.len(), 2);
    assert!(node.kernel.supports(&folder, Resource::CpuIdle));
}
