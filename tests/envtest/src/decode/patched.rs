//! Objects that a patch or an applied configuration made.

use koord_schema::{
    field::{Errors, Path},
    go_text, strict,
};
use serde_json::{Value, json};

use super::{
    Decoded, FieldValidation, check_type, restore, shape_custom, type_field_mistake,
    typed::{self, Decoding},
    unconvertible, unregistered,
};
use crate::{
    registry::ResourceDef,
    status::{ApiError, Subject},
};

/// What made an object that is not read from a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchedBy {
    /// A JSON or merge patch.
    Patch {
        /// Whether it reaches into `metadata`.
        touches_metadata: bool,
    },
    /// This strategic merge patch.
    Strategic(Value),
    /// An applied configuration, with the names that it gives.
    Apply {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Reads an object that a patch makes. It is made once more where a refusal shows it. `mistakes` are the unknown and duplicate
/// fields of the patch itself. What apply made keeps its nulls, to be refused.
pub fn patched(
    make: impl Fn() -> Result<Value, ApiError>,
    definition: &ResourceDef,
    validation: FieldValidation,
    source: &PatchedBy,
    mut mistakes: Vec<String>,
) -> Result<Decoded, ApiError> {
    let mut object = make()?;
    let before = || make().unwrap_or_default();
    let refused = |why: &str| {
        let shown = match source {
            PatchedBy::Strategic(patch) => go_text::plain(patch),
            PatchedBy::Patch { touches_metadata } if !definition.custom => shown(&before(), *touches_metadata),
            _ => go_text::json(&before()),
        };
        let mut errors = Errors::new();
        errors.invalid(&Path::root("patch"), shown, why);
        ApiError::invalid(Subject { group: "", resource: "", name: "" }, &errors)
    };
    if let Some(why) = type_mistake(&object, definition, source) {
        return Err(refused(&why));
    }
    let kind = &definition.kind;
    let is_without_version = object["apiVersion"].as_str().is_none_or(str::is_empty);
    if matches!(source, PatchedBy::Patch { .. }) && !definition.custom && is_without_version {
        // kube-apiserver decodes it into its internal type then, whose fields no JSON names.
        let fields = object.as_object().into_iter().flatten().map(|(name, _)| name);
        let unknown = fields.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind"));
        mistakes.extend(unknown.map(|name| strict::unknown_text(name)));
        object = json!({"metadata": {}});
    } else {
        check_types(&object, definition).map_err(|why| refused(&why))?;
        if let Some(node) = typed::kind(&definition.group, &definition.version, kind).filter(|_| !definition.custom) {
            let mut unknown: Vec<String> =
                strict::unknown_fields(&object, &node).iter().map(|path| strict::unknown_text(path)).collect();
            Decoding::default().object(node, kind, &mut object).map_err(|why| match source {
                PatchedBy::Patch { .. } => refused(&why),
                PatchedBy::Strategic(_) => refused(&restore::mistake(node, &before()).unwrap_or(why)),
                PatchedBy::Apply { namespace, name } => unconverted(definition, namespace, name, &why),
            })?;
            if matches!(source, PatchedBy::Strategic(_)) {
                unknown.sort();
            }
            mistakes.extend(unknown);
        } else {
            let keeps_nulls = matches!(source, PatchedBy::Apply { .. });
            mistakes.extend(shape_custom(definition, &mut object, keeps_nulls).map_err(|why| refused(&why))?);
        }
    }
    object["apiVersion"] = Value::String(definition.api_version());
    object["kind"] = Value::String(kind.clone());
    match validation {
        FieldValidation::Ignore => Ok(Decoded { object, warnings: Vec::new() }),
        FieldValidation::Warn => Ok(Decoded { object, warnings: mistakes }),
        FieldValidation::Strict if mistakes.is_empty() => Ok(Decoded { object, warnings: mistakes }),
        FieldValidation::Strict => Err(refused(&format!("strict decoding error: {}", mistakes.join(", ")))),
    }
}

/// The fields of Go's structs, in their order.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED_FIELDS: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
const OWNER_REFERENCES: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// A patched object of a built-in kind as it stands when it is decoded: what the patch reached into is sorted, metadata that it did
/// not reach into has the order of Go's struct.
fn shown(object: &Value, touches_metadata: bool) -> String {
    in_order(object, &[], |name, field| match name {
        "metadata" => in_order(field, if touches_metadata { &[] } else { &METADATA }, |name, list| match name {
            "managedFields" => items_in_order(list, &MANAGED_FIELDS),
            "ownerReferences" => items_in_order(list, &OWNER_REFERENCES),
            _ => go_text::json(list),
        }),
        _ => go_text::json(field),
    })
}

fn items_in_order(list: &Value, order: &[&str]) -> String {
    let Value::Array(items) = list else { return go_text::json(list) };
    let items: Vec<String> = items.iter().map(|item| in_order(item, order, |_, field| go_text::json(field))).collect();
    format!("[{}]", items.join(","))
}

/// An object as JSON: the fields of `order` first, then the others by name.
fn in_order(object: &Value, order: &[&str], text: impl Fn(&str, &Value) -> String) -> String {
    let Value::Object(fields) = object else { return go_text::json(object) };
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    let place = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
    fields.sort_by_key(|(name, _)| (place(name), *name));
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, field)| format!("{}:{}", go_text::json(&Value::from(name.as_str())), text(name, field)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// What is wrong with an `apiVersion` or `kind` of a built-in kind that is no text.
fn type_mistake(object: &Value, definition: &ResourceDef, source: &PatchedBy) -> Option<String> {
    if definition.custom {
        return None;
    }
    match source {
        PatchedBy::Patch { .. } => {
            type_field_mistake(object).map(|why| format!("couldn't get version/kind; json parse error: {why}"))
        }
        PatchedBy::Strategic(_) => {
            ["kind", "apiVersion"].iter().find_map(|field| restore::text_mistake(&object[field]))
        }
        PatchedBy::Apply { .. } => None,
    }
}

/// Checks that the object is of the kind of the path; the types of built-in objects are known from there.
fn check_types(object: &Value, definition: &ResourceDef) -> Result<(), String> {
    let (given_kind, given_version) = (object["kind"].as_str(), object["apiVersion"].as_str());
    let is_left_out = |given: Option<&str>| !definition.custom && given.is_none_or(str::is_empty);
    let is_right = (given_kind == Some(definition.kind.as_str()) || is_left_out(given_kind))
        && (is_left_out(given_version) || definition.is_api_version(given_version.unwrap_or_default()));
    if is_right {
        return Ok(());
    }
    let (api_version, kind) = (definition.api_version(), &definition.kind);
    let built_in = || unregistered(object, &api_version, kind).or_else(|| unconvertible(object, &api_version, kind));
    let why = if definition.custom { None } else { built_in() };
    let error = check_type(object, &api_version, kind, definition.custom).err();
    let why = why.or_else(|| error.map(|error| error.message().to_owned()));
    Err(why.unwrap_or_else(|| "unknown conversion".to_owned()))
}

/// 500: an applied configuration has the fields of its kind, but not their values.
fn unconverted(definition: &ResourceDef, namespace: &str, name: &str, why: &str) -> ApiError {
    let of = format!("{}/{}, Kind={}", definition.group, definition.version, definition.kind);
    let from_json = if why.starts_with("illegal base64") { "error decoding from json: " } else { "" };
    ApiError::unclassified(format!(
        "failed to convert new object ({namespace}/{name}; {of}) to proper version: unable to convert unstructured object to {of}: {from_json}{why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{HistoryLimits, Store};

    fn read(object: &Value, validation: FieldValidation, source: &PatchedBy) -> Result<(Value, Vec<String>), ApiError> {
        let collection = Store::new(HistoryLimits::default()).collection_id("/configmaps");
        let definition = ResourceDef::new("", "v1", "ConfigMap", "configmaps", true, collection);
        let Decoded { object, warnings } = patched(|| Ok(object.clone()), &definition, validation, source, Vec::new())?;
        Ok((object, warnings))
    }

    const PATCH: PatchedBy = PatchedBy::Patch { touches_metadata: false };

    #[test]
    fn a_refused_patch_shows_the_object_with_its_fields_sorted() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"labels": {}, "uid": "u", "name": "a", "managedFields": [{"fieldsV1": {"f:b": {}, "f:a": {}}, "manager": "m"}]},
            "data": {"b": "", "a": 5},
        });
        let shown = |touches_metadata| {
            let source = PatchedBy::Patch { touches_metadata };
            let refused = read(&object, FieldValidation::Ignore, &source).unwrap_err();
            let text = refused.message().split(": ").nth(3).unwrap().replace("\\\"", "'");
            text.split_once("'metadata':").unwrap().1.to_owned()
        };
        let of_go =
            "{'name':'a','uid':'u','labels':{},'managedFields':[{'manager':'m','fieldsV1':{'f:a':{},'f:b':{}}}]}}\"";
        assert_eq!(shown(false), of_go, "Go's order, where the patch did not reach");
        let sorted =
            "{'labels':{},'managedFields':[{'manager':'m','fieldsV1':{'f:a':{},'f:b':{}}}],'name':'a','uid':'u'}}\"";
        assert_eq!(shown(true), sorted);
        let refused = read(&object, FieldValidation::Ignore, &PATCH).unwrap_err();
        let start = r#"{\"apiVersion\":\"v1\",\"data\":{\"a\":5,\"b\":\"\"},\"kind\":\"ConfigMap\",\"metadata\":{"#;
        assert!(refused.message().contains(start), "{}", refused.message());
    }

    #[test]
    fn without_its_version_an_object_has_no_known_fields() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "5"}});
        let (read, warnings) = read(&object, FieldValidation::Warn, &PATCH).unwrap();
        assert_eq!(warnings, [r#"unknown field "data""#, r#"unknown field "metadata""#]);
        assert_eq!(read["metadata"], json!({}));
    }

    #[test]
    fn a_kind_that_is_no_text_is_refused_as_the_patch_was_read() {
        let object = json!({"kind": true, "apiVersion": "v1", "metadata": {"name": "a"}});
        let why = |source| read(&object, FieldValidation::Ignore, source).unwrap_err().message().to_owned();
        let json_words = "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go struct field .kind of type string";
        assert!(why(&PATCH).ends_with(json_words));
        assert!(why(&PatchedBy::Strategic(json!({"kind": true}))).ends_with("unrecognized type: string"));
    }
}
