//! The kinds that every API server has, as data: resources with their verbs; their types and OpenAPI documents are those of `koord_builtins`.
//!
//! Made by `cargo run -p koord-apiserver --example builtins` from what a real server publishes. Nothing is inflated before it is asked for.

mod resources;

use std::sync::OnceLock;

use base64::Engine;
use sha2::{Digest, Sha256};

pub use koord_builtins::{
    BuiltinType, Shape, definition, definition_name, kind, openapi_documents, openapi_package, openapi_paths,
};
pub use resources::{
    BuiltinResource, BuiltinSubresource, GROUP_ORDER, resources, split_group_version, storage_version,
    storage_version_hash,
};

/// Changes whenever any built-in document does.
pub fn openapi_digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| {
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(Sha256::digest(koord_builtins::openapi_table()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
