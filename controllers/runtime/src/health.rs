//! Health and readiness: named checks behind `/healthz`, `/livez` and `/readyz`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Path, Query, State},
    http::StatusCode,
    routing::get,
};
use parking_lot::RwLock;
use prometheus::{IntCounterVec, IntGaugeVec};

use crate::metrics::Metrics;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a program. Without others than `ping`, it is healthy and ready.
#[derive(Clone)]
pub struct Health {
    live: Arc<RwLock<BTreeMap<String, Check>>>,
    ready: Arc<RwLock<BTreeMap<String, Check>>>,
    slis: Option<Slis>,
}

/// What has come of checks, as Kubernetes programs count it.
#[derive(Clone)]
struct Slis {
    last: IntGaugeVec,
    all: IntCounterVec,
}

impl Slis {
    fn count(&self, page: &str, name: &str, is_passed: bool) {
        let status = if is_passed { "success" } else { "error" };
        self.last.with_label_values(&[name, page]).set(is_passed.into());
        self.all.with_label_values(&[name, status, page]).inc();
    }
}

impl Default for Health {
    /// With the check `ping` of `/healthz` and `/livez`, which passes whenever the program answers.
    fn default() -> Self {
        let health = Self { live: Arc::default(), ready: Arc::default(), slis: None };
        health.live("ping", || Ok(()));
        health
    }
}

impl Health {
    /// With `ping` alone, too. What comes of checks whenever a page is asked for is counted at `/metrics/slis`.
    pub fn measured(metrics: &Metrics) -> Self {
        let slis = Slis { last: metrics.health_check.clone(), all: metrics.health_checks.clone() };
        Self { slis: Some(slis), ..Self::default() }
    }

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

    /// The endpoints. `/readyz/NAME` asks one check, `?verbose` says what came of each, and `?exclude=NAME` leaves one out, as in
    /// programs of Kubernetes.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(all).with_state(self.page("healthz")))
            .route("/healthz/{name}", get(one).with_state(self.page("healthz")))
            .route("/livez", get(all).with_state(self.page("livez")))
            .route("/livez/{name}", get(one).with_state(self.page("livez")))
            .route("/readyz", get(all).with_state(self.page("readyz")))
            .route("/readyz/{name}", get(one).with_state(self.page("readyz")))
    }

    fn page(&self, name: &'static str) -> Page {
        let checks = Arc::clone(if name == "readyz" { &self.ready } else { &self.live });
        Page { name, checks, slis: self.slis.clone() }
    }
}

/// The checks behind a page.
#[derive(Clone)]
struct Page {
    name: &'static str,
    checks: Arc<RwLock<BTreeMap<String, Check>>>,
    slis: Option<Slis>,
}

impl Page {
    fn run(&self, name: &str, check: &Check) -> Result<(), String> {
        let result = check();
        if let Some(slis) = &self.slis {
            slis.count(self.name, name, result.is_ok());
        }
        result
    }
}

async fn all(State(page): State<Page>, Query(query): Query<Vec<(String, String)>>) -> (StatusCode, String) {
    let is_verbose = query.iter().any(|(key, _)| key == "verbose");
    let excluded: BTreeSet<&str> =
        query.iter().filter(|(key, _)| key == "exclude").map(|(_, name)| name.as_str()).collect();
    let mut failed = false;
    let line = |(name, check): (&String, &Check)| {
        if excluded.contains(name.as_str()) {
            return format!("[+]{name} excluded: ok\n");
        }
        match page.run(name, check) {
            Ok(()) => format!("[+]{name} ok\n"),
            Err(reason) => {
                failed = true;
                format!("[-]{name} failed: {reason}\n")
            }
        }
    };
    let lines: String = page.checks.read().iter().map(line).collect();
    match (failed, is_verbose) {
        (true, _) => (StatusCode::INTERNAL_SERVER_ERROR, lines),
        (false, true) => (StatusCode::OK, format!("{lines}{} check passed\n", page.name)),
        (false, false) => (StatusCode::OK, "ok".to_owned()),
    }
}

async fn one(State(page): State<Page>, Path(name): Path<String>) -> (StatusCode, String) {
    match page.checks.read().get(&name).map(|check| page.run(&name, check)) {
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}")),
        Some(Ok(())) => (StatusCode::OK, "ok".to_owned()),
        Some(Err(reason)) => (StatusCode::INTERNAL_SERVER_ERROR, reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Audience;

    #[tokio::test]
    async fn a_failing_check_is_named_and_the_endpoint_is_always_there() {
        let metrics = Metrics::new().unwrap();
        let health = Health::measured(&metrics);
        let all = async |page, query: &[(&str, &str)]| {
            let query = query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            all(State(health.page(page)), Query(query)).await
        };
        assert_eq!(all("readyz", &[]).await, (StatusCode::OK, "ok".to_owned()));
        health.live("tasks", || Ok(()));
        let lines = "[+]ping ok\n[+]tasks ok\nlivez check passed\n";
        assert_eq!(all("livez", &[("verbose", "")]).await, (StatusCode::OK, lines.to_owned()));
        let ping = one(State(health.page("healthz")), Path("ping".to_owned())).await;
        assert_eq!(ping, (StatusCode::OK, "ok".to_owned()));
        health.ready("webhook-ready", || Err("the certificate is not known yet".to_owned()));
        health.ready("caches", || Ok(()));
        assert_eq!(all("readyz", &[("exclude", "webhook-ready")]).await.0, StatusCode::OK);
        let (code, body) = all("readyz", &[]).await;
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(body, "[+]caches ok\n[-]webhook-ready failed: the certificate is not known yet\n");
        assert_eq!(health.is_ready().unwrap_err(), "webhook-ready: the certificate is not known yet");
        let one = |name: &str| one(State(health.page("readyz")), Path(name.to_owned()));
        assert_eq!((one("caches").await.0, one("x").await.0), (StatusCode::OK, StatusCode::NOT_FOUND));
        let text = metrics.text(&[Audience::Slis]);
        for line in [
            r#"kubernetes_healthcheck{name="ping",type="healthz"} 1"#,
            r#"kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1"#,
            r#"kubernetes_healthcheck{name="caches",type="readyz"} 1"#,
            r#"kubernetes_healthcheck{name="webhook-ready",type="readyz"} 0"#,
            r#"kubernetes_healthchecks_total{name="caches",status="success",type="readyz"} 3"#,
            r#"kubernetes_healthchecks_total{name="webhook-ready",status="error",type="readyz"} 1"#,
        ] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
    }
}
