//! What a collector keeps for each pod and container from round to round: descriptors, and counters of the sample before.

use std::{collections::BTreeMap, sync::Arc};

use koord_koordlet_framework::{Container, Pod};
use koord_koordlet_system::CgroupPath;

/// The pods that a collector reads, in the order in which they were given, each with `P` and its containers with `C`.
#[derive(Debug)]
pub(crate) struct KeptPods<P, C> {
    pods: Vec<KeptPod<P, C>>,
}

#[derive(Debug)]
pub(crate) struct KeptPod<P, C> {
    pub(crate) pod: Arc<Pod>,
    pub(crate) kept: P,
    pub(crate) containers: Vec<KeptContainer<C>>,
}

#[derive(Debug)]
pub(crate) struct KeptContainer<C> {
    /// The id with the runtime, by which its samples are stored.
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) kept: C,
}

impl<P, C> Default for KeptPods<P, C> {
    fn default() -> Self {
        Self { pods: Vec::new() }
    }
}

impl<P, C> KeptPods<P, C> {
    /// Takes the pods that there are now. What is kept for a pod, or a container, stays while it has the same cgroup.
    pub(crate) fn set<'a>(
        &mut self,
        pods: impl IntoIterator<Item = &'a Arc<Pod>>,
        wants: impl Fn(&Pod, &Container) -> bool,
        mut of_pod: impl FnMut(&CgroupPath) -> P,
        mut of_container: impl FnMut(&CgroupPath) -> C,
    ) {
        let old = self.pods.drain(..).map(|pod| (Arc::clone(&pod.pod.uid), pod));
        let mut old: BTreeMap<Arc<str>, KeptPod<P, C>> = old.collect();
        for pod in pods {
            let mut kept = match old.remove(&pod.uid) {
                Some(kept) if kept.pod.cgroup == pod.cgroup => KeptPod { pod: Arc::clone(pod), ..kept },
                _ => KeptPod { pod: Arc::clone(pod), kept: of_pod(&pod.cgroup), containers: Vec::new() },
            };
            kept.take_containers(&wants, &mut of_container);
            self.pods.push(kept);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeptPod<P, C>> {
        self.pods.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut KeptPod<P, C>> {
        self.pods.iter_mut()
    }
}

impl<P, C> KeptPod<P, C> {
    fn take_containers(
        &mut self,
        wants: &impl Fn(&Pod, &Container) -> bool,
        of_container: &mut impl FnMut(&CgroupPath) -> C,
    ) {
        let mut old = std::mem::take(&mut self.containers);
        // Containers of virtual machines have no cgroups on the node.
        let is_here = !self.pod.is_virtual_machine();
        for container in self.pod.regular_containers().filter(|container| is_here && wants(&self.pod, container)) {
            let (Some(id), Some(cgroup)) = (&container.id, &container.cgroup) else { continue };
            let is_same = |kept: &KeptContainer<C>| {
                kept.id.strip_prefix(id.runtime.as_str()).and_then(|rest| rest.strip_prefix("://")) == Some(&*id.id)
            };
            self.containers.push(match old.iter().position(is_same) {
                Some(at) => old.swap_remove(at),
                None => KeptContainer {
                    id: id.to_string().into(),
                    name: Arc::clone(&container.name),
                    kept: of_container(cgroup),
                },
            });
        }
    }
}
