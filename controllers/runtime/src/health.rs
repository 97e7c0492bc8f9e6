//! Health and readiness: named checks behind `/healthz`, `/livez` and `/readyz`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use parking_lot::RwLock;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a program. Without any, it is healthy and ready.
#[derive(Clone, Default)]
pub struct Health {
    live: Arc<RwLock<BTreeMap<String, Check>>>,
    ready: Arc<RwLock<BTreeMap<String, Check>>>,
}

impl Health {
    /// Adds a check to `/healthz` and `/livez`; an error says what is wrong.
    pub fn live(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.live.write().insert(name.to_owned(), Arc::new(check));
    }

    /// Adds a check to `/readyz`.
    pub fn ready(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.ready.write().insert(name.to_owned(), Arc::new(check));
    }

    /// Whether every readiness check passes; else the first that does not.
    pub fn is_ready(&self) -> Result<(), String> {
        self.ready.read().iter().try_for_each(|(name, check)| check().map_err(|reason| format!("{name}: {reason}")))
    }

    /// The endpoints. `/readyz/NAME` asks one check.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(all).with_state(Arc::clone(&self.live)))
            .route("/healthz/{name}", get(one).with_state(Arc::clone(&self.live)))
            .route("/livez", get(all).with_state(Arc::clone(&self.live)))
            .route("/readyz", get(all).with_state(Arc::clone(&self.ready)))
            .route("/readyz/{name}", get(one).with_state(Arc::clone(&self.ready)))
    }
}

type Checks = Arc<RwLock<BTreeMap<String, Check>>>;

async fn all(State(checks): State<Checks>) -> (StatusCode, String) {
    let mut failed = false;
    let mut line = |(name, check): (&String, &Check)| match check() {
        Ok(()) => format!("[+]{name} ok\n"),
        Err(reason) => {
            failed = true;
            format!("[-]{name} failed: {reason}\n")
        }
    };
    let lines: String = checks.read().iter().map(&mut line).collect();
    if failed { (StatusCode::INTERNAL_SERVER_ERROR, lines) } else { (StatusCode::OK, "ok".to_owned()) }
}

async fn one(State(checks): State<Checks>, Path(name): Path<String>) -> (StatusCode, String) {
    match checks.read().get(&name).map(|check| check()) {
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}")),
        Some(Ok(())) => (StatusCode::OK, "ok".to_owned()),
        Some(Err(reason)) => (StatusCode::INTERNAL_SERVER_ERROR, reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failing_check_is_named_and_the_endpoint_is_always_there() {
        let health = Health::default();
        assert_eq!(all(State(Arc::clone(&health.ready))).await, (StatusCode::OK, "ok".to_owned()));
        health.ready("webhook-ready", || Err("the certificate is not known yet".to_owned()));
        health.ready("caches", || Ok(()));
        let (code, body) = all(State(Arc::clone(&health.ready))).await;
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(body, "[+]caches ok\n[-]webhook-ready failed: the certificate is not known yet\n");
        assert_eq!(health.is_ready().unwrap_err(), "webhook-ready: the certificate is not known yet");
        let one = |name: &str| one(State(Arc::clone(&health.ready)), Path(name.to_owned()));
        assert_eq!((one("caches").await.0, one("x").await.0), (StatusCode::OK, StatusCode::NOT_FOUND));
    }
}
