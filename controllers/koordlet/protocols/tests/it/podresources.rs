//! The pod resources proxy between a client and a kubelet.

use std::{future::pending, path::Path, time::Duration};

use bytes::Bytes;
use koord_koordlet_protocols::{
    listen::ListenAddress,
    podresources::{ContainerDevices, PodResourcesOptions, PodResourcesProxy, SERVICE},
};
use prost::Message as _;
use tonic::{Code, Status, transport::Channel};

use crate::fake_grpc::{call, connect, serve};

#[derive(Clone, PartialEq, prost::Message)]
struct ListAnswer {
    #[prost(message, repeated, tag = "1")]
    pods: Vec<Pod>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Pod {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(message, repeated, tag = "3")]
    containers: Vec<Container>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Container {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    devices: Vec<ContainerDevices>,
}

fn answer(pods: usize) -> ListAnswer {
    let containers = ["main", "side"].map(|name| Container { name: name.into(), devices: vec![] });
    let pod = |number| Pod { name: format!("p{number}"), namespace: "default".into(), containers: containers.to_vec() };
    ListAnswer { pods: (0..pods).map(pod).collect() }
}

fn gpu() -> ContainerDevices {
    ContainerDevices { resource_name: "nvidia.com/gpu".into(), device_ids: vec!["GPU-0".into()] }
}

async fn proxied(folder: &Path) -> Channel {
    let options = PodResourcesOptions {
        kubelet: folder.join("kubelet.sock"),
        connect_timeout: Duration::from_secs(10),
        call_timeout: Duration::from_secs(10),
        message_bytes_max: 16 << 20,
        calls_max: 16,
    };
    let socket = folder.join("proxy.sock");
    let proxy = PodResourcesProxy::bind(&ListenAddress::Unix(socket.clone()), options).await.unwrap();
    let devices = |pod: &koord_koordlet_protocols::podresources::PodName| match pod.name.as_str() {
        "p0" => vec![gpu()],
        _ => vec![],
    };
    tokio::spawn(async move { proxy.serve(devices, pending()).await });
    connect(&socket).await
}

fn path(method: &str) -> String {
    format!("/{SERVICE}/{method}")
}

#[tokio::test]
async fn devices_are_added_to_the_list_and_other_calls_pass_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    serve(&folder.path().join("kubelet.sock"), |path, request| match path {
        "/v1.PodResourcesLister/List" => Ok(answer(3).encode_to_vec().into()),
        "/v1.PodResourcesLister/Get" => Ok([b"got ", &request[..]].concat().into()),
        "/v1.PodResourcesLister/GetAllocatableResources" => Ok(Bytes::from_static(b"\x0a\x01x")),
        _ => Err(Status::unimplemented("kubelet")),
    });
    let channel = proxied(folder.path()).await;
    let mut expected = answer(3);
    expected.pods[0].containers[0].devices.push(gpu());
    let listed = call(&channel, &path("List"), "").await.unwrap();
    assert_eq!(ListAnswer::decode(listed).unwrap(), expected);
    assert_eq!(call(&channel, &path("Get"), "p0").await.unwrap(), "got p0");
    assert_eq!(call(&channel, &path("GetAllocatableResources"), "").await.unwrap(), &b"\x0a\x01x"[..]);
    let status = call(&channel, &path("Later"), "").await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "kubelet"));
    let status = call(&channel, "/v1alpha1.PodResourcesLister/List", "").await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_list_of_many_pods_passes_up_to_16_mib() {
    let folder = tempfile::tempdir().unwrap();
    serve(&folder.path().join("kubelet.sock"), |path, _| match path {
        "/v1.PodResourcesLister/List" => Ok(answer(150_000).encode_to_vec().into()),
        _ => Ok(vec![0; 17 << 20].into()),
    });
    let channel = proxied(folder.path()).await;
    let listed = call(&channel, &path("List"), "").await.unwrap();
    assert!(listed.len() > 4 << 20, "more than the default of gRPC: {}", listed.len());
    assert_eq!(ListAnswer::decode(listed).unwrap().pods.len(), 150_000);
    assert_eq!(call(&channel, &path("Get"), "").await.unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test]
async fn a_call_fails_with_the_kubelet_and_succeeds_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = folder.path().join("kubelet.sock");
    let channel = proxied(folder.path()).await;
    let status = call(&channel, &path("List"), "").await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("No such file"), "{status}");
    serve(&kubelet, |_, _| Ok(answer(1).encode_to_vec().into()));
    assert!(call(&channel, &path("List"), "").await.is_ok());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    serve(&folder.path().join("kubelet.sock"), |_, _| Ok(Bytes::from_static(b"\x0a\xff")));
    let channel = proxied(folder.path()).await;
    let status = call(&channel, &path("List"), "").await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("cannot be decoded at byte 0"), "{status}");
}
