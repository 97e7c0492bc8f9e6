//! gRPC over unix sockets: unary services and calls.

use std::{convert::Infallible, future::Future, path::PathBuf, time::Duration};

use bytes::{Buf as _, BufMut as _, Bytes};
use futures::TryStreamExt as _;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, time::timeout};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::{
    Code, Request, Status,
    body::Body,
    client,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint, Server},
};
use tower::util::BoxCloneService;

use crate::{authority::AnyAuthority, listen::Listener};

/// A service of gRPC.
pub(crate) type Routes = BoxCloneService<http::Request<Body>, http::Response<Body>, Infallible>;

/// Serves until `stop` ends; calls that run are finished.
pub(crate) async fn serve(
    listener: Listener,
    routes: Routes,
    streams_max: u32,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let server = Server::builder().max_concurrent_streams(streams_max);
    match listener {
        Listener::Unix(unix) => {
            let connections = UnixListenerStream::new(unix).map_ok(AnyAuthority::new);
            server.serve_with_incoming_shutdown(routes, connections, stop).await
        }
        Listener::Tcp(tcp) => server.serve_with_incoming_shutdown(routes, TcpListenerStream::new(tcp), stop).await,
    }
}

/// A connection to a socket that is opened with the first call, and again after it was lost.
pub(crate) fn channel(socket: PathBuf, connect_timeout: Duration) -> Channel {
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_timeout(connect_timeout).connect_with_connector_lazy(connector)
}

/// One unary call within `limit`, with messages of at most `bytes_max`.
pub(crate) async fn unary<C: Codec>(
    channel: Channel,
    path: PathAndQuery,
    codec: C,
    message: C::Encode,
    bytes_max: usize,
    limit: Duration,
) -> Result<C::Decode, Status>
where
    C::Encode: Send + Sync + 'static,
    C::Decode: Send + Sync + 'static,
{
    let mut client =
        client::Grpc::new(channel).max_decoding_message_size(bytes_max).max_encoding_message_size(bytes_max);
    let call = async {
        client.ready().await.map_err(|error| Status::unavailable(text(&error)))?;
        let mut request = Request::new(message);
        request.set_timeout(limit);
        client.unary(request, path, codec).await
    };
    match timeout(limit, call).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_) => Err(Status::new(Code::DeadlineExceeded, format!("no answer within {limit:?}"))),
    }
}

/// An error with its causes.
fn text(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Messages as they are.
#[derive(Debug, Clone, Copy, Default)]
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
