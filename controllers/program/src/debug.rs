//! What components of Kubernetes serve under `/debug`: flags that are set while the program runs, and profiles.

use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, put},
};
use serde_json::json;

use crate::logs;

/// Most bytes of the value of a flag.
const VALUE_BYTES_MAX: usize = 64;

/// An answer that refuses a request, as JSON: its status, and a message.
#[derive(Debug)]
pub struct Refusal(pub StatusCode, pub String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "message": self.1 }).to_string();
        (self.0, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// The routes: `/debug/flags/v` sets how much is logged, as `-v` does. Where profiling is on, who asks `/debug/pprof` for a profile learns how one is taken.
pub fn routes(has_profiling: bool) -> Router {
    let router = Router::new().route("/debug/flags/v", put(set_verbosity));
    if !has_profiling {
        return router;
    }
    ["/debug/pprof", "/debug/pprof/", "/debug/pprof/{*profile}"]
        .into_iter()
        .fold(router, |router, path| router.route(path, get(no_profiles)))
}

async fn set_verbosity(body: Body) -> Result<String, Refusal> {
    let value = value(body).await?;
    let Ok(verbosity) = value.parse::<u8>() else {
        return Err(Refusal(StatusCode::BAD_REQUEST, format!("{value:?} is no verbosity, such as 4")));
    };
    if !logs::set(&logs::filter(verbosity, &[])) {
        let message = "the logs of this process belong to another program in it".to_owned();
        return Err(Refusal(StatusCode::CONFLICT, message));
    }
    Ok(format!("successfully set klog.logging.verbosity to {verbosity}"))
}

/// The value of a flag, from the body of a request.
///
/// # Errors
///
/// It is longer than 64 bytes, or no text.
pub async fn value(body: Body) -> Result<String, Refusal> {
    let bytes = koord_listen::read(body, VALUE_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| Refusal(error.status(), error.to_string()))?;
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| Refusal(StatusCode::BAD_REQUEST, "the value is not UTF-8".to_owned()))?;
    Ok(text.trim().to_owned())
}

async fn no_profiles() -> Refusal {
    let message = "profiles are not served: perf record --call-graph dwarf -p PID, or samply record -p PID, takes one from outside, and /metrics has the time that decisions take";
    Refusal(StatusCode::NOT_IMPLEMENTED, message.to_owned())
}
