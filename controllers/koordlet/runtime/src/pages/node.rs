//! The state of the agent as JSON: [`NodeStatus`](koord_koordlet_state::NodeStatus) and [`NodeFiles`](koord_koordlet_state::NodeFiles).

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

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

use crate::agent::{Agent, Now};

/// Who may read the state of an agent. It names pods, settings and files of all tenants of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReaders {
    /// Clients at a loopback address: processes in the network of the agent, and whoever may forward a port of its pod.
    Local,
    /// Everybody who can reach the port.
    All,
}

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

impl NodeReaders {
    /// Whether a client at this address is among them; one whose address is not known is no local one.
    fn include(self, client: Option<IpAddr>) -> bool {
        match self {
            Self::All => true,
            Self::Local => client.is_some_and(|address| address.to_canonical().is_loopback()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_other_machines_read_the_state_only_where_all_may() {
        for (client, is_local) in [
            (Some("127.0.0.1"), true),
            (Some("127.8.9.1"), true),
            (Some("::1"), true),
            (Some("::ffff:127.0.0.1"), true),
            (Some("10.0.0.7"), false),
            (Some("::ffff:10.0.0.7"), false),
            (Some("169.254.0.1"), false),
            (None, false),
        ] {
            let client = client.map(|address| address.parse().unwrap());
            assert_eq!(NodeReaders::Local.include(client), is_local, "{client:?}");
            assert!(NodeReaders::All.include(client), "{client:?}");
        }
    }
}
