//! The kinds that every API server has, as data: resources with their verbs, types with their merge keys, OpenAPI documents.
//!
//! Made by `cargo run -p envtest --example builtins` from what a real server publishes. Nothing is inflated before it is asked for.

mod archive;
mod resources;
mod types;

pub use resources::{
    BuiltinResource, BuiltinSubresource, GROUP_ORDER, resources, split_group_version, storage_version,
    storage_version_hash,
};
pub use types::{BuiltinType, Shape, definition, definition_name, kind};

/// The OpenAPI documents of the built-in groups by their path below `/openapi/v3/`, such as `apis/apps/v1`.
pub fn openapi_documents() -> impl Iterator<Item = &'static str> {
    archive::names("paths:")
}

/// Changes whenever any built-in document does.
pub fn openapi_digest() -> &'static str {
    archive::digest()
}

/// The `paths` of an OpenAPI document, as JSON text.
pub fn openapi_paths(document: &str) -> Option<String> {
    archive::member("paths:", document)
}

/// All definitions of one package, such as `io.k8s.api.apps.v1`, as the JSON text of one object.
pub fn openapi_package(package: &str) -> Option<String> {
    archive::member("types:", package)
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
    fn every_kind_that_is_stored_has_a_type() {
        for resource in resources() {
            let found = kind(resource.group, resource.version, resource.kind);
            assert!(found.is_some(), "{}/{} {}", resource.group, resource.version, resource.kind);
        }
    }

    #[test]
    fn every_group_has_its_place_in_discovery() {
        for resource in resources() {
            assert!(GROUP_ORDER.contains(&resource.group), "{}", resource.group);
        }
    }

    #[test]
    fn stored_versions_hash_as_recorded() {
        assert_eq!(storage_version_hash("", "v1", "Pod"), "xPOwRZ+Yhw8=");
        assert_eq!(storage_version_hash("apps", "v1", "Deployment"), "8aSe+NMegvE=");
    }

    #[test]
    fn documents_are_whole() {
        for document in openapi_documents() {
            let paths: serde_json::Value = serde_json::from_str(&openapi_paths(document).unwrap()).unwrap();
            assert!(paths.as_object().is_some_and(|paths| !paths.is_empty()), "{document}");
        }
    }
}
