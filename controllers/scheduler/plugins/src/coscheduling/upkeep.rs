//! What Coscheduling writes beside attempts: the status of PodGroups (3E.9) and of the ClusterNetworkTopology (2.13).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use koord_api::{
    cluster_network_topology::{ClusterNetworkTopology, ClusterNetworkTopologyStatus},
    pod_group::{PodGroup, PodGroupStatus},
};
use koord_core::{
    key::ObjectKey,
    uid::Uid,
    write::{Action, Write},
};
use koord_engine::{cluster::Cluster, plugin::Upkeep, pod::Pod};
use koord_resource::controller::ResourceKind;
use serde_json::{Value, json};

use super::{
    context::Context,
    network::DEFAULT,
    pod_group::{Counts, is_abandoned, status},
};

/// The members of a status of a PodGroup that are written.
const WRITTEN: [&str; 7] = ["phase", "occupiedBy", "scheduled", "running", "succeeded", "failed", "scheduleStartTime"];

/// The writes that bring the status of objects to where the pods and nodes are.
pub(super) fn upkeep(cluster: &Cluster, is_aware: bool) -> Upkeep {
    let Some(context) = cluster.state::<Context>() else { return Upkeep::default() };
    let groups = cluster.objects().of::<PodGroup>();
    let mut writes: Vec<Write> =
        groups.filter_map(|(key, group)| pod_group_status(key, group, context, cluster)).collect();
    writes.extend(is_aware.then(|| topology_status(context, cluster)).flatten());
    Upkeep { writes, again: None }
}

fn pod_group_status(key: &ObjectKey, group: &PodGroup, context: &Context, cluster: &Cluster) -> Option<Write> {
    let created = group.metadata.creation_timestamp.as_ref().map_or(cluster.time(), |created| created.0);
    if is_abandoned(&group.status, created, cluster.time()) {
        return None;
    }
    let pod = |uid: &Uid| cluster.pod(uid).map(|placed| &placed.pod).or_else(|| cluster.pending_pod(uid));
    let pods: Vec<&Pod> = context.gangs.members(key).filter_map(|(uid, _)| pod(uid)).map(|pod| &**pod).collect();
    let count = |counts: &dyn Fn(&Pod) -> bool| i32::try_from(pods.iter().filter(|pod| counts(pod)).count());
    let counts = Counts {
        members: count(&|_| true).unwrap_or(i32::MAX),
        scheduled: count(&|pod| pod.node.is_some()).unwrap_or(i32::MAX),
        running: count(&|pod| pod.is_running).unwrap_or(i32::MAX),
        ..Counts::default()
    };
    let first = pods.iter().filter(|_| group.status.occupied_by.is_empty()).min_by_key(|pod| &pod.key);
    let owners = first.map(|pod| owners(pod));
    let mut new = status(&group.status, group.spec.min_member, counts, owners.as_deref());
    if new.scheduled > 0 && new.schedule_start_time.is_none() {
        let first = pods.iter().filter_map(|pod| pod.scheduled).min();
        new.schedule_start_time = first.and_then(|second| Timestamp::from_second(second).ok()).map(Time);
    }
    (new != group.status).then(|| {
        let uid = cluster.objects().entry::<PodGroup>(key.as_str()).map(|object| &object.uid);
        write(ResourceKind::typed::<PodGroup>(), key, "", json!({"metadata": {"uid": uid}, "status": patch(&new)}))
    })
}

/// The owners of a pod, sorted.
fn owners(pod: &Pod) -> String {
    let mut owners: Vec<String> =
        pod.owners().map(|(owner, _)| format!("{}/{}", pod.key.namespace(), owner.name)).collect();
    owners.sort_unstable();
    owners.join(",")
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
