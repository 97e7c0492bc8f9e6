//! Requests of NRI and the answers of hooks in its words.

use koord_koordlet_hooks::{
    Adjustment, DeviceReader, Response, Rules, RuntimeContainer, RuntimePod, Stage, on_container, on_sandbox,
};
use koord_koordlet_protocols::nri::{
    Container, ContainerAdjustment, ContainerUpdate, KeyValue, LinuxContainerAdjustment, LinuxCpu, LinuxDevice,
    LinuxMemory, LinuxResources, Mount, PodSandbox,
};

/// The pod of a request, as hooks know it.
pub fn nri_pod(pod: PodSandbox) -> RuntimePod {
    RuntimePod {
        namespace: pod.namespace,
        name: pod.name,
        uid: pod.uid,
        labels: pod.labels,
        annotations: pod.annotations,
        cgroup_parent: pod.linux.map(|linux| linux.cgroup_parent).unwrap_or_default(),
    }
}

/// The container of a request, as hooks know it. The quota is the one of `requested` where it has one, else that of the container.
pub fn nri_container(container: Container, requested: Option<&LinuxResources>) -> RuntimeContainer {
    let quota = |resources: &LinuxResources| Some(resources.cpu.as_ref()?.quota?.value);
    let of_container = container.linux.as_ref().and_then(|linux| linux.resources.as_ref()).and_then(quota);
    let cpu_quota = requested.and_then(quota).or(of_container).unwrap_or_default();
    RuntimeContainer { name: container.name, id: container.id, cpu_quota }
}

/// Answers a call for a pod's sandbox: `PreRunPodSandbox`, or `PreRemoveRunPodSandbox` when the sandbox is removed. The answer itself is empty.
pub fn nri_sandbox(stage: Stage, pod: PodSandbox, rules: &Rules) -> Response {
    on_sandbox(stage, &nri_pod(pod), rules)
}

/// Answers that a container is about to be created; `None` when nothing of it is changed.
pub fn nri_create(
    pod: PodSandbox,
    container: Container,
    rules: &Rules,
    devices: &dyn DeviceReader,
) -> (Option<ContainerAdjustment>, Response) {
    let response =
        on_container(Stage::PreCreateContainer, &nri_pod(pod), &nri_container(container, None), rules, devices);
    (container_adjustment(&response.adjustment), response)
}

/// Answers that a container is about to get the resources `requested`; `None` when nothing of them is changed.
pub fn nri_update(
    pod: PodSandbox,
    container: Container,
    requested: &LinuxResources,
    rules: &Rules,
    devices: &dyn DeviceReader,
) -> (Option<ContainerUpdate>, Response) {
    let container = nri_container(container, Some(requested));
    let response = on_container(Stage::PreUpdateContainerResources, &nri_pod(pod), &container, rules, devices);
    (container_update(&container.id, &response.adjustment), response)
}

/// What hooks change of a container that is being created; `None` when nothing.
pub fn container_adjustment(adjustment: &Adjustment) -> Option<ContainerAdjustment> {
    if adjustment.is_empty() {
        return None;
    }
    let device = |device: &koord_koordlet_hooks::Device| LinuxDevice {
        path: device.path.clone(),
        r#type: device.kind.to_owned(),
        major: device.major.into(),
        minor: device.minor.into(),
        file_mode: Some(device.file_mode.into()),
        ..LinuxDevice::default()
    };
    let mount = |mount: &koord_koordlet_hooks::Mount| Mount {
        destination: mount.destination.clone(),
        r#type: mount.kind.to_owned(),
        source: mount.source.clone(),
        options: mount.options.iter().map(|option| (*option).to_owned()).collect(),
    };
    let linux = LinuxContainerAdjustment {
        devices: adjustment.devices.iter().map(device).collect(),
        resources: resources(adjustment),
        ..LinuxContainerAdjustment::default()
    };
    Some(ContainerAdjustment {
        mounts: adjustment.mounts.iter().map(mount).collect(),
        env: adjustment.envs.iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect(),
        linux: (linux != LinuxContainerAdjustment::default()).then_some(linux),
        ..ContainerAdjustment::default()
    })
}

/// What hooks change of the resources of a container that exists; `None` when nothing.
pub fn container_update(container: &str, adjustment: &Adjustment) -> Option<ContainerUpdate> {
    // Environment, mounts and devices are those of its creation.
    resources(adjustment).map(|resources| ContainerUpdate::resources(container, resources))
}

fn resources(adjustment: &Adjustment) -> Option<LinuxResources> {
    let cpu = LinuxCpu {
        // The kernel has no weight below 0.
        shares: adjustment.cpu_shares.and_then(|shares| u64::try_from(shares).ok()).map(Into::into),
        quota: adjustment.cpu_quota.map(Into::into),
        cpus: adjustment.cpuset_cpus.clone().unwrap_or_default(),
        ..LinuxCpu::default()
    };
    let resources = LinuxResources {
        cpu: (cpu != LinuxCpu::default()).then_some(cpu),
        memory: adjustment
            .memory_limit
            .map(|bytes| LinuxMemory { limit: Some(bytes.into()), ..LinuxMemory::default() }),
        rdt_class: adjustment.rdt_class.clone().map(Into::into),
        ..LinuxResources::default()
    };
    (resources != LinuxResources::default()).then_some(resources)
}

