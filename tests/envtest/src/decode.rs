//! From request bodies to objects.

mod go_types;
mod patched;
mod restore;
mod syntax;
mod typed;

use koord_schema::{
    field::{Errors, Path},
    go_text, nesting, object_meta, strict,
    structural::{defaults, embedded, prune},
    typed::SchemaNode,
};
use serde_json::{Value, json};

pub use self::patched::{PatchedBy, patched};
use self::typed::Decoding;
pub(crate) use self::typed::check_base64;
use crate::{
    protobuf::{self, ProtobufError},
    registry::ResourceDef,
    request::ApiRequest,
    status::{ApiError, Subject},
};

/// What happens to fields that the kind does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped and the client is warned.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// A decoded object and the warnings about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The object, with `apiVersion` and `kind`.
    pub object: Value,
    /// Unknown and duplicate fields.
    pub warnings: Vec<String>,
}

/// Reads the body of a create or update.
pub fn object(
    request: &ApiRequest,
    definition: &ResourceDef,
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    body_as(request, definition, &definition.group, &definition.version, &definition.kind, validation)
}

/// Reads a body of another kind, as subresources such as `binding` and `scale` take it.
pub fn body_as(
    request: &ApiRequest,
    definition: &ResourceDef,
    group: &str,
    version: &str,
    kind: &str,
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let text = json_text(request, kind)?;
    let mut object = parse(&text, kind)?;
    let is_own_kind = definition.custom && kind == definition.kind;
    if !is_own_kind {
        check_type_fields(&object, &text, kind)?;
    }
    if is_own_kind {
        check_custom_type(&object, &text, &api_version, definition)?;
        print_whole_numbers_whole(&mut object);
    } else {
        check_type(&object, &api_version, kind, false)?;
    }
    let given_version =
        object["apiVersion"].as_str().filter(|given| !given.is_empty()).unwrap_or(&api_version).to_owned();
    let cannot = |why: &str| {
        let version = given_version.rsplit('/').next().unwrap_or_default();
        ApiError::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    };
    let mistakes = if let Some(node) = typed::kind(group, version, kind).filter(|_| !is_own_kind) {
        let mistakes = strict::decoding_errors(&text, Some(&node));
        let mut decoding = Decoding::default();
        decoding.object(node, kind, &mut object).map_err(|why| cannot(&why))?;
        mistakes
    } else {
        let mut mistakes = strict::duplicates(&text);
        mistakes.extend(shape_custom(definition, &mut object, false).map_err(|why| cannot(&why))?);
        mistakes
    };
    object["apiVersion"] = Value::String(api_version);
    object["kind"] = Value::String(kind.to_owned());
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => mistakes,
        FieldValidation::Strict if mistakes.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(cannot(&format!("strict decoding error: {}", mistakes.join(", "))));
        }
    };
    Ok(Decoded { object, warnings })
}

/// Reads an object that a webhook's patch made; unknown fields are dropped, and the error is the decoder's own.
pub fn reshaped(mut object: Value, definition: &ResourceDef, subresource: &str) -> Result<Value, ApiError> {
    let body = definition.subresource(subresource).and_then(|sub| sub.body.clone());
    let (group, version, kind) =
        body.unwrap_or_else(|| (definition.group.clone(), definition.version.clone(), definition.kind.clone()));
    let is_own_kind = definition.custom && kind == definition.kind;
    let Some(node) = typed::kind(&group, &version, &kind).filter(|_| !is_own_kind) else {
        shape_custom(definition, &mut object, false).map_err(ApiError::internal)?;
        return Ok(object);
    };
    let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
    if let Some(why) =
        unregistered(&object, &api_version, &kind).or_else(|| unconvertible(&object, &api_version, &kind))
    {
        return Err(ApiError::unclassified(why));
    }
    Decoding::default().object(node, &kind, &mut object).map_err(ApiError::internal)?;
    for (field, own) in [("apiVersion", api_version), ("kind", kind)] {
        if object[field].as_str().is_none_or(str::is_empty) {
            object[field] = json!(own);
        }
    }
    Ok(object)
}

