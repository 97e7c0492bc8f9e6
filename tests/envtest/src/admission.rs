//! Admission webhooks: mutating ones in order, validating ones at once.

mod answer;
mod caller;
mod client;
mod conditions;
mod configuration;
mod converter;
mod matching;
mod review;
mod services;
mod transport;

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use koord_schema::patch::json;
use serde_json::Value;

pub use services::{ServiceAlias, ServiceAliasError};
pub use transport::Transport;

use caller::Caller;
pub use converter::Converter;

use configuration::Webhook;
use matching::Match;
use review::Verdict;

use crate::registry::ResourceDef;
use crate::server::{Admitted, Attributes, Phase, Review, subject};
use crate::shell::{Admission, BoxFuture, Server};
use crate::status::ApiError;
use crate::{decode, environment};

/// Asks admission webhooks.
#[derive(Default)]
pub struct Webhooks {
    caller: Arc<Caller>,
}

/// A webhook that matches a request.
struct Call {
    webhook: Webhook,
    found: Match,
}

/// What came of one call.
#[derive(Default)]
struct Answer {
    patch: Option<Value>,
    warnings: Vec<String>,
}

// === impl Webhooks ===

impl Webhooks {
    /// Webhooks whose services are found by these aliases first.
    pub fn new(aliases: Vec<ServiceAlias>) -> Self {
        Self { caller: Arc::new(Caller::new(aliases)) }
    }

    /// Webhooks that are reached in another way than over TLS.
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self { caller: Arc::new(Caller::over(transport)) }
    }

    /// What asks conversion webhooks in the same way.
    pub fn converter(&self) -> Converter {
        Converter::new(Arc::clone(&self.caller))
    }

    /// The webhooks of the review's phase that want to see the request.
    fn calls(server: &Server, review: &Review, about: &Attributes<'_>) -> Result<Vec<Call>, ApiError> {
        server.with_core(|core| {
            let mut calls = Vec::new();
            for webhook in configuration::webhooks(core, review.phase()) {
                match matching::find(core, &webhook, about) {
                    Ok(Some(found)) => calls.push(Call { webhook, found }),
                    Ok(None) => {}
                    Err(error) => return Err(ApiError::internal(error)),
                }
            }
            Ok(calls)
        })
    }

    async fn mutate(&self, server: &Server, about: &Attributes<'_>, calls: Vec<Call>) -> Result<Admitted, ApiError> {
        let mut admitted = Admitted::default();
        let mut object = about.object.clone();
        // Whether a later webhook changed the object after this one had seen it.
        let mut stale = vec![false; calls.len()];
        for (index, call) in calls.iter().enumerate() {
            if self.mutate_once(server, about, call, &mut object, &mut admitted).await? {
                for (earlier, stale) in calls[..index].iter().zip(&mut stale) {
                    *stale |= earlier.webhook.reinvoked;
                }
            }
        }
        for (call, _) in calls.iter().zip(stale).filter(|(_, stale)| *stale) {
            self.mutate_once(server, about, call, &mut object, &mut admitted).await?;
        }
        if object != *about.object {
            admitted.object = Some(object);
        }
        Ok(admitted)
    }

    /// Asks one mutating webhook; whether the object is another now.
    async fn mutate_once(
        &self,
        server: &Server,
        about: &Attributes<'_>,
        call: &Call,
        object: &mut Value,
        admitted: &mut Admitted,
    ) -> Result<bool, ApiError> {
        let answer = self.ask(server, about, call, object, true).await;
        let answer = answer.map_err(|error| error.with_warnings(admitted.warnings.clone()))?;
        admitted.warnings.extend(answer.warnings);
        let Some(patch) = answer.patch.filter(|_| !object.is_null()) else { return Ok(false) };
        let patched = apply(server, about, &call.found, object, &patch).await?;
        let changed = patched != *object;
        *object = patched;
        Ok(changed)
    }

    async fn validate(&self, server: &Server, about: &Attributes<'_>, calls: Vec<Call>) -> Result<Admitted, ApiError> {
        let mut admitted = Admitted::default();
        let mut refused = None;
        let mut asked: FuturesUnordered<_> =
            calls.iter().map(|call| self.ask(server, about, call, about.object, false)).collect();
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(answer) => admitted.warnings.extend(answer.warnings),
                Err(error) if refused.is_none() => refused = Some(error),
                Err(error) => admitted.warnings.extend(error.failure().warnings.clone()),
            }
        }
        match refused {
            None => Ok(admitted),
            Some(error) => Err(error.with_warnings(admitted.warnings)),
        }
    }

    /// Asks one webhook about an object, by its own rules for failures.
    async fn ask(
        &self,
        server: &Server,
        about: &Attributes<'_>,
        call: &Call,
        object: &Value,
        mutating: bool,
    ) -> Result<Answer, ApiError> {
        let webhook = &call.webhook;
        let name = &webhook.name;
        let uid = server.with_core(|core| environment::uid(core.environment()));
        let Some(version) = webhook.review_version else {
            return failed(webhook, "webhook does not accept known AdmissionReview versions (v1, v1beta1)");
        };
        let definition = call.found.definition(about);
        let object = in_version(server, object, about.definition, definition).await?;
        let old = match about.old_object {
            Some(old) => in_version(server, old, about.definition, definition).await?,
            None => Value::Null,
        };
        let review = review::request(about, definition, [object, old], version, &uid);
        if !webhook.conditions.is_empty() {
            let (expressions, request) = (webhook.conditions.clone(), review["request"].clone());
            let holds = tokio::task::spawn_blocking(move || conditions::hold(&expressions, &request)).await;
            match holds.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(true) => {}
                Ok(false) => return Ok(Answer::default()),
                Err(_) if webhook.ignores_failure => return Ok(Answer::default()),
                Err(why) => return Err(ApiError::forbidden(subject(about.definition, about.name), &why)),
            }
        }
        if about.dry_run && webhook.has_side_effects {
            let message = format!("admission webhook \"{name}\" does not support dry run");
            return Err(ApiError::bad_request(message));
        }
        let answer = match self.caller.call(server, &webhook.place, &review).await {
            Ok(answer) => answer,
            Err(why) => return failed(webhook, &format!("failed to call webhook: {why}")),
        };
        let (warnings, verdict) = review::read(name, &answer, version, &uid, mutating);
        match verdict {
            Ok(Verdict::Allowed(patch)) => Ok(Answer { patch, warnings }),
            Ok(Verdict::Denied(error)) => Err(error.with_warnings(warnings)),
            Err(why) => failed(webhook, &why),
        }
    }
}

