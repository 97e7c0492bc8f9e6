#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value))]
//! Structural schemas and the algorithms that a Kubernetes API server runs over them.
//!
//! This crate is pure: no I/O, no async, no clock. It knows JSON, schemas, patches and the definitions in which schemas
//! are installed; it does not know what a resource, a webhook or Koordinator is.
//!
//! Read first: [`Schema`] (the data), then the modules that work on it.

#[cfg(feature = "cel")]
pub mod cel;
pub mod cel_name;
#[cfg(feature = "cel")]
pub mod definition;
pub mod field;
pub mod fieldset;
pub mod go_text;
pub mod json_path;
pub mod managed_fields;
pub mod names;
pub mod nesting;
pub mod object_meta;
pub mod patch;
pub mod pattern;
mod schema;
pub mod strict;
pub mod structural;
pub mod typed;

pub use schema::{AdditionalProperties, ListType, MapType, Rule, Schema, SchemaType};
