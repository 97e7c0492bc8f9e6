//! Serves the hooks.

use std::{convert::Infallible, fmt, future::Future, sync::Arc, time::Duration};

use tonic::{Request, Response, Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;
use tower::{Service as _, service_fn, util::BoxCloneService};

use super::{
    descriptor::file_descriptors,
    message::{
        ContainerResourceHookRequest, ContainerResourceHookResponse, PodSandboxHookRequest, PodSandboxHookResponse,
    },
};
use crate::{
    FailurePolicy, HandlerError,
    call::{Calls, Unanswered},
    grpc::{self, Routes},
    listen::{ListenAddress, ListenError, Listener},
};

/// Full name of the service.
pub const SERVICE: &str = "runtime.v1alpha1.RuntimeHookService";

/// A hook of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodStage {
    /// Before the sandbox is created.
    PreRunPodSandbox,
    /// After the sandbox has stopped.
    PostStopPodSandbox,
}

/// A hook of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the protocol")]
pub enum ContainerStage {
    PreCreateContainer,
    PreStartContainer,
    PostStartContainer,
    PostStopContainer,
    PreUpdateContainerResources,
}

impl PodStage {
    /// Every stage.
    pub const ALL: [Self; 2] = [Self::PreRunPodSandbox, Self::PostStopPodSandbox];

    /// Its name; the method is this with `Hook`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreRunPodSandbox => "PreRunPodSandbox",
            Self::PostStopPodSandbox => "PostStopPodSandbox",
        }
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::PreRunPodSandbox => "PreRunPodSandboxHook",
            Self::PostStopPodSandbox => "PostStopPodSandboxHook",
        }
    }
}

impl ContainerStage {
    /// Every stage.
    pub const ALL: [Self; 5] = [
        Self::PreCreateContainer,
        Self::PreStartContainer,
        Self::PostStartContainer,
        Self::PostStopContainer,
        Self::PreUpdateContainerResources,
    ];

    /// Its name; the method is this with `Hook`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreCreateContainer => "PreCreateContainer",
            Self::PreStartContainer => "PreStartContainer",
            Self::PostStartContainer => "PostStartContainer",
            Self::PostStopContainer => "PostStopContainer",
            Self::PreUpdateContainerResources => "PreUpdateContainerResources",
        }
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::PreCreateContainer => "PreCreateContainerHook",
            Self::PreStartContainer => "PreStartContainerHook",
            Self::PostStartContainer => "PostStartContainerHook",
            Self::PostStopContainer => "PostStopContainerHook",
            Self::PreUpdateContainerResources => "PreUpdateContainerResourcesHook",
        }
    }
}

/// Answers the hooks, on threads for blocking work. `echo` of the response type is the answer that changes nothing. An error is
/// passed on; the proxy's failure policy decides what becomes of the container.
pub trait HookHandler: Send + Sync + 'static {
    /// A hook of a pod.
    fn pod_sandbox(
        &self,
        stage: PodStage,
        request: PodSandboxHookRequest,
    ) -> Result<PodSandboxHookResponse, HandlerError>;

    /// A hook of a container.
    fn container(
        &self,
        stage: ContainerStage,
        request: ContainerResourceHookRequest,
    ) -> Result<ContainerResourceHookResponse, HandlerError>;
}

/// Limits of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookOptions {
    /// Longest time for one call of the handler.
    pub call_timeout: Duration,
    /// Calls of the handler at a time.
    pub calls_max: usize,
    /// Longest request.
    pub request_bytes_max: usize,
    /// What is answered for a handler that does not answer.
    pub failure_policy: FailurePolicy,
}

/// Why a server stopped.
#[derive(Debug, thiserror::Error)]
#[error("the server of {what} stopped: {source}")]
pub struct ServeError {
    /// What it serves.
    pub(crate) what: &'static str,
    /// Why.
    pub(crate) source: tonic::transport::Error,
}

/// A server that listens.
pub struct HookServer {
    listener: Listener,
    options: HookOptions,
}

impl HookServer {
    /// Opens the socket or port.
    pub async fn bind(address: &ListenAddress, options: HookOptions) -> Result<Self, ListenError> {
        Ok(Self { listener: Listener::bind(address).await?, options })
    }

    /// Serves hooks and server reflection until `stop` ends.
    pub async fn serve(self, handler: Arc<dyn HookHandler>, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let hooks = Hooks { handler, calls: Calls::new(self.options.calls_max), options: self.options };
        let streams_max = u32::try_from(self.options.calls_max).unwrap_or(u32::MAX);
        let served = grpc::serve(self.listener, hooks.routes(), streams_max, stop).await;
        served.map_err(|source| ServeError { what: SERVICE, source })
    }
}

