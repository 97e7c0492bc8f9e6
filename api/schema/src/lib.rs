#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
//! Structural schemas and the algorithms that a Kubernetes API server runs over them.
//!
//! This crate is pure: no I/O, no async, no clock. It knows JSON, schemas and patches; it does not know
//! what a resource, a webhook or Koordinator is.
//!
//! Read first: [`Schema`] (the data), then the modules that work on it.

pub mod field;
pub mod go_text;
pub mod patch;
mod schema;
pub mod typed;

pub use schema::{AdditionalProperties, ListType, MapType, Rule, Schema, SchemaType};
