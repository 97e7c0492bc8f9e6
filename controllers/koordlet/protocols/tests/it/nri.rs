//! Calls of a runtime and their answers.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    nri::{
        ConnectionState, Container, ContainerAdjustment, ContainerUpdate, Creation, LinuxContainerAdjustment, LinuxCpu,
        LinuxResources, PodSandbox, UpdateError,
        message::service::{
            ConfigureRequest, ContainerRequest, CreateContainerResponse, PodSandboxRequest, StateChangeEvent,
            SynchronizeRequest, SynchronizeResponse, UpdateContainerRequest, UpdateContainerResponse,
            UpdateContainersRequest, UpdateContainersResponse,
        },
    },
    ttrpc::{Status, code},
};
use prost::Message as _;
use tokio::io::DuplexStream;

use crate::{
    fake_runtime::FakeRuntime,
    recorder::{Recorder, Running, options},
};

fn pod(name: &str) -> PodSandbox {
    PodSandbox { name: name.into(), ..Default::default() }
}

fn container(name: &str, id: &str) -> Container {
    Container { name: name.into(), id: id.into(), ..Default::default() }
}

fn cpus(cpus: &str) -> LinuxResources {
    LinuxResources { cpu: Some(LinuxCpu { cpus: cpus.into(), ..Default::default() }), ..Default::default() }
}

fn create(name: &str) -> ContainerRequest {
    ContainerRequest { pod: Some(pod("p")), container: Some(container(name, "c1")) }
}

async fn greeted(running: &Running) -> FakeRuntime<DuplexStream> {
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.greet().await;
    runtime
}

#[tokio::test]
async fn a_plugin_registers_is_configured_and_synchronized() {
    let handler = Arc::new(Recorder::default());
    let running = Running::new(options(), handler.clone());
    let mut runtime = FakeRuntime::new(running.connect().await);
    let (registration, configured) = runtime.greet().await;
    assert_eq!((registration.plugin_name.as_str(), registration.plugin_idx.as_str()), ("koordlet_nri", "00"));
    assert_eq!(configured.events, 141);
    let ConnectionState::Connected(info) = running.until(ConnectionState::is_connected).await else { panic!() };
    assert_eq!(
        (info.name.as_str(), info.version.as_str(), info.nri_version.as_str()),
        ("containerd", "2.1.0", "v0.12.0")
    );
    assert_eq!(handler.calls(), ["synchronize 0 0"]);
}

#[tokio::test]
async fn the_configuration_of_the_runtime_chooses_the_events() {
    let running = Running::new(options(), Arc::new(Recorder::default()));
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.accept_registration().await;
    let configure =
        ConfigureRequest { config: "events: [CreateContainer, StopContainer]".into(), ..Default::default() };
    let configured: koord_koordlet_protocols::nri::message::service::ConfigureResponse =
        runtime.call("Configure", &configure).await.unwrap();
    assert_eq!(configured.events, 0x208);
}

#[tokio::test]
async fn a_synchronization_in_parts_is_one_call_of_the_handler() {
    let handler = Arc::new(Recorder::default());
    let running = Running::new(options(), handler.clone());
    let mut runtime = greeted(&running).await;
    for (part, more) in [(0, true), (1, true), (2, false)] {
        let pods = (0..100).map(|pod| PodSandbox { id: format!("{part}-{pod}"), ..Default::default() }).collect();
        let containers = (0..200).map(|of| container("main", &format!("{part}-{of}"))).collect();
        let request = SynchronizeRequest { pods, containers, more };
        let answer: SynchronizeResponse = runtime.call("Synchronize", &request).await.unwrap();
        assert_eq!(answer, SynchronizeResponse { update: vec![], more });
    }
    assert_eq!(handler.calls(), ["synchronize 0 0", "synchronize 300 600"]);
}

#[tokio::test]
async fn a_container_is_created_with_the_adjustment_of_the_handler() {
    let adjust = ContainerAdjustment {
        linux: Some(LinuxContainerAdjustment { resources: Some(cpus("0,4")), ..Default::default() }),
        ..Default::default()
    };
    let creation = Creation { adjust: Some(adjust.clone()), update: vec![ContainerUpdate::default()] };
    let handler = Recorder { create: Box::new(move |_| Ok(creation.clone())), ..Default::default() };
    let running = Running::new(options(), Arc::new(handler));
    let mut runtime = greeted(&running).await;
    let answer: CreateContainerResponse = runtime.call("CreateContainer", &create("main")).await.unwrap();
    assert_eq!(answer, CreateContainerResponse { adjust: Some(adjust), update: vec![] }, "an empty update is not sent");
}

