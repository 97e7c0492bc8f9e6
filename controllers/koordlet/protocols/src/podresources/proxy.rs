//! Forwards calls to the kubelet.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::{Request, Response, Status, body::Body, server::Grpc, transport::Channel};
use tower::{service_fn, util::BoxCloneService};

use super::splice::{ContainerDevices, PodName, add_devices};
use crate::{
    grpc::{self, RawCodec, Routes},
    hookserver::ServeError,
    listen::{ListenAddress, ListenError, Listener},
};

/// Full name of the service.
pub const SERVICE: &str = "v1.PodResourcesLister";

/// The kubelet, and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodResourcesOptions {
    /// Socket of the kubelet, `/var/lib/kubelet/pod-resources/kubelet.sock` where nothing else is configured.
    pub kubelet: PathBuf,
    /// Time to connect; 10 s in the original.
    pub connect_timeout: Duration,
    /// Time for one call.
    pub call_timeout: Duration,
    /// Longest message; 16 MiB in the original.
    pub message_bytes_max: usize,
    /// Calls at a time on one connection.
    pub calls_max: u32,
}

type Devices = Arc<dyn Fn(&PodName) -> Vec<ContainerDevices> + Send + Sync>;

/// A proxy that listens.
pub struct PodResourcesProxy {
    listener: Listener,
    options: PodResourcesOptions,
}

impl PodResourcesProxy {
    /// Opens the socket.
    pub async fn bind(address: &ListenAddress, options: PodResourcesOptions) -> Result<Self, ListenError> {
        Ok(Self { listener: Listener::bind(address).await?, options })
    }

    /// Serves until `stop` ends. Every call asks the kubelet anew and fails with it; `devices` are added to `List`, sorted by
    /// resource as the caller gives them.
    pub async fn serve(
        self,
        devices: impl Fn(&PodName) -> Vec<ContainerDevices> + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let channel = grpc::channel(self.options.kubelet.clone(), self.options.connect_timeout);
        let forward = Forward { channel, options: Arc::new(self.options), devices: Arc::new(devices) };
        let calls_max = forward.options.calls_max;
        let served = grpc::serve(self.listener, forward.routes(), calls_max, stop).await;
        served.map_err(|source| ServeError { what: SERVICE, source })
    }
}

#[derive(Clone)]
struct Forward {
    channel: Channel,
    options: Arc<PodResourcesOptions>,
    devices: Devices,
}

impl Forward {
    fn routes(self) -> Routes {
        BoxCloneService::new(service_fn(move |request: http::Request<Body>| {
            let forward = self.clone();
            async move {
                let path = request.uri().path_and_query().cloned();
                let served = |path: &PathAndQuery| path.path().split('/').nth(1) == Some(SERVICE);
                let path = path.filter(served);
                Ok(match path {
                    Some(path) => forward.answer(path, request).await,
                    None => Status::unimplemented("only the kubelet's v1.PodResourcesLister is served").into_http(),
                })
            }
        }))
    }

    async fn answer(self, path: PathAndQuery, request: http::Request<Body>) -> http::Response<Body> {
        let bytes_max = self.options.message_bytes_max;
        let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(bytes_max).max_encoding_message_size(bytes_max);
        let service = service_fn(move |request: Request<Bytes>| {
            let (forward, path) = (self.clone(), path.clone());
            async move { forward.call(path, request.into_inner()).await.map(Response::new) }
        });
        grpc.unary(service, request).await
    }

    async fn call(self, path: PathAndQuery, request: Bytes) -> Result<Bytes, Status> {
        let is_list = path.path().ends_with("/List");
        let options = &*self.options;
        let (bytes_max, limit) = (options.message_bytes_max, options.call_timeout);
        let answer = grpc::unary(self.channel, path, RawCodec, request, bytes_max, limit).await?;
        if !is_list {
            return Ok(answer);
        }
        add_devices(&answer, &*self.devices).map_err(|error| Status::internal(error.to_string()))
    }
}
