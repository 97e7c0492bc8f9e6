//! A server and a client of gRPC whose messages are bytes.

use std::{convert::Infallible, path::Path, sync::Arc};

use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status,
    body::Body,
    client,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server,
    transport::{Channel, Endpoint, Server},
};
use tower::service_fn;

/// Messages as they are.
#[derive(Clone, Copy, Default)]
pub(crate) struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Serves every method with one function of path and request, until the test ends.
pub(crate) fn serve(socket: &Path, answer: impl Fn(&str, Bytes) -> Result<Bytes, Status> + Send + Sync + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    let answer = Arc::new(answer);
    let routes = service_fn(move |request: http::Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let path = request.uri().path().to_owned();
            let unary = service_fn(move |request: Request<Bytes>| {
                let answered = answer(&path, request.into_inner()).map(Response::new);
                async { answered }
            });
            let mut grpc =
                server::Grpc::new(RawCodec).max_decoding_message_size(64 << 20).max_encoding_message_size(64 << 20);
            Ok::<_, Infallible>(grpc.unary(unary, request).await)
        }
    });
    tokio::spawn(Server::builder().serve_with_incoming(routes, UnixListenerStream::new(listener)));
}

pub(crate) async fn connect(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    let connector = service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.unwrap()
}

/// One unary call.
pub(crate) async fn call(channel: &Channel, path: &str, request: impl Into<Bytes>) -> Result<Bytes, Status> {
    let mut client = client::Grpc::new(channel.clone()).max_decoding_message_size(64 << 20);
    client.ready().await.unwrap();
    let path: PathAndQuery = path.parse().unwrap();
    client.unary(Request::new(request.into()), path, RawCodec).await.map(Response::into_inner)
}
