//! Custom resources: definitions are checked, named, established and served at run time.
//!
//! [`definitions`] is the strategy of the kind CustomResourceDefinition, [`resources`] what a definition serves. The core
//! of the server brings names, conditions and what is served up to date after every change of a definition.

pub(crate) mod conditions;
pub mod definitions;
pub(crate) mod names;
pub mod resources;
mod versions;

/// Group of the kind CustomResourceDefinition.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Its plural.
pub const PLURAL: &str = "customresourcedefinitions";
/// Holds a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Says that a definition in a protected group was approved.
pub(crate) const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";
