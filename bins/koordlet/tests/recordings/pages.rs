//! The pages of the program: metrics, its state, and audit events where they are served.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, header},
};
use koord_core::{clock::SharedClock, random::Random};
use koord_koordlet_runtime::{Agent, Measures, NodeReaders, Now, Settings, audit_pages, node_pages};
use koord_koordlet_testing::Answer;
use koord_runtime::metrics::{Audience, Metrics};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

pub(crate) struct Pages {
    metrics: Metrics,
    measures: Measures,
    routes: Router,
    runtime: Runtime,
}

impl Pages {
    pub(crate) fn new(agent: &Arc<Mutex<Agent>>, settings: &Settings, clock: SharedClock) -> Self {
        let metrics = Metrics::new().unwrap();
        let audits = || audit_pages(Arc::clone(agent), Arc::clone(&clock), Random::seeded(1));
        let audits = if settings.serves_audit { audits() } else { Router::new() };
        let state = node_pages(Arc::clone(agent), clock, "1.0.0", NodeReaders::All);
        Self {
            measures: Measures::new(&metrics, Arc::clone(agent)).unwrap(),
            metrics,
            routes: audits.merge(state),
            runtime: Builder::new_current_thread().build().unwrap(),
        }
    }

    pub(crate) fn get(&self, now: Now, path: &str) -> Answer {
        let audiences: &[Audience] = match path {
            "/metrics" => &[Audience::Runtime, Audience::Internal, Audience::External],
            "/internal-metrics" => &[Audience::Internal],
            "/external-metrics" => &[Audience::External],
            // Health is served by the program's manager.
            "/healthz" => return Answer { status: 200, body: "ok".to_owned() },
            _ => return self.runtime.block_on(answer(self.routes.clone(), path)),
        };
        self.measures.refresh(now);
        Answer { status: 200, body: self.metrics.text(audiences) }
    }
}

async fn answer(routes: Router, path: &str) -> Answer {
    let request = Request::get(path).header(header::ACCEPT, "application/json").body(Body::empty()).unwrap();
    let response = routes.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    Answer { status, body: String::from_utf8(body.to_vec()).unwrap() }
}
