//! Pages of the agent beside its metrics: audit events, and its state for koordctl.

mod node;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use koord_runtime::{clock::SharedClock, random::Random};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::node::node_pages;
use crate::{agent::Agent, audit::PageError};

#[derive(Clone)]
struct Pages {
    agent: Arc<Mutex<Agent>>,
    clock: SharedClock,
    random: Random,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsQuery {
    size: Option<String>,
    page_token: Option<String>,
}

/// The page of audit events, where it is on.
pub fn audit_pages(agent: Arc<Mutex<Agent>>, clock: SharedClock, random: Random) -> Router {
    Router::new().route("/events", get(events)).with_state(Pages { agent, clock, random })
}

async fn events(State(pages): State<Pages>, Query(query): Query<EventsQuery>, headers: HeaderMap) -> Response {
    // What is no number is as if it were absent.
    let size = query.size.and_then(|size| size.parse().ok());
    let token = query.page_token.filter(|token| !token.is_empty());
    let now = pages.clock.moment();
    let page = {
        let mut agent = pages.agent.lock();
        let Some(audit) = agent.audit_log() else {
            return (StatusCode::NOT_FOUND, "events are not audited: set --feature-gates=AuditEvents=true\n")
                .into_response();
        };
        audit.page(token.as_deref(), size, now, || pages.random.uuid())
    };
    let page = match page {
        Ok(page) => page,
        Err(error @ PageError::UnknownToken) => return (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
        Err(error @ PageError::TooLarge { .. }) => {
            return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
        }
    };
    let next = page.next.unwrap_or_default();
    if headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json") {
        let body = json!({"NextPageToken": next, "Events": page.events}).to_string();
        return ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    let lines: Vec<String> = page.events.iter().map(line).collect();
    let text = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
    let mut response = text.into_response();
    if !next.is_empty()
        && let Ok(next) = next.parse()
    {
        response.headers_mut().insert("Next-Page-Token", next);
    }
    response
}

/// An event in one line.
fn line(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().unwrap_or_default();
    let mut about = vec![field("type")];
    about.extend([field("namespace"), field("name"), field("container")].into_iter().filter(|name| !name.is_empty()));
    format!("{} {} {} {}", field("createdAt"), about.join("/"), field("reason"), field("message"))
}
