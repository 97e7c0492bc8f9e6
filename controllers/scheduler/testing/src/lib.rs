//! Nodes and pods for the tests of plugins, and what a plugin says about them.
// A test of a plugin ends where an object is not what it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

pub mod devices;
pub mod reservations;

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, key::ObjectKey, uid::Uid};
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::{
    AttemptState, Filter, NodeFilter, PreparedFilter, Reason, Refusal, Request, Score,
    cluster::Cluster,
    columns::Row,
    hold::Holds,
    labels::Labels,
    node::Node,
    pod::{Pod, Template},
};
use serde_json::{Value, json};

pub type Nodes = Vec<Arc<Node>>;

/// A node of this name with these other members.
pub fn node(name: &str, members: &Value) -> Arc<Node> {
    let mut object = members.clone();
    object["metadata"]["name"] = json!(name);
    Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap())
}

/// A pod with this spec, which may lack its containers.
pub fn pod(name: &str, spec: &Value) -> Arc<Pod> {
    labelled("ns", name, &[], spec)
}

/// A pod of this namespace with these labels.
pub fn labelled(namespace: &str, name: &str, labels: &[(&str, &str)], spec: &Value) -> Arc<Pod> {
    let mut spec = spec.clone();
    if spec["containers"].is_null() {
        spec["containers"] = json!([]);
    }
    for container in spec["containers"].as_array_mut().unwrap() {
        container["name"] = json!("c");
    }
    let spec = serde_json::from_value(spec).unwrap();
    let labels: Labels = labels.iter().copied().collect();
    let template = Template::of(namespace, labels, &BTreeMap::new(), &spec).unwrap();
    Arc::new(Pod {
        key: ObjectKey::new(namespace, name),
        uid: Uid::from(name),
        template: Arc::new(template),
        ..Pod::default()
    })
}

/// Labels as `a=1,b`; without a value it is empty.
pub fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or((part, ""))).collect()
}

/// The same, as an object has them.
pub fn labels(text: &str) -> Value {
    pairs(text).into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

/// Nodes `n0`, `n1` and so on by their labels, and pods by the index of their node, their labels and their spec. A node with the
/// label `tainted` is; `elsewhere/` is another namespace, and a pod whose labels end with `!` is being deleted.
pub fn world(nodes: &[&str], pods: &[(usize, &str, Value)]) -> Cluster {
    let nodes = nodes.iter().enumerate().map(|(number, text)| {
        let labels = labels(text);
        let is_tainted = labels.get("tainted").is_some();
        let taints = if is_tainted { json!([{"key": "t", "effect": "NoSchedule"}]) } else { json!([]) };
        node(&format!("n{number}"), &json!({"metadata": {"labels": labels}, "spec": {"taints": taints}}))
    });
    let mut cluster = cluster(&nodes.collect::<Vec<_>>());
    for (number, (node, labels, spec)) in pods.iter().enumerate() {
        cluster.place(resident(&format!("p{number}"), labels, spec), &format!("n{node}").into(), Holds::default());
    }
    cluster
}

/// A pod of a [`world`].
pub fn resident(name: &str, labels: &str, spec: &Value) -> Arc<Pod> {
    let (namespace, labels) = labels.split_once('/').unwrap_or(("ns", labels));
    let mut pod = labelled(namespace, name, &pairs(labels.trim_end_matches('!')), spec);
    Arc::make_mut(&mut pod).deleting = labels.ends_with('!');
    pod
}

/// Resources as an object has them, of a text such as `cpu=1 memory=2Gi`.
pub fn amounts(text: &str) -> Value {
    let amounts = text.split_whitespace().map(|part| part.split_once('=').unwrap());
    amounts.map(|(name, amount)| (name.to_owned(), json!(amount))).collect::<serde_json::Map<_, _>>().into()
}

/// A spec of a text such as `cpu=1; init: cpu=2; sidecar: memory=1Gi; overhead: cpu=100m; pod: cpu=3`: what each container requests,
/// nothing for `-`, what is overhead, and what the pod requests as a whole.
pub fn requesting(text: &str) -> Value {
    let mut spec = json!({"containers": [], "initContainers": []});
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (kind, requests) = part.split_once(':').unwrap_or(("containers", part));
        let requests = amounts(requests.trim_start_matches('-'));
        let container = json!({"name": "c", "resources": {"requests": requests}});
        match kind {
            "containers" => spec["containers"].as_array_mut().unwrap().push(container),
            "init" => spec["initContainers"].as_array_mut().unwrap().push(container),
            "sidecar" => {
                let mut sidecar = container;
                sidecar["restartPolicy"] = json!("Always");
                spec["initContainers"].as_array_mut().unwrap().push(sidecar);
            }
            "overhead" => spec["overhead"] = requests,
            "pod" => spec["resources"] = json!({"requests": requests}),
            other => panic!("{other}"),
        }
    }
    spec
}

/// A node `n0`, `n1` and so on that offers each of these, and pods on them by the index of their node and what they request.
pub fn offering(nodes: &[&str], pods: &[(usize, &str)]) -> Cluster {
    let nodes = nodes
        .iter()
        .enumerate()
        .map(|(number, offered)| node(&format!("n{number}"), &json!({"status": {"allocatable": amounts(offered)}})));
    let mut cluster = cluster(&nodes.collect::<Vec<_>>());
    for (number, (node, requests)) in pods.iter().enumerate() {
        let pod = pod(&format!("p{number}"), &requesting(requests));
        cluster.place(pod, &format!("n{node}").into(), Holds::default());
    }
    cluster
}

pub fn cluster(nodes: &[Arc<Node>]) -> Cluster {
    let mut cluster = Cluster::default();
    for node in nodes {
        cluster.set_node(Arc::clone(node));
    }
    cluster
}