/// Gives an object of a custom kind its stored shape: metadata typed, defaults filled in, unknown fields dropped.
fn shape_custom(definition: &ResourceDef, object: &mut Value, keeps_nulls: bool) -> Result<Vec<String>, String> {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let mut mistakes: Vec<String> =
        strict::unknown_fields(&json!({"metadata": metadata}), &SchemaNode::of(&METADATA_ONLY))
            .iter()
            .map(|path| strict::unknown_text(path))
            .collect();
    type_metadata(object)?;
    if let Some(schema) = definition.schema.get() {
        if let Some(error) = embedded::decoding_error(schema, object) {
            return Err(error.to_string());
        }
        defaults::apply(schema, object);
        if !keeps_nulls {
            defaults::drop_needless_nulls(schema, object);
        }
        mistakes.extend(prune::prune(schema, object).iter().map(|path| strict::unknown_text(path)));
    }
    Ok(mistakes)
}

static METADATA_ONLY: std::sync::LazyLock<koord_schema::Schema> = std::sync::LazyLock::new(|| koord_schema::Schema {
    type_: Some(koord_schema::SchemaType::Object),
    properties: [("metadata".to_owned(), object_meta::SCHEMA.clone())].into_iter().collect(),
    ..koord_schema::Schema::default()
});

/// `metadata` is typed for every kind.
fn type_metadata(object: &mut Value) -> Result<(), String> {
    let Some(node) = crate::builtins::definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else {
        return Ok(());
    };
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    Decoding::default().object(node, "ObjectMeta", &mut object["metadata"])?;
    let is_disowned = object["metadata"]["managedFields"] == json!([]);
    object_meta::drop_empty(&mut object["metadata"]);
    if is_disowned {
        object["metadata"]["managedFields"] = json!([]);
    }
    Ok(())
}

/// Reads the options in the body of a delete.
pub fn delete_options(request: &ApiRequest) -> Result<Value, ApiError> {
    let text = json_text(request, "DeleteOptions")?;
    let no_type = |why: &str| ApiError::unclassified(format!("couldn't get version/kind; json parse error: {why}"));
    let options = match json(&text).map_err(|why| no_type(&why))? {
        Value::Null => json!({}),
        options @ Value::Object(_) => options,
        other => return Err(no_type(&no_type_fields(&other))),
    };
    if let Some(why) = type_field_mistake(&options) {
        return Err(no_type(&why));
    }
    let api_version = options["apiVersion"].as_str().unwrap_or_default();
    let kind = options["kind"].as_str().unwrap_or_default();
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(ApiError::unclassified(format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:110\""
        )));
    }
    for (field, go) in [
        ("gracePeriodSeconds", "int64"),
        ("preconditions", "v1.Preconditions"),
        ("orphanDependents", "bool"),
        ("propagationPolicy", "string"),
        ("dryRun", "[]string"),
    ] {
        let fits = match (&options[field], go) {
            (Value::Null, _)
            | (Value::Bool(_), "bool")
            | (Value::String(_), "string")
            | (Value::Object(_), "v1.Preconditions")
            | (Value::Array(_), "[]string") => true,
            (Value::Number(number), "int64") => number.is_i64(),
            _ => false,
        };
        if !fits {
            let found = go_text::json_type(&options[field]);
            return Err(ApiError::unclassified(format!(
                "json: cannot unmarshal {found} into Go struct field DeleteOptions.{field} of type {go}"
            )));
        }
    }
    Ok(options)
}

/// Reads JSON text that nests no deeper than an object may; the error is worded as Go words it.
pub fn json(text: &[u8]) -> Result<Value, String> {
    const TOO_DEEP: &str = "exceeded max depth";
    match serde_json::from_slice(text) {
        Ok(value) if nesting::depth(&value) > nesting::DEPTH_MAX => Err(TOO_DEEP.to_owned()),
        Ok(value) => Ok(value),
        Err(error) => Err(syntax::mistake(text).unwrap_or_else(|| match error.to_string() {
            library if library.starts_with("recursion limit") => TOO_DEEP.to_owned(),
            library => library,
        })),
    }
}

