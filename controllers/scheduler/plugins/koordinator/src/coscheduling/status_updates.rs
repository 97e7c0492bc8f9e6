//! What Coscheduling writes beside attempts: the status of PodGroups (3E.9) and of the ClusterNetworkTopology (2.13).

use koord_core::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{StatusUpdates, cluster::Cluster};
use koord_types::{
    cluster_network_topology::{ClusterNetworkTopology, ClusterNetworkTopologyStatus},
    pod_group::{PodGroup, PodGroupStatus},
};
use serde_json::{Value, json};

use super::{context::Context, network::DEFAULT};

/// The members of a status of a PodGroup that are written.
const WRITTEN: [&str; 7] = ["phase", "occupiedBy", "scheduled", "running", "succeeded", "failed", "scheduleStartTime"];

/// The writes that bring the status of objects to where the pods and nodes are.
pub(super) fn status_updates(cluster: &Cluster, is_aware: bool) -> StatusUpdates {
    let Some(context) = cluster.state::<Context>() else { return StatusUpdates::default() };
    let groups = cluster.objects().of::<PodGroup>();
    let mut writes: Vec<Write> =
        groups.filter_map(|(key, group)| pod_group_status(key, group, context, cluster)).collect();
    writes.extend(is_aware.then(|| topology_status(context, cluster)).flatten());
    StatusUpdates { writes, again: context.statuses.due().filter(|due| *due > cluster.time()) }
}

fn pod_group_status(key: &ObjectKey, group: &PodGroup, context: &Context, cluster: &Cluster) -> Option<Write> {
    let new = context.statuses.status(key, group, &context.gangs, cluster);
    (new != group.status).then(|| {
        let uid = cluster.objects().entry::<PodGroup>(key.as_str()).map(|object| &object.uid);
        write(ResourceKind::typed::<PodGroup>(), key, "", json!({"metadata": {"uid": uid}, "status": patch(&new)}))
    })
}

/// The status as a merge patch, which removes what is not there any more.
fn patch(status: &PodGroupStatus) -> Value {
    let new = json!(status);
    let members = WRITTEN.iter().map(|name| ((*name).to_owned(), new.get(name).cloned().unwrap_or_default()));
    Value::Object(members.collect())
}

fn topology_status(context: &Context, cluster: &Cluster) -> Option<Write> {
    let topology = cluster.objects().get::<ClusterNetworkTopology>(DEFAULT)?;
    let status = ClusterNetworkTopologyStatus { detail_status: context.network.tree(cluster)?.details() };
    (status != topology.status).then(|| {
        let kind = ResourceKind::typed::<ClusterNetworkTopology>();
        write(kind, &ObjectKey::cluster(DEFAULT), "status", json!({ "status": status }))
    })
}

fn write(kind: ResourceKind, key: &ObjectKey, subresource: &'static str, patch: Value) -> Write {
    Write { kind, key: key.clone(), action: Action::Patch { subresource, patch } }
}
