//! Nodes and pods for the tests of plugins, and what a plugin says about them.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_engine::{
    cluster::Cluster,
    columns::Row,
    labels::Labels,
    node::Node,
    plugin::{Filter, Plugin, PreFilter, Reason, Refusal, Request},
    pod::{Pod, Template},
};
use serde_json::{Value, json};

pub(crate) type Nodes = Vec<Arc<Node>>;

/// A node of this name with these other members.
pub(crate) fn node(name: &str, members: &Value) -> Arc<Node> {
    let mut object = members.clone();
    object["metadata"]["name"] = json!(name);
    Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap())
}

/// A pod with this spec, which may lack its containers.
pub(crate) fn pod(name: &str, spec: &Value) -> Arc<Pod> {
    labelled("ns", name, &[], spec)
}

/// A pod of this namespace with these labels.
pub(crate) fn labelled(namespace: &str, name: &str, labels: &[(&str, &str)], spec: &Value) -> Arc<Pod> {
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

pub(crate) fn cluster(nodes: &[Arc<Node>]) -> Cluster {
    let mut cluster = Cluster::default();
    for node in nodes {
        cluster.set_node(Arc::clone(node));
    }
    cluster
}

/// Of each node whether the pod may run there: empty, or the status and the reasons.
pub(crate) fn filtered(plugin: &dyn Plugin, nodes: &[Arc<Node>], spec: &Value) -> Vec<String> {
    filtered_in(plugin, &mut cluster(nodes), spec)
}

pub(crate) fn filtered_in(plugin: &dyn Plugin, cluster: &mut Cluster, spec: &Value) -> Vec<String> {
    filtered_pod(plugin, cluster, &pod("tried", spec))
}

pub(crate) fn filtered_pod(plugin: &dyn Plugin, cluster: &mut Cluster, pod: &Arc<Pod>) -> Vec<String> {
    plugin.topology_keys().iter().for_each(|key| cluster.pin_topology(key));
    let class = cluster.class(&pod.template);
    let request = Request { pod, class: &class, plugins: &[] };
    let said = |refusal: Refusal| {
        let status = if refusal.resolvable { "U" } else { "UU" };
        format!("{status} {}", Reason::joined(&plugin.reasons(&refusal, cluster)))
    };
    let rows = cluster.rows().map(|(row, _)| row);
    let ask = |filter: &dyn Filter, row| filter.filter(cluster, row).err().map(said).unwrap_or_default();
    match plugin.filter(&request, cluster) {
        PreFilter::Skip => rows.map(|_| String::new()).collect(),
        PreFilter::None(refusal) => rows.map(|_| said(refusal)).collect(),
        PreFilter::Nodes(filter) => rows.map(|row| ask(&*filter, row)).collect(),
        PreFilter::Among(names, filter) => rows
            .map(|row| match &filter {
                _ if !names.contains(&*cluster.node(row).unwrap().name) => "left out".to_owned(),
                Some(filter) => ask(&**filter, row),
                None => String::new(),
            })
            .collect(),
    }
}

/// The normalised score of each node; none where the plugin does not compare them.
pub(crate) fn scored(plugin: &dyn Plugin, nodes: &[Arc<Node>], spec: &Value) -> Option<Vec<i64>> {
    scored_in(plugin, &mut cluster(nodes), spec)
}

pub(crate) fn scored_in(plugin: &dyn Plugin, cluster: &mut Cluster, spec: &Value) -> Option<Vec<i64>> {
    let rows = cluster.rows().map(|(row, _)| row).collect::<Vec<_>>();
    scored_pod(plugin, cluster, &pod("tried", spec), &rows)
}

/// The scores of these nodes, where no others have passed the filters.
pub(crate) fn scored_pod(plugin: &dyn Plugin, cluster: &mut Cluster, pod: &Arc<Pod>, rows: &[Row]) -> Option<Vec<i64>> {
    plugin.topology_keys().iter().for_each(|key| cluster.pin_topology(key));
    let class = cluster.class(&pod.template);
    let mut score = plugin.score(&Request { pod, class: &class, plugins: &[] }, cluster)?;
    score.compare(cluster, rows);
    let mut scores: Vec<i64> = rows.iter().map(|row| score.score(cluster, *row)).collect();
    score.normalize(&mut scores);
    if let Some(all) = score.uniform(cluster) {
        assert!(scores.iter().all(|score| *score == all), "{scores:?} are not all {all}");
    }
    Some(scores)
}
