//! Custom resources: definitions are checked, named, established and served at run time.
//!
//! [`definitions`] is the strategy of the kind CustomResourceDefinition, whose checks are those of
//! [`koord_schema::definition`]; [`resources`] is what a definition serves. The core of the server brings names,
//! conditions and what is served up to date after every change of a definition.

pub(crate) mod conditions;
pub mod definitions;
pub(crate) mod names;
pub mod resources;

pub(crate) use koord_schema::definition::APPROVAL_ANNOTATION;

/// Group of the kind CustomResourceDefinition.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Its plural.
pub const PLURAL: &str = "customresourcedefinitions";
/// Holds a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
