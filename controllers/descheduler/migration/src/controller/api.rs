//! What is asked of the API server outside of plans: evictions, and whole objects.

use std::{pin::Pin, sync::Arc};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    effect::EffectError,
    write::{Answer, WireRequest},
};
use koord_types::reservation::Reservation;
use serde_json::Value;

use super::{COMPONENT, EndedEviction, EvictionCounter};
use crate::job::{EvictionRequest, Fetch, Fetched, refusal};

/// An answer that has not come yet, or why none came.
pub type Answered = Pin<Box<dyn Future<Output = Result<Answer, String>> + Send>>;

/// Sends requests to the API server.
pub trait Requester: Send + Sync + 'static {
    fn call(&self, request: WireRequest) -> Answered;
}

impl Requester for Api {
    fn call(&self, request: WireRequest) -> Answered {
        let api = self.clone();
        Box::pin(async move { Api::call(&api, &request).await.map_err(|failure| failure.message) })
    }
}

/// Carries out evictions and counts them.
pub(super) struct Evictions {
    requester: Arc<dyn Requester>,
    counted: EvictionCounter,
}

impl Evictions {
    pub(super) fn new(requester: Arc<dyn Requester>, counted: EvictionCounter) -> Self {
        Self { requester, counted }
    }

    pub(super) fn requester(&self) -> Arc<dyn Requester> {
        Arc::clone(&self.requester)
    }

    /// One eviction. Where the API server takes it, `count` is called.
    pub(super) fn evict<F: FnOnce() + Send>(
        &self,
        request: EvictionRequest,
        now: Timestamp,
        count: Option<F>,
    ) -> impl Future<Output = Result<(), EffectError>> + Send + use<F> {
        let (requester, counted) = (self.requester(), self.counted.clone());
        async move {
            let answer = requester.call(request.request(COMPONENT, now)).await;
            let result = match answer {
                // The pod was gone already: nobody has evicted it here.
                Ok(answer) if is_gone(&answer) => return Ok(()),
                Ok(answer) if answer.is_success() => Ok(()),
                Ok(answer) => {
                    let error = EffectError::new(refusal(&answer));
                    Err(match answer.retry_after {
                        Some(delay) => error.after(delay),
                        None => error,
                    })
                }
                Err(why) => Err(EffectError::new(why)),
            };
            if let Some(count) = count.filter(|_| result.is_ok()) {
                count();
            }
            counted.count(EndedEviction {
                is_done: result.is_ok(),
                strategy: &request.trigger,
                profile: "",
                namespace: request.pod.namespace(),
                node: &request.node,
            });
            result
        }
    }
}

/// Looks an object up. `None` where there is none.
pub(super) fn fetch(
    requester: Arc<dyn Requester>,
    wanted: Fetch,
) -> impl Future<Output = Result<Option<Arc<Value>>, EffectError>> + Send {
    let kind = match wanted.of {
        Fetched::Pod => ResourceKind::POD,
        Fetched::Reservation => ResourceKind::typed::<Reservation>(),
    };
    let uri = kind.url_path(wanted.key.namespace(), Some(wanted.key.name()));
    async move {
        let request = WireRequest { method: "GET", uri, content_type: "application/json", body: String::new() };
        let answer = requester.call(request).await.map_err(EffectError::new)?;
        if is_gone(&answer) {
            return Ok(None);
        }
        if !answer.is_success() {
            let (_, message) = answer.status();
            return Err(EffectError::new(format_args!("the API server answered {}: {message}", answer.code)));
        }
        let object: Value = serde_json::from_str(&answer.body)?;
        let is_same = wanted.uid.is_empty() || object["metadata"]["uid"] == wanted.uid.to_string();
        Ok(is_same.then(|| Arc::new(object)))
    }
}

/// Whether an answer says that the object does not exist, and not that its kind is not served.
fn is_gone(answer: &Answer) -> bool {
    let (reason, message) = answer.status();
    answer.code == 404 && reason == "NotFound" && !message.contains("could not find the requested resource")
}
