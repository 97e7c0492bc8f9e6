//! Usage that the metrics server has measured, by the group metrics.k8s.io of the API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_descheduler_framework::{Cluster, NodeId};
use koord_resource::Quantity;
use koord_runtime::{api::Api, clock::Clock, key::ObjectKey, write::Answer};
use koord_scheduling::{ResourceId, ResourceVector};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MeasureError, Measured, within};

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";
/// The longest answer: some five thousand nodes are 2 MiB, a hundred and fifty thousand pods 70 MiB.
const NODES_BYTES_MAX: usize = 32 << 20;
const PODS_BYTES_MAX: usize = 128 << 20;
/// What was measured longer ago is not trusted.
const STALE: Duration = Duration::from_mins(5);

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct NodeMetrics {
    metadata: Named,
    timestamp: Option<Timestamp>,
    usage: BTreeMap<String, Quantity>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Named,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    usage: BTreeMap<String, Quantity>,
}

/// What nodes use, as far as the snapshot has them.
pub(super) async fn nodes(api: &Api, clock: &dyn Clock, is_known: impl Fn(&str) -> bool) -> Read<Arc<str>> {
    let body = get(api, clock, NODES, NODES_BYTES_MAX).await?;
    let now = clock.now();
    read(&body, |node: NodeMetrics| {
        let age = |measured: Timestamp| now.duration_since(measured).unsigned_abs();
        match node.timestamp {
            Some(measured) if measured < now && age(measured) > STALE => {
                Err(format!("node {}: it was last measured at {measured}", node.metadata.name))
            }
            _ if !is_known(&node.metadata.name) => Ok(None),
            _ => Ok(Some((Arc::from(&*node.metadata.name), amounts(&node.usage, &node.metadata.name)?))),
        }
    })
}

/// What the pods of these nodes use.
pub(super) async fn pods(api: &Api, clock: &dyn Clock, is_wanted: impl Fn(&ObjectKey) -> bool) -> Read<ObjectKey> {
    let body = get(api, clock, PODS, PODS_BYTES_MAX).await?;
    read(&body, |pod: PodMetrics| {
        let key = ObjectKey::new(&pod.metadata.namespace, &pod.metadata.name);
        // Of a pod without containers nothing has been measured yet.
        if !is_wanted(&key) || pod.containers.is_empty() {
            return Ok(None);
        }
        let mut usage = ResourceVector::default();
        for container in &pod.containers {
            usage.add(&amounts(&container.usage, key.as_str())?);
        }
        Ok(Some((key, usage)))
    })
}

/// Whether a pod is on one of these nodes.
pub(super) fn is_on(cluster: &Cluster, pod: &ObjectKey, nodes: &[NodeId]) -> bool {
    let node = cluster.pod_id(pod.as_str()).and_then(|pod| cluster.node_of(pod));
    node.is_some_and(|node| nodes.contains(&node))
}

type Read<K> = Result<Measured<BTreeMap<K, ResourceVector>>, MeasureError>;

async fn get(api: &Api, clock: &dyn Clock, uri: &str, bytes_max: usize) -> Result<String, MeasureError> {
    let answer = within(clock, api.get_up_to(bytes_max, uri.to_owned())).await?;
    match answer.map_err(|failure| MeasureError::Request(failure.message))? {
        Answer { code: 200, body, .. } => Ok(body),
        Answer { code: 404, .. } => Err(MeasureError::NoMetricsServer),
        answer => Err(MeasureError::Request(koord_runtime::api::refused(&answer).message)),
    }
}

/// Reads the items of a list one by one: one that cannot be read, or is refused, is left out.
fn read<'a, K: Ord, T: Deserialize<'a>>(
    body: &'a str,
    mut item: impl FnMut(T) -> Result<Option<(K, ResourceVector)>, String>,
) -> Read<K> {
    let list: List<'a> = serde_json::from_str(body).map_err(|error| MeasureError::Form(error.to_string()))?;
    let mut measured = Measured::<BTreeMap<K, ResourceVector>>::default();
    for raw in list.items {
        let known = serde_json::from_str(raw.get()).map_err(|error| error.to_string()).and_then(&mut item);
        match known {
            Ok(found) => measured.value.extend(found),
            Err(reason) => measured.leave_out(reason),
        }
    }
    Ok(measured)
}

/// Cpu and memory, both of which are measured.
fn amounts(usage: &BTreeMap<String, Quantity>, name: &str) -> Result<ResourceVector, String> {
    let amount = |resource: &str| match usage.get(resource) {
        Some(amount) if amount.is_negative() => Err(format!("{name}: its {resource} is {amount}, below 0")),
        Some(amount) => Ok(amount),
        None => Err(format!("{name}: its {resource} is missing")),
    };
    let mut vector = ResourceVector::default();
    vector.set(ResourceId::CPU, amount("cpu")?.milli_value());
    vector.set(ResourceId::MEMORY, amount("memory")?.value());
    Ok(vector)
}
