//! What is set while the program runs, and what it does not serve: `/debug/…`.

use axum::{
    Router,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, put},
};
use koord_program::logs;

use crate::services::refused;

/// The routes.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/debug/flags/v", put(set_verbosity))
        .route("/debug/flags/{flag}", put(not_logged))
        .route("/debug/pprof/", get(no_profiles))
        .route("/debug/pprof/{*profile}", get(no_profiles))
}

/// Sets how much is logged, as `-v` does.
async fn set_verbosity(body: String) -> Response {
    let Ok(verbosity) = body.trim().parse::<u8>() else {
        return refused(StatusCode::BAD_REQUEST, &format!("{:?} is no verbosity, such as 4", body.trim()));
    };
    if !logs::set(&logs::filter(verbosity, &[])) {
        return refused(StatusCode::CONFLICT, "the logs of this process belong to another program in it");
    }
    format!("successfully set klog.logging.verbosity to {verbosity}").into_response()
}

/// What the original logs of scores, refusals and diagnoses.
async fn not_logged(Path(flag): Path<String>) -> Response {
    let message = match &*flag {
        "s" | "f" | "d" | "db" => {
            "nothing more is logged of single decisions: koordctl why POD shows what every plugin says of every node"
        }
        _ => {
            return refused(
                StatusCode::NOT_FOUND,
                &format!("there is no flag {flag}; v sets the verbosity of the logs"),
            );
        }
    };
    refused(StatusCode::NOT_IMPLEMENTED, message)
}

async fn no_profiles() -> Response {
    let message = "profiles are not served: perf record -g -p PID takes one from outside, and /metrics has the time that decisions take";
    refused(StatusCode::NOT_IMPLEMENTED, message)
}
