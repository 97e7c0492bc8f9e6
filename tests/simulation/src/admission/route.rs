//! The route of a review from the server to a replica: a Service with endpoints that are ready, and TLS without sockets.

use std::{collections::BTreeMap, str, sync::Arc};

use bytes::Bytes;
use envtest::{admission::Transport, shell::BoxFuture};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use koord_runtime::{Watch, clock::SharedClock};
use koord_webhook_server::{Service, WebhookController, certificates::verifies};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Fault, network::Disruptions};

/// Where quotas are validated.
const QUOTAS: &str = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota";
/// How long a review may be on its way, at most.
const DELAY: std::time::Duration = std::time::Duration::from_secs(2);

/// A replica as the Service sees it.
#[derive(Clone)]
pub(super) struct Reached {
    pub(super) number: u64,
    pub(super) service: Service,
    pub(super) controller: Arc<WebhookController>,
    pub(super) quotas: Arc<Watch>,
}

/// Who validated a quota last, and what it knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    pub(super) replica: u64,
    /// The newest revision that its cache of quotas had seen.
    pub(super) knows: u64,
}

/// Carries reviews to the replicas whose endpoints are ready.
#[derive(Clone)]
pub(super) struct Route(Arc<Shared>);

struct Shared {
    disruptions: Arc<Disruptions>,
    clock: SharedClock,
    endpoints: Mutex<Vec<Reached>>,
    distrusted: Mutex<u64>,
    /// By the name of the quota.
    judges: Mutex<BTreeMap<String, Judge>>,
}

impl Route {
    pub(super) fn new(disruptions: Arc<Disruptions>, clock: SharedClock) -> Self {
        let (endpoints, distrusted, judges) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { disruptions, clock, endpoints, distrusted, judges }))
    }

    pub(super) fn open(&self, endpoint: Reached) {
        self.0.endpoints.lock().push(endpoint);
    }

    pub(super) fn close(&self, number: u64) {
        self.0.endpoints.lock().retain(|endpoint| endpoint.number != number);
    }

    pub(super) fn close_all(&self) {
        self.0.endpoints.lock().clear();
    }

    /// Reviews that found nobody ready, or nobody to trust.
    pub(super) fn distrusted(&self) -> u64 {
        *self.0.distrusted.lock()
    }

    pub(super) fn forget_distrust(&self) {
        *self.0.distrusted.lock() = 0;
    }

    /// Who validated the quota of this name since it was asked the last time.
    pub(super) fn judge(&self, quota: &str) -> Option<Judge> {
        self.0.judges.lock().remove(quota)
    }

    async fn carry(&self, url: &str, ca_bundle: &[u8], review: Vec<u8>) -> Result<Bytes, String> {
        let disruptions = &self.0.disruptions;
        let failed = |why: &str| format!("Post \"{url}\": {why}");
        if disruptions.chance(4) {
            let delay = disruptions.span(DELAY);
            self.0.clock.sleep(delay).await;
        }
        if disruptions.chance(50) {
            disruptions.struck(Fault::Lost);
            return Err(failed("read: connection reset by peer"));
        }
        let ready: Vec<Reached> =
            self.0.endpoints.lock().iter().filter(|endpoint| endpoint.controller.ready().is_ok()).cloned().collect();
        let Some(endpoint) = ready.first() else {
            *self.0.distrusted.lock() += 1;
            return Err(failed("connect: connection refused"));
        };
        let uri: http::Uri = url.parse().map_err(|_| failed("not a URL"))?;
        let presented = endpoint.controller.certificate().presented().unwrap_or_default();
        let authorities = str::from_utf8(ca_bundle).unwrap_or_default();
        if !verifies(&presented, authorities, uri.host().unwrap_or_default(), self.0.clock.now()) {
            *self.0.distrusted.lock() += 1;
            disruptions.note(format_args!("{url}: nobody to trust"));
            return Err(failed("tls: failed to verify certificate: x509: certificate signed by unknown authority"));
        }
        if uri.path().starts_with("/mutate-") {
            self.examine(&endpoint.service, uri.path(), &review);
        }
        if uri.path() == QUOTAS
            && let Some(name) = name_in(&review)
        {
            let knows = endpoint.quotas.reflector.lock().revision().0;
            self.0.judges.lock().insert(name, Judge { replica: endpoint.number, knows });
        }
        let request = Request::post(uri.clone()).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(review))).map_err(|error| failed(&error.to_string()))?;
        let answer = match endpoint.service.answer(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let body = answer.into_body().collect().await.map_err(|error| failed(&error.to_string()))?.to_bytes();
        disruptions.note(format_args!("{}: {} is answered with {} bytes", endpoint.number, uri.path(), body.len()));
        Ok(body)
    }

    /// A mutation is the same each time it is asked for, and there is nothing left to mutate after it.
    fn examine(&self, service: &Service, path: &str, review: &[u8]) {
        let decide = |review: &[u8]| service.decide(path, review).unwrap_or_default();
        let first = decide(review);
        if decide(review) != first {
            return self.0.disruptions.breaks(format!("{path} answers differently when it is asked again"));
        }
        let (Ok(mut asked), Some(patch)) = (serde_json::from_slice::<Value>(review), patch_of(&first)) else { return };
        let object = asked["request"]["object"].take();
        let Ok(mutated) = koord_schema::patch::json::apply(object, &patch) else {
            return self.0.disruptions.breaks(format!("{path} gives a patch that does not fit: {patch}"));
        };
        asked["request"]["object"] = mutated;
        let again = decide(asked.to_string().as_bytes());
        if let Some(more) = patch_of(&again).filter(|more| *more != json!([])) {
            self.0.disruptions.breaks(format!("{path} mutates what it has mutated: {patch}, then {more}"));
        }
    }
}

/// The name of the object that a review is about.
fn name_in(review: &[u8]) -> Option<String> {
    let review: Value = serde_json::from_slice(review).ok()?;
    review["request"]["name"].as_str().map(str::to_owned)
}

/// The JSON patch of an answer.
fn patch_of(answer: &[u8]) -> Option<Value> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let patch = STANDARD.decode(answer["response"]["patch"].as_str()?).ok()?;
    serde_json::from_slice(&patch).ok()
}

impl Transport for Route {
    fn post<'a>(&'a self, url: &'a str, ca_bundle: &'a [u8], review: Vec<u8>) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(self.carry(url, ca_bundle, review))
    }
}
