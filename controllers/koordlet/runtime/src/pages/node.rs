//! The state of the agent as JSON: [`NodeStatus`](koord_koordlet_state::NodeStatus) and [`NodeFiles`](koord_koordlet_state::NodeFiles).

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{ConnectInfo, Query, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use koord_koordlet_state::{FILES_PATH, STATUS_PATH};
use koord_runtime::clock::SharedClock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    agent::{Agent, Now},
    node_readers::NodeReaders,
};

#[derive(Clone)]
struct Pages {
    agent: Arc<Mutex<Agent>>,
    clock: SharedClock,
    version: &'static str,
    /// Files are read for one client at a time.
    reading: Arc<Semaphore>,
}

#[derive(Debug, Deserialize)]
struct FilesQuery {
    pod: Option<String>,
}

const REFUSAL: &str = "koordlet shows its state to clients on its own node; forward this port of its pod (kubectl port-forward) and ask there, or start koordlet with \
     --insecure-debug, which shows it to everybody who can reach the port";

/// The pages of the agent's state. `version` is that of the program.
pub fn node_pages(agent: Arc<Mutex<Agent>>, clock: SharedClock, version: &'static str, readers: NodeReaders) -> Router {
    let pages = Pages { agent, clock, version, reading: Arc::new(Semaphore::new(1)) };
    Router::new()
        .route(STATUS_PATH, get(status))
        .route(FILES_PATH, get(files))
        .with_state(pages)
        .layer(middleware::from_fn_with_state(readers, permit))
}

/// Refuses clients that may not read the state.
async fn permit(State(readers): State<NodeReaders>, request: Request, next: Next) -> Response {
    let client = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|client| client.0.ip());
    if readers.include(client) {
        next.run(request).await
    } else {
        answer(StatusCode::FORBIDDEN, &json!({"message": REFUSAL}))
    }
}

async fn status(State(pages): State<Pages>) -> Response {
    let now = pages.now();
    let status = pages.agent.lock().status(pages.version, now);
    answer(StatusCode::OK, &status)
}

async fn files(State(pages): State<Pages>, Query(query): Query<FilesQuery>) -> Response {
    let Ok(_reading) = Arc::clone(&pages.reading).acquire_owned().await else { return unavailable() };
    let files = spawn_blocking(move || {
        let wanted = pages.agent.lock().wanted_files(query.pod.as_deref(), pages.now());
        wanted.compare(|| pages.agent.lock())
    });
    match files.await {
        Ok(files) => answer(StatusCode::OK, &files),
        Err(_) => unavailable(),
    }
}

fn unavailable() -> Response {
    let message = "the files could not be read; see the log of koordlet";
    answer(StatusCode::INTERNAL_SERVER_ERROR, &json!({"message": message}))
}

fn answer(code: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_string(document) {
        Ok(body) => (code, [(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl Pages {
    fn now(&self) -> Now {
        Now { moment: self.clock.moment(), time: self.clock.now() }
    }
}
