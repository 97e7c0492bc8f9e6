//! What the scheduler knows, for people: `/apis/v1/…`.

use std::time::Duration;

use axum::{
    Router,
    extract::{Path, Query as Parameters, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use koord_scheduler_framework::Query;
use koord_scheduler_runtime::{EngineReader, ReadError};
use serde_json::{Value, json};

/// How long an answer may take: decisions are made in between.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(crate) fn routes(reader: EngineReader) -> Router {
    Router::new().route("/apis/v1/{*path}", get(answer).with_state(reader))
}

async fn answer(
    State(reader): State<EngineReader>,
    Path(path): Path<String>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Response {
    let query: Query = parameters.into_iter().collect();
    match tokio::time::timeout(ANSWER_MAX, reader.get_with(&path, query)).await {
        Ok(Ok(answer)) => with(StatusCode::OK, &answer),
        Ok(Err(ReadError::Unknown)) => refused(StatusCode::NOT_FOUND, &format!("nothing is known as {path}")),
        Ok(Err(ReadError::NotFound(what))) => refused(StatusCode::NOT_FOUND, &what),
        Ok(Err(ReadError::Failed(why))) => refused(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Ok(Err(not_leading @ ReadError::NotLeading)) => {
            refused(StatusCode::SERVICE_UNAVAILABLE, &not_leading.to_string())
        }
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the scheduler does not answer in time"),
    }
}

pub(crate) fn refused(code: StatusCode, message: &str) -> Response {
    with(code, &json!({ "message": message }))
}

fn with(code: StatusCode, body: &Value) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
