//! The hook server, called as koord-runtime-proxy calls it.

use std::{future::pending, path::Path, sync::Arc, time::Duration};

use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    hookserver::{
        ContainerResourceHookRequest, ContainerResourceHookResponse, ContainerStage, HookHandler, HookOptions,
        HookServer, LinuxContainerResources, PodSandboxHookRequest, PodSandboxHookResponse, PodSandboxMetadata,
        PodStage, SERVICE,
    },
    listen::{ListenAddress, ListenError},
};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::{v1, v1alpha};

use crate::fake_grpc::{call, connect};

/// Pods keep what they have; containers get CPU 0-1, or what their name asks for.
pub(crate) struct Hooks;

impl HookHandler for Hooks {
    fn pod_sandbox(
        &self,
        stage: PodStage,
        request: PodSandboxHookRequest,
    ) -> Result<PodSandboxHookResponse, HandlerError> {
        let mut answer = PodSandboxHookResponse::echo(&request);
        answer.annotations.insert("stage".into(), stage.to_string());
        Ok(answer)
    }

    fn container(
        &self,
        stage: ContainerStage,
        request: ContainerResourceHookRequest,
    ) -> Result<ContainerResourceHookResponse, HandlerError> {
        match request.pod_meta.as_ref().map(|meta| meta.name.as_str()) {
            Some("refused") => return Err(HandlerError(format!("{stage} is refused"))),
            Some("panics") => panic!("a defect of a hook"),
            _ => {}
        }
        let mut answer = ContainerResourceHookResponse::echo(&request);
        answer.container_resources.get_or_insert_default().cpuset_cpus = "0-1".into();
        Ok(answer)
    }
}

fn options(failure_policy: FailurePolicy) -> HookOptions {
    HookOptions { call_timeout: Duration::from_secs(5), calls_max: 8, request_bytes_max: 64 << 10, failure_policy }
}

async fn served(folder: &Path, failure_policy: FailurePolicy) -> Channel {
    let socket = folder.join("koordlet.sock");
    let server = HookServer::bind(&ListenAddress::Unix(socket.clone()), options(failure_policy)).await.unwrap();
    tokio::spawn(async move { server.serve(Arc::new(Hooks), pending()).await });
    connect(&socket).await
}

fn path(method: &str) -> String {
    format!("/{SERVICE}/{method}")
}

fn container(pod: &str) -> ContainerResourceHookRequest {
    ContainerResourceHookRequest {
        pod_meta: Some(PodSandboxMetadata { name: pod.into(), ..Default::default() }),
        container_resources: Some(LinuxContainerResources {
            cpu_period: 100_000,
            cpu_quota: 200_000,
            ..Default::default()
        }),
        pod_cgroup_parent: "/kubepods/pod1".into(),
        container_envs: [("A".into(), "1".into())].into(),
        ..Default::default()
    }
}

async fn hook(channel: &Channel, method: &str, pod: &str) -> Result<ContainerResourceHookResponse, Status> {
    let answer = call(channel, &path(method), container(pod).encode_to_vec()).await?;
    Ok(ContainerResourceHookResponse::decode(answer).unwrap())
}

#[tokio::test]
async fn hooks_of_pods_and_containers_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let channel = served(folder.path(), FailurePolicy::Ignore).await;
    for stage in PodStage::ALL {
        let request = PodSandboxHookRequest {
            labels: [("koordinator.sh/qosClass".into(), "LS".into())].into(),
            cgroup_parent: "/kubepods/pod1".into(),
            ..Default::default()
        };
        let answer = call(&channel, &path(&format!("{stage}Hook")), request.encode_to_vec()).await.unwrap();
        let mut expected = PodSandboxHookResponse::echo(&request);
        expected.annotations.insert("stage".into(), stage.to_string());
        assert_eq!(PodSandboxHookResponse::decode(answer).unwrap(), expected);
    }
    for stage in ContainerStage::ALL {
        let answer = hook(&channel, &format!("{stage}Hook"), "a").await.unwrap();
        let resources = LinuxContainerResources {
            cpu_period: 100_000,
            cpu_quota: 200_000,
            cpuset_cpus: "0-1".into(),
            ..Default::default()
        };
        assert_eq!(answer.container_resources, Some(resources));
        assert_eq!((answer.pod_cgroup_parent.as_str(), answer.container_envs.len()), ("/kubepods/pod1", 1));
    }
}

#[tokio::test]
async fn an_error_of_a_hook_reaches_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let channel = served(folder.path(), FailurePolicy::Ignore).await;
    let status = hook(&channel, "PreCreateContainerHook", "refused").await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unknown, "PreCreateContainer is refused"));
}

#[tokio::test]
async fn a_panic_of_a_hook_ends_by_the_policy() {
    for (policy, expected) in [(FailurePolicy::Ignore, None), (FailurePolicy::Fail, Some(Code::Internal))] {
        let folder = tempfile::tempdir().unwrap();
        let channel = served(folder.path(), policy).await;
        let answer = hook(&channel, "PreCreateContainerHook", "panics").await;
        assert_eq!(answer.as_ref().err().map(Status::code), expected);
        if let Ok(answer) = answer {
            assert_eq!(answer, ContainerResourceHookResponse::echo(&container("panics")));
        }
        assert!(hook(&channel, "PreCreateContainerHook", "a").await.is_ok(), "the server goes on");
    }
}