#[derive(Clone)]
struct Hooks {
    handler: Arc<dyn HookHandler>,
    calls: Calls,
    options: HookOptions,
}

impl Hooks {
    fn routes(self) -> Routes {
        let reflection = Reflection::new();
        BoxCloneService::new(service_fn(move |request: http::Request<Body>| {
            let (hooks, reflection) = (self.clone(), reflection.clone());
            async move {
                let path = request.uri().path().to_owned();
                let Some((service, method)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
                    return Ok(Status::unimplemented("no service").into_http());
                };
                if service == SERVICE {
                    Ok(hooks.answer(method, request).await)
                } else {
                    reflection.answer(service, request).await
                }
            }
        }))
    }

    async fn answer(self, method: &str, request: http::Request<Body>) -> http::Response<Body> {
        if let Some(stage) = PodStage::ALL.into_iter().find(|stage| stage.method() == method) {
            return self
                .unary(request, stage.as_str(), PodSandboxHookResponse::echo, move |handler, request| {
                    handler.pod_sandbox(stage, request)
                })
                .await;
        }
        if let Some(stage) = ContainerStage::ALL.into_iter().find(|stage| stage.method() == method) {
            return self
                .unary(request, stage.as_str(), ContainerResourceHookResponse::echo, move |handler, request| {
                    handler.container(stage, request)
                })
                .await;
        }
        Status::unimplemented(format!("method {method}")).into_http()
    }

    async fn unary<A, B>(
        self,
        request: http::Request<Body>,
        stage: &'static str,
        echo: fn(&A) -> B,
        hook: impl Fn(&dyn HookHandler, A) -> Result<B, HandlerError> + Copy + Send + Sync + 'static,
    ) -> http::Response<Body>
    where
        A: prost::Message + Default + Clone + 'static,
        B: prost::Message + Default + 'static,
    {
        let options = self.options;
        let mut grpc = Grpc::new(ProstCodec::<B, A>::default()).max_decoding_message_size(options.request_bytes_max);
        let service = service_fn(move |request: Request<A>| {
            let Self { handler, calls, .. } = self.clone();
            async move {
                let request = request.into_inner();
                let unchanged = echo(&request);
                match calls.call(options.call_timeout, move || hook(&*handler, request)).await {
                    Ok(Ok(answer)) => Ok(Response::new(answer)),
                    Ok(Err(HandlerError(text))) => Err(Status::unknown(text)),
                    Err(unanswered) => {
                        not_answered(unanswered, stage, options.failure_policy).map(|()| Response::new(unchanged))
                    }
                }
            }
        });
        grpc.unary(service, request).await
    }
}

fn not_answered(unanswered: Unanswered, stage: &'static str, policy: FailurePolicy) -> Result<(), Status> {
    match policy {
        FailurePolicy::Ignore => {
            tracing::warn!(stage, "runtime hook: {unanswered}; nothing is changed");
            Ok(())
        }
        FailurePolicy::Fail => {
            tracing::warn!(stage, "runtime hook: {unanswered}; the request fails");
            let text = unanswered.to_string();
            Err(match unanswered {
                Unanswered::TooLate(_) => Status::deadline_exceeded(text),
                Unanswered::Panicked => Status::internal(text),
                Unanswered::TooMany => Status::resource_exhausted(text),
            })
        }
    }
}

/// Server reflection in both versions that clients ask for.
#[derive(Clone)]
struct Reflection {
    v1: Option<Routes>,
    v1alpha: Option<Routes>,
}

impl Reflection {
    fn new() -> Self {
        let pods = PodStage::ALL.map(|stage| (stage.method(), "PodSandboxHook"));
        let containers = ContainerStage::ALL.map(|stage| (stage.method(), "ContainerResourceHook"));
        let files = file_descriptors(pods.into_iter().chain(containers));
        let builder = || tonic_reflection::server::Builder::configure().register_file_descriptor_set(files.clone());
        Self {
            v1: builder().build_v1().ok().map(BoxCloneService::new),
            v1alpha: builder().build_v1alpha().ok().map(BoxCloneService::new),
        }
    }

    async fn answer(self, service: &str, request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
        let reflection = match service {
            "grpc.reflection.v1.ServerReflection" => self.v1,
            "grpc.reflection.v1alpha.ServerReflection" => self.v1alpha,
            _ => None,
        };
        match reflection {
            Some(mut reflection) => reflection.call(request).await,
            None => Ok(Status::unimplemented(format!("service {service}")).into_http()),
        }
    }
}

impl fmt::Display for PodStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ContainerStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
