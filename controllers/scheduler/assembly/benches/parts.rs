//! What parts of a decision cost, and decisions of a kind: `cargo bench -p koord-scheduler-assembly --bench parts [PART OF A NAME]`.
//!
//! As with the decisions, a measurement with a goal says so, the exit code is 1 where one was missed, and times are CPU time of the
//! thread. Beside a goal stands its floor: of a node's CPUs the copy of one mask, of its GPUs one addition per amount, of quotas one
//! per quota (all) or per ancestor (one), of reservations one per match, of a pod that fits nowhere one per node, of any other decision
//! choosing the largest of one number of each node. Each part is asked for what it answers in the tests too; that it answers at all is asserted here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod decided;
#[path = "../tests/scenarios/mod.rs"]
mod scenarios;

use std::{hint::black_box, process::ExitCode, sync::Arc, time::Duration};

use decided::Decided as _;
use goals::{Chosen, Floor, clock};
use k8s_openapi::api::core::v1::Namespace;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_quota::Quota;
use koord_resource::ResourceList;
use koord_scheduler_allocation::numa::accumulator::CpuCase;
use koord_scheduler_framework::{
    AttemptState, PreparedFilter, Registration, Request,
    cluster::Cluster,
    columns::Row,
    hold::Holds,
    object::Object,
    pod::{Pod, Template},
};
use koord_scheduler_plugins_koordinator::elastic_quota::{Claim, Counted, Ledger, QuotaSettings};
use koord_scheduling::CpuSet;
use koord_types::{cluster_network_topology::ClusterNetworkTopology, elastic_quota::ElasticQuota};
use scenarios::{Scenario, cpu_bound, labelled, of_koordinator, on_gpus, owners, plain, requests, spec, workload};
use serde_json::{Value, json};

const NODES: usize = 5000;
/// Three amounts of each of the eight GPUs of a node.
const GPU_AMOUNTS: usize = 24;

fn main() -> ExitCode {
    Chosen::run(|chosen| {
        numa(chosen);
        accumulator(chosen);
        devices(chosen);
        reservations(chosen);
        quotas(chosen);
        gangs(chosen);
        unschedulable(chosen);
        apart(chosen);
    })
}

/// Pods of a scenario that ask one plugin, in a copy of its cluster.
struct Asking<'s> {
    scenario: &'s Scenario,
    plugin: &'s Registration,
    cluster: Cluster,
}

impl<'s> Asking<'s> {
    fn new(scenario: &'s Scenario, plugin: &str) -> Self {
        let mut plugins = scenario.engine().profiles().flat_map(|profile| &profile.plugins);
        let plugin = plugins.find(|known| known.name() == plugin).unwrap();
        Self { scenario, plugin, cluster: scenario.engine().cluster().clone() }
    }

