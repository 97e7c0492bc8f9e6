//! What the peers of the node agent send: container runtime, runtime proxy, kubelet.

use std::sync::{Arc, LazyLock};

use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    backoff::Backoff,
    hookserver::{
        self, ContainerResourceHookRequest, ContainerResourceHookResponse, ContainerStage, HookHandler,
        PodSandboxHookRequest, PodSandboxHookResponse, PodStage,
    },
    nri::{
        Container, ContainerUpdate, Creation, Event, EventMask, Exchange, LinuxResources, NriHandler, NriOptions,
        PodSandbox,
    },
    podresources::{ContainerDevices, add_devices},
};

use crate::{Span, in_time};

/// Changes nothing, or what it was asked for.
struct Agent;

impl NriHandler for Agent {
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
        requested: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        Ok(vec![ContainerUpdate::resources("", requested)])
    }
}

impl HookHandler for Agent {
    fn pod_sandbox(&self, _: PodStage, request: PodSandboxHookRequest) -> Result<PodSandboxHookResponse, HandlerError> {
        Ok(PodSandboxHookResponse::echo(&request))
    }

    fn container(
        &self,
        _: ContainerStage,
        request: ContainerResourceHookRequest,
    ) -> Result<ContainerResourceHookResponse, HandlerError> {
        Ok(ContainerResourceHookResponse::echo(&request))
    }
}

static METHODS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let events = Event::ALL.into_iter().map(Event::as_str);
    ["Configure", "Synchronize", "StateChange", "Shutdown"].into_iter().chain(events).collect()
});

fn exchange() -> Exchange {
    let second = Span::from_secs(1);
    let options = NriOptions {
        socket: "/run/nri/nri.sock".into(),
        plugin_name: "koordlet_nri".into(),
        plugin_index: "00".into(),
        events: EventMask::KOORDLET,
        registration_timeout: second,
        call_timeout: second,
        calls_max: 1,
        synchronize_objects_max: 1000,
        established_after: second,
        backoff: Backoff { first: second, factor: 2.0, cap: second, jitter: 0.0 },
        failure_policy: FailurePolicy::Fail,
    };
    Exchange::new(options, Arc::new(Agent))
}

/// NRI answers the same however its frames are cut; hooks echo what can be read; an answer of the kubelet stays as it is where no device is added, and one
/// with devices can be read again.
pub fn node_protocols(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    in_time(|| match usize::from(*choice) {
        0 => {
            let (first, second) = data.split_at(data.len() / 2);
            let mut cut = exchange();
            let in_parts = cut.receive(first).and_then(|begin| Ok([begin, cut.receive(second)?].concat()));
            if let (Ok(in_parts), Ok(whole)) = (in_parts, exchange().receive(data)) {
                assert_eq!(in_parts, whole);
            }
        }
        1 => {
            let answer = data.to_vec().into();
            let Ok(same) = add_devices(&answer, |_| Vec::new()) else { return };
            assert_eq!(same, answer);
            let gpu = || ContainerDevices { resource_name: "nvidia.com/gpu".into(), device_ids: vec!["0".into()] };
            if let Ok(with) = add_devices(&answer, |_| vec![gpu()]) {
                assert_eq!(add_devices(&with, |_| Vec::new()), Ok(with));
            }
        }
        2 => {
            if let Ok(answer) = hookserver::answer(&Agent, "PreRunPodSandboxHook", data) {
                assert!(answer.len() <= 4 * data.len(), "{answer:?}");
            }
            let _ = hookserver::answer(&Agent, "PreCreateContainerHook", data);
        }
        choice => {
            if let Some(method) = METHODS.get(choice - 3) {
                let _ = exchange().call(method, data.to_vec().into());
            }
        }
    });
}
