//! The protocols without connections.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use koord_koordlet_protocols::{
    hookserver::{self, CallError, PodSandboxHookRequest, PodSandboxHookResponse},
    mux::{self, PAYLOAD_BYTES_MAX, PLUGIN_SERVICE},
    nri::{
        Creation, EventMask, Exchange, NriOptions, PodSandbox,
        message::service::{
            ConfigureRequest, ConfigureResponse, PLUGIN, StateChangeEvent, SynchronizeRequest, SynchronizeResponse,
        },
    },
    ttrpc::{self, Kind, Request, Status, code},
};
use prost::Message as _;

use crate::{
    hookserver::Hooks,
    recorder::{Recorder, options},
};

#[test]
fn a_plugin_is_registered_configured_and_called_without_a_socket() {
    let handler = Arc::new(Recorder::default());
    let options = NriOptions { plugin_name: "other".into(), plugin_index: "07".into(), ..options() };
    let mut exchange = Exchange::new(options, handler.clone());
    let registration = exchange.registration();
    assert_eq!((registration.plugin_name.as_str(), registration.plugin_idx.as_str()), ("other", "07"));
    let configure = ConfigureRequest { runtime_name: "containerd".into(), ..Default::default() };
    let configured = exchange.call("Configure", configure.encode_to_vec().into()).unwrap();
    assert_eq!(ConfigureResponse::decode(configured).unwrap().events, 141);
    assert_eq!(exchange.runtime().unwrap().name, "containerd");
    assert_eq!(exchange.events(), EventMask::KOORDLET);
    let more = SynchronizeRequest { pods: vec![PodSandbox::default()], containers: vec![], more: true };
    let answer = exchange.call("Synchronize", more.encode_to_vec().into()).unwrap();
    assert!(SynchronizeResponse::decode(answer).unwrap().more);
    assert_eq!(exchange.call("Synchronize", Bytes::new()), Ok(Bytes::new()));
    let event = StateChangeEvent {
        event: 1,
        pod: Some(PodSandbox { name: "p".into(), ..Default::default() }),
        container: None,
    };
    assert_eq!(exchange.call("StateChange", event.encode_to_vec().into()), Ok(Bytes::new()));
    assert_eq!(exchange.call("Ping", Bytes::new()).unwrap_err().code, code::UNIMPLEMENTED);
    assert_eq!(handler.calls(), ["synchronize 1 0", "run p"]);
}

#[test]
fn an_error_of_the_handler_has_the_code_that_the_original_gives() {
    let refuses = |_: &_| Err(koord_koordlet_protocols::HandlerError("no".into()));
    let handler = Recorder { create: Box::new(refuses), ..Default::default() };
    let mut exchange = Exchange::new(options(), Arc::new(handler));
    assert_eq!(exchange.call("CreateContainer", Bytes::new()), Err(Status::new(2, "no")));
}

#[test]
fn bytes_of_a_socket_are_answered_with_bytes() {
    let handler = Recorder { create: Box::new(|_| Ok(Creation::default())), ..Default::default() };
    let mut exchange = Exchange::new(options(), Arc::new(handler));
    let request =
        Request { service: PLUGIN.into(), method: "CreateContainer".into(), payload: Bytes::new(), timeout_nano: 0 };
    let mut bytes = BytesMut::new();
    mux::encode(PLUGIN_SERVICE, &ttrpc::encode(1, Kind::Request, &request).unwrap(), &mut bytes);
    let (first, second) = bytes.split_at(20);
    assert_eq!(exchange.receive(first), Ok(Bytes::new()));
    let answer = exchange.receive(second).unwrap();
    assert_eq!(answer, &b"\0\0\0\x01\0\0\0\x0a\0\0\0\0\0\0\0\x01\x02\0"[..], "an empty response");
    let too_long = u32::try_from(PAYLOAD_BYTES_MAX).unwrap() + 1;
    assert!(exchange.receive(&[&[0, 0, 0, 1][..], &too_long.to_be_bytes()].concat()).is_err());
}

#[test]
fn a_hook_is_called_without_a_server() {
    let request = PodSandboxHookRequest { cgroup_parent: "/p".into(), ..Default::default() };
    let answer = hookserver::answer(&Hooks, "PreRunPodSandboxHook", &request.encode_to_vec()).unwrap();
    assert_eq!(PodSandboxHookResponse::decode(&answer[..]).unwrap().cgroup_parent, "/p");
    let unknown = hookserver::answer(&Hooks, "PreRunPodSandbox", b"").unwrap_err();
    assert_eq!(
        (unknown.code_name(), &unknown),
        ("UNIMPLEMENTED", &CallError::UnknownMethod("PreRunPodSandbox".into()))
    );
    assert_eq!(hookserver::answer(&Hooks, "PreCreateContainerHook", b"\xff").unwrap_err().code_name(), "INTERNAL");
}
