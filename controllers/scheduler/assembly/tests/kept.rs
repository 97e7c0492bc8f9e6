//! Whatever has happened before, kept answers are those of a search that begins anew, and a filter that has followed a trial
//! answers as one that is prepared in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Namespace;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_assembly::default_profile;
use koord_scheduler_framework::{
    AttemptState, Filter, Found, PreparedFilter, Profile, Request,
    cluster::Cluster,
    columns::Row,
    cycle::CandidateCache,
    hold::Holds,
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
    timing::Untimed,
    workload::Service,
};
use koord_scheduler_plugins_kubernetes::{InterPodAffinity, PodTopologySpread};
use proptest::prelude::*;
use serde_json::{Value, json};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

fn template(namespace: &str, app: &str, spec: Value) -> Arc<Template> {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "c", "image": app, "resources": {"requests": {"cpu": "1"}}}]);
    let spec = serde_json::from_value(spec).unwrap();
    Arc::new(Template::of(namespace, labels(&[("app", app)]), &BTreeMap::new(), &spec).unwrap())
}

fn templates() -> Vec<Arc<Template>> {
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    let term = |key: &str, app: &str| json!({"topologyKey": key, "labelSelector": selector(app)});
    let weighted = |key: &str, app: &str| json!([{"weight": 7, "podAffinityTerm": term(key, app)}]);
    let spread = |key: &str, app: &str, action: &str, policy: &str| json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": action, "labelSelector": selector(app), "nodeTaintsPolicy": policy});
    let mut abroad = term("zone", "a");
    abroad["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let host = "kubernetes.io/hostname";
    let mut everything = spread("zone", "a", "DoNotSchedule", "Ignore");
    everything["labelSelector"] = json!({});
    vec![
        template("ns", "a", json!({})),
        template("other", "b", json!({})),
        template("ns", "a", json!({"topologySpreadConstraints": [spread("zone", "a", "DoNotSchedule", "Ignore")]})),
        template(
            "ns",
            "b",
            json!({"topologySpreadConstraints": [
                spread("zone", "a", "ScheduleAnyway", "Honor"), spread(host, "b", "ScheduleAnyway", "Ignore"),
                spread(host, "b", "DoNotSchedule", "Honor"),
            ]}),
        ),
        template(
            "ns",
            "a",
            json!({"affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(host, "a")]},
            }}),
        ),
        template(
            "ns",
            "b",
            json!({"affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("zone", "b")],
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted(host, "a")},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted("zone", "b")},
            }}),
        ),
        template(
            "other",
            "b",
            json!({"affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [abroad]},
            }}),
        ),
        template(
            "ns",
            "c",
            json!({"nodeSelector": {"zone": "z1"}, "topologySpreadConstraints": [
                spread(host, "c", "DoNotSchedule", "Honor"),
            ]}),
        ),
        template("ns", "a", json!({"topologySpreadConstraints": [everything]})),
    ]
}

fn pod(number: usize, template: &Arc<Template>) -> Arc<Pod> {
    let name = format!("p{number}");
    Arc::new(Pod {
        key: ObjectKey::new(&template.namespace, &name),
        uid: Uid::from(&*name),
        template: Arc::clone(template),
        deleting: number.is_multiple_of(7),
        ..Pod::default()
    })
}

fn node(number: usize, zone: usize, form: usize) -> Arc<Node> {
    let (name, zone) = (format!("n{number}"), format!("z{zone}"));
    let mut labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "zone": zone});
    if form == 1 {
        labels.as_object_mut().unwrap().remove("zone");
    }
    let taints = if form == 2 { json!([{"key": "t", "effect": "NoSchedule"}]) } else { json!([]) };
    let images = json!([{"names": ["a:latest"], "sizeBytes": 900_000_000_u64 * (form as u64 % 3)}]);
    let status = json!({"allocatable": {"cpu": "6", "pods": "10"}, "images": images});
    let object = json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status});
    Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap())
}

#[derive(Clone, Debug)]
enum Delta {
    Node(usize, usize, usize),
    Gone(usize),
    Place(usize, usize, usize),
    Remove(usize),
    Namespace(bool),
    Service(bool),
    Schedule(usize, usize, u32),
}

fn deltas(count: usize) -> impl Strategy<Value = Vec<Delta>> {
    let delta = prop_oneof![
        3 => (0..6_usize, 0..3_usize, 0..4_usize).prop_map(|(node, zone, form)| Delta::Node(node, zone, form)),
        1 => (0..6_usize).prop_map(Delta::Gone),
        3 => (0..20_usize, 0..9_usize, 0..6_usize).prop_map(|(pod, template, node)| Delta::Place(pod, template, node)),
        2 => (0..20_usize).prop_map(Delta::Remove),
        1 => any::<bool>().prop_map(Delta::Namespace),
        1 => any::<bool>().prop_map(Delta::Service),
        8 => (20..50_usize, 0..9_usize, 0..4_u32).prop_map(|(pod, template, draw)| Delta::Schedule(pod, template, draw)),
    ];
    proptest::collection::vec(delta, 0..count)
}

