//! What a hollow kubelet does with a pod that is bound to one of its nodes.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, HostIP, Pod,
        PodCondition, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use crate::seed::Seed;

/// The next thing to do for a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write this status: the pod runs.
    Run(Box<PodStatus>),
    /// Its time to stop has been asked for: remove it for good.
    Remove,
    /// Nothing, for now or for ever.
    Rest,
}

/// Decides what happens next to a pod on the node with this address. A pod without a node is nobody's yet.
pub fn next_step(pod: &Pod, host_address: &str, now: Timestamp) -> Step {
    let Some(spec) = pod.spec.as_ref().filter(|spec| spec.node_name.as_ref().is_some_and(|node| !node.is_empty()))
    else {
        return Step::Rest;
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return Step::Remove;
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    if phase != "Pending" {
        return Step::Rest;
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let address = pod_address(uid);
    let inits = spec.init_containers.iter().flatten().map(|container| finished(container, uid, now));
    let mains = spec.containers.iter().map(|container| running(container, uid, now));
    // The scheduler's own condition stays; the kubelet's are added.
    let mut conditions: Vec<PodCondition> =
        pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).cloned().collect();
    for type_ in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        conditions.retain(|condition| condition.type_ != type_);
        conditions.push(PodCondition {
            type_: type_.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        });
    }
    Step::Run(Box::new(PodStatus {
        phase: Some("Running".to_owned()),
        conditions: Some(conditions),
        host_ip: Some(host_address.to_owned()),
        host_ips: Some(vec![HostIP { ip: host_address.to_owned() }]),
        pod_ip: Some(address.clone()),
        pod_ips: Some(vec![PodIP { ip: address }]),
        start_time: Some(Time(now)),
        init_container_statuses: spec.init_containers.as_ref().map(|_| inits.collect()),
        container_statuses: Some(mains.collect()),
        ..PodStatus::default()
    }))
}

fn running(container: &Container, pod_uid: &str, now: Timestamp) -> ContainerStatus {
    ContainerStatus {
        ready: true,
        started: Some(true),
        state: Some(ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(now)) }),
            ..ContainerState::default()
        }),
        ..status(container, pod_uid)
    }
}

fn finished(container: &Container, pod_uid: &str, now: Timestamp) -> ContainerStatus {
    ContainerStatus {
        ready: true,
        started: Some(false),
        state: Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: 0,
                reason: Some("Completed".to_owned()),
                started_at: Some(Time(now)),
                finished_at: Some(Time(now)),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        }),
        ..status(container, pod_uid)
    }
}

fn status(container: &Container, pod_uid: &str) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: format!("hollow://{image}"),
        image,
        container_id: Some(format!("hollow://{pod_uid}/{}", container.name)),
        ..ContainerStatus::default()
    }
}

/// The address of a pod in 10.128.0.0/9, by its uid: stable, and different for nearly all pods of a cluster.
fn pod_address(uid: &str) -> String {
    let number = Seed::new(0).child(uid).below(1 << 23);
    format!("10.{}.{}.{}", 128 + (number >> 16), (number >> 8) & 0xFF, number & 0xFF)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(changes: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "u-1"},
            "spec": {
                "nodeName": "hollow-0",
                "initContainers": [{"name": "prepare", "image": "busybox"}],
                "containers": [{"name": "main", "image": "nginx"}, {"name": "side", "image": "envoy"}],
            },
            "status": {"phase": "Pending"},
        });
        merge(&mut pod, changes);
        serde_json::from_value(pod).unwrap()
    }

    fn merge(into: &mut Value, changes: &Value) {
        for (key, change) in changes.as_object().into_iter().flatten() {
            match change {
                Value::Object(_) => merge(&mut into[key], change),
                _ => into[key] = change.clone(),
            }
        }
    }

    #[test]
    fn a_bound_pod_runs_with_all_its_containers_ready() {
        let Step::Run(status) = next_step(&pod(&json!({})), "10.0.0.1", Timestamp::UNIX_EPOCH) else {
            panic!("it should run")
        };
        assert_eq!(status.phase.as_deref(), Some("Running"));
        let containers = status.container_statuses.unwrap();
        assert_eq!(containers.iter().map(|status| status.name.as_str()).collect::<Vec<_>>(), ["main", "side"]);
        assert!(containers.iter().all(|status| status.ready));
        assert_eq!(
            status.init_container_statuses.unwrap()[0].state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code,
            0
        );
        assert!(status.conditions.unwrap().iter().any(|it| it.type_ == "Ready" && it.status == "True"));
    }

    #[test]
    fn a_pod_without_a_node_waits() {
        assert_eq!(
            next_step(&pod(&json!({"spec": {"nodeName": null}})), "10.0.0.1", Timestamp::UNIX_EPOCH),
            Step::Rest
        );
        assert_eq!(next_step(&pod(&json!({"spec": {"nodeName": ""}})), "10.0.0.1", Timestamp::UNIX_EPOCH), Step::Rest);
    }

    #[test]
    fn a_running_pod_is_left_alone_until_it_is_to_be_deleted() {
        let running = json!({"status": {"phase": "Running"}});
        assert_eq!(next_step(&pod(&running), "10.0.0.1", Timestamp::UNIX_EPOCH), Step::Rest);
        let mut deleting = running;
        deleting["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(next_step(&pod(&deleting), "10.0.0.1", Timestamp::UNIX_EPOCH), Step::Remove);
    }

    #[test]
    fn conditions_of_others_stay() {
        let condition = json!({"status": {"conditions": [{"type": "example.com/Gate", "status": "False"}]}});
        let Step::Run(status) = next_step(&pod(&condition), "10.0.0.1", Timestamp::UNIX_EPOCH) else {
            panic!("it should run")
        };
        assert!(status.conditions.unwrap().iter().any(|it| it.type_ == "example.com/Gate" && it.status == "False"));
    }
}
