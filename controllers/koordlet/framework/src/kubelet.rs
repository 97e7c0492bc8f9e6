//! The kubelet's list of pods, read into [`Pod`]s. A pod that has not changed since is not read again.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use jiff::Timestamp;
use koord_koordlet_system::{CgroupPath, ContainerId, Layout};
use koord_resource::{Quantity, ResourceList};
use koord_scheduling::{Bounds, kubernetes_qos};
use koord_types::{
    protocol::Labels,
    qos::{KubernetesQos, QOS_LABEL, QosClass},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::pod::{Container, ContainerKind, ContainerState, Phase, Pod, Volume, cgroups};

/// Reads the kubelet's lists of pods one after the other.
#[derive(Debug, Default)]
pub struct PodReader {
    /// What the last list said of each pod, by the digest of its text.
    read: BTreeMap<u64, Arc<Pod>>,
    digest: RandomState,
}

/// What a list says.
#[derive(Debug)]
pub struct PodList {
    /// The pods in the order of the list.
    pub pods: Vec<Arc<Pod>>,
    /// Pods that cannot be read, with the reason; they are not in `pods`.
    pub refused: Vec<RefusedPod>,
}

/// A pod that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("pod {name} of the kubelet's list cannot be read: {reason}")]
pub struct RefusedPod {
    /// `NAMESPACE/NAME` as far as they are known.
    pub name: String,
    pub reason: String,
}

/// Why an answer of the kubelet is no list of pods.
#[derive(Debug, thiserror::Error)]
#[error("the kubelet's answer is no list of pods: {0}")]
pub struct PodListError(#[from] serde_json::Error);

impl PodReader {
    /// Reads the body of the kubelet's answer.
    ///
    /// # Errors
    ///
    /// The body is no list. A pod that cannot be read alone is among the refused.
    pub fn read(&mut self, body: &[u8], layout: Layout) -> Result<PodList, PodListError> {
        let list: RawList<'_> = serde_json::from_slice(body)?;
        let items = list.items.unwrap_or_default();
        let mut read = BTreeMap::new();
        let (mut pods, mut refused) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            let digest = self.digest.hash_one(item.get());
            let pod = match self.read.remove(&digest) {
                Some(pod) => pod,
                None => match read_pod(item.get(), layout) {
                    Ok(pod) => Arc::new(pod),
                    Err(error) => {
                        refused.push(RefusedPod { name: name_of(item.get()), reason: error.to_string() });
                        continue;
                    }
                },
            };
            pods.push(Arc::clone(&pod));
            read.insert(digest, pod);
        }
        self.read = read;
        Ok(PodList { pods, refused })
    }
}

/// Reads one pod.
///
/// # Errors
///
/// The text is no pod.
pub fn read_pod(text: &str, layout: Layout) -> Result<Pod, serde_json::Error> {
    let raw: RawPod = serde_json::from_str(text)?;
    Ok(raw.into_pod(layout))
}

fn name_of(text: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        metadata: serde_json::Value,
    }
    let named: Named = serde_json::from_str(text).unwrap_or_default();
    let field = |name: &str| named.metadata.get(name).and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
    format!("{}/{}", field("namespace"), field("name"))
}

/// Whether the agent reads a label or annotation of this name.
fn is_read(name: &str) -> bool {
    name.contains("koordinator.sh") || name == DOCKER_TYPE
}

