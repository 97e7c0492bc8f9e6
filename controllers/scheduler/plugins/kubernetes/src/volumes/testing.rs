//! Clusters with claims and volumes for the tests of these plugins.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment},
};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    AttemptState, Filter, Plugin, Rejection, Request, cluster::Cluster, event::Event, hold::Holds, node::Node,
    object::Object, pod::Pod,
};
use serde_json::{Value, json};

/// The first value with the members of the second.
pub(super) fn merged(mut onto: Value, members: &Value) -> Value {
    match (&mut onto, members) {
        (Value::Object(onto), Value::Object(members)) => {
            for (name, value) in members {
                let known = onto.remove(name).unwrap_or(Value::Null);
                onto.insert(name.clone(), merged(known, value));
            }
            Value::Object(onto.clone())
        }
        (_, value) => value.clone(),
    }
}

/// An object of this kind and name, which is in the namespace `ns` where its kind has namespaces.
pub(super) fn object(kind: &str, name: &str, members: &Value) -> (TypeId, Object) {
    let namespace = if matches!(kind, "claim" | "capacity") { "ns" } else { "" };
    let value = merged(json!({"metadata": {"name": name, "namespace": namespace, "uid": name}}), members);
    let key = ObjectKey::new(namespace, name);
    match kind {
        "claim" => typed::<PersistentVolumeClaim>(key, value),
        "volume" => typed::<PersistentVolume>(key, value),
        "class" => typed::<StorageClass>(key, value),
        "csinode" => typed::<CSINode>(key, value),
        "driver" => typed::<CSIDriver>(key, value),
        "capacity" => typed::<CSIStorageCapacity>(key, value),
        "attachment" => typed::<VolumeAttachment>(key, value),
        other => panic!("{other}"),
    }
}

fn typed<T: Any + Send + Sync + k8s_openapi::serde::de::DeserializeOwned>(
    key: ObjectKey,
    value: Value,
) -> (TypeId, Object) {
    let uid = Uid::from(key.name());
    let value = Arc::new(serde_json::from_value::<T>(value).unwrap());
    (TypeId::of::<T>(), Object::new(key, uid, false, value))
}

/// A cluster with the state of a plugin, with these nodes and objects.
pub(super) fn cluster<P: Plugin + Clone>(plugin: &P, nodes: &[Arc<Node>], objects: &[(&str, &str, Value)]) -> Cluster {
    let mut cluster = Cluster::default();
    let registered = Arc::new(plugin.clone()).register();
    registered.state.iter().for_each(|point| cluster.add_state(point.state()));
    for node in nodes {
        cluster.set_node(Arc::clone(node));
    }
    for (kind, name, members) in objects {
        cluster.set_object(object(kind, name, members).1);
    }
    cluster
}

/// The event of an object that changes; none before or after it.
pub(super) fn change(cluster: &mut Cluster, kind: &str, name: &str, versions: [Option<&Value>; 2]) -> Event {
    let [old, new] = versions;
    let set = |cluster: &mut Cluster, members: &Value| cluster.set_object(object(kind, name, members).1);
    if let Some(old) = old {
        set(cluster, old);
    }
    Event::Object(if let Some(new) = new {
        set(cluster, new)
    } else {
        let (type_, object) = object(kind, name, old.unwrap());
        cluster.remove_object(type_, object.key.as_str()).unwrap()
    })
}

/// A pod with volumes of these claims.
pub(super) fn with_claims(claims: &[&str]) -> Value {
    let volumes = claims.iter().map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
    json!({"volumes": volumes.collect::<Vec<_>>()})
}

/// Whether the plugin admits a pod.
pub(super) fn admitted<P: Plugin + Clone>(plugin: &P, cluster: &mut Cluster, pod: &Arc<Pod>) -> Result<(), Rejection> {
    let class = cluster.class(&pod.template);
    let registered = Arc::new(plugin.clone()).register();
    let request = Request { pod, class: &class, plugins: &[], state: &AttemptState::default() };
    registered.pre_filter.map_or(Ok(()), |point| point.pre_filter(&request, cluster))
}

/// What is said about a pod with this spec: why it is not admitted, or what each node answers.
pub(super) fn answers<P: Plugin + Filter + Clone>(plugin: &P, cluster: &mut Cluster, spec: &Value) -> Vec<String> {
    match admitted(plugin, cluster, &koord_scheduler_testing::pod("tried", spec)) {
        Ok(()) => koord_scheduler_testing::filtered_in(plugin, cluster, spec),
        Err(rejection) => vec![format!("{:?}: {}", rejection.code, rejection.message())],
    }
}

/// Places a pod with this spec.
pub(super) fn place(cluster: &mut Cluster, name: &str, node: &str, spec: &Value) {
    cluster.place(koord_scheduler_testing::pod(name, spec), &node.into(), Holds::default());
}
