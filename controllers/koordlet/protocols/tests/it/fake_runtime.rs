//! A container runtime's side of NRI.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use koord_koordlet_protocols::{
    mux::{self, FrameDecoder, PAYLOAD_BYTES_MAX, PLUGIN_SERVICE, RUNTIME_SERVICE},
    nri::message::service::{
        ConfigureRequest, ConfigureResponse, PLUGIN, RegisterPluginRequest, SynchronizeRequest, SynchronizeResponse,
    },
    ttrpc::{self, Incoming, Kind, MESSAGE_BYTES_MAX, MessageDecoder, Request, Response, Status},
};
use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// One connection of a plugin.
pub(crate) struct FakeRuntime<S> {
    stream: S,
    frames: FrameDecoder,
    answers: MessageDecoder,
    requests: MessageDecoder,
    next: u32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FakeRuntime<S> {
    pub(crate) fn new(stream: S) -> Self {
        let messages = || MessageDecoder::new(MESSAGE_BYTES_MAX);
        Self {
            stream,
            frames: FrameDecoder::new(PAYLOAD_BYTES_MAX),
            answers: messages(),
            requests: messages(),
            next: 1,
        }
    }

    /// Accepts the registration, configures and synchronizes the plugin.
    pub(crate) async fn greet(&mut self) -> (RegisterPluginRequest, ConfigureResponse) {
        let registration = self.accept_registration().await;
        let configure = ConfigureRequest {
            runtime_name: "containerd".into(),
            runtime_version: "2.1.0".into(),
            registration_timeout: 5000,
            request_timeout: 2000,
            nri_version: "v0.12.0".into(),
            ..Default::default()
        };
        let configured = self.call("Configure", &configure).await.unwrap();
        let _: SynchronizeResponse = self.call("Synchronize", &SynchronizeRequest::default()).await.unwrap();
        (registration, configured)
    }

    pub(crate) async fn accept_registration(&mut self) -> RegisterPluginRequest {
        let (stream, request) = self.next_request().await;
        assert_eq!(request.method, "RegisterPlugin");
        self.answer(stream, Ok(Bytes::new())).await;
        RegisterPluginRequest::decode(request.payload).unwrap()
    }

    /// The next call of the plugin.
    pub(crate) async fn next_request(&mut self) -> (u32, Request) {
        loop {
            if let Some(Incoming::Message { stream, kind: Kind::Request, body }) = self.requests.next_message() {
                return (stream, Request::read(body).unwrap());
            }
            self.read().await;
        }
    }

    pub(crate) async fn answer(&mut self, stream: u32, answer: Result<Bytes, Status>) {
        let message = ttrpc::encode(stream, Kind::Response, &Response::from(answer)).unwrap();
        self.write(RUNTIME_SERVICE, &message).await;
    }

    /// Calls the plugin and waits for its answer.
    pub(crate) async fn call<A: Message + Default>(
        &mut self,
        method: &str,
        request: &impl Message,
    ) -> Result<A, Status> {
        self.call_bytes(method, request.encode_to_vec()).await.map(|answer| A::decode(answer).unwrap())
    }

    pub(crate) async fn call_bytes(&mut self, method: &str, payload: Vec<u8>) -> Result<Bytes, Status> {
        let sent = self.send(method, payload).await;
        loop {
            if let Some(Incoming::Message { stream, kind: Kind::Response, body }) = self.answers.next_message() {
                assert_eq!(stream, sent);
                return Response::read(body).unwrap().into();
            }
            self.read().await;
        }
    }

    /// Sends a call without waiting.
    pub(crate) async fn send(&mut self, method: &str, payload: Vec<u8>) -> u32 {
        let stream = self.next;
        self.next += 2;
        let timeout_nano = i64::try_from(Duration::from_secs(2).as_nanos()).unwrap();
        let request = Request { service: PLUGIN.into(), method: method.into(), payload: payload.into(), timeout_nano };
        let message = ttrpc::encode(stream, Kind::Request, &request).unwrap();
        self.write(PLUGIN_SERVICE, &message).await;
        stream
    }

    pub(crate) async fn write(&mut self, connection: u32, message: &[u8]) {
        let mut out = BytesMut::new();
        mux::encode(connection, message, &mut out);
        self.write_raw(&out).await;
    }

    pub(crate) async fn write_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Waits until the plugin has closed the connection.
    pub(crate) async fn closed(&mut self) {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
    }

    async fn read(&mut self) {
        let read = self.stream.read_buf(self.frames.buffer()).await.unwrap();
        assert_ne!(read, 0, "the plugin closed the connection");
        while let Some(frame) = self.frames.next_frame().unwrap() {
            match frame.connection {
                PLUGIN_SERVICE => self.answers.push(&frame.payload),
                RUNTIME_SERVICE => self.requests.push(&frame.payload),
                other => panic!("connection {other}"),
            }
        }
    }
}
