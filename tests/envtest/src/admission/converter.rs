//! Conversion webhooks: one object in another version.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::caller::{Caller, Place};
use crate::conversion::{self, ConversionWebhook, printed_kind};
use crate::environment;
use crate::shell::{BoxFuture, Conversion, Server};
use crate::status::ApiError;

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks conversion webhooks.
pub struct Converter {
    caller: Arc<Caller>,
}

impl Converter {
    pub(super) fn new(caller: Arc<Caller>) -> Self {
        Self { caller }
    }

    async fn ask(
        &self,
        server: &Server,
        webhook: &ConversionWebhook,
        object: &Value,
        desired: &str,
    ) -> Result<Value, String> {
        let Some(version) = webhook.review_version else {
            return Err("no supported conversion review versions".to_owned());
        };
        let uid = server.with_core(|core| environment::uid(core.environment()));
        let review = conversion::request(version, &uid, object, desired);
        let place = Place::read(&webhook.client_config, TIMEOUT);
        let answer = self.caller.call(server, &place, &review).await;
        let answer = answer.map_err(|why| format!("conversion webhook for {} failed: {why}", printed_kind(object)))?;
        conversion::read(&answer, version, &uid, object, desired)
    }
}

impl Conversion for Converter {
    fn convert<'a>(
        &'a self,
        server: &'a Server,
        webhook: &'a ConversionWebhook,
        object: &'a Value,
        desired: &'a str,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { self.ask(server, webhook, object, desired).await.map_err(ApiError::unclassified) })
    }
}
