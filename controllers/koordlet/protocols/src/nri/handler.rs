//! What the user of the protocol implements.

use super::{
    event::Event,
    message::{
        adjustment::{ContainerAdjustment, ContainerUpdate},
        object::{Container, PodSandbox},
        resources::LinuxResources,
    },
};
use crate::HandlerError;

/// What is changed when a container is created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creation {
    /// Changes of the container.
    pub adjust: Option<ContainerAdjustment>,
    /// Changes of containers that exist.
    pub update: Vec<ContainerUpdate>,
}

/// Answers the events of the runtime. Calls come on threads for blocking work, so that files may be written; several may run at a
/// time. The runtime waits for the answer before it goes on with the pod or container, and disconnects a plugin that takes longer
/// than two seconds; [`super::NriOptions::call_timeout`] ends a call before. An error that is returned fails the pod or container.
pub trait NriHandler: Send + Sync + 'static {
    /// The pods and containers that exist, once after each connection. Returns updates of containers.
    fn synchronize(
        &self,
        pods: Vec<PodSandbox>,
        containers: Vec<Container>,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        let _ = (pods, containers);
        Ok(Vec::new())
    }

    /// A pod's sandbox runs; its cgroup exists and no container does.
    fn run_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError>;

    /// A pod is gone.
    fn remove_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError>;

    /// A container is about to be created; its cgroup does not exist.
    fn create_container(&self, pod: PodSandbox, container: Container) -> Result<Creation, HandlerError>;

    /// A container is about to get the resources `requested`. An update without a container id is one of this container; one that
    /// changes nothing is not sent.
    fn update_container(
        &self,
        pod: PodSandbox,
        container: Container,
        requested: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError>;

    /// Another event, where the events of [`super::NriOptions`] or the configuration in the runtime ask for it.
    fn lifecycle(&self, event: Event, pod: PodSandbox, container: Option<Container>) -> Result<(), HandlerError> {
        let _ = (event, pod, container);
        Ok(())
    }

    /// The runtime disconnects this plugin; it is not given time to finish work.
    fn shutdown(&self) {}
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Changes nothing.
    pub(crate) struct Nothing;

    impl NriHandler for Nothing {
        fn run_pod_sandbox(&self, _: PodSandbox) -> Result<(), HandlerError> {
            Ok(())
        }

        fn remove_pod_sandbox(&self, _: PodSandbox) -> Result<(), HandlerError> {
            Ok(())
        }

        fn create_container(&self, _: PodSandbox, _: Container) -> Result<Creation, HandlerError> {
            Ok(Creation::default())
        }

        fn update_container(
            &self,
            _: PodSandbox,
            _: Container,
            _: LinuxResources,
        ) -> Result<Vec<ContainerUpdate>, HandlerError> {
            Ok(Vec::new())
        }
    }
}
