//! Versions of one kind, and the way between them.
//!
//! A type is declared once, as its newest version. `added`, `renamed` and `changed` on its fields say how older versions
//! looked, and `#[derive(Convert)]` makes of them the way up to the newest version and down to an older one. What an
//! older version cannot hold is kept in an annotation, so that a client of the older version that writes the object back
//! takes nothing away.

use std::collections::{BTreeMap, HashMap};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::Resource;

/// Orders API versions as Kubernetes does: released before beta before alpha, then by number.
///
/// A greater rank is a version that clients prefer. A name that follows no pattern ranks below all others.
pub fn version_rank(version: &str) -> (u8, u32, u32) {
    let Some(digits) = version.strip_prefix('v') else { return (0, 0, 0) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at(end);
    let Ok(major) = major.parse::<u32>() else { return (0, 0, 0) };
    let number = |text: &str| text.parse::<u32>().ok();
    match rest {
        "" => (3, major, 0),
        _ => match (rest.strip_prefix("beta").and_then(number), rest.strip_prefix("alpha").and_then(number)) {
            (Some(minor), _) => (2, major, minor),
            (None, Some(minor)) => (1, major, minor),
            (None, None) => (0, 0, 0),
        },
    }
}

/// A type that looked otherwise in older versions of its kind; `#[derive(Convert)]` implements it.
pub trait Convert {
    /// Brings JSON of version `from` into the newest form.
    fn up(value: &mut Value, from: &str, at: &Place<'_>) -> Result<(), ConvertError> {
        let _ = (value, from, at);
        Ok(())
    }

    /// Brings JSON of the newest form into version `to`; what has no room there goes to `lost`.
    fn down(value: &mut Value, to: &str, at: &Place<'_>, lost: &mut Lost) -> Result<(), ConvertError> {
        let _ = (value, to, at, lost);
        Ok(())
    }
}

/// A place in the newest form of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    parent: Option<(&'a Place<'a>, &'a str)>,
}

impl Place<'_> {
    /// A field, an entry or an item of what stands here.
    pub fn child<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { parent: Some((self, name)) }
    }

    /// As a JSON pointer.
    fn pointer(&self) -> String {
        self.parent.map_or_else(String::new, |(parent, name)| {
            format!("{}/{}", parent.pointer(), name.replace('~', "~0").replace('/', "~1"))
        })
    }
}

/// Values that an older version has no room for, by JSON pointer into the newest form.
#[derive(Debug, Default)]
pub struct Lost(BTreeMap<String, Value>);

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A value is not of the type that its version declares.
    #[error("{place}: {reason}")]
    Value {
        /// JSON pointer.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The request names a kind or version that the table does not have.
    #[error("no conversion of {kind} from {from} to {to} is known")]
    Unknown {
        /// Kind of the object.
        kind: String,
        /// Its apiVersion.
        from: String,
        /// The wanted apiVersion.
        to: String,
    },
}

// === what derived code calls ===

/// `added`, on the way down: the value is kept aside. On the way up there is nothing to do, as the field has a default.
pub fn drop_added(object: &mut Map<String, Value>, name: &str, at: &Place<'_>, lost: &mut Lost) {
    if let Some(value) = object.remove(name) {
        lost.0.insert(at.child(name).pointer(), value);
    }
}

/// `renamed`, in either direction.
pub fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// `changed`, in either direction.
pub fn change<From: DeserializeOwned, To: Serialize>(
    object: &mut Map<String, Value>,
    name: &str,
    function: impl FnOnce(From) -> To,
    at: &Place<'_>,
) -> Result<(), ConvertError> {
    let Some(value) = object.remove(name) else { return Ok(()) };
    let wrong =
        |error: serde_json::Error| ConvertError::Value { place: at.child(name).pointer(), reason: error.to_string() };
    let value = serde_json::to_value(function(serde_json::from_value(value).map_err(wrong)?)).map_err(wrong)?;
    object.insert(name.to_owned(), value);
    Ok(())
}

/// Converts what stands in a field, if there is something.
pub fn field(
    object: &mut Map<String, Value>,
    name: &str,
    convert: impl FnOnce(&mut Value) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    object.get_mut(name).filter(|value| !value.is_null()).map_or(Ok(()), convert)
}

macro_rules! same_in_all_versions {
    ($($type:ty),* $(,)?) => {$(
        impl Convert for $type {}
    )*};
}

same_in_all_versions!(
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    char,
    String,
    Value,
    crate::Duration,
    crate::IntOrString,
    crate::Quantity,
    crate::ResourceList,
    k8s_openapi::api::core::v1::LocalObjectReference,
    k8s_openapi::api::core::v1::ObjectReference,
    k8s_openapi::api::core::v1::PodTemplateSpec,
    k8s_openapi::api::core::v1::ResourceRequirements,
    k8s_openapi::api::core::v1::SecretKeySelector,
    k8s_openapi::api::core::v1::Taint,
    k8s_openapi::api::core::v1::Toleration,
    k8s_openapi::apimachinery::pkg::api::resource::Quantity,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
    k8s_openapi::apimachinery::pkg::util::intstr::IntOrString,
);

macro_rules! inside {
    ($($type:ty => |$value:ident| $parts:expr;)*) => {$(
        impl<T: Convert> Convert for $type {
            fn up($value: &mut Value, from: &str, at: &Place<'_>) -> Result<(), ConvertError> {
                $parts.try_for_each(|(name, value)| T::up(value, from, &at.child(&name)))
            }
            fn down($value: &mut Value, to: &str, at: &Place<'_>, lost: &mut Lost) -> Result<(), ConvertError> {
                $parts.try_for_each(|(name, value)| T::down(value, to, &at.child(&name), lost))
            }
        }
    )*};
}