/// The body, an object of this kind, as JSON text.
fn json_text(request: &ApiRequest, kind: &str) -> Result<Vec<u8>, ApiError> {
    let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => Ok(request.body.to_vec()),
        "application/vnd.kubernetes.protobuf" => match protobuf::to_json(&request.body) {
            Ok(value) => Ok(value.to_string().into_bytes()),
            Err(error @ ProtobufError::UnknownKind(_)) => Err(ApiError::unsupported_media_type(error.to_string())),
            Err(_) if request.body.is_empty() => Err(unreadable(&request.body, kind, "empty data")),
            Err(error) => Err(unreadable(&request.body, kind, &error.to_string())),
        },
        "application/yaml" => {
            let text = String::from_utf8_lossy(&request.body);
            let value = crate::yaml::parse(&text)
                .map_err(|error| unreadable(&request.body, kind, &format!("yaml: line {}: {error}", error.line)))?;
            Ok(value.to_string().into_bytes())
        }
        _ => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// 400: a body that is no object of any kind.
fn unreadable(text: &[u8], kind: &str, why: &str) -> ApiError {
    let shown = summary(text);
    ApiError::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({shown})"))
}

/// 400: a body that does not say what it is.
fn unrecognized(text: &[u8], kind: &str, why: &str) -> ApiError {
    unreadable(text, kind, &format!("couldn't get version/kind; json parse error: {why}"))
}

/// Checks that `apiVersion` and `kind` are strings where they are given.
fn check_type_fields(object: &Value, text: &[u8], kind: &str) -> Result<(), ApiError> {
    if let Some(why) = type_field_mistake(object) {
        return Err(unrecognized(text, kind, &why));
    }
    match object["apiVersion"].as_str() {
        Some(version) if version.matches('/').count() > 1 => {
            Err(unreadable(text, kind, &format!("unexpected GroupVersion string: {version}")))
        }
        _ => Ok(()),
    }
}

/// What is wrong with an `apiVersion` or `kind` that is no string.
pub(crate) fn type_field_mistake(object: &Value) -> Option<String> {
    let is_wrong = |field: &&str| !matches!(object[*field], Value::Null | Value::String(_));
    let field = ["apiVersion", "kind"].into_iter().find(is_wrong)?;
    let found = go_text::json_type(&object[field]);
    Some(format!("json: cannot unmarshal {found} into Go struct field .{field} of type string"))
}

/// What is wrong with a value that is no object and so has neither.
pub(crate) fn no_type_fields(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        go_text::json_type(value)
    )
}

fn parse(text: &[u8], kind: &str) -> Result<Value, ApiError> {
    let unrecognized = |why: &str| unrecognized(text, kind, why);
    let value = json(text).map_err(|why| unrecognized(&why))?;
    match value {
        Value::Object(_) => return Ok(value),
        Value::Null => return Ok(json!({})),
        _ => {}
    }
    Err(unrecognized(&no_type_fields(&value)))
}

/// The beginning of a refused body: text when it looks like an object, else hexadecimal digits.
fn summary(text: &[u8]) -> String {
    const SHOWN_MAX: usize = 30;
    match text.first() {
        None => "<empty>".to_owned(),
        Some(b'{') if text.len() > SHOWN_MAX => format!("{} ...", String::from_utf8_lossy(&text[..SHOWN_MAX])),
        Some(b'{') => String::from_utf8_lossy(text).into_owned(),
        Some(_) => {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            if text.len() > SHOWN_MAX / 2 { format!("{} ...", hex(&text[..SHOWN_MAX / 2])) } else { hex(text) }
        }
    }
}

/// A custom resource names its version and kind, and they are those of the path.
fn check_custom_type(object: &Value, text: &[u8], api_version: &str, definition: &ResourceDef) -> Result<(), ApiError> {
    let named = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (given_version, given_kind, kind) = (named("/apiVersion"), named("/kind"), &definition.kind);
    if given_kind.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{}' ({})",
            String::from_utf8_lossy(text),
            summary(text)
        )));
    }
    if given_version != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    if given_kind != kind {
        let mut errors = Errors::new();
        errors.invalid(&Path::root("kind"), given_kind, format!("must be {kind}"));
        let subject = Subject { group: &definition.group, resource: given_kind, name: named("/metadata/name") };
        return Err(ApiError::invalid(subject, &errors));
    }
    Ok(())
}

/// Go prints a float without a fraction like an integer, so `1.0` and `1e3` come back as `1` and `1000`.
fn print_whole_numbers_whole(value: &mut Value) {
    /// Beyond this a float cannot distinguish neighbouring integers.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_MAX) {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(print_whole_numbers_whole),
        Value::Object(fields) => fields.values_mut().for_each(print_whole_numbers_whole),
        _ => {}
    }
}