#[tokio::test]
async fn an_answer_larger_than_a_frame_arrives_whole() {
    let adjust = ContainerAdjustment { args: vec!["x".repeat(1000); 300], ..Default::default() };
    let creation = Creation { adjust: Some(adjust.clone()), update: vec![] };
    let handler = Recorder { create: Box::new(move |_| Ok(creation.clone())), ..Default::default() };
    let running = Running::new(options(), Arc::new(handler));
    let mut runtime = greeted(&running).await;
    let answer: CreateContainerResponse = runtime.call("CreateContainer", &create("main")).await.unwrap();
    assert_eq!(answer.adjust, Some(adjust));
}

#[tokio::test]
async fn updates_carry_the_container_id_and_are_never_empty() {
    let update = |requested: &LinuxResources| {
        let own = ContainerUpdate::resources("", requested.clone());
        let other = ContainerUpdate::resources("c2", cpus("3"));
        Ok(vec![own, ContainerUpdate::resources("", LinuxResources::default()), other])
    };
    let running = Running::new(options(), Arc::new(Recorder { update: Box::new(update), ..Default::default() }));
    let mut runtime = greeted(&running).await;
    let request = |linux_resources| UpdateContainerRequest {
        pod: Some(pod("p")),
        container: Some(container("main", "c1")),
        linux_resources,
    };
    let answer: UpdateContainerResponse = runtime.call("UpdateContainer", &request(Some(cpus("1")))).await.unwrap();
    let expected = vec![ContainerUpdate::resources("c1", cpus("1")), ContainerUpdate::resources("c2", cpus("3"))];
    assert_eq!(answer.update, expected);
    let answer: UpdateContainerResponse = runtime.call("UpdateContainer", &request(None)).await.unwrap();
    assert_eq!(answer.update, [ContainerUpdate::resources("c2", cpus("3"))]);
}

#[tokio::test]
async fn pods_run_and_are_removed_by_method_and_by_state_change() {
    let handler = Arc::new(Recorder::default());
    let running = Running::new(options(), handler.clone());
    let mut runtime = greeted(&running).await;
    for method in ["RunPodSandbox", "RemovePodSandbox"] {
        let request = PodSandboxRequest { pod: Some(pod("new")) };
        assert_eq!(runtime.call_bytes(method, request.encode_to_vec()).await, Ok("".into()));
    }
    let change = |event, container| StateChangeEvent { event, pod: Some(pod("old")), container };
    for event in [change(1, None), change(3, None), change(10, Some(container("main", "c1"))), change(99, None)] {
        assert_eq!(runtime.call_bytes("StateChange", event.encode_to_vec()).await, Ok("".into()));
    }
    assert_eq!(runtime.call_bytes("Shutdown", vec![]).await, Ok("".into()));
    let calls =
        ["synchronize 0 0", "run new", "remove new", "run old", "remove old", "StopContainer old/main", "shutdown"];
    assert_eq!(handler.calls(), calls);
}

#[tokio::test]
async fn an_error_of_the_handler_fails_its_container_alone() {
    let create_or_not = |container: &Container| match container.name.as_str() {
        "bad" => Err(HandlerError("the annotation cannot be read".into())),
        _ => Ok(Creation::default()),
    };
    let running = Running::new(options(), Arc::new(Recorder { create: Box::new(create_or_not), ..Default::default() }));
    let mut runtime = greeted(&running).await;
    let answer: Result<CreateContainerResponse, Status> = runtime.call("CreateContainer", &create("bad")).await;
    assert_eq!(answer, Err(Status::new(code::UNKNOWN, "the annotation cannot be read")));
    let answer: Result<CreateContainerResponse, Status> = runtime.call("CreateContainer", &create("good")).await;
    assert_eq!(answer, Ok(CreateContainerResponse::default()));
}