fn apply(cluster: &mut Cluster, templates: &[Arc<Template>], delta: &Delta) {
    match delta {
        Delta::Node(number, zone, form) => _ = cluster.set_node(node(*number, *zone, *form)),
        Delta::Gone(number) => _ = cluster.remove_node(&format!("n{number}")),
        Delta::Place(number, template, node) => {
            cluster.place(pod(*number, &templates[*template]), &format!("n{node}").into(), Holds::default());
        }
        Delta::Remove(number) => _ = cluster.remove_pod(&Uid::from(&*format!("p{number}"))),
        Delta::Namespace(is_selected) => {
            let team = if *is_selected { "x" } else { "y" };
            let namespace: Namespace =
                serde_json::from_value(json!({"metadata": {"name": "ns", "labels": {"team": team}}})).unwrap();
            cluster.set_object(Object::new(ObjectKey::cluster("ns"), Uid::from("ns"), false, Arc::new(namespace)));
        }
        Delta::Service(exists) => {
            let selector = if *exists { json!({"app": "a"}) } else { json!(null) };
            let service: Service = serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap();
            let key = ObjectKey::new("ns", "service");
            cluster.set_object(Object::new(key, Uid::from("service"), false, Arc::new(service)));
        }
        Delta::Schedule(..) => {}
    }
}

fn empty(profile: &Profile) -> Cluster {
    let mut cluster = Cluster::default();
    profile.plugins.iter().flat_map(|plugin| &plugin.topology_keys).for_each(|key| cluster.pin_topology(key));
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn kept_answers_are_those_of_a_search_that_begins_anew(deltas in deltas(120)) {
        let (templates, profile) = (templates(), default_profile("default-scheduler").unwrap());
        let (mut cluster, mut cache) = (empty(&profile), CandidateCache::default());
        for delta in deltas {
            apply(&mut cluster, &templates, &delta);
            if let Delta::Schedule(number, template, draw) = delta {
                let pod = pod(number, &templates[template]);
                let search = |cluster: &mut Cluster, cache: &mut CandidateCache| {
                    let state = AttemptState::default();
                    profile.search_timed(&pod, &state, cluster, cache, |ties| draw % ties, &mut Untimed)
                };
                let found = search(&mut cluster, &mut cache);
                let expected = search(&mut cluster, &mut CandidateCache::default());
                prop_assert_eq!(&found, &expected, "{:?}", templates[template]);
                if let Found::Node { row, .. } = found {
                    let name = Arc::clone(&cluster.node(row).unwrap().name);
                    cluster.place(pod, &name, Holds::default());
                }
            }
        }
    }

    #[test]
    fn a_filter_that_followed_a_trial_answers_as_one_that_is_prepared_in_it(
        history in deltas(60),
        tried in proptest::collection::vec((0..50_usize, 0..9_usize, proptest::option::of(0..6_usize)), 1..12),
    ) {
        let (templates, profile) = (templates(), default_profile("default-scheduler").unwrap());
        let mut cluster = empty(&profile);
        let plugins: [&dyn Filter; 2] = [&PodTopologySpread::default(), &InterPodAffinity::default()];
        for delta in &history {
            apply(&mut cluster, &templates, delta);
        }
        for (plugin, template) in plugins.into_iter().flat_map(|plugin| templates.iter().map(move |template| (plugin, template))) {
            let (pod_of, class) = (pod(99, template), cluster.class(template));
            let request = Request { pod: &pod_of, class: &class, plugins: &[], state: &AttemptState::default() };
            let PreparedFilter::Nodes(mut filter) = plugin.prepare_filter(&request, &cluster) else { continue };
            let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
            let before: Vec<_> = rows.iter().map(|row| filter.filter(&cluster, *row)).collect();
            let mut trial = cluster.trial();
            let mut undo = Vec::new();
            for (number, template, to) in &tried {
                let uid = Uid::from(&*format!("p{number}"));
                if let Some(placed) = trial.pod(&uid).cloned() {
                    trial.remove(&uid);
                    filter.changed(&trial, &placed, false);
                    undo.push((placed, true));
                }
                if let Some(row) = to.and_then(|to| trial.row(&format!("n{to}"))) {
                    trial.place(pod(*number, &templates[*template]), row, Holds::default());
                    let placed = trial.pod(&uid).cloned().unwrap();
                    filter.changed(&trial, &placed, true);
                    undo.push((placed, false));
                }
                let answers: Vec<_> = rows.iter().map(|row| filter.filter(&trial, *row)).collect();
                let anew: Vec<_> = match plugin.prepare_filter(&request, &trial) {
                    PreparedFilter::Nodes(filter) => rows.iter().map(|row| filter.filter(&trial, *row)).collect(),
                    _ => vec![Ok(()); rows.len()],
                };
                prop_assert_eq!(answers, anew);
            }
            for (placed, was_there) in undo.into_iter().rev() {
                if was_there {
                    trial.place(Arc::clone(&placed.pod), placed.row, Holds::default());
                } else {
                    trial.remove(&placed.pod.uid);
                }
                filter.changed(&trial, &placed, was_there);
            }
            drop(trial);
            prop_assert_eq!(rows.iter().map(|row| filter.filter(&cluster, *row)).collect::<Vec<_>>(), before);
        }
    }
}
