//! Every label and annotation: texts that are right, texts that are wrong, and what holds for any text at all.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use koord_types::catalogue::{Entry, KEYS, doubts, find, refuses_pod};
use proptest::{prelude::*, sample, test_runner::TestRunner};
use serde_json::{Value, json};

/// Keys with texts that are right and texts that are wrong, whatever stands under them.
const ROWS: &[(&[&str], &[&str], &[&str])] = &[
    // Plain text: nothing is wrong.
    (
        &[
            "koordinator.sh/gpu-isolation-provider",
            "gang.scheduling.koordinator.sh/name",
            "gang.scheduling.koordinator.sh/timeout",
            "internal.scheduling.koordinator.sh/original-scheduler-name",
            "node.koordinator.sh/enable-numa-reservation",
            "node.koordinator.sh/gpu-vendor",
            "node.koordinator.sh/gpu-model",
            "node.koordinator.sh/gpu-driver-version",
            "hami.io/vgpu-node",
            "koordinator.sh/core-sched-group-id",
            "scheduling.koordinator.sh/scheduler-name",
            "scheduling.koordinator.sh/questioned-object-key",
            "scheduling.koordinator.sh/topology-key-to-explain",
            "scheduling.koordinator.sh/network-topology-selector",
        ],
        &["", "x", "HAMi-core"],
        &[],
    ),
    // Words: what is not known is kept.
    (
        &[
            "gang.scheduling.koordinator.sh/mode",
            "gang.scheduling.koordinator.sh/match-policy",
            "pod-group.scheduling.sigs.k8s.io/match-policy",
            "node.koordinator.sh/cpu-bind-policy",
            "node.koordinator.sh/numa-allocate-strategy",
            "node.koordinator.sh/numa-topology-policy",
            "node.koordinator.sh/gpu-partition-policy",
            "koordinator.sh/core-sched-policy",
            "scheduling.koordinator.sh/preemption-policy",
            "scheduling.koordinator.sh/operating-mode",
        ],
        &["Strict", "once-satisfied", "None", "BestEffort", "Honor", "Never", "Reservation", "exclusive", "unknown"],
        &[],
    ),
    // Flags.
    (
        &[
            "node.koordinator.sh/secondary-device-well-planned",
            "pod.koordinator.sh/mutating-update",
            "pod.koordinator.sh/skip-enhanced-validation",
            "koordinator.sh/eviction-enabled",
            "scheduling.koordinator.sh/disable-preemptible",
            "config.koordinator.sh/controller-managed",
            "quota.scheduling.koordinator.sh/is-parent",
            "quota.scheduling.koordinator.sh/allow-lent-resource",
            "quota.scheduling.koordinator.sh/is-root",
            "quota.scheduling.koordinator.sh/ignore-default-tree",
            "quota.scheduling.koordinator.sh/preemptible",
            "quota.scheduling.koordinator.sh/allow-force-update",
            "scheduling.koordinator.sh/reservation-ignored",
            "scheduling.koordinator.sh/pre-allocation-required",
            "pod.koordinator.sh/is-pre-allocatable",
        ],
        &["true", "false"],
        &["", "True", "1", "yes"],
    ),
    // Numbers.
    (
        &["gang.scheduling.koordinator.sh/min-available", "gang.scheduling.koordinator.sh/total-number"],
        &["0", "3", "-1"],
        &["", "x", "1.5", "0x10", "2147483648"],
    ),
    (&["pod-group.scheduling.sigs.k8s.io/min-available"], &["0", "3"], &["", "x", "1.5"]),
    (
        &[
            "gang.scheduling.koordinator.sh/network-topology-index",
            "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled",
            "scheduling.koordinator.sh/load-estimated-seconds-after-initialized",
            "pod.koordinator.sh/pre-allocatable-priority",
            "scheduling.koordinator.sh/reservation-order",
        ],
        &["0", "9223372036854775807", "-5"],
        &["", "x", "1.5", "9223372036854775808"],
    ),
    (&["koordinator.sh/eviction-priority"], &["0", "-5", "2147483647"], &["x", "1.5", "2147483648"]),
    (&["koordinator.sh/oom-score-adj"], &["0", "-1000", "1000"], &["", "x", "1001", "-1001"]),
    (&["scheduling.koordinator.sh/eviction-cost"], &["0", "-5", "2147483647"], &["", "x", "+5", "05", "2147483648"]),
    (&["koordinator.sh/priority"], &["0", "9999", "0x10", "1_000", ""], &["x", "08", "2147483648"]),
    (
        &[
            "node.koordinator.sh/cpu-reclaim-ratio",
            "node.koordinator.sh/memory-reclaim-ratio",
            "node.koordinator.sh/mid-static-cpu-reserved-ratio",
            "node.koordinator.sh/mid-static-memory-reserved-ratio",
        ],
        &["0", "0.65", "1.5"],
        &["", "x", "-0.1", "NaN"],
    ),
    (&["node.koordinator.sh/cpu-normalization-ratio"], &["1.20", "1", "0.5"], &["", "x", "0", "-1", "inf"]),
    (&["node.koordinator.sh/cpu-normalization-enabled"], &["true", "false", "1", "F"], &["", "yes", "on"]),
    (&["node.koordinator.sh/network-bandwidth"], &["10G", "100", "1.5Gi"], &["", "x", "10Gb"]),
    (&["gang.scheduling.koordinator.sh/waiting-time"], &["5m", "1h30m", "0"], &["", "5", "x", "5 m"]),
    // Amounts of resources.
    (
        &[
            "node.koordinator.sh/raw-allocatable",
            "quota.scheduling.koordinator.sh/shared-weight",
            "quota.scheduling.koordinator.sh/runtime",
            "quota.scheduling.koordinator.sh/request",
            "quota.scheduling.koordinator.sh/child-request",
            "quota.scheduling.koordinator.sh/total-resource",
            "quota.scheduling.koordinator.sh/unschedulable-resource",
            "quota.scheduling.koordinator.sh/guaranteed",
            "quota.scheduling.koordinator.sh/allocated",
            "quota.scheduling.koordinator.sh/non-preemptible-request",
            "quota.scheduling.koordinator.sh/non-preemptible-used",
            "quota.scheduling.koordinator.sh/admission",
        ],
        &["{}", "null", r#"{"cpu":"4","memory":"8Gi"}"#, r#"{"cpu":4}"#],
        &["", "{", "[]", "5", r#"{"cpu":"4x"}"#, r#"{"cpu":true}"#],
    ),
    // Lists and maps of plain values.
    (
        &[
            "gang.scheduling.koordinator.sh/groups",
            "koordinator.sh/eviction-policy",
            "quota.scheduling.koordinator.sh/resource-keys",
            "quota.scheduling.koordinator.sh/namespaces",
            "quota.scheduling.koordinator.sh/max-strict-check-resource-keys",
        ],
        &["[]", "null", r#"["a","b"]"#],
        &["", "[", "{}", "a", "[5]"],
    ),
    (
        &["koordinator.sh/oom-score-adj-spec", "scheduling.koordinator.sh/load-estimated-scaling-factors"],
        &["{}", r#"{"main":-100}"#],
        &["", "{", "[]", r#"{"main":"x"}"#, r#"{"main":1.5}"#],
    ),
    (
        &["node.koordinator.sh/resource-amplification-ratio"],
        &["{}", r#"{"cpu":1.20,"memory":2}"#],
        &["", "{", "[]", r#"{"cpu":"1.2"}"#],
    ),
    (&["pod.koordinator.sh/replace-resources"], &["", "cpu:kubernetes.io/batch-cpu,memory:", "no pair"], &[]),
    // Objects: a wrong text and a wrong type anywhere inside.
    (
        &["scheduling.koordinator.sh/device-allocated"],
        &["{}", r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"100"},"id":"GPU-1"}]}"#],
        &["", "[]", r#"{"gpu":{}}"#, r#"{"gpu":[{"minor":"0"}]}"#, r#"{"gpu":[{"minor":0,"resources":{"a":"x"}}]}"#],
    ),
    (
        &["scheduling.koordinator.sh/device-allocate-hint"],
        &["{}", r#"{"rdma":{"allocateStrategy":"ApplyForAll","selector":{"matchLabels":{"a":"b"}}}}"#],
        &["", "[]", r#"{"rdma":5}"#, r#"{"rdma":{"selector":5}}"#],
    ),
    (
        &["scheduling.koordinator.sh/device-joint-allocate"],
        &["{}", r#"{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}"#],
        &["", "[]", r#"{"deviceTypes":"gpu"}"#],
    ),
    (
        &["scheduling.koordinator.sh/gpu-partition-spec"],
        &["{}", r#"{"allocatePolicy":"Restricted","ringBusBandwidth":"100Gi"}"#],
        &["", "[]", r#"{"allocatePolicy":5}"#, r#"{"ringBusBandwidth":"x"}"#],
    ),
    (
        &["scheduling.koordinator.sh/gpu-partitions"],
        &["{}", r#"{"2":[{"minors":[0,1],"gpuLinkType":"NVLink","allocationScore":1}]}"#],
        &["", "null", "[]", r#"{"two":[]}"#, r#"{"2":[{"minors":"0"}]}"#],
    ),
    (
        &["gang.scheduling.koordinator.sh/network-topology-spec"],
        &["{}", r#"{"gatherStrategy":[{"layer":"rack","strategy":"MustGather"}]}"#],
        &["", "[]", r#"{"gatherStrategy":{}}"#],
    ),
    (
        &["node.koordinator.sh/colocation-strategy"],
        &["{}", r#"{"enable":true,"cpuReclaimThresholdPercent":60}"#],
        &["", "[]", r#"{"enable":"yes"}"#, r#"{"cpuReclaimThresholdPercent":1.5}"#],
    ),
    (
        &["node.koordinator.sh/cpu-basic-info"],
        &["{}", r#"{"cpuModel":"X","hyperThreadEnabled":true}"#],
        &["", "[]", r#"{"hyperThreadEnabled":"yes"}"#],
    ),
    (
        &["node.koordinator.sh/reservation"],
        &["{}", r#"{"resources":{"cpu":"2"},"reservedCPUs":"0-1","applyPolicy":"ReservedCPUsOnly"}"#],
        &["", "[]", r#"{"resources":{"cpu":"x"}}"#],
    ),
    (
        &["node.koordinator.sh/system-qos-resource"],
        &["{}", r#"{"cpuset":"0-3","cpusetExclusive":false}"#],
        &["", "[]", r#"{"cpusetExclusive":"no"}"#],
    ),
    (
        &["node.koordinator.sh/originExtendedAllocatable"],
        &["{}", r#"{"resources":{"kubernetes.io/batch-cpu":"1k"}}"#],
        &["", "[]", r#"{"resources":[]}"#],
    ),
    (
        &["node.koordinator.sh/thirdPartyAllocations"],
        &["{}", r#"{"allocations":[{"name":"x","priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":1}}]}"#],
        &["", "[]", r#"{"allocations":[5]}"#, r#"{"allocations":[{"resources":{"cpu":"x"}}]}"#],
    ),
    (
        &["scheduling.koordinator.sh/usage-thresholds"],
        &["{}", r#"{"usageThresholds":{"cpu":65},"aggregatedUsage":{"usageAggregatedDuration":"5m"}}"#],
        &["", "[]", r#"{"usageThresholds":{"cpu":"65"}}"#],
    ),
    (
        &["scheduling.koordinator.sh/resource-spec"],
        &["{}", r#"{"requiredCPUBindPolicy":"FullPCPUs","preferredCPUExclusivePolicy":"PCPULevel"}"#],
        &["", "[]", r#"{"requiredCPUBindPolicy":5}"#],
    ),
    (
        &["scheduling.koordinator.sh/resource-status"],
        &["{}", r#"{"cpuset":"0-3","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}}]}"#],
        &["", "[]", r#"{"numaNodeResources":[{"node":"0"}]}"#],
    ),
    (
        &["scheduling.koordinator.sh/numa-topology-spec"],
        &["{}", r#"{"numaTopologyPolicy":"SingleNUMANode","singleNUMANodeExclusive":"Required"}"#],
        &["", "[]", r#"{"numaTopologyPolicy":5}"#],
    ),
    (
        &["node.koordinator.sh/cpu-topology"],
        &["{}", r#"{"detail":[{"id":0,"core":0,"socket":0,"node":0}]}"#],
        &["", "[]", r#"{"detail":[{"id":"0"}]}"#],
    ),
    (
        &["node.koordinator.sh/pod-cpu-allocs"],
        &["[]", r#"[{"namespace":"a","name":"b","uid":"c","cpuset":"0-3","managedByKubelet":true}]"#],
        &["", "{}", r#"[{"managedByKubelet":"yes"}]"#],
    ),
    (
        &["node.koordinator.sh/cpu-shared-pools", "node.koordinator.sh/be-cpu-shared-pools"],
        &["[]", r#"[{"socket":0,"node":0,"cpuset":"0-7"}]"#],
        &["", "{}", r#"[{"socket":"0"}]"#],
    ),
    (
        &["kubelet.koordinator.sh/cpu-manager-policy"],
        &["{}", r#"{"policy":"static","options":{"full-pcpus-only":"true"},"reservedCPUs":"0"}"#],
        &["", "[]", r#"{"options":[]}"#],
    ),
    (
        &["koordinator.sh/networkQOS"],
        &["{}", r#"{"ingressLimit":"50M","egressLimit":50}"#],
        &["", "[]", r#"{"ingressLimit":true}"#],
    ),
    (
        &["koordinator.sh/cpuBurst"],
        &["{}", r#"{"policy":"auto","cpuBurstPercent":1000}"#],
        &["", "[]", r#"{"cpuBurstPercent":"x"}"#],
    ),
    (
        &["koordinator.sh/cpuQOS"],
        &["{}", r#"{"groupIdentity":2}"#, r#"{"groupIdentity":-1}"#],
        &["", "[]", r#"{"groupIdentity":3}"#, r#"{"groupIdentity":-2}"#],
    ),
    (
        &["koordinator.sh/memoryQOS"],
        &["{}", r#"{"policy":"auto","minLimitPercent":50}"#],
        &["", "[]", r#"{"minLimitPercent":"x"}"#],
    ),
    (
        &["koordinator.sh/blkioQOS"],
        &["{}", r#"{"blocks":[{"name":"/dev/vda","type":"device"}]}"#],
        &["", "[]", r#"{"blocks":{}}"#],
    ),
    (
        &["node.koordinator.sh/extended-resource-spec"],
        &["{}", r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"1k"}}}}"#],
        &["", "[]", r#"{"containers":[]}"#, r#"{"containers":{"main":{"limits":{"cpu":"x"}}}}"#],
    ),
    (
        &["node.koordinator.sh/resctrl"],
        &["{}", r#"{"llc":{"schemata":{"range":[0,50]}},"mb":{"schemata":{"percent":10}}}"#],
        &["", "[]", r#"{"llc":{"schemata":{"range":5}}}"#],
    ),
    (
        &["scheduling.koordinator.sh/soft-eviction"],
        &["{}", r#"{"reason":"r","initiator":"i"}"#],
        &["", "[]", r#"{"reason":5}"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-allocated"],
        &["{}", r#"{"name":"r","uid":"u"}"#],
        &["", "[]", r#"{"name":5}"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-affinity"],
        &["", "{}", r#"{"reservationSelector":{"pool":"a"},"name":"r"}"#],
        &["[]", r#"{"reservationSelector":[]}"#],
    ),
    (
        &["scheduling.koordinator.sh/exact-match-reservation"],
        &["{}", r#"{"resourceNames":["cpu"]}"#],
        &["", "[]", r#"{"resourceNames":"cpu"}"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-restricted-options"],
        &["{}", r#"{"resources":["cpu"]}"#],
        &["", "[]", r#"{"resources":"cpu"}"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-resize-allocatable"],
        &["{}", r#"{"resources":{"cpu":"1"}}"#],
        &["", "[]", r#"{"resources":"cpu"}"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-owners"],
        &["[]", r#"[{"labelSelector":{"matchLabels":{"a":"b"}}}]"#],
        &["", "{}", r#"[{"labelSelector":5}]"#],
    ),
    (
        &["scheduling.koordinator.sh/reservation-current-owner"],
        &["{}", r#"{"namespace":"a","name":"pod"}"#],
        &["", "[]", r#"{"name":5}"#],
    ),
];

#[test]
fn right_texts_are_read_and_wrong_ones_refused() {
    for (names, right, wrong) in ROWS {
        for entry in names.iter().map(|name| find(name).unwrap_or_else(|| panic!("no key is called {name}"))) {
            for text in *right {
                let written = entry.rewrite(text).unwrap();
                assert_eq!(entry.rewrite(&written).as_ref(), Ok(&written), "{}: {text}", entry.name());
            }
            for text in *wrong {
                let error = entry.rewrite(text).expect_err(&format!("{}: {text:?}", entry.name()));
                assert_eq!((error.key, error.value.as_str()), (entry.name(), *text));
                assert!(!error.reason.is_empty(), "{error}");
            }
        }
    }
}

#[test]
fn every_key_has_a_row_and_stands_in_the_catalogue() {
    let rows: Vec<&str> = ROWS.iter().flat_map(|(names, ..)| *names).copied().collect();
    let unique: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), unique.len(), "one row for each key");
    let keys: BTreeSet<&str> = KEYS.iter().map(|entry| entry.name()).collect();
    assert_eq!(keys.len(), KEYS.len(), "two keys have one name");
    assert_eq!(keys, unique);

    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let catalogue = fs::read_to_string(source.join("catalogue.rs")).unwrap();
    let mut declared = 0;
    for file in sources(&source) {
        // What lies in a folder is named by the module that the folder belongs to.
        let module = file.strip_prefix(&source).unwrap().components().next().unwrap().as_os_str();
        let module = Path::new(module).file_stem().unwrap().to_str().unwrap();
        for line in fs::read_to_string(&file).unwrap().lines().filter(|line| !line.starts_with("    ")) {
            let Some((name, type_)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": ")) else {
                continue;
            };
            if type_.starts_with("Key<") || type_.starts_with("Flag") {
                assert!(catalogue.contains(&format!("&{module}::{name},")), "{module}::{name} is not in the catalogue");
                declared += 1;
            }
        }
    }
    assert_eq!(declared, KEYS.len());
}

/// All files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_pod_waits_for_what_the_scheduler_must_read_and_for_nothing_else() {
    let needed: Vec<&str> = KEYS.iter().map(|entry| entry.name()).filter(|name| refuses_pod(name)).collect();
    assert_eq!(
        needed,
        [
            "scheduling.koordinator.sh/device-allocated",
            "scheduling.koordinator.sh/device-allocate-hint",
            "scheduling.koordinator.sh/device-joint-allocate",
            "scheduling.koordinator.sh/gpu-partition-spec",
            "gang.scheduling.koordinator.sh/min-available",
            "pod-group.scheduling.sigs.k8s.io/min-available",
            "scheduling.koordinator.sh/resource-spec",
            "scheduling.koordinator.sh/resource-status",
            "scheduling.koordinator.sh/numa-topology-spec",
            "scheduling.koordinator.sh/reservation-affinity",
            "scheduling.koordinator.sh/exact-match-reservation",
        ]
    );
}

#[test]
fn right_texts_raise_no_doubt_about_their_fields() {
    for (names, right, _) in ROWS {
        for name in *names {
            for text in *right {
                let said = doubts(name, text).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                assert!(!said.contains("there is no such field"), "{name}: {text}: {said}");
            }
        }
    }
}

#[test]
fn what_users_are_told_to_write_is_right() {
    let mut examples = 0;
    for entry in KEYS {
        let Some((_, example)) = entry.expected().split_once("such as ") else { continue };
        let example = example.split_once(", from").map_or(example, |(example, _)| example);
        for example in if example.contains("0x10") { vec!["9999", "0x10", "1_000"] } else { vec![example] } {
            entry.rewrite(example).unwrap_or_else(|error| panic!("{error}"));
            examples += 1;
        }
    }
    assert!(examples > 50, "{examples}");
}

fn law(entry: &dyn Entry, text: &str) -> Result<(), TestCaseError> {
    match entry.rewrite(text) {
        Ok(written) => prop_assert_eq!(entry.rewrite(&written), Ok(written), "{}: {}", entry.name(), text),
        Err(error) => {
            prop_assert!(error.to_string().starts_with(entry.name()));
            prop_assert_eq!(error.value, text);
        }
    }
    Ok(())
}

/// JSON that is right but for a few places.
fn nearly(right: Value) -> impl Strategy<Value = String> {
    let junk = sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("0-3,9"),
        json!("5m"),
        json!([]),
        json!({}),
        json!([[{}]]),
        json!({"a": {"a": 0}}),
        json!(9_223_372_036_854_775_807_i64),
    ]);
    proptest::collection::vec((any::<prop::sample::Index>(), junk), 0..3).prop_map(move |changes| {
        let mut value = right.clone();
        for (index, junk) in changes {
            let mut places = vec![String::new()];
            pointers(&value, "", &mut places);
            let place = places[index.index(places.len())].clone();
            if let Some(target) = value.pointer_mut(&place) {
                *target = junk;
            }
        }
        value.to_string()
    })
}

fn pointers(value: &Value, at: &str, places: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.replace('~', "~0").replace('/', "~1"), member)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        let at = format!("{at}/{name}");
        pointers(child, &at, places);
        places.push(at);
    }
}

#[test]
fn what_is_read_is_written_and_read_again_unchanged() {
    let texts = prop_oneof![
        any::<String>(),
        r#"[\[{"a-zA-Z:,0-9.\]} ]{0,24}"#,
        "[-+]?[0-9_xob]{0,12}(\\.[0-9]{0,3})?([eE][0-9]{1,3})?(ns|us|ms|s|m|h|Ki|Mi|G)?",
    ];
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    for (names, right, _) in ROWS {
        for entry in names.iter().filter_map(|name| find(name)) {
            TestRunner::new(config.clone()).run(&texts, |text| law(entry, &text)).unwrap();
            for value in right.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok()) {
                TestRunner::new(config.clone()).run(&nearly(value), |text| law(entry, &text)).unwrap();
            }
        }
    }
}