#[tokio::test]
async fn what_is_no_hook_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let channel = served(folder.path(), FailurePolicy::Fail).await;
    let code = async |path: &str, request: Vec<u8>| call(&channel, path, request).await.unwrap_err().code();
    assert_eq!(code(&path("PreRemoveRunPodSandboxHook"), vec![]).await, Code::Unimplemented);
    assert_eq!(code("/other.Service/PreRunPodSandboxHook", vec![]).await, Code::Unimplemented);
    assert_eq!(code("/none", vec![]).await, Code::Unimplemented);
    assert_eq!(code(&path("PreRunPodSandboxHook"), vec![0xff]).await, Code::Internal);
    let long = PodSandboxHookRequest { cgroup_parent: "x".repeat(70 << 10), ..Default::default() };
    assert_eq!(code(&path("PreRunPodSandboxHook"), long.encode_to_vec()).await, Code::OutOfRange);
}

#[tokio::test]
async fn server_reflection_lists_the_service_and_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let channel = served(folder.path(), FailurePolicy::Ignore).await;
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let ask = v1::server_reflection_request::MessageRequest::FileContainingSymbol(SERVICE.into());
    let list = v1::server_reflection_request::MessageRequest::ListServices(String::new());
    let requests =
        [list, ask].map(|ask| v1::ServerReflectionRequest { host: String::new(), message_request: Some(ask) });
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".parse().unwrap();
    let codec = ProstCodec::<v1::ServerReflectionRequest, v1::ServerReflectionResponse>::default();
    let answers = client.streaming(Request::new(tokio_stream::iter(requests)), path, codec).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(|answer| answer.unwrap().message_response.unwrap()).collect().await;
    let [
        v1::server_reflection_response::MessageResponse::ListServicesResponse(services),
        v1::server_reflection_response::MessageResponse::FileDescriptorResponse(files),
    ] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert!(services.service.iter().any(|service| service.name == SERVICE));
    let file = prost_types::FileDescriptorProto::decode(&files.file_descriptor_proto[0][..]).unwrap();
    assert_eq!(file.service[0].method.len(), 7);
    assert_eq!(file.message_type.len(), 8);

    client.ready().await.unwrap();
    let list = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let request = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(list) };
    let path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo".parse().unwrap();
    let codec = ProstCodec::<v1alpha::ServerReflectionRequest, v1alpha::ServerReflectionResponse>::default();
    let mut answers =
        client.streaming(Request::new(tokio_stream::once(request)), path, codec).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    assert!(format!("{answer:?}").contains(SERVICE), "{answer:?}");
}

#[tokio::test]
async fn a_missing_folder_is_an_error_and_a_server_that_is_stopped_ends() {
    let folder = tempfile::tempdir().unwrap();
    let socket = ListenAddress::Unix(folder.path().join("none/koordlet.sock"));
    let refused = HookServer::bind(&socket, options(FailurePolicy::Ignore)).await.err();
    assert!(matches!(refused, Some(ListenError::FolderMissing { .. })));
    let socket = ListenAddress::Unix(folder.path().join("koordlet.sock"));
    let server = HookServer::bind(&socket, options(FailurePolicy::Ignore)).await.unwrap();
    server.serve(Arc::new(Hooks), std::future::ready(())).await.unwrap();
}

/// A frame of HTTP/2 on stream 1, or 0 for settings.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, u8::from(kind != 4)], payload].concat()
}

#[tokio::test]
async fn a_client_that_takes_the_path_of_the_socket_for_a_host_is_served() {
    let folder = tempfile::tempdir().unwrap();
    served(folder.path(), FailurePolicy::Fail).await;
    for authority in ["/var/run/koordlet/koordlet.sock", "%2Fvar%2Frun%2Fkoordlet%2Fkoordlet.sock"] {
        let mut stream = UnixStream::connect(folder.path().join("koordlet.sock")).await.unwrap();
        let header = |name: &str, value: &str| {
            let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            [vec![0x40], text(name), text(value)].concat()
        };
        // 0x83 and 0x86 are `:method: POST` and `:scheme: http`.
        let headers = [
            vec![0x83, 0x86],
            header(":path", &path("PreRunPodSandboxHook")),
            header(":authority", authority),
            header("te", "trailers"),
            header("content-type", "application/grpc"),
        ];
        let request = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, &[]),
            frame(1, 4, &headers.concat()),
            frame(0, 1, &[0; 5]),
        ];
        stream.write_all(&request.concat()).await.unwrap();
        // Until the first frame of the answer: headers, or a reset.
        let first = loop {
            let mut header = [0; 9];
            stream.read_exact(&mut header).await.unwrap();
            let mut payload = vec![0; u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize];
            stream.read_exact(&mut payload).await.unwrap();
            if header[8] == 1 && header[3] != 8 {
                break header[3];
            }
        };
        assert_eq!(first, 1, "{authority}: headers, and no reset (3)");
    }
}
