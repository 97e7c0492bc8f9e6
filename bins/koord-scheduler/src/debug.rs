//! What is set while the program runs, and what it does not serve: `/debug/…`; and what is not served to everybody.

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{any, get, put},
};
use koord_program::{flags::switch, logs};
use koord_scheduler_runtime::Dumps;

use crate::services::refused;

/// Most bytes of the value of a flag.
const VALUE_BYTES_MAX: usize = 64;

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
    let router = Router::new()
        .route("/debug/flags/v", put(set_verbosity))
        .route("/debug/flags/s", put(set_scores).with_state(dumps.clone()))
        .route("/debug/flags/f", put(set_refusals).with_state(dumps))
        .route("/debug/flags/{flag}", put(not_logged));
    if !has_profiling {
        return router;
    }
    ["/debug/pprof", "/debug/pprof/", "/debug/pprof/{*profile}"]
        .into_iter()
        .fold(router, |router, path| router.route(path, get(no_profiles)))
}

/// Sets how much is logged, as `-v` does.
async fn set_verbosity(body: Body) -> Result<String, Refusal> {
    let value = value(body).await?;
    let Ok(verbosity) = value.parse::<u8>() else {
        return Err(Refusal(StatusCode::BAD_REQUEST, format!("{value:?} is no verbosity, such as 4")));
    };
    if !logs::set(&logs::filter(verbosity, &[])) {
        return Err(Refusal(
            StatusCode::CONFLICT,
            "the logs of this process belong to another program in it".to_owned(),
        ));
    }
    Ok(format!("successfully set klog.logging.verbosity to {verbosity}"))
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

/// The value of a flag.
async fn value(body: Body) -> Result<String, Refusal> {
    let bytes = koord_listen::read(body, VALUE_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| Refusal(error.status(), error.to_string()))?;
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| Refusal(StatusCode::BAD_REQUEST, "the value is not UTF-8".to_owned()))?;
    Ok(text.trim().to_owned())
}

/// Why a flag is not set.
struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(self.0, &self.1)
    }
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

async fn no_profiles() -> Response {
    let message = "profiles are not served: perf record --call-graph dwarf -p PID, or samply record -p PID, takes one from outside, and /metrics has the time that decisions take";
    refused(StatusCode::NOT_IMPLEMENTED, message)
}
