//! Subresources: which endpoint does what.

use std::sync::Arc;

use http::Method;
use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use super::{
    ApiResponse, ApiServer, Outcome, identity, kind_subject, kubelet, subject,
    write::{Effect, Order, Phase, Write},
};
use crate::{
    decode::{self, Decoded, FieldValidation},
    metadata,
    negotiate::{self, Format, Route},
    registry::{Column, ResourceDef, ScalePointers},
    request::{ApiRequest, Target},
    status::{ApiError, Subject},
    tables::ColumnDefinition,
};

impl ApiServer {
    pub(super) fn route_subresource(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let name = target.subresource.split('/').next().unwrap_or_default();
        if definition.subresource(name).is_none() || target.name.is_empty() {
            if definition.custom {
                return Err(ApiError::not_found(subject(&definition, &target.name)));
            }
            return Err(ApiError::no_such_resource());
        }
        if !definition.custom && !matches!(name, "log" | "exec" | "attach" | "portforward") {
            Route::Object.accepts(&request.accept)?;
        }
        match (name, &request.method) {
            ("scale", &Method::GET) => self.get_scale(request, &target, &definition),
            ("scale", &Method::PUT) => self.put_scale(request, target, definition),
            ("status" | "ephemeralcontainers" | "resize" | "approval", &Method::GET) => {
                self.get(request, &target, &definition)
            }
            ("status" | "ephemeralcontainers" | "resize" | "finalize" | "approval", &Method::PUT) => {
                self.update(request, target, definition)
            }
            ("status" | "ephemeralcontainers" | "resize" | "scale" | "approval", &Method::PATCH) => {
                self.patch(request, target, definition)
            }
            ("binding" | "eviction", &Method::POST) => self.create_subresource(request, target, definition),
            ("log", &Method::GET) => self.log(request, &target, &definition),
            ("exec" | "attach" | "portforward", &Method::GET | &Method::POST) => {
                self.exec(request, &target, &definition)
            }
            (_, method) if definition.custom => {
                Err(ApiError::verb_not_supported(verb_word(method), subject(&definition, "")))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Reads the body of a `binding` or `eviction` and sends it through admission.
    pub(super) fn create_subresource(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let mut order = Order::read(request, target, definition, "CreateOptions", false)?;
        let (group, version, kind) = match order.target.subresource.as_str() {
            "binding" => ("", "v1", "Binding"),
            _ => ("policy", if names_old_version(&request.body) { "v1beta1" } else { "v1" }, "Eviction"),
        };
        let validation = order.options.field_validation;
        let mut decoded = decode::body_as(request, &order.definition, group, version, kind, validation)?;
        let named = metadata::text(&decoded.object, "name").to_owned();
        if order.target.name.is_empty() {
            order.target.name.clone_from(&named);
        }
        super::identity::match_namespace(&order.target, &mut decoded.object)?;
        if !named.is_empty() && named != order.target.name {
            return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
        }
        metadata::of_mut(&mut decoded.object).insert("name".to_owned(), json!(order.target.name));
        let mut write = Write { effect: Effect::Subresource, ..order.write(None, decoded, false) };
        // The argument is not stored: its owners matter to webhooks alone.
        if self.has_webhooks(Phase::Mutating) || self.has_webhooks(Phase::Validating) {
            self.record_ownership(&mut write);
        }
        let admission = self.admit(write)?;
        self.carry_out(admission, None)
    }

    /// Does what the reviewed argument asks for.
    pub(super) fn run_subresource(&mut self, write: &Write) -> Result<Outcome, ApiError> {
        match write.target.subresource.as_str() {
            "binding" => self.bind(write),
            "eviction" => self.evict(write),
            _ => Err(ApiError::no_such_resource()),
        }
    }

    /// The stored pod or other parent of a subresource.
    pub(super) fn parent(&self, definition: &ResourceDef, target: &Target) -> Result<Value, ApiError> {
        self.object(definition, &target.namespace, &target.name)
            .ok_or_else(|| ApiError::not_found(subject(definition, &target.name)))
    }

    fn get_scale(
        &mut self,
        request: &ApiRequest,
        target: &Target,
        definition: &Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let object = self.parent(definition, target)?;
        let scale = scale_of(definition, &object).ok_or_else(ApiError::no_such_resource)?;
        if let Some(path) = absent_replicas(definition, &object) {
            return Err(ApiError::internal(format!("the spec replicas field {path:?} does not exist")));
        }
        Ok(Outcome::Done(self.present(200, &scale_definition(definition), scale, request, representation)))
    }

    fn put_scale(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let order = Order::read(request, target, definition, "UpdateOptions", false)?;
        let validation = FieldValidation::Ignore;
        let scale = decode::body_as(request, &order.definition, "autoscaling", "v1", "Scale", validation)?.object;
        if !metadata::text(&scale, "name").is_empty() {
            identity::check_name(&scale, &order.target)?;
        }
        let stored = self.stored(&order.definition, &order.target);
        let stored = stored.ok_or_else(|| ApiError::not_found(subject(&order.definition, &order.target.name)))?;
        let object = with_scale(&order.definition, &stored.1, &scale)?;
        let is_conditional = !metadata::text(&scale, "resourceVersion").is_empty();
        let decoded = Decoded { object, warnings: Vec::new() };
        self.submit(order.write(Some(stored), decoded, is_conditional))
    }

    fn log(&self, request: &ApiRequest, target: &Target, definition: &ResourceDef) -> Result<Outcome, ApiError> {
        let pod = self.parent(definition, target)?;
        kubelet::container(&pod, request.parameter("container"))?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() {
            return Ok(Outcome::Done(ApiResponse { code: 204, ..ApiResponse::json(204, "") }));
        }
        let nodes = self.registry.any_version("", "nodes");
        if nodes.and_then(|nodes| self.object(nodes, "", node)).is_none() {
            return Err(ApiError::not_found(subject(definition, node)));
        }
        // No kubelet stands behind the node: the log of every container is empty.
        Ok(Outcome::Done(ApiResponse { content_type: "text/plain", ..ApiResponse::json(200, "") }))
    }

    fn exec(&self, request: &ApiRequest, target: &Target, definition: &ResourceDef) -> Result<Outcome, ApiError> {
        let pod = self.parent(definition, target)?;
        if target.subresource != "portforward" {
            kubelet::container(&pod, request.parameter("container"))?;
        }
        if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
            let name = &target.name;
            return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
        }
        Err(ApiError::new(501, "NotImplemented", "no kubelet stands behind the nodes of this server"))
    }
}

/// What a method asks for, in the words of rules.
fn verb_word(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The kind `Scale`, as the resource with that subresource shows it.
pub(super) fn scale_definition(of: &ResourceDef) -> ResourceDef {
    let mut scale = ResourceDef::new("autoscaling", "v1", "Scale", "scales", of.namespaced, of.collection);
    if of.custom {
        scale.custom = true;
        let column = |name: &str, type_: &str, description: &str, json_path: &str| Column {
            name: name.to_owned(),
            type_: type_.to_owned(),
            description: description.to_owned(),
            json_path: json_path.to_owned(),
            ..Column::default()
        };
        let age = ColumnDefinition::custom_age();
        scale.columns = vec![
            column("Desired", "integer", "Number of desired replicas", ".spec.replicas"),
            column("Available", "integer", "Number of actual replicas", ".status.replicas"),
            column("Age", "date", &age.description, ".metadata.creationTimestamp"),
        ];
    }
    scale
}

/// The answer to a subresource that creates nothing.
pub(super) fn done(format: Format) -> Outcome {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Outcome::Done(ApiResponse::value(201, &status, format))
}

/// Clients from before policy/v1 still send evictions in its old version; both mean the same.
fn names_old_version(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body["apiVersion"] == "policy/v1beta1")
}

/// The `Scale` of an object; none where the kind has none.
pub(super) fn scale_of(definition: &ResourceDef, object: &Value) -> Option<Value> {
    let paths = definition.scale_paths()?;
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if let Some(selector) = selector_text(&paths, object).filter(|selector| !selector.is_empty()) {
        status["selector"] = json!(selector);
    }
    let mut fields = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = json!({});
    // Go leaves a zero out.
    if number(&paths.spec_replicas) != 0 {
        spec["replicas"] = json!(number(&paths.spec_replicas));
    }
    Some(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": fields, "spec": spec, "status": status}))
}

/// Where the replicas of a custom resource would be that has none; its `Scale` can be written and not read.
fn absent_replicas(definition: &ResourceDef, object: &Value) -> Option<String> {
    let paths = definition.scale.as_ref()?;
    object.pointer(&paths.spec_replicas).is_none().then(|| paths.spec_replicas.replace('/', "."))
}

/// What a patch must change where there are no replicas yet.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The `Scale` that a patch is applied to.
pub(super) fn scale_to_patch(definition: &ResourceDef, object: &Value) -> Option<Value> {
    let mut scale = scale_of(definition, object)?;
    if absent_replicas(definition, object).is_some() {
        scale["spec"]["replicas"] = json!(NO_REPLICAS);
    }
    Some(scale)
}

/// The object with the replicas, and the preconditions, of a `Scale`.
pub(super) fn with_scale(definition: &ResourceDef, old: &Value, scale: &Value) -> Result<Value, ApiError> {
    let paths = definition.scale_paths().ok_or_else(ApiError::no_such_resource)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas == NO_REPLICAS
        && let Some(path) = absent_replicas(definition, old)
    {
        return Err(ApiError::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
    }
    if replicas < 0 {
        let mut errors = Errors::new();
        let name = metadata::text(old, "name");
        if definition.custom {
            let at = paths.spec_replicas.replace('/', ".");
            errors.invalid(&Path::root(&at), replicas, "should be a non-negative integer");
            return Err(ApiError::invalid(kind_subject(definition, name), &errors));
        }
        errors.invalid(&Path::root("spec").child("replicas"), replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid(Subject { group: "autoscaling", resource: "Scale", name }, &errors));
    }
    let mut object = old.clone();
    set(&mut object, &paths.spec_replicas, json!(replicas));
    // What a scale does not say is that of the object: it may leave the revision out where the object may not.
    for field in ["uid", "resourceVersion"] {
        let given = metadata::text(scale, field).to_owned();
        if !given.is_empty() {
            metadata::of_mut(&mut object).insert(field.to_owned(), json!(given));
        }
    }
    Ok(object)
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = value;
}

fn selector_text(paths: &ScalePointers, object: &Value) -> Option<String> {
    let found = object.pointer(paths.label_selector.as_deref()?)?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) if fields.contains_key("matchLabels") || fields.contains_key("matchExpressions") => {
            crate::selector::of_object(found).map(|selector| selector.to_string())
        }
        // A replication controller's selector is a plain map.
        Value::Object(fields) => {
            let terms: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
            Some(terms.join(","))
        }
        _ => None,
    }
}
