//! What "a declared type" is.
//!
//! A type that derives `Resource` is one source for many documents: its CRD, its Rust validation and defaulting,
//! its admission handlers, its RBAC rules and its reference page. This crate holds the traits that the derive
//! implements, the documents that are computed from them, and the small exact types that Kubernetes objects are
//! made of. It does no I/O, is not async and knows nothing of Koordinator.
//!
//! Read first: [`Resource`] (identity), [`field`] (paths and errors), [`mod@admission`] (what a webhook handler is).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod admission;
pub mod controller;
pub mod convert;
pub mod declare;
pub mod document;
pub mod duration;
pub mod go_json;
pub mod int_or_string;
pub mod mutate;
pub mod quantity;
pub mod rbac;
mod resource;
pub mod rule;
pub mod strict_json;
pub mod time;
pub mod validate;
mod version;
mod walk;
pub mod yaml;

pub use convert::Convert;
pub use declare::Schema;
pub use duration::Duration;
pub use int_or_string::IntOrString;
pub use koord_macros::{
    Convert, Mutate, Projection, Resource, Schema, Validate, admission, controller, controllers, handlers,
};
pub use koord_schema::{self as schema, field};
pub use mutate::Mutate;
pub use quantity::{Quantity, ResourceList};
pub use resource::{Column, Extras, Older, Resource, ResourceInfo, Scale, Scope, Selectable, Served, Versions};
pub use time::Time;
pub use validate::Validate;

#[doc(hidden)]
pub use {k8s_openapi, serde, serde_json};
