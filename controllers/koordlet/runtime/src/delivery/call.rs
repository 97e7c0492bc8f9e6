//! Calls of container runtimes: decided by the agent's rules without a lock, and carried out before the runtime is answered.

use std::{path::PathBuf, sync::Arc};

use arc_swap::ArcSwapOption;
use koord_koordlet_hooks::{FailurePolicy, HostDevices, Response, Rules, Stage};
use koord_koordlet_protocols::{
    HandlerError,
    hookserver::{
        ContainerResourceHookRequest, ContainerResourceHookResponse, ContainerStage, HookHandler,
        PodSandboxHookRequest, PodSandboxHookResponse, PodStage,
    },
    nri::{Container, ContainerUpdate, Creation, LinuxResources, NriHandler, PodSandbox},
};
use koord_koordlet_resolver::MountedFiles;
use koord_runtime::clock::SharedClock;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{nri, proxy};
use crate::{
    called::{Called, Done, carry_out},
    exchange::Input,
};

/// Answers runtimes with the rules of an agent.
///
/// The agent holds its own lock for a whole round, so that a container would wait for all samples of the node. Calls take none of it: rules are a snapshot, and
/// files of the pod are written here. The agent learns of it afterwards by an [`Input::Called`], and keeps these files from then on.
pub struct HookCalls {
    rules: Arc<ArcSwapOption<Rules>>,
    devices: HostDevices,
    node: Mutex<NodeFolders>,
    clock: SharedClock,
    inputs: mpsc::UnboundedSender<Input>,
}

/// What calls write into.
pub struct NodeFolders {
    pub files: MountedFiles,
    /// `/sys/fs/resctrl`.
    pub resctrl: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl HookCalls {
    /// Calls that follow these rules. What they did comes to the agent as an input.
    pub fn new(
        rules: Arc<ArcSwapOption<Rules>>,
        node: NodeFolders,
        clock: SharedClock,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Self {
        let devices = HostDevices { sys: node.sys.clone() };
        Self { rules, devices, node: Mutex::new(node), clock, inputs }
    }

    /// Decides by the rules and carries out. `None` before there are rules: then nothing is changed.
    fn call<T>(&self, decide: impl FnOnce(&Rules) -> (T, Response)) -> Option<(T, Response, Arc<Rules>)> {
        let rules = self.rules.load_full()?;
        let (answer, response) = decide(&rules);
        let is_done = response.constraints.0.is_empty() && response.effects.is_empty();
        let done = if is_done {
            Done::default()
        } else {
            let node = &mut *self.node.lock();
            node.files.set_layout(rules.layout());
            carry_out(&response, &mut node.files, &node.resctrl, self.clock.moment())
        };
        // An agent that has ended keeps nothing.
        drop(self.inputs.send(Input::Called(Box::new(Called { response: response.clone(), done }))));
        Some((answer, response, rules))
    }

    fn nri<T: Default>(&self, decide: impl FnOnce(&Rules) -> (T, Response)) -> Result<T, HandlerError> {
        let Some((answer, response, rules)) = self.call(decide) else { return Ok(T::default()) };
        response.nri_error(rules.options()).map_or(Ok(answer), |error| Err(HandlerError(error.to_string())))
    }

    fn nri_sandbox(&self, stage: Stage, pod: PodSandbox) -> Result<(), HandlerError> {
        self.nri(|rules| ((), nri::nri_sandbox(stage, pod, rules)))
    }
}

/// What is answered for a call that has no answer of hooks.
pub(crate) fn failure_policy(policy: FailurePolicy) -> koord_koordlet_protocols::FailurePolicy {
    match policy {
        FailurePolicy::Fail => koord_koordlet_protocols::FailurePolicy::Fail,
        FailurePolicy::Ignore => koord_koordlet_protocols::FailurePolicy::Ignore,
    }
}

impl NriHandler for HookCalls {
    fn run_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        self.nri_sandbox(Stage::PreRunPodSandbox, pod)
    }

    fn remove_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        self.nri_sandbox(Stage::PreRemoveRunPodSandbox, pod)
    }

    fn create_container(&self, pod: PodSandbox, container: Container) -> Result<Creation, HandlerError> {
        self.nri(|rules| {
            let (adjust, response) = nri::nri_create(pod, container, rules, &self.devices);
            (Creation { adjust, update: Vec::new() }, response)
        })
    }

    fn update_container(
        &self,
        pod: PodSandbox,
        container: Container,
        requested: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        self.nri(|rules| {
            let (update, response) = nri::nri_update(pod, container, &requested, rules, &self.devices);
            (update.into_iter().collect(), response)
        })
    }
}