/// The body must be of the kind that the path names; built-in kinds may leave the names out.
fn check_type(object: &Value, api_version: &str, kind: &str, is_custom: bool) -> Result<(), ApiError> {
    let (given_version, given_kind) =
        (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
    if !is_custom && let Some(why) = unregistered(object, api_version, kind) {
        let shown = if given_kind.is_empty() { kind } else { given_kind };
        let version = if given_version.is_empty() { api_version } else { given_version };
        let (_, short) = crate::builtins::split_group_version(version);
        return Err(ApiError::bad_request(format!(
            "{shown} in version \"{short}\" cannot be handled as a {kind}: {why}"
        )));
    }
    if !given_version.is_empty()
        && given_version != api_version
        && (given_kind.is_empty() || given_kind == kind || is_custom)
    {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    if given_kind.is_empty() || given_kind == kind {
        return Ok(());
    }
    if is_custom {
        return Err(ApiError::bad_request(format!(
            "the kind in the data ({given_kind}) does not match the expected kind ({kind})"
        )));
    }
    match unconvertible(object, api_version, kind) {
        Some(why) => {
            let version = if given_version.is_empty() { api_version } else { given_version };
            let (_, short) = crate::builtins::split_group_version(version);
            Err(ApiError::bad_request(format!(
                "{given_kind} in version \"{short}\" cannot be handled as a {kind}: {why}"
            )))
        }
        None => Ok(()),
    }
}

/// Why an object of another built-in kind is none of this one.
fn unconvertible(object: &Value, api_version: &str, kind: &str) -> Option<String> {
    let given_kind = object["kind"].as_str().filter(|given| !given.is_empty() && *given != kind)?;
    let version = object["apiVersion"].as_str().filter(|given| !given.is_empty()).unwrap_or(api_version);
    let (group, short) = crate::builtins::split_group_version(version);
    let node = typed::kind(group, short, given_kind)?;
    // It is read as what it says it is, and only then as what is wanted.
    if let Err(why) = Decoding::default().object(node, given_kind, &mut object.clone()) {
        return Some(why);
    }
    let own = api_version.split_once('/').map_or("core", |(group, _)| group.split('.').next().unwrap_or_default());
    Some(format!("converting ({short}.{given_kind}) to ({own}.{kind}): unknown conversion"))
}

/// What is wrong with the type of an object of which no built-in kind is; what is left out is that of the path.
fn unregistered(object: &Value, api_version: &str, kind: &str) -> Option<String> {
    let given = |field: &str, known: &str| match object[field].as_str() {
        None | Some("") => known.to_owned(),
        Some(given) => given.to_owned(),
    };
    let (given_kind, version) = (given("kind", kind), given("apiVersion", api_version));
    if given_kind == kind && version == api_version {
        return None;
    }
    let kind = given_kind;
    let (group, short) = crate::builtins::split_group_version(&version);
    typed::kind(group, short, &kind).is_none().then(|| {
        format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:110\"")
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::store::{HistoryLimits, Store};

    fn decoded(text: &str, validation: FieldValidation) -> Result<Decoded, ApiError> {
        let collection = Store::new(HistoryLimits::default()).collection_id("/configmaps");
        let definition = ResourceDef::new("", "v1", "ConfigMap", "configmaps", true, collection);
        object(&ApiRequest::new(Method::POST, "/", text.to_owned()), &definition, validation)
    }

    #[test]
    fn a_body_that_is_no_object_is_summarised() {
        let message = |text| decoded(text, FieldValidation::Warn).unwrap_err().message().to_owned();
        assert!(message("").ends_with("json parse error: unexpected end of JSON input (<empty>)"));
        assert!(message("{nope").ends_with("looking for beginning of object key string ({nope)"));
        assert!(message("[]").ends_with(" (5b5d)"));
    }

    #[test]
    fn an_object_of_another_kind_is_read_as_that_first() {
        let refused = |data: &str| {
            let text =
                format!(r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"a"}},"data":{{"k":"{data}"}}}}"#);
            decoded(&text, FieldValidation::Warn).unwrap_err().message().to_owned()
        };
        assert!(refused("1").ends_with(": illegal base64 data at input byte 0"), "{}", refused("1"));
        assert!(refused("MQ==").ends_with("converting (v1.Secret) to (core.ConfigMap): unknown conversion"));
    }

    #[test]
    fn unknown_and_duplicate_fields_are_told_in_document_order() {
        let text = r#"{"metadata":{"name":"a","foo":1},"data":{"k":"1","k":"2"},"bar":{}}"#;
        let strict = decoded(text, FieldValidation::Strict).unwrap_err();
        assert_eq!(
            strict.message(),
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.foo", duplicate field "data.k", unknown field "bar""#
        );
        let warned = decoded(text, FieldValidation::Warn).unwrap();
        assert_eq!(warned.warnings.len(), 3);
        assert_eq!(warned.object["data"]["k"], "2");
        assert_eq!(warned.object.get("bar"), None);
    }
}