/// A call that gave no verdict: the request goes on or fails, as the webhook wants it.
fn failed(webhook: &Webhook, why: &str) -> Result<Answer, ApiError> {
    if webhook.ignores_failure {
        tracing::debug!(webhook = webhook.name, why, "webhook failed and is ignored");
        return Ok(Answer::default());
    }
    Err(ApiError::internal(format!("failed calling webhook \"{}\": {why}", webhook.name)))
}

/// The object with a webhook's patch applied, in the version of the request.
async fn apply(
    server: &Server,
    about: &Attributes<'_>,
    found: &Match,
    object: &Value,
    patch: &Value,
) -> Result<Value, ApiError> {
    let definition = found.definition(about);
    let seen = in_version(server, object, about.definition, definition).await?;
    let patched = apply_operations(seen, patch).map_err(ApiError::internal)?;
    let patched = decode::reshaped(patched, definition, about.subresource)?;
    in_version(server, &patched, definition, about.definition).await
}

/// An object in another version of its resource, asking the kind's conversion webhook where it has one.
async fn in_version(server: &Server, object: &Value, from: &ResourceDef, to: &ResourceDef) -> Result<Value, ApiError> {
    let version = to.api_version();
    match &to.conversion {
        _ if !object.is_object() || from.api_version() == version => Ok(object.clone()),
        None => Ok(review::convert(object, from, to)),
        Some(webhook) => {
            let converted = server.convert(webhook, object, &version).await;
            let mut converted = converted.map_err(|error| ApiError::internal(&error.failure().message))?;
            webhook.settle_converted(&mut converted);
            Ok(converted)
        }
    }
}

/// Applies a JSON patch operation by operation, so that the error for the one that fails is the API server's.
fn apply_operations(mut object: Value, patch: &Value) -> Result<Value, String> {
    for operation in patch.as_array().into_iter().flatten() {
        let text = |field: &str| operation[field].as_str().unwrap_or_default();
        let (kind, path) = (text("op"), text("path"));
        // The library of kube-apiserver lets these two address the document as a whole.
        if path.is_empty() && matches!(kind, "add" | "replace") {
            object = operation["value"].clone();
            continue;
        }
        object = json::apply(object, &Value::Array(vec![operation.clone()])).map_err(|error| match kind {
            "remove" => {
                let key = path.rsplit('/').next().unwrap_or_default();
                format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
            }
            "replace" => format!("replace operation does not apply: doc is missing key: {path}: missing value"),
            "add" => format!("add operation does not apply: doc is missing path: \"{path}\": missing value"),
            "test" => format!("testing value {path} failed: test failed"),
            _ => error.to_string(),
        })?;
    }
    Ok(object)
}

impl Admission for Webhooks {
    fn review<'a>(&'a self, server: &'a Server, review: &'a Review) -> BoxFuture<'a, Result<Admitted, ApiError>> {
        Box::pin(async move {
            let about = review.attributes();
            let calls = Self::calls(server, review, &about)?;
            if calls.is_empty() {
                return Ok(Admitted::default());
            }
            match review.phase() {
                Phase::Mutating => self.mutate(server, &about, calls).await,
                Phase::Validating => self.validate(server, &about, calls).await,
            }
        })
    }
}