#[tokio::test]
async fn a_panic_fails_its_container_by_the_policy() {
    for (failure_policy, expected) in [(FailurePolicy::Ignore, None), (FailurePolicy::Fail, Some(code::INTERNAL))] {
        let handler = Recorder { create: Box::new(|_| panic!("a defect of a hook")), ..Default::default() };
        let running =
            Running::new(koord_koordlet_protocols::nri::NriOptions { failure_policy, ..options() }, Arc::new(handler));
        let mut runtime = greeted(&running).await;
        let answer = runtime.call_bytes("CreateContainer", create("main").encode_to_vec()).await;
        assert_eq!(answer.err().map(|status| status.code), expected);
        assert_eq!(runtime.call_bytes("Shutdown", vec![]).await, Ok("".into()), "the connection stands");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_decoded_fails_by_the_policy() {
    let expected = [(FailurePolicy::Ignore, None), (FailurePolicy::Fail, Some(code::INVALID_ARGUMENT))];
    for (failure_policy, expected) in expected {
        let options = koord_koordlet_protocols::nri::NriOptions { failure_policy, ..options() };
        let running = Running::new(options, Arc::new(Recorder::default()));
        let mut runtime = greeted(&running).await;
        let answer = runtime.call_bytes("CreateContainer", vec![0xff; 10]).await;
        assert_eq!(answer.err().map(|status| status.code), expected);
    }
}

#[tokio::test]
async fn a_slow_handler_is_answered_for_and_others_are_not_kept_waiting() {
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let slow = move |container: &Container| {
        if container.name == "slow" {
            // Until the test ends.
            let _ = released.lock().unwrap().recv();
        }
        Ok(Creation::default())
    };
    let options = koord_koordlet_protocols::nri::NriOptions {
        call_timeout: Duration::from_millis(20),
        failure_policy: FailurePolicy::Fail,
        calls_max: 2,
        ..options()
    };
    let running = Running::new(options, Arc::new(Recorder { create: Box::new(slow), ..Default::default() }));
    let mut runtime = greeted(&running).await;
    let code_of = |answer: Result<bytes::Bytes, Status>| answer.err().map(|status| status.code);
    let answer = runtime.call_bytes("CreateContainer", create("slow").encode_to_vec()).await;
    assert_eq!(code_of(answer), Some(code::DEADLINE_EXCEEDED));
    let answer = runtime.call_bytes("CreateContainer", create("fast").encode_to_vec()).await;
    assert_eq!(code_of(answer), None);
    let answer = runtime.call_bytes("CreateContainer", create("slow").encode_to_vec()).await;
    assert_eq!(code_of(answer), Some(code::DEADLINE_EXCEEDED));
    let answer = runtime.call_bytes("CreateContainer", create("fast").encode_to_vec()).await;
    assert_eq!(code_of(answer), Some(code::RESOURCE_EXHAUSTED), "both calls that are allowed still run");
    drop(release);
}

#[tokio::test]
async fn containers_are_updated_outside_of_events() {
    let running = Running::new(options(), Arc::new(Recorder::default()));
    let updates = || vec![ContainerUpdate::resources("c1", cpus("1")), ContainerUpdate::resources("c2", cpus("2"))];
    let second = Duration::from_secs(1);
    assert_eq!(running.handle.update_containers(updates(), second).await, Err(UpdateError::NotConnected));
    let mut runtime = greeted(&running).await;
    running.until(ConnectionState::is_connected).await;
    let handle = running.handle.clone();
    let answer = tokio::spawn(async move { handle.update_containers(updates(), second).await });
    let (stream, request) = runtime.next_request().await;
    assert_eq!(request.method, "UpdateContainers");
    assert_eq!(UpdateContainersRequest::decode(request.payload).unwrap().update, updates());
    let failed = vec![ContainerUpdate::resources("c2", cpus("2"))];
    let response = UpdateContainersResponse { failed: failed.clone() };
    runtime.answer(stream, Ok(response.encode_to_vec().into())).await;
    assert_eq!(answer.await.unwrap(), Ok(failed));
    assert_eq!(running.handle.update_containers(vec![ContainerUpdate::default()], second).await, Ok(vec![]));

    let handle = running.handle.clone();
    let answer = tokio::spawn(async move { handle.update_containers(updates(), second).await });
    runtime.next_request().await;
    drop(runtime);
    assert_eq!(answer.await.unwrap(), Err(UpdateError::NotConnected));
}