#[cfg(test)]
mod tests {
    use koord_koordlet_protocols::nri::{LinuxContainer, LinuxPodSandbox, OptionalI64};

    use super::*;

    fn quota(value: i64) -> LinuxResources {
        let cpu = LinuxCpu { quota: Some(OptionalI64 { value }), ..LinuxCpu::default() };
        LinuxResources { cpu: Some(cpu), ..LinuxResources::default() }
    }

    #[test]
    fn the_quota_is_the_requested_one_else_that_of_the_container() {
        let container = |resources| Container {
            name: "main".into(),
            id: "3f2a".into(),
            linux: Some(LinuxContainer { resources, ..LinuxContainer::default() }),
            ..Container::default()
        };
        let cpu_quota = |resources, requested: Option<LinuxResources>| {
            nri_container(container(resources), requested.as_ref()).cpu_quota
        };
        assert_eq!(cpu_quota(Some(quota(200_000)), None), 200_000);
        assert_eq!(cpu_quota(Some(quota(200_000)), Some(quota(400_000))), 400_000);
        assert_eq!(cpu_quota(Some(quota(200_000)), Some(LinuxResources::default())), 200_000);
        assert_eq!(cpu_quota(None, None), 0);
        assert_eq!(nri_container(Container::default(), None), RuntimeContainer::default());
    }

    #[test]
    fn the_cgroup_of_a_pod_is_the_one_above_its_sandbox() {
        let linux = LinuxPodSandbox { cgroup_parent: "/kubepods/pod1".into(), ..LinuxPodSandbox::default() };
        let pod = PodSandbox { uid: "1".into(), linux: Some(linux), ..PodSandbox::default() };
        assert_eq!(nri_pod(pod).cgroup_parent, "/kubepods/pod1");
        assert_eq!(nri_pod(PodSandbox::default()), RuntimePod::default());
    }

    #[test]
    fn resources_become_an_update_with_the_id_of_the_container() {
        let adjustment = Adjustment {
            cpu_shares: Some(1536),
            cpu_quota: Some(-1),
            memory_limit: Some(1 << 30),
            ..Adjustment::default()
        };
        let update = container_update("3f2a", &adjustment).unwrap();
        assert_eq!(update.container_id, "3f2a");
        let resources = update.linux.unwrap().resources.unwrap();
        let cpu = resources.cpu.unwrap();
        assert_eq!((cpu.shares.unwrap().value, cpu.quota.unwrap().value, cpu.cpus.as_str()), (1536, -1, ""));
        assert_eq!(resources.memory.unwrap().limit.unwrap().value, 1 << 30);
        assert_eq!(resources.rdt_class, None);
    }

    #[test]
    fn what_changes_nothing_is_no_update_and_no_adjustment() {
        assert_eq!(container_update("3f2a", &Adjustment::default()), None);
        assert_eq!(container_adjustment(&Adjustment::default()), None);
        // No CPUs are no value: the runtime keeps its own.
        let no_cpus = Adjustment { cpuset_cpus: Some(String::new()), ..Adjustment::default() };
        assert_eq!(container_update("3f2a", &no_cpus), None);
        assert_eq!(container_adjustment(&no_cpus), Some(ContainerAdjustment::default()));
    }

    #[test]
    fn environment_mounts_devices_and_class_are_of_the_creation() {
        let adjustment = Adjustment {
            rdt_class: Some("koordlet-1".into()),
            envs: [("NVIDIA_VISIBLE_DEVICES".to_owned(), "1,0".to_owned())].into(),
            mounts: vec![koord_koordlet_hooks::Mount {
                source: "/lib".into(),
                destination: "/lib".into(),
                kind: "bind",
                options: &["rbind"],
            }],
            devices: vec![koord_koordlet_hooks::Device {
                path: "/dev/infiniband/uverbs0".into(),
                kind: "c",
                major: 231,
                minor: 192,
                file_mode: 0o666,
            }],
            ..Adjustment::default()
        };
        let created = container_adjustment(&adjustment).unwrap();
        assert_eq!(created.env, [KeyValue { key: "NVIDIA_VISIBLE_DEVICES".into(), value: "1,0".into() }]);
        assert_eq!(
            (created.mounts[0].r#type.as_str(), created.mounts[0].options.join(",").as_str()),
            ("bind", "rbind")
        );
        let linux = created.linux.unwrap();
        let device = &linux.devices[0];
        assert_eq!((device.r#type.as_str(), device.major, device.minor), ("c", 231, 192));
        assert_eq!(device.file_mode.unwrap().value, 0o666);
        assert_eq!(linux.resources.unwrap().rdt_class.unwrap().value, "koordlet-1");
    }
}