    fn request<T>(
        &mut self,
        template: &Arc<Template>,
        with: impl FnOnce(&Registration, &Request<'_>, &mut Cluster) -> T,
    ) -> T {
        let pod = pod("asks", template);
        let class = self.cluster.class(template);
        let plugins = &self.scenario.engine().profiles().next().unwrap().plugins;
        with(
            self.plugin,
            &Request { pod: &pod, class: &class, plugins, state: &AttemptState::default() },
            &mut self.cluster,
        )
    }

    /// How long the plugin takes to filter a node, and to rate one, where all take the pod.
    fn of_a_node(
        &mut self,
        chosen: &Chosen,
        floor: Floor,
        [to_filter, to_do_both]: [Option<Duration>; 2],
        name: &str,
        template: &Arc<Template>,
    ) {
        self.request(template, |plugin, request, cluster| {
            let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
            let (Some(filter), Some(score)) = (&plugin.filter, &plugin.score) else { panic!("no filter or no score") };
            let (PreparedFilter::Nodes(filter), Some(score)) =
                (filter.prepare_filter(request, cluster), score.prepare_score(request, cluster))
            else {
                panic!("nothing is asked of nodes")
            };
            chosen.above(floor).time(to_filter, &format!("{name}: filter"), rows.len(), || {
                assert!(rows.iter().all(|row| filter.filter(cluster, *row).is_ok()));
            });
            chosen.above(floor).time(to_do_both, &format!("{name}: filter and score"), rows.len(), || {
                for row in &rows {
                    assert!(filter.filter(cluster, *row).is_ok());
                    black_box(score.score(cluster, *row));
                }
            });
        });
    }
}

fn pod(name: &str, template: &Arc<Template>) -> Arc<Pod> {
    let key = ObjectKey::new(&template.namespace, name);
    Arc::new(Pod { key, uid: Uid::from(name), template: Arc::clone(template), ..Pod::default() })
}

/// Every pod of this template.
fn always(template: &Arc<Template>) -> impl Fn(usize) -> Arc<Template> {
    let template = Arc::clone(template);
    move |_| Arc::clone(&template)
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A node of two NUMA nodes with sixteen cores each, some of whose CPUs are taken.
fn numa(chosen: &Chosen) {
    for policy in ["None", "SingleNUMANodePodLevel"] {
        let name = format!("CPUs of their own on a node, policy {policy}");
        if !chosen.has(&name) {
            continue;
        }
        let scenario = Scenario::of_koordinator(1000).with_numa_nodes(1000, policy);
        let mut scenario = scenario.with_pods(3000, always(&cpu_bound()));
        scenario.decide(3000);
        let mut asking = Asking::new(&scenario, "NodeNUMAResource");
        asking.of_a_node(chosen, Floor::Mask, [None, Some(nanos(200))], &name, &cpu_bound());
        asking.request(&cpu_bound(), |plugin, request, cluster| {
            let reserve = plugin.reserve.as_ref().unwrap();
            let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
            // The goal is that of taking CPUs alone, which the accumulator has.
            chosen.above(Floor::Mask).time(None, &format!("{name}: reserve, which takes CPUs"), rows.len(), || {
                for row in &rows {
                    let mut holds = Holds::default();
                    reserve.reserve(request, cluster, *row, &mut holds).unwrap();
                    black_box(holds);
                }
            });
        });
    }
}

/// Which CPUs a pod gets, alone: the node of the above, of which pods have six CPUs.
fn accumulator(chosen: &Chosen) {
    // The clock takes longer than one call.
    const TIMES: usize = 1000;
    let held: CpuSet = [0, 1, 2, 3, 32, 33].into_iter().collect();
    for (by_core, bind) in [(true, "FullPCPUs"), (false, "SpreadByPCPUs")] {
        for (is_exclusive, exclusive) in [(false, ""), (true, ", PCPULevel")] {
            let case = CpuCase::new(held.clone(), by_core, is_exclusive);
            for needed in [4, 16] {
                let name = format!("{needed} CPUs taken, {bind}{exclusive}");
                if !chosen.has(&name) {
                    continue;
                }
                chosen.above(Floor::Mask).time(nanos(100), &name, TIMES, || {
                    for _ in 0..TIMES {
                        let taken = black_box(&case).take(black_box(needed));
                        assert_eq!(taken.map_or(0, |cpus| cpus.len()), needed);
                    }
                });
            }
        }
    }
}

/// Nodes of eight GPUs, some of which are taken.
fn devices(chosen: &Chosen) {
    for (template, what) in on_gpus().into_iter().zip(["half a GPU", "two GPUs"]) {
        let name = format!("{what} on a node");
        if chosen.has(&name) {
            let mut scenario = Scenario::of_koordinator(1000)
                .with_gpus(1000)
                .with_pods(2000, |number| Arc::clone(&on_gpus()[number % 2]));
            scenario.decide(2000);
            Asking::new(&scenario, "DeviceShare").of_a_node(
                chosen,
                Floor::Sum(GPU_AMOUNTS),
                [Some(nanos(100)), None],
                &name,
                &template,
            );
        }
    }
    let [half, _] = on_gpus();
    let job = |number: usize| {
        let labels = [("job-name", &*format!("job-{number}"))].into_iter().collect();
        Arc::new(Template { labels, ..Template::clone(&half) })
    };
    let unlike = |number: usize| {
        let mut requests = serde_json::to_value(&half.requests).unwrap();
        requests["memory"] = json!(format!("{}Ki", 1000 + number));
        Arc::new(Template { requests: list(requests), ..Template::clone(&half) })
    };
    new_workloads(chosen, "asks for what another does", job);
    new_workloads(chosen, "is unlike all others", unlike);
}

/// GPU pods, each of a workload of its own.
fn new_workloads(chosen: &Chosen, what: &str, template_of: impl Fn(usize) -> Arc<Template>) {
    const PODS: u32 = 200;
    let name = format!("a GPU pod of a new workload that {what}, 5000 nodes");
    if chosen.has(&name) {
        let scenario = Scenario::of_koordinator(NODES).with_gpus(NODES);
        let mut scenario = scenario.with_pods(PODS as usize, template_of);
        let start = clock();
        scenario.decide(PODS as usize);
        let took = clock().saturating_sub(start) / PODS;
        chosen.above(Floor::Largest(NODES)).took(Duration::from_micros(500), &name, took);
    }
}

/// What Reservation does before nodes are asked. An owner has come or gone since the last time.
fn reservations(chosen: &Chosen) {
    const NODES: usize = 1024;
    for (goal, name) in [
        (10, "reservations of 1024 nodes for a pod that matches none"),
        (40, "reservations of 1024 nodes for a pod that matches all"),
    ] {
        if !chosen.has(name) {
            continue;
        }
        let mut scenario = Scenario::of_koordinator(NODES).with_pods(8 * NODES, always(&plain()));
        scenario.decide(8 * NODES);
        let scenario = scenario.with_reservations(NODES, 1, NODES);
        let matches_all = goal == 40;
        let (owner, template) = (owners(1).remove(0), if matches_all { owners(1).remove(0) } else { plain() });
        let mut asking = Asking::new(&scenario, "Reservation");
        let (node, row) = (Arc::from("n7"), asking.cluster.row("n7").unwrap());
        let holds = asking.request(&owner, |plugin, request, cluster| {
            plugin.reservation_restore.as_ref().unwrap().restore(request, cluster);
            let mut holds = Holds::default();
            plugin.reserve.as_ref().unwrap().reserve(request, cluster, row, &mut holds).unwrap();
            holds
        });
        let mut is_there = false;
        asking.request(&template, |plugin, request, cluster| {
            let restore = plugin.reservation_restore.as_ref().unwrap();
            let (pre_filter, filter) = (plugin.pre_filter.as_ref().unwrap(), plugin.filter.as_ref().unwrap());
            let score = plugin.score.as_ref().unwrap();
            let reservations = if matches_all { NODES } else { 1 };
            chosen.above(Floor::Sum(reservations)).time(Duration::from_micros(goal), name, 1, || {
                if is_there {
                    cluster.remove_pod(&Uid::from("owner"));
                } else {
                    cluster.place(pod("owner", &owner), &node, holds.clone());
                }
                is_there = !is_there;
                let expected = if matches_all { NODES - usize::from(is_there) } else { 0 };
                let hidden = restore.restore(request, cluster).map_or(0, |hidden| hidden.by_row.len());
                assert_eq!(hidden, expected);
                pre_filter.pre_filter(request, cluster).unwrap();
                _ = black_box(&filter.prepare_filter(request, cluster));
                _ = black_box(&score.prepare_score(request, cluster));
            });
        });
    }
}

fn list(amounts: Value) -> ResourceList {
    serde_json::from_value(amounts).unwrap()
}

/// Quotas below one, each with a pod of its own.
fn quotas(chosen: &Chosen) {
    const QUOTAS: usize = 2000;
    // The clock takes longer than one change.
    const TIMES: usize = 100;
    let (full, one) = (
        "what 2000 quotas may use, after nodes have changed",
        "what a quota of 2000 may use, after a pod of it came or went",
    );
    if !chosen.has(full) && !chosen.has(one) {
        return;
    }
    let quota = |name: String, parent: &str| {
        let labels = json!({"quota.scheduling.koordinator.sh/parent": parent, "quota.scheduling.koordinator.sh/is-parent": (parent == "koordinator-root-quota").to_string()});
        let object: ElasticQuota =
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "ns", "labels": labels}})).unwrap();
        let amounts = |cpu: &str, memory: &str| list(json!({"cpu": cpu, "memory": memory}));
        Quota { min: amounts("10", "100Gi"), max: amounts("96000", "160Ti"), ..Quota::from(&object) }
    };
    let mut parent = quota("parent".to_owned(), "koordinator-root-quota");
    parent.max = list(json!({"cpu": "960000", "memory": "1600Ti"}));
    let quotas: Vec<Quota> =
        [parent].into_iter().chain((0..QUOTAS).map(|number| quota(format!("q{number}"), "parent"))).collect();
    let claims: Vec<Claim> =
        (0..QUOTAS).map(|number| Claim { label: format!("q{number}").into(), namespace: "ns".into() }).collect();
    let requests = list(json!({"cpu": "96", "memory": "160Gi"}));
    let of = |claim| Counted { claim, requests: &requests, is_preemptible: true };
    let mut ledger = Ledger::new(QuotaSettings { uses_runtime: true, ..QuotaSettings::default() });
    let nodes = list(json!({"cpu": "96000", "memory": "160Ti"}));
    ledger.offer(None, Some(&nodes));
    for claim in &claims {
        ledger.request(of(claim));
    }
    let anew = |ledger: &Ledger, name: &str| {
        let mut anew = ledger.clone();
        anew.quotas_changed();
        anew.forest(&quotas).limit(name).into_owned()
    };
    let small = list(json!({"cpu": "96", "memory": "160Gi"}));
    let mut is_there = false;
    chosen.above(Floor::Sum(QUOTAS)).time(Duration::from_micros(50), full, TIMES, || {
        for _ in 0..TIMES {
            if is_there {
                ledger.offer(Some(&small), None);
            } else {
                ledger.offer(None, Some(&small));
            }
            is_there = !is_there;
            black_box(ledger.forest(&quotas).limit("q7"));
        }
    });
    assert_eq!(*ledger.forest(&quotas).limit("q7"), anew(&ledger, "q7"));
    let mut is_there = false;
    chosen.above(Floor::Sum(2)).time(Duration::from_micros(1), one, TIMES, || {
        for _ in 0..TIMES {
            if is_there {
                ledger.unrequest(of(&claims[7]));
            } else {
                ledger.request(of(&claims[7]));
            }
            is_there = !is_there;
            black_box(ledger.forest(&quotas).limit("q7"));
        }
    });
    assert_eq!(*ledger.forest(&quotas).limit("q7"), anew(&ledger, "q7"));
}

