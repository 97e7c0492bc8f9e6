//! Subresources.

use std::sync::Arc;

use http::Method;

use super::{ApiServer, Outcome, write::Write};
use crate::{
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
};

impl ApiServer {
    pub(super) fn route_subresource(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        if definition.subresource(&target.subresource).is_none() {
            return Err(ApiError::no_such_resource());
        }
        match (target.subresource.as_str(), &request.method) {
            ("status", &Method::GET) => self.get(request, &target, &definition),
            ("status", &Method::PUT) => self.update(request, target, definition),
            ("status", &Method::PATCH) => self.patch(request, target, definition),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    pub(super) fn run_subresource(&mut self, _write: Write) -> Result<Outcome, ApiError> {
        Err(ApiError::no_such_resource())
    }
}
