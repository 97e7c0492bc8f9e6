//! Get.

use std::sync::Arc;

use serde_json::json;

use super::{ApiResponse, ApiServer, Outcome, subject};
use crate::{
    encode, negotiate,
    negotiate::{Format, Representation, Shape},
    present,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
    tables::Printer,
};

impl ApiServer {
    pub(super) fn get(
        &mut self,
        request: &ApiRequest,
        target: &Target,
        definition: &Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let key = definition.key(&target.namespace, &target.name);
        let record = self.store.view(definition.collection).get(&key);
        let record = record.ok_or_else(|| ApiError::not_found(subject(definition, &target.name)))?;
        if let Some(asked) = request.parameter("resourceVersion").filter(|asked| !asked.is_empty()) {
            let asked = asked.parse::<u64>().map_err(|_| ApiError::unclassified(super::list::version_error(asked)))?;
            if asked > self.store.shown() {
                return Err(super::list::too_large(asked, self.store.shown()));
            }
        }
        if representation == Representation::default() {
            return Ok(Outcome::Done(ApiResponse::json(200, encode::object_bytes(definition, record))));
        }
        let object = encode::value(definition, record);
        Ok(Outcome::Done(self.present(200, definition, object, request, representation)))
    }

    /// The answer that carries one object, in the shape and format asked for.
    pub(super) fn present(
        &mut self,
        code: u16,
        definition: &ResourceDef,
        object: serde_json::Value,
        request: &ApiRequest,
        representation: Representation,
    ) -> ApiResponse {
        let shaped = match representation.shape {
            _ if object["kind"] == "Status" => object,
            Shape::Object => object,
            Shape::Metadata(version) => present::partial_metadata(&object, version),
            Shape::MetadataList(_) => return ApiResponse::error(&present::not_a_list(definition)),
            Shape::Table(version) => {
                let include = match present::Include::read(request) {
                    Ok(include) => include,
                    Err(error) => return ApiResponse::error(&error),
                };
                let list = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                Printer::new(definition, version, include, self.environment.now()).table([object], &list, true)
            }
        };
        let format = if shaped["kind"] == "Status" { Format::Json } else { representation.format };
        ApiResponse::value(code, &shaped, format)
    }
}