/// Gangs of a thousand that gather in a part of the network.
fn gangs(chosen: &Chosen) {
    let half_gpu = on_gpus()[0].requests.clone();
    let kinds = [
        ("", requests(), Some(Duration::from_millis(20))),
        (" with half a GPU each", serde_json::to_value(half_gpu).unwrap(), None),
    ];
    for (what, requests, goal) in kinds {
        let name = format!("a gang of 1000{what} that gathers in the network of 5000 nodes");
        if chosen.has(&name) {
            gangs_of(chosen, &name, &requests, goal);
        }
    }
}

fn gangs_of(chosen: &Chosen, name: &str, requests: &Value, goal: Option<Duration>) {
    const GANGS: usize = 10;
    let spec_of = json!({"networkTopologySpec": [
        {"labelKey": ["network/spine"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
        {"labelKey": ["network/block"], "parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
        {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
    ]});
    let topology: ClusterNetworkTopology = serde_json::from_value(json!({ "spec": spec_of })).unwrap();
    let topology = Object::new(ObjectKey::cluster("default"), Uid::from("topology"), false, Arc::new(topology));
    let gangs: Vec<Arc<Template>> = (0..GANGS)
        .map(|number| {
            let annotations = [
                ("gang.scheduling.koordinator.sh/name", &*format!("gang-{number}")),
                ("gang.scheduling.koordinator.sh/min-available", "1000"),
                (
                    "gang.scheduling.koordinator.sh/network-topology-spec",
                    r#"{"gatherStrategy":[{"layer":"SpineLayer","strategy":"MustGather"}]}"#,
                ),
            ];
            of_koordinator(&spec(requests), &[], &annotations)
        })
        .collect();
    let arguments = Some(("Coscheduling", json!({"awareNetworkTopology": true})));
    let scenario = Scenario::with_arguments(NODES, arguments).with_gpus(NODES).with_object(topology);
    let mut scenario = scenario.with_pods(1000 * GANGS, |number| Arc::clone(&gangs[number / 1000]));
    let start = clock();
    scenario.decide(1000 * GANGS);
    let taken = clock().saturating_sub(start);
    for gang in &gangs {
        let cluster = scenario.engine().cluster();
        let rows = cluster.pods().filter(|placed| Arc::ptr_eq(&placed.pod.template, gang)).map(|placed| placed.row);
        let spines: std::collections::BTreeSet<&str> =
            rows.filter_map(|row| cluster.node(row)?.labels.get("network/spine")).collect();
        assert_eq!(spines.len(), 1, "a gang is spread over {spines:?}");
    }
    chosen.above(Floor::Largest(NODES)).took(goal, name, taken / u32::try_from(GANGS).unwrap());
}

/// Pods that no node takes.
fn unschedulable(chosen: &Chosen) {
    const REFUSED: u32 = 3000;
    for what in ["plugins of Kubernetes", "all plugins"] {
        let of = if what == "all plugins" { Scenario::of_koordinator } else { Scenario::of_kubernetes };
        for (kind, workloads) in [("of one workload", 1), ("of 50 workloads", 50)] {
            let name = format!("a pod that fits nowhere, {kind}, beside 20000 on 5000 nodes, {what}");
            if !chosen.has(&name) {
                continue;
            }
            let mut scenario = of(NODES).with_pods(20_000, always(&plain()));
            scenario.decide(20_000);
            let large: Vec<Arc<Template>> =
                (0..workloads).map(|number| workload(&spec(&json!({"cpu": (100 + number).to_string()})))).collect();
            let mut scenario = scenario.with_pods(REFUSED as usize, |number| Arc::clone(&large[number % workloads]));
            let start = clock();
            scenario.refuse(REFUSED as usize);
            let taken = clock().saturating_sub(start);
            chosen.above(Floor::Sum(NODES)).took(Duration::from_micros(50), &name, taken / REFUSED);
            chosen.above(Floor::Sum(REFUSED as usize)).took(
                Duration::from_millis(200),
                &format!("{name}: 3000 of them"),
                taken,
            );
        }
    }
}

/// Pods that keep away from pods of other namespaces.
fn apart(chosen: &Chosen) {
    const NODES: usize = 6000;
    chosen.above(Floor::Largest(NODES)).measure_for(
        5000.0,
        "pods apart from those of selected namespaces, 6000 nodes",
        || {
            let mut scenario = Scenario::of_kubernetes(NODES);
            let names = (0..100).map(|number| format!("init-{number}")).chain(["ns".to_owned()]);
            for name in names {
                let object: Namespace =
                    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"team": "devops"}}})).unwrap();
                scenario = scenario.with_object(Object::new(
                    ObjectKey::cluster(&name),
                    Uid::from(&*name),
                    false,
                    Arc::new(object),
                ));
            }
            let mut spec = spec(&requests());
            let term = json!({
                "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"color": "green"}},
                "namespaceSelector": {"matchLabels": {"team": "devops"}},
            });
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
            let green = labelled(&spec, &[("color", "green")]);
            let of = |namespace: String| Arc::new(Template { namespace: namespace.into(), ..Template::clone(&green) });
            let templates: Vec<Arc<Template>> = (0..100).map(|number| of(format!("init-{number}"))).collect();
            let mut scenario = scenario.with_pods(4000, |number| Arc::clone(&templates[number / 40]));
            scenario.decide(4000);
            scenario.with_pods(1500, always(&green))
        },
    );
}