inside! {
    Vec<T> => |value| value.as_array_mut().into_iter().flatten().enumerate().map(|(index, item)| (index.to_string(), item));
    BTreeMap<String, T> => |value| value.as_object_mut().into_iter().flatten().map(|(name, entry)| (name.clone(), entry));
    HashMap<String, T> => |value| value.as_object_mut().into_iter().flatten().map(|(name, entry)| (name.clone(), entry));
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Convert> Convert for $type {
            fn up(value: &mut Value, from: &str, at: &Place<'_>) -> Result<(), ConvertError> {
                T::up(value, from, at)
            }
            fn down(value: &mut Value, to: &str, at: &Place<'_>, lost: &mut Lost) -> Result<(), ConvertError> {
                T::down(value, to, at, lost)
            }
        }
    )*};
}

transparent!(Option<T>, Box<T>);

// === whole objects ===

/// The way between the versions of one kind, for a constant table.
#[derive(Clone, Copy)]
pub struct Conversion {
    group: &'static str,
    kind: &'static str,
    newest: &'static str,
    older: &'static [&'static str],
    up: fn(&mut Value, &str, &Place<'_>) -> Result<(), ConvertError>,
    down: fn(&mut Value, &str, &Place<'_>, &mut Lost) -> Result<(), ConvertError>,
}

impl Conversion {
    /// Between the newest version, which is the type's own, and older ones.
    pub const fn of<T: Resource + Convert>(older: &'static [&'static str]) -> Self {
        Conversion {
            group: T::INFO.group,
            kind: T::INFO.kind,
            newest: T::INFO.version,
            older,
            up: T::up,
            down: T::down,
        }
    }

    fn has(&self, version: &str) -> bool {
        self.newest == version || self.older.contains(&version)
    }

    /// Converts an object to a version of the same group.
    pub fn convert(&self, object: &mut Value, to: &str) -> Result<(), ConvertError> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let from = api_version.strip_prefix(self.group).and_then(|rest| rest.strip_prefix('/'));
        let Some(from) = from.filter(|from| self.has(from) && self.has(to)) else {
            let kind = self.kind.to_owned();
            return Err(ConvertError::Unknown { kind, from: api_version, to: format!("{}/{to}", self.group) });
        };
        if from != to {
            if from != self.newest {
                (self.up)(object, from, &Place::default())?;
                self.restore(object);
            }
            if to != self.newest {
                let mut lost = Lost::default();
                (self.down)(object, to, &Place::default(), &mut lost)?;
                self.keep(object, &lost);
            }
            object["apiVersion"] = json!(format!("{}/{to}", self.group));
        }
        Ok(())
    }

    /// The annotation that holds what an older version has no room for.
    fn annotation(&self) -> String {
        format!("{}/unconverted", self.group)
    }

    fn keep(&self, object: &mut Value, lost: &Lost) {
        if lost.0.is_empty() {
            return;
        }
        let text = json!(lost.0).to_string();
        if let Some(metadata) = member(object, "metadata")
            && let Some(annotations) = member(metadata, "annotations").and_then(Value::as_object_mut)
        {
            annotations.insert(self.annotation(), Value::String(text));
        }
    }

    /// Puts back what was kept, where its place is still there and empty, and takes the annotation away.
    fn restore(&self, object: &mut Value) {
        let name = self.annotation();
        let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
            return;
        };
        let Some(kept) = annotations.remove(&name) else { return };
        if annotations.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
        // A text that a user has damaged restores nothing.
        let kept = kept.as_str().and_then(|text| serde_json::from_str::<BTreeMap<String, Value>>(text).ok());
        for (pointer, value) in kept.unwrap_or_default() {
            let Some((parent, name)) = pointer.rsplit_once('/') else { continue };
            let name = name.replace("~1", "/").replace("~0", "~");
            if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
                parent.entry(name).or_insert(value);
            }
        }
    }
}

/// A member that is an object, made where it is absent.
fn member<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let member = object.as_object_mut()?.entry(name).or_insert_with(|| json!({}));
    if member.is_null() {
        *member = json!({});
    }
    Some(member)
}

/// Answers a ConversionReview: all of its objects are converted, or none.
pub fn answer(review: &Value, table: &[Conversion]) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let converted: Result<Vec<Value>, ConvertError> =
        objects.iter().map(|object| convert_one(object, wanted, table)).collect();
    let mut response = json!({"uid": request["uid"]});
    match converted {
        Ok(objects) => {
            response["convertedObjects"] = Value::Array(objects);
            response["result"] = json!({"status": "Success"});
        }
        Err(error) => response["result"] = json!({"status": "Failure", "message": error.to_string()}),
    }
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}

fn convert_one(object: &Value, wanted: &str, table: &[Conversion]) -> Result<Value, ConvertError> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = wanted.rsplit_once('/').unwrap_or(("", wanted));
    let known = table.iter().find(|conversion| conversion.kind == kind && conversion.group == group);
    let Some(conversion) = known else {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        return Err(ConvertError::Unknown { kind: kind.to_owned(), from, to: wanted.to_owned() });
    };
    let mut object = object.clone();
    conversion.convert(&mut object, version)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::version_rank;

    #[test]
    fn released_versions_come_first() {
        let mut versions = ["v1alpha1", "v10", "v2beta1", "v1", "v11beta2", "v1beta1", "foo1"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v1", "v11beta2", "v2beta1", "v1beta1", "v1alpha1", "foo1"]);
    }
}
