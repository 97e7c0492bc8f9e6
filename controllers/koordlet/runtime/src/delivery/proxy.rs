//! Requests of the runtime proxy and the answers of hooks in its words: an echo of the request, with what hooks change.

use koord_koordlet_hooks::{
    Adjustment, DeviceReader, Response, Rules, RuntimeContainer, RuntimePod, Stage, on_container, on_sandbox,
};
use koord_koordlet_protocols::hookserver::{
    ContainerResourceHookRequest, ContainerResourceHookResponse, ContainerStage, LinuxContainerResources,
    PodSandboxHookRequest, PodSandboxHookResponse, PodStage,
};

/// Answers a call for a pod's sandbox.
pub fn proxy_sandbox(
    stage: PodStage,
    request: PodSandboxHookRequest,
    rules: &Rules,
) -> (PodSandboxHookResponse, Response) {
    let stage = match stage {
        PodStage::PreRunPodSandbox => Stage::PreRunPodSandbox,
        PodStage::PostStopPodSandbox => Stage::PostStopPodSandbox,
    };
    let mut answer = PodSandboxHookResponse::echo(&request);
    let meta = request.pod_meta.unwrap_or_default();
    let pod = RuntimePod {
        namespace: meta.namespace,
        name: meta.name,
        uid: meta.uid,
        labels: request.labels,
        annotations: request.annotations,
        cgroup_parent: request.cgroup_parent,
    };
    let response = on_sandbox(stage, &pod, rules);
    overwrite(&mut answer.resources, &response.adjustment);
    (answer, response)
}

/// Answers a call for a container. Mounts, devices and groups of resctrl cannot be said in an answer.
pub fn proxy_container(
    stage: ContainerStage,
    request: ContainerResourceHookRequest,
    rules: &Rules,
    devices: &dyn DeviceReader,
) -> (ContainerResourceHookResponse, Response) {
    let stage = match stage {
        ContainerStage::PreCreateContainer => Stage::PreCreateContainer,
        ContainerStage::PreStartContainer => Stage::PreStartContainer,
        ContainerStage::PostStartContainer => Stage::PostStartContainer,
        ContainerStage::PostStopContainer => Stage::PostStopContainer,
        ContainerStage::PreUpdateContainerResources => Stage::PreUpdateContainerResources,
    };
    let mut answer = ContainerResourceHookResponse::echo(&request);
    let (pod, container) = (request.pod_meta.unwrap_or_default(), request.container_meta.unwrap_or_default());
    let cpu_quota = request.container_resources.as_ref().map_or(0, |resources| resources.cpu_quota);
    let pod = RuntimePod {
        namespace: pod.namespace,
        name: pod.name,
        uid: pod.uid,
        labels: request.pod_labels,
        annotations: request.pod_annotations,
        cgroup_parent: request.pod_cgroup_parent,
    };
    let container = RuntimeContainer { name: container.name, id: container.id, cpu_quota };
    let response = on_container(stage, &pod, &container, rules, devices);
    overwrite(&mut answer.container_resources, &response.adjustment);
    for (name, value) in &response.adjustment.envs {
        answer.container_envs.insert(name.clone(), value.clone());
    }
    (answer, response)
}

/// Sets what hooks change; resources that the request does not have exist only when there is something to set.
fn overwrite(resources: &mut Option<LinuxContainerResources>, adjustment: &Adjustment) {
    let Adjustment { cpuset_cpus, cpu_shares, cpu_quota, memory_limit, .. } = adjustment;
    if cpuset_cpus.is_none() && cpu_shares.is_none() && cpu_quota.is_none() && memory_limit.is_none() {
        return;
    }
    let resources = resources.get_or_insert_default();
    if let Some(cpus) = cpuset_cpus {
        resources.cpuset_cpus.clone_from(cpus);
    }
    for (field, value) in [
        (&mut resources.cpu_shares, cpu_shares),
        (&mut resources.cpu_quota, cpu_quota),
        (&mut resources.memory_limit_in_bytes, memory_limit),
    ] {
        if let Some(value) = value {
            *field = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_made_only_when_there_is_something_to_set() {
        let mut none = None;
        let envs = [("A".to_owned(), "1".to_owned())].into();
        overwrite(&mut none, &Adjustment { envs, ..Adjustment::default() });
        assert_eq!(none, None);
        overwrite(&mut none, &Adjustment { cpu_quota: Some(-1), ..Adjustment::default() });
        assert_eq!(none, Some(LinuxContainerResources { cpu_quota: -1, ..LinuxContainerResources::default() }));
    }

    #[test]
    fn what_hooks_do_not_set_stays() {
        let before = LinuxContainerResources {
            cpu_period: 100_000,
            cpu_quota: 200_000,
            cpu_shares: 1024,
            memory_limit_in_bytes: 1 << 30,
            cpuset_cpus: "0-7".into(),
            ..LinuxContainerResources::default()
        };
        let mut resources = Some(before.clone());
        let adjustment = Adjustment { cpuset_cpus: Some("0,4".into()), cpu_quota: Some(-1), ..Adjustment::default() };
        overwrite(&mut resources, &adjustment);
        let expected = LinuxContainerResources { cpu_quota: -1, cpuset_cpus: "0,4".into(), ..before };
        assert_eq!(resources, Some(expected));
    }
}
