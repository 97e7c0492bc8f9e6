//! The way of a review from the API server to the operator of the same process.

use std::sync::Arc;

use bytes::Bytes;
use envtest::{admission::Transport, shell::BoxFuture};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use koord_webhook_server::Service;
use parking_lot::Mutex;

/// Carries reviews to whatever service the operator has just now.
#[derive(Clone, Default)]
pub(crate) struct Reviews(Arc<Mutex<Option<Service>>>);

impl Reviews {
    pub(crate) fn are_answered_by(&self, service: Option<Service>) {
        *self.0.lock() = service;
    }

    async fn carry(&self, url: &str, review: Vec<u8>) -> Result<Bytes, String> {
        let failed = |why: &dyn std::fmt::Display| format!("Post \"{url}\": {why}");
        let service = self.0.lock().clone();
        let service = service.ok_or_else(|| {
            failed(
                &"the operator serves no webhooks: the function that adds its controllers must give back their Service",
            )
        })?;
        let request = Request::post(url).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(review))).map_err(|error| failed(&error))?;
        let answer = match service.answer(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
        if status.is_success() { Ok(body) } else { Err(failed(&status)) }
    }
}

impl Transport for Reviews {
    fn post<'a>(&'a self, url: &'a str, _: &'a [u8], review: Vec<u8>) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(self.carry(url, review))
    }
}
