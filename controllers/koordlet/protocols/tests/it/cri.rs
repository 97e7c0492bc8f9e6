//! Containers are stopped through CRI and through Docker.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use koord_koordlet_protocols::cri::{ContainerStopper, Protocol, StopContainerRequest, StopError};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
    task::JoinHandle,
};
use tonic::Status;

use crate::fake_grpc::serve;

fn stopper(protocol: Protocol, socket: &Path) -> ContainerStopper {
    ContainerStopper::new(protocol, socket.into(), Duration::from_secs(5))
}

#[tokio::test]
async fn a_container_is_killed_at_once_through_cri() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("containerd.sock");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    serve(&socket, move |path, request| {
        let request = StopContainerRequest::decode(request).unwrap();
        seen.lock().unwrap().push((path.to_owned(), request.container_id, request.timeout));
        Ok(Bytes::new())
    });
    stopper(Protocol::Cri, &socket).stop_container("e04a73fd89b60f58", 0).await.unwrap();
    let expected = [("/runtime.v1.RuntimeService/StopContainer".to_owned(), "e04a73fd89b60f58".to_owned(), 0)];
    assert_eq!(*calls.lock().unwrap(), expected);
}

#[tokio::test]
async fn errors_of_cri_say_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("containerd.sock");
    let stopper = stopper(Protocol::Cri, &socket);
    let error = stopper.stop_container("c1", 0).await.unwrap_err();
    assert!(matches!(&error, StopError::Unreachable { socket: at, .. } if *at == socket), "{error}");
    serve(&socket, |_, request| match StopContainerRequest::decode(request).unwrap().container_id.as_str() {
        "gone" => Err(Status::not_found("container \"gone\"")),
        _ => Err(Status::unknown("the shim does not answer")),
    });
    assert_eq!(stopper.stop_container("gone", 0).await, Err(StopError::NotFound("gone".into())));
    let reason = "the shim does not answer".into();
    assert_eq!(stopper.stop_container("c1", 0).await, Err(StopError::Refused { container: "c1".into(), reason }));
}

/// Answers one request of Docker's API; the task returns its head.
fn docker(socket: &Path, answer: &'static str) -> JoinHandle<String> {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    })
}

async fn stop_in_docker(answer: &'static str) -> (Result<(), StopError>, String, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let server = docker(&socket, answer);
    let stopped = stopper(Protocol::Docker, &socket).stop_container("e5bcb0efc333d2fe", 0).await;
    (stopped, server.await.unwrap(), socket)
}

#[tokio::test]
async fn a_container_is_killed_at_once_through_docker() {
    let (stopped, head, _) = stop_in_docker("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(stopped, Ok(()));
    assert!(head.starts_with("POST /containers/e5bcb0efc333d2fe/stop?t=0 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("host: docker\r\n"), "{head}");
}

#[tokio::test]
async fn answers_of_docker_say_what_happened() {
    let (stopped, ..) = stop_in_docker("HTTP/1.1 304 Not Modified\r\n\r\n").await;
    assert_eq!(stopped, Ok(()), "it has stopped before");
    let (stopped, ..) = stop_in_docker("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!(stopped, Err(StopError::NotFound("e5bcb0efc333d2fe".into())));
    let (stopped, ..) = stop_in_docker("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nbusy").await;
    let reason = "500 Internal Server Error busy".into();
    assert_eq!(stopped, Err(StopError::Refused { container: "e5bcb0efc333d2fe".into(), reason }));
    let (stopped, _, socket) = stop_in_docker("noise\r\n\r\n").await;
    assert!(matches!(&stopped, Err(StopError::Unreachable { socket: at, .. }) if *at == socket), "{stopped:?}");
    let missing = stopper(Protocol::Docker, Path::new("/nonexistent/docker.sock"));
    assert!(matches!(missing.stop_container("c1", 0).await, Err(StopError::Unreachable { .. })));
    assert_eq!(missing.stop_container("../c1", 0).await, Err(StopError::NotFound("../c1".into())));
}
