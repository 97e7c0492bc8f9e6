//! A replica of the webhook server, with the API server that it writes to.

use std::{net::SocketAddr, sync::Arc};

use koord_listen::{Limits, Server, bind};
use koord_resource::admission::{Handler, Request, Verdict, WebhookEntry};
use koord_runtime::{
    api::Api,
    clock::{ManualClock, SystemClock},
};
use koord_webhook_server::{Environment, Metrics, Served, ServiceBuilder, WebhookController, tls};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::api_server::{ApiServer, defaults};

pub(crate) const HOST: &str = "koordinator-webhook-service.koordinator-system.svc";

pub(crate) static HANDLER: Handler<()> = Handler {
    path: "/validate-pod",
    gate: None,
    entries: &[WebhookEntry { name: "v.example.com", ..WebhookEntry::BASE }],
    rbac: &[],
    object_type: "pod",
    call: |_: &Request<'_>, (): &()| Verdict::allow(),
};

/// A controller whose certificates lie in a folder, and whose time is the clock's.
pub(crate) fn controller(folder: &TempDir, clock: &Arc<ManualClock>) -> WebhookController {
    let home = folder.path().to_string_lossy().into_owned();
    let variable = |name: &str| (name == "WEBHOOK_CERT_DIR").then(|| home.clone());
    let environment = Environment::of(defaults(), variable).unwrap();
    let served = Served { paths: vec!["/validate-pod"], ..Served::default() };
    WebhookController::new(environment, served, 0, Arc::clone(clock) as _)
}

/// A replica that serves until it is dropped, or stopped.
pub(crate) struct Replica {
    pub(crate) server: ApiServer,
    pub(crate) api: Api,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) controller: WebhookController,
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    _folder: TempDir,
}

impl Replica {
    pub(crate) async fn start() -> Self {
        let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let (controller, api) = (controller(&folder, &clock), server.api());
        controller.pass(&api).await.unwrap();
        let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
        let service = ServiceBuilder::new(metrics, SystemClock::shared()).handler(&HANDLER, || &()).build();
        let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let tls = tls(Arc::clone(controller.certificate())).unwrap();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            Server::new(Limits::default()).serve(listener, Some(tls), service.router(), stopped).await;
        });
        Self { server, api, clock, controller, address, stop, _folder: folder }
    }

    pub(crate) fn presented(&self) -> Vec<u8> {
        self.controller.certificate().presented().unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