/// Annotation of sandboxes that dockershim makes.
pub const DOCKER_TYPE: &str = "io.kubernetes.docker.type";

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPod {
    #[serde(default)]
    metadata: RawMeta,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta {
    name: Arc<str>,
    namespace: Arc<str>,
    uid: Arc<str>,
    labels: Option<Labels>,
    annotations: Option<Labels>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    containers: Option<Vec<RawContainer>>,
    init_containers: Option<Vec<RawContainer>>,
    priority: Option<i32>,
    overhead: Option<Resources>,
    runtime_class_name: Option<Arc<str>>,
    host_network: Option<bool>,
    volumes: Option<Vec<RawVolume>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawContainer {
    name: Arc<str>,
    resources: Option<RawResources>,
    restart_policy: Option<String>,
}

type Resources = BTreeMap<String, Quantity>;

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct RawResources {
    requests: Option<Resources>,
    limits: Option<Resources>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawVolume {
    name: Arc<str>,
    persistent_volume_claim: Option<RawClaim>,
    csi: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClaim {
    claim_name: Arc<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    phase: Option<String>,
    qos_class: Option<String>,
    start_time: Option<Timestamp>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Arc<str>>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<RawIp>>,
    container_statuses: Option<Vec<RawContainerStatus>>,
    init_container_statuses: Option<Vec<RawContainerStatus>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawIp {
    ip: Arc<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawContainerStatus {
    name: Arc<str>,
    #[serde(rename = "containerID")]
    container_id: Option<String>,
    state: Option<RawState>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawState {
    running: Option<serde::de::IgnoredAny>,
    terminated: Option<serde::de::IgnoredAny>,
}

impl RawPod {
    fn into_pod(self, layout: Layout) -> Pod {
        let Self { metadata, spec, status } = self;
        let kept = |map: Option<Labels>| -> Labels {
            map.unwrap_or_default().into_iter().filter(|(name, _)| is_read(name)).collect()
        };
        let labels = kept(metadata.labels);
        let statuses = status.container_statuses.unwrap_or_default();
        let init_statuses = status.init_container_statuses.unwrap_or_default();
        let regular = spec
            .containers
            .unwrap_or_default()
            .into_iter()
            .map(|container| container.into_container(ContainerKind::Regular, &statuses));
        let init = spec.init_containers.unwrap_or_default().into_iter().map(|container| {
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            let kind = if is_sidecar { ContainerKind::Sidecar } else { ContainerKind::Init };
            container.into_container(kind, &init_statuses)
        });
        let containers: Vec<Container> = regular.chain(init).collect();
        let class = status.qos_class.filter(|class| !class.is_empty());
        let class = class.unwrap_or_else(|| class_of(&containers).to_owned());
        let mut ips: Vec<Arc<str>> = status.pod_ips.unwrap_or_default().into_iter().map(|ip| ip.ip).collect();
        if ips.is_empty() {
            ips.extend(status.pod_ip.filter(|ip| !ip.is_empty()));
        }
        let mut pod = Pod {
            uid: metadata.uid,
            namespace: metadata.namespace,
            name: metadata.name,
            qos_label: QosClass::of_label(labels.get(QOS_LABEL).map(String::as_str)),
            labels,
            annotations: kept(metadata.annotations),
            created: metadata.creation_timestamp,
            started: status.start_time,
            is_terminating: metadata.deletion_timestamp.is_some(),
            phase: match status.phase.as_deref() {
                Some("Pending") => Phase::Pending,
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                _ => Phase::Unknown,
            },
            priority: spec.priority,
            kubernetes_qos: KubernetesQos::from(class.as_str()),
            runtime_class: spec.runtime_class_name,
            uses_host_network: spec.host_network.unwrap_or_default(),
            ips,
            containers,
            overhead: list(spec.overhead),
            volumes: spec
                .volumes
                .unwrap_or_default()
                .into_iter()
                .filter(|volume| volume.persistent_volume_claim.is_some() || volume.csi.is_some())
                .map(|volume| Volume {
                    name: volume.name,
                    claim: volume.persistent_volume_claim.map(|claim| claim.claim_name),
                })
                .collect(),
            cgroup: CgroupPath::root(),
        };
        cgroups(&mut pod, layout);
        pod
    }
}

impl RawContainer {
    fn into_container(self, kind: ContainerKind, statuses: &[RawContainerStatus]) -> Container {
        let status = statuses.iter().find(|status| status.name == self.name);
        let state = status.and_then(|status| status.state.as_ref());
        let resources = self.resources.unwrap_or_default();
        Container {
            name: self.name,
            kind,
            // An id that is none is as if there were none: the container has no folder that is known.
            id: status.and_then(|status| ContainerId::parse(status.container_id.as_deref()?).ok()),
            state: match state {
                Some(RawState { running: Some(_), .. }) => ContainerState::Running,
                Some(RawState { terminated: Some(_), .. }) => ContainerState::Terminated,
                _ => ContainerState::Waiting,
            },
            requests: list(resources.requests),
            limits: list(resources.limits),
            cgroup: None,
        }
    }
}

fn list(amounts: Option<Resources>) -> ResourceList {
    amounts.unwrap_or_default().into_iter().collect()
}

fn class_of(containers: &[Container]) -> &'static str {
    kubernetes_qos(containers.iter().map(|container| {
        ["cpu", "memory"]
            .map(|resource| Bounds { request: container.requests.get(resource), limit: container.limits.get(resource) })
    }))
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{Driver, Version};
    use koord_types::priority::PriorityClass;

    use super::*;

    const LAYOUT: Layout = Layout::new(Version::V1, Driver::Systemd);

    const LIST: &str = r#"{"kind":"PodList","items":[
        {"metadata":{"name":"be","namespace":"shop","uid":"a-1","labels":{"koordinator.sh/qosClass":"BE","app":"x"},
          "annotations":{"node.koordinator.sh/extended-resource-spec":"{}","other":"y"}},
         "spec":{"priority":5500,"initContainers":[{"name":"side","restartPolicy":"Always","resources":{"requests":{"kubernetes.io/batch-cpu":"500"}}},{"name":"init"}],
          "containers":[{"name":"main","resources":{"requests":{"kubernetes.io/batch-cpu":"2k","kubernetes.io/batch-memory":"1Gi"}}}],
          "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"disk"}},{"name":"tmp","emptyDir":{}}]},
         "status":{"phase":"Running","qosClass":"BestEffort","podIP":"10.0.0.1",
          "containerStatuses":[{"name":"main","containerID":"containerd://abc","state":{"running":{}}}]}},
        {"metadata":{"name":"broken","namespace":"shop","uid":7}},
        {"metadata":{"name":"ls","namespace":"shop","uid":"a-2","labels":null},
         "spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]},"status":{}}]}"#;

    #[test]
    fn a_pod_is_read_with_its_cgroups() {
        let list = PodReader::default().read(LIST.as_bytes(), LAYOUT).unwrap();
        let be = &list.pods[0];
        assert_eq!(
            be.containers[0].cgroup.as_ref().unwrap().as_str(),
            "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poda_1.slice/cri-containerd-abc.scope"
        );
        assert_eq!((be.batch_cpu_request(), be.batch_memory_request()), (2500, 1 << 30));
        assert_eq!(be.labels.len() + be.annotations.len(), 2);
        assert_eq!((be.priority_class(), be.priority_value()), (Some(PriorityClass::Batch), 5500));
        assert!(be.is_active() && be.containers[0].is_running() && be.volumes.len() == 1);
        let ls = &list.pods[1];
        assert_eq!((ls.kubernetes_qos.clone(), ls.qos()), (KubernetesQos::Burstable, Some(QosClass::Ls)));
        assert_eq!((ls.request("cpu"), ls.limit("cpu"), ls.request("memory")), (1000, 2000, 0));
    }

    #[test]
    fn a_pod_that_cannot_be_read_is_named_and_harms_no_other() {
        let list = PodReader::default().read(LIST.as_bytes(), LAYOUT).unwrap();
        assert_eq!((list.pods.len(), list.refused.len()), (2, 1));
        assert!(
            list.refused[0]
                .to_string()
                .starts_with("pod shop/broken of the kubelet's list cannot be read: invalid type")
        );
    }

    #[test]
    fn a_pod_that_has_not_changed_is_the_same() {
        let mut reader = PodReader::default();
        let first = reader.read(LIST.as_bytes(), LAYOUT).unwrap();
        let second =
            reader.read(LIST.replace(r#""phase":"Running""#, r#""phase":"Failed""#).as_bytes(), LAYOUT).unwrap();
        assert!(!Arc::ptr_eq(&first.pods[0], &second.pods[0]) && Arc::ptr_eq(&first.pods[1], &second.pods[1]));
    }

    #[test]
    fn lists_without_pods_are_lists() {
        for (text, pods) in [("{}", 0), (r#"{"items":null}"#, 0), (r#"{"items":[]}"#, 0)] {
            assert_eq!(PodReader::default().read(text.as_bytes(), LAYOUT).unwrap().pods.len(), pods);
        }
        assert!(PodReader::default().read(b"<html>", LAYOUT).is_err());
    }
}
