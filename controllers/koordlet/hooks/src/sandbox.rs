//! Sandboxes: the cgroup of a pod's sandbox, which no status names.

use std::sync::Arc;

use koord_koordlet_framework::Pod;
use koord_koordlet_system::{CgroupPath, Kernel, Runtime};

/// Why the sandbox of a pod is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox of pod {pod} is not known: {} of the cgroups in {cgroup} may be it, not one", candidates.len())]
pub struct SandboxError {
    /// `NAMESPACE/NAME`.
    pub pod: Arc<str>,
    pub cgroup: CgroupPath,
    /// The names that are none of its containers.
    pub candidates: Vec<String>,
}

/// The cgroup of a pod's sandbox: the only one in the pod's that is none of its containers. `None` while the pod has no container with an id.
///
/// # Errors
///
/// No cgroup is left, or several.
pub fn sandbox_cgroup(pod: &Pod, kernel: &dyn Kernel) -> Result<Option<CgroupPath>, SandboxError> {
    let Some(runtime) = pod.containers.iter().find_map(|container| Some(container.id.as_ref()?.runtime)) else {
        return Ok(None);
    };
    let is_container =
        |cgroup: &CgroupPath| pod.containers.iter().any(|container| container.cgroup.as_ref() == Some(cgroup));
    // Beside the sandbox, cri-o has a scope for each process that watches a container.
    let is_of_crio = |name: &str| {
        runtime == Runtime::Crio && name.strip_suffix(".scope").is_some_and(|name| name.starts_with("crio-"))
    };
    let mut candidates = kernel.children(&pod.cgroup);
    candidates.retain(|cgroup| {
        kernel.layout().container_id(cgroup.name()).is_some() && !is_container(cgroup) && !is_of_crio(cgroup.name())
    });
    match candidates.len() {
        1 => Ok(candidates.pop()),
        _ => Err(SandboxError {
            pod: pod.key().into(),
            cgroup: pod.cgroup.clone(),
            candidates: candidates.iter().map(|cgroup| cgroup.name().to_owned()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_framework::read_pod;
    use koord_koordlet_system::{Driver, Layout, MapKernel, Version};

    use super::*;

    #[test]
    fn the_sandbox_is_what_is_left() {
        let layout = Layout::new(Version::V1, Driver::Systemd);
        let found = |id: &str, folders: &[&str]| {
            let text = format!(
                r#"{{"metadata":{{"namespace":"shop","name":"a","uid":"1"}},"spec":{{"containers":[{{"name":"main"}}]}},
                    "status":{{"qosClass":"Burstable","containerStatuses":[{{"name":"main","containerID":"{id}"}}]}}}}"#
            );
            let pod = read_pod(&text, layout).unwrap();
            let mut kernel = MapKernel::new(layout);
            for folder in folders {
                kernel.add(&pod.cgroup.child(folder));
            }
            sandbox_cgroup(&pod, &kernel)
                .map(|cgroup| cgroup.map(|cgroup| cgroup.name().to_owned()))
                .map_err(|error| error.candidates.len())
        };
        let (main, sandbox) = ("cri-containerd-abc.scope", "cri-containerd-def.scope");
        for (id, folders, expected) in [
            ("containerd://abc", &[main, sandbox][..], Ok(Some(sandbox.to_owned()))),
            ("containerd://abc", &[main], Err(0)),
            ("containerd://abc", &[sandbox, "cri-containerd-123.scope"], Err(2)),
            ("", &[main, sandbox], Ok(None)),
            ("cri-o://abc", &["crio-abc.scope", "crio-conmon-abc.scope", "crio-def"], Ok(Some("crio-def".to_owned()))),
        ] {
            assert_eq!(found(id, folders), expected, "{id} {folders:?}");
        }
    }
}
