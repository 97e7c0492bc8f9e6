//! What the whole agent does where the original does otherwise, on nodes that lack something. Other differences have their tests where they are made.

use koord_koordlet_testing::{Case, Corpus, FileChange, Fixtures, MetricsWanted, play};
use serde_json::{Value, json};

use super::node_agent::NodeAgent;

/// The shares of the only pod, a batch pod, after the case was changed.
const SHARES: &str = "/files/cgroup~1cpu~1kubepods.slice~1kubepods-besteffort.slice~1kubepods-besteffort-podb61822e8_357d_caff_77ea_accf348d9134.slice~1cpu.shares";
const MEMORY: &str = "/files/cgroup~1memory~1kubepods.slice~1kubepods-besteffort.slice~1kubepods-besteffort-podb61822e8_357d_caff_77ea_accf348d9134.slice~1memory.limit_in_bytes";

/// What is missing, and how a case lacks it.
type Missing<'a> = (&'a str, &'a dyn Fn(&mut Case));

fn played(change: impl FnOnce(&mut Case)) -> Value {
    let corpus = Corpus::own();
    let mut case = corpus.cases().into_iter().find(|case| case.name == "batch-v1").unwrap();
    change(&mut case);
    play(&case, &Fixtures::in_folder(corpus.fixtures()), &NodeAgent::start)
}

#[test]
fn what_a_node_lacks_stops_nothing_else() {
    let flag =
        |case: &mut Case, name: &str, value: &str| _ = case.flags.insert(name.to_owned(), Some(value.to_owned()));
    let missing: [Missing<'_>; 7] = [
        ("lscpu", &|case| _ = case.commands.insert("lscpu".to_owned(), None)),
        ("NUMA nodes", &|case| case.drop.push("sys/*/node/*".to_owned())),
        ("meminfo", &|case| case.drop.push("proc/meminfo".to_owned())),
        ("cpuinfo", &|case| case.drop.push("proc/cpuinfo".to_owned())),
        ("a folder for audit files", &|case| {
            case.feature_gates.push_str(",AuditEvents=true");
            case.work_files.insert("file".to_owned(), String::new());
            flag(case, "audit-log-dir", "{work}/file/audit");
        }),
        ("seconds between samples", &|case| flag(case, "collect-res-used-interval", "200ms")),
        ("a file of the CPU manager", &|case| {
            let text = FileChange::Text("no state".to_owned());
            case.files.insert("kubelet/cpu_manager_state".to_owned(), Some(text));
        }),
    ];
    for (what, change) in missing {
        let seen = played(change);
        assert_eq!((&seen["alive"], seen.pointer(SHARES)), (&json!(true), Some(&json!("2560"))), "{what}: {seen:#}");
    }
}

#[test]
fn without_the_root_of_cgroups_the_agent_goes_on() {
    let seen = played(|case| {
        case.drop.push("cgroup/*".to_owned());
        case.flags.insert("cgroup-root-dir".to_owned(), Some("{root}/nowhere/".to_owned()));
    });
    assert_eq!((&seen["alive"], &seen["exit"]), (&json!(true), &Value::Null), "{seen:#}");
}

#[test]
fn limits_of_batch_pods_do_not_wait_for_a_nodeslo() {
    let seen = played(|case| case.objects.clear());
    assert_eq!(seen.pointer(MEMORY), Some(&json!("2147483648")), "{seen:#}");
}

#[test]
fn metrics_name_the_features_that_work() {
    let only = ["koord_koordlet_capability", "koordlet_node_resource_allocatable"].map(str::to_owned);
    let wanted = MetricsWanted { only: Some(only.into()), ..MetricsWanted::default() };
    let seen = played(|case| case.metrics = Some(wanted));
    let features = seen["metrics"]["/metrics"]["koord_koordlet_capability"]["series"].as_array().unwrap();
    let state = |feature: &str| {
        let series = features.iter().find(|series| series["labels"]["feature"] == feature);
        series.map(|series| series["labels"]["state"].as_str().unwrap())
    };
    assert_eq!((state("cold-pages"), state("kubelet")), (Some("off"), Some("active")));
    // The node has no batch resources of its own.
    assert!(seen["metrics"]["/metrics"]["koordlet_node_resource_allocatable"].is_null());
}
