//! What is set while the program runs, and what it does not serve: `/debug/…`; and what is not served to everybody.

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::{any, put},
};
use koord_program::{
    debug::{self, Refusal, value},
    flags::switch,
};
use koord_scheduler_runtime::Dumps;

use crate::services::refused;

/// What changes the program, or shows what users of the cluster have. It is served to those whom the API server permits it.
const GUARDED: [&str; 4] = ["/apis/v1/{*path}", "/configz", "/debug/{*path}", "/metrics/resources"];

/// In the place of what is guarded, where everybody may ask: where it is served.
pub(crate) fn guards() -> Router {
    GUARDED.into_iter().fold(Router::new(), |router, path| router.route(path, any(elsewhere)))
}

async fn elsewhere() -> Response {
    let message = "this is served at the secure port (--secure-port, 10259) to users whom the API server permits it; --insecure-debug serves it here, to everybody";
    refused(StatusCode::FORBIDDEN, message)
}

/// The routes. Where profiling is on, who asks for a profile learns how one is taken.
pub(crate) fn routes(dumps: Dumps, has_profiling: bool) -> Router {
    debug::routes(has_profiling)
        .route("/debug/flags/s", put(set_scores).with_state(dumps.clone()))
        .route("/debug/flags/f", put(set_refusals).with_state(dumps))
        .route("/debug/flags/{flag}", put(not_logged))
}

/// Sets how many nodes with the highest scores are logged of every attempt.
async fn set_scores(State(dumps): State<Dumps>, body: Body) -> Result<String, Refusal> {
    let value = value(body).await?;
    let Ok(nodes) = value.parse::<usize>() else {
        return Err(Refusal(StatusCode::BAD_REQUEST, format!("{value:?} is no number of nodes, such as 10")));
    };
    dumps.set_scores(nodes);
    Ok(format!("successfully set debugTopNScores to {nodes}"))
}

/// Sets whether it is logged of every attempt who refuses which node.
async fn set_refusals(State(dumps): State<Dumps>, body: Body) -> Result<String, Refusal> {
    let value = value(body).await?;
    let Ok(are_logged) = switch(&value) else {
        return Err(Refusal(StatusCode::BAD_REQUEST, format!("{value:?} is neither true nor false")));
    };
    dumps.set_refusals(are_logged);
    Ok(format!("successfully set debugFilterFailure to {are_logged}"))
}

/// What the original logs of diagnoses.
async fn not_logged(Path(flag): Path<String>) -> Response {
    let message = match &*flag {
        "d" | "db" => {
            "diagnoses are kept, not logged: koordctl why POD --history shows the last attempts of a pod, a ScheduleExplanation what holds now"
        }
        _ => {
            let known = "v sets the verbosity of the logs, s and f what is logged of scores and refusals";
            return refused(StatusCode::NOT_FOUND, &format!("there is no flag {flag}; {known}"));
        }
    };
    refused(StatusCode::NOT_IMPLEMENTED, message)
}