/// Of each node whether the pod may run there: empty, or the status and the reasons.
pub fn filtered(plugin: &dyn Filter, nodes: &[Arc<Node>], spec: &Value) -> Vec<String> {
    filtered_in(plugin, &mut cluster(nodes), spec)
}

pub fn filtered_in(plugin: &dyn Filter, cluster: &mut Cluster, spec: &Value) -> Vec<String> {
    filtered_pod(plugin, cluster, &pod("tried", spec))
}

pub fn filtered_pod(plugin: &dyn Filter, cluster: &mut Cluster, pod: &Arc<Pod>) -> Vec<String> {
    let class = cluster.class(&pod.template);
    let request = Request { pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let refusal_text = |refusal: Refusal| {
        let status = if refusal.resolvable { "U" } else { "UU" };
        format!("{status} {}", Reason::joined(&plugin.reasons(&refusal, cluster)))
    };
    let rows = cluster.rows().map(|(row, _)| row);
    let ask = |filter: &dyn NodeFilter, row| filter.filter(cluster, row).err().map(refusal_text).unwrap_or_default();
    match plugin.prepare_filter(&request, cluster) {
        PreparedFilter::Skip => rows.map(|_| String::new()).collect(),
        PreparedFilter::None(refusal) => rows.map(|_| refusal_text(refusal)).collect(),
        PreparedFilter::Nodes(filter) => rows.map(|row| ask(&*filter, row)).collect(),
        PreparedFilter::NodeNames(names, filter) => rows
            .map(|row| match &filter {
                _ if !names.contains(&*cluster.node(row).unwrap().name) => "left out".to_owned(),
                Some(filter) => ask(&**filter, row),
                None => String::new(),
            })
            .collect(),
    }
}

/// The normalised score of each node; none where the plugin does not compare them.
pub fn scored(plugin: &dyn Score, nodes: &[Arc<Node>], spec: &Value) -> Option<Vec<i64>> {
    scored_in(plugin, &mut cluster(nodes), spec)
}

pub fn scored_in(plugin: &dyn Score, cluster: &mut Cluster, spec: &Value) -> Option<Vec<i64>> {
    let rows = cluster.rows().map(|(row, _)| row).collect::<Vec<_>>();
    scored_pod(plugin, cluster, &pod("tried", spec), &rows)
}

/// The scores of these nodes, where no others have passed the filters.
pub fn scored_pod(plugin: &dyn Score, cluster: &mut Cluster, pod: &Arc<Pod>, rows: &[Row]) -> Option<Vec<i64>> {
    let class = cluster.class(&pod.template);
    let mut score = plugin
        .prepare_score(&Request { pod, class: &class, plugins: &[], state: &AttemptState::default() }, cluster)?;
    score.compare(cluster, rows);
    let mut scores: Vec<i64> = rows.iter().map(|row| score.score(cluster, *row)).collect();
    score.normalize(&mut scores);
    if let Some(all) = score.uniform(cluster) {
        assert!(scores.iter().all(|score| *score == all), "{scores:?} are not all {all}");
    }
    Some(scores)
}

/// Checks that an answer which is brought up to date is the one that would be given anew: with another pod on a node, and
/// without it again.
pub fn followed(plugin: &dyn Filter, cluster: &mut Cluster, pod: &Arc<Pod>, node: usize, other: &Arc<Pod>, what: &str) {
    let class = cluster.class(&pod.template);
    let row = cluster.row(&format!("n{node}")).unwrap();
    let prepared = |cluster: &Cluster| match plugin
        .prepare_filter(&Request { pod, class: &class, plugins: &[], state: &AttemptState::default() }, cluster)
    {
        PreparedFilter::Nodes(filter) => Some(filter),
        _ => None,
    };
    let answers = |filter: &dyn NodeFilter, cluster: &Cluster| -> Vec<Result<(), Refusal>> {
        cluster.rows().map(|(row, _)| filter.filter(cluster, row)).collect()
    };
    let Some(mut prepared_filter) = prepared(cluster) else { panic!("{what}: nothing is asked of nodes") };
    let before = answers(&*prepared_filter, cluster);
    cluster.place(Arc::clone(other), &format!("n{node}").into(), Holds::default());
    prepared_filter.refresh(cluster, row);
    let anew = prepared(cluster).expect(what);
    assert_eq!(answers(&*prepared_filter, cluster), answers(&*anew, cluster), "{what}: after it came");
    cluster.remove_pod(&other.uid);
    prepared_filter.refresh(cluster, row);
    assert_eq!(answers(&*prepared_filter, cluster), before, "{what}: after it went");
}

/// A reason for programs: its code with its operands.
pub fn code(reason: &Reason) -> String {
    let operands = reason.operands.iter().map(|(name, value)| format!("{name}={value}"));
    std::iter::once(reason.code.to_string()).chain(operands).collect::<Vec<_>>().join(" ")
}

/// What is said of a pod for programs: remarks, why it is rejected as a whole, and why each node refuses it first.
pub fn coded(engine: &Engine, pod: &str, now: Moment) -> Vec<String> {
    let decision = engine.copy().why(&Uid::from(pod), now).unwrap().decision.unwrap();
    let remarks = decision.remarks.iter().map(|(_, remark)| format!("remark: {}", code(remark)));
    let rejected = decision.rejected.iter().flat_map(|(_, rejection)| rejection.reasons.iter().map(code));
    let nodes = decision.nodes.iter().filter_map(|on| Some((&on.node, on.refusals.first()?.reasons.first()?)));
    remarks.chain(rejected).chain(nodes.map(|(node, reason)| format!("{node}: {}", code(reason)))).collect()
}
