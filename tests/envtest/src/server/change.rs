//! Create and update: what the body says.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ApiResponse, ApiServer, Outcome, identity, subject,
    write::{Effect, Order, Write},
};
use crate::{
    decode, metadata,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
};

impl ApiServer {
    pub(super) fn create(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let order = Order::read(request, target, definition, "CreateOptions", false)?;
        let decoded = decode::object(request, &order.definition, order.options.field_validation)?;
        self.submit(order.write(None, decoded, false))
    }

    pub(super) fn update(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let order = Order::read(request, target, definition, "UpdateOptions", false)?;
        let mut decoded = decode::object(request, &order.definition, order.options.field_validation)?;
        identity::match_namespace(&order.target, &mut decoded.object)
            .and_then(|()| identity::check_name(&decoded.object, &order.target))
            .map_err(|error| error.with_warnings(decoded.warnings.clone()))?;
        let stored = self.stored(&order.definition, &order.target);
        let may_create = order.definition.strategy.creates_on_update() && order.target.subresource.is_empty();
        if stored.is_none() && !may_create {
            return Err(ApiError::not_found(subject(&order.definition, &order.target.name)));
        }
        let is_conditional = !matches!(metadata::text(&decoded.object, "resourceVersion"), "" | "0");
        self.submit(order.write(stored, decoded, is_conditional))
    }

    /// The answer of a finished write.
    pub(super) fn answer(&mut self, write: &Write, code: u16, object: Value) -> ApiResponse {
        let object = if write.target.subresource == "scale" && write.effect == Effect::Store {
            super::subresource::scale_of(&write.definition, &object).unwrap_or(object)
        } else {
            object
        };
        let mut response = self.present(code, &write.definition, object, &write.request, write.representation);
        response.warnings.extend(write.warnings.iter().cloned());
        response
    }
}
