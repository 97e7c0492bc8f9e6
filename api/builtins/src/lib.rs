#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
//! The types of the kinds that every API server has, as data: fields, formats, defaults and merge keys of Kubernetes 1.34, and the OpenAPI
//! documents that publish them. Descriptions are left out.
//!
//! `openapi.table` is made by `cargo run -p koord-apiserver --example builtins` from what a real server publishes. Nothing is inflated before it is
//! asked for. This crate knows no resources, verbs or servers.
//!
//! Read first: [`BuiltinType`], [`Shape`], [`definition`].
//!
//! ```
//! let containers = koord_builtins::definition("io.k8s.api.core.v1.PodSpec").and_then(|spec| spec.field("containers"));
//! assert_eq!(containers.and_then(|list| list.patch_merge_key.as_deref()), Some("name"));
//! ```

mod archive;
mod types;

pub use types::{BuiltinType, Named, Shape, definition, definition_name, kind};

/// The OpenAPI documents of the built-in groups by their path below `/openapi/v3/`, such as `apis/apps/v1`.
pub fn openapi_documents() -> impl Iterator<Item = &'static str> {
    archive::names("paths:")
}

/// The `paths` of an OpenAPI document, as JSON text.
pub fn openapi_paths(document: &str) -> Option<String> {
    archive::member("paths:", document)
}

/// All definitions of one package, such as `io.k8s.api.apps.v1`, as the JSON text of one object.
pub fn openapi_package(package: &str) -> Option<String> {
    archive::member("types:", package)
}

/// The whole table as it is stored: other bytes are other documents.
pub fn openapi_table() -> &'static [u8] {
    archive::TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_merges_its_containers_by_name() {
        let pod = kind("", "v1", "Pod").unwrap();
        let containers = pod.field("spec").and_then(|spec| spec.field("containers")).unwrap();
        assert_eq!(containers.patch_merge_key.as_deref(), Some("name"));
        assert_eq!(containers.list_type, Some(koord_schema::ListType::Map));
        let port = containers.items().and_then(|item| item.field("ports")).and_then(BuiltinType::items).unwrap();
        assert!(matches!(port.field("containerPort").unwrap().shape, Shape::Integer));
        let limits = containers.items().and_then(|item| item.field("resources")).and_then(|r| r.field("limits"));
        assert!(matches!(limits.unwrap().field("cpu").unwrap().resolve().shape, Shape::Quantity));
    }

    #[test]
    fn a_field_says_before_its_type_whether_it_is_one_value() {
        let volume = definition("io.k8s.api.core.v1.PersistentVolumeSpec").unwrap();
        let [claim, rbd] = ["claimRef", "rbd"].map(|name| volume.field(name).unwrap());
        assert!(claim.resolve().is_atomic() && !claim.is_atomic());
        assert!(!rbd.is_atomic());
        let selector = definition("io.k8s.api.core.v1.PodSpec").and_then(|spec| spec.field("nodeSelector")).unwrap();
        assert!(selector.is_atomic());
    }

    #[test]
    fn documents_are_whole() {
        for document in openapi_documents() {
            let paths: serde_json::Value = serde_json::from_str(&openapi_paths(document).unwrap()).unwrap();
            assert!(paths.as_object().is_some_and(|paths| !paths.is_empty()), "{document}");
        }
    }
}