impl HookHandler for HookCalls {
    fn pod_sandbox(
        &self,
        stage: PodStage,
        request: PodSandboxHookRequest,
    ) -> Result<PodSandboxHookResponse, HandlerError> {
        let echo = PodSandboxHookResponse::echo(&request);
        let called = self.call(|rules| proxy::proxy_sandbox(stage, request, rules));
        let Some((answer, response, _)) = called else { return Ok(echo) };
        response.proxy_error().map_or(Ok(answer), |error| Err(HandlerError(error.to_string())))
    }

    fn container(
        &self,
        stage: ContainerStage,
        request: ContainerResourceHookRequest,
    ) -> Result<ContainerResourceHookResponse, HandlerError> {
        let echo = ContainerResourceHookResponse::echo(&request);
        let called = self.call(|rules| proxy::proxy_container(stage, request, rules, &self.devices));
        let Some((answer, response, _)) = called else { return Ok(echo) };
        response.proxy_error().map_or(Ok(answer), |error| Err(HandlerError(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use koord_koordlet_hooks::Options;
    use koord_koordlet_protocols::nri::LinuxPodSandbox;

    use super::{super::testing, *};

    const POD: &str = "kubepods/besteffort/pod1";

    fn pod(annotation: &str) -> PodSandbox {
        let linux = LinuxPodSandbox { cgroup_parent: format!("/{POD}"), ..LinuxPodSandbox::default() };
        PodSandbox {
            namespace: "default".into(),
            name: "a".into(),
            uid: "1".into(),
            labels: [("koordinator.sh/qosClass".to_owned(), "BE".to_owned())].into(),
            annotations: [("node.koordinator.sh/extended-resource-spec".to_owned(), annotation.to_owned())].into(),
            linux: Some(linux),
            ..PodSandbox::default()
        }
    }

    fn limits() -> PodSandbox {
        let amounts = r#"{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"1Gi"}"#;
        pod(&format!(r#"{{"containers":{{"main":{{"requests":{amounts},"limits":{amounts}}}}}}}"#))
    }

    fn container() -> Container {
        Container { name: "main".into(), id: "3f2a".into(), ..Container::default() }
    }

    #[test]
    fn files_of_a_pod_are_written_before_its_sandbox_is_answered() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("cpu/", "cpu.shares", "2"),
            ("cpu/", "cpu.cfs_quota_us", "-1"),
            ("memory/", "memory.limit_in_bytes", "-1"),
        ];
        let path = |hierarchy: &str, file: &str| root.path().join(hierarchy).join(POD).join(file);
        for (hierarchy, file, text) in files {
            fs::create_dir_all(path(hierarchy, "")).unwrap();
            fs::write(path(hierarchy, file), text).unwrap();
        }
        let (calls, mut taken) = testing::calls(root.path(), Some(&Options::default()));
        calls.run_pod_sandbox(limits()).unwrap();
        let texts = files.map(|(hierarchy, file, _)| fs::read_to_string(path(hierarchy, file)).unwrap());
        assert_eq!(texts, ["1536", "150000", "1073741824"]);
        let Some(Input::Called(called)) = taken.try_recv().ok() else { panic!("the agent is not notified") };
        assert_eq!((called.response.constraints.0.len(), called.done.outcome.written.len()), (3, 3));
    }

    #[test]
    fn without_rules_nothing_is_changed() {
        let (calls, mut taken) = testing::calls(std::path::Path::new("/nonexistent"), None);
        assert_eq!(calls.create_container(limits(), container()), Ok(Creation::default()));
        assert_eq!(calls.update_container(limits(), container(), LinuxResources::default()), Ok(Vec::new()));
        assert_eq!(calls.run_pod_sandbox(limits()), Ok(()));
        let request = PodSandboxHookRequest { cgroup_parent: "/a".into(), ..PodSandboxHookRequest::default() };
        let echo = PodSandboxHookResponse::echo(&request);
        assert_eq!(calls.pod_sandbox(PodStage::PreRunPodSandbox, request), Ok(echo));
        assert!(taken.try_recv().is_err());
    }

    #[test]
    fn a_setting_that_cannot_be_read_fails_the_container_by_both_policies_alone() {
        for (failure_policy, plugin_failure_policy, fails) in [
            (FailurePolicy::Ignore, FailurePolicy::Ignore, false),
            (FailurePolicy::Ignore, FailurePolicy::Fail, false),
            (FailurePolicy::Fail, FailurePolicy::Ignore, false),
            (FailurePolicy::Fail, FailurePolicy::Fail, true),
        ] {
            let options = Options { failure_policy, plugin_failure_policy, ..Options::default() };
            let (calls, _) = testing::calls(std::path::Path::new("/nonexistent"), Some(&options));
            let created = calls.create_container(pod("{"), container());
            assert_eq!(created.is_err(), fails, "{created:?}");
            if let Err(HandlerError(text)) = created {
                assert!(text.starts_with("hook BatchResource: pod default/a: "), "{text}");
            }
        }
    }
}
