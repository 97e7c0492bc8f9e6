//! What people do to objects of any kind.

use http::Method;
use koord_resource::{
    declare::Profile,
    document::{Declared, custom_resource_definition},
};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Something that holds an object when it is deleted.
const FINALIZER: &str = "example.org/hold";

/// Replaces an object by another of the same name; the code of the last answer.
pub fn replace(stage: &mut Stage, (object, collection): (&str, &str), body: &Value) -> u16 {
    match stage.person(&Method::DELETE, object, &Value::Null) {
        deleted if deleted < 300 => stage.person(&Method::POST, collection, body),
        refused => refused,
    }
}

/// Deletes an object that somebody wants to look at first, so that it stays.
pub fn delete_held(stage: &mut Stage, object: &str) -> u16 {
    match stage.person(&Method::PATCH, object, &json!({"metadata": {"finalizers": [FINALIZER]}})) {
        held if held < 300 => stage.person(&Method::DELETE, object, &Value::Null),
        refused => refused,
    }
}

/// Takes the hold away.
pub fn let_go(stage: &mut Stage, object: &str) -> u16 {
    stage.person(&Method::PATCH, object, &json!({"metadata": {"finalizers": null}}))
}

/// Installs the definitions of these kinds, each with its versions.
pub fn define<'k>(stage: &mut Stage, kinds: impl IntoIterator<Item = &'k &'static [Declared]>) {
    for versions in kinds {
        let definition = custom_resource_definition(versions, Profile::Hardened);
        stage.person(&Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    }
}

/// The name of an object.
pub fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
