//! Declarative reconciliation for Kubernetes: annotated Rust types become CRDs, validation, defaulting, admission
//! webhooks, conversion and controllers.
//!
//! This crate is a facade: everything of `koord-resource`, and behind features the runtime of controllers (`runtime`), the
//! webhook server (`webhook`) and an API server inside a test (`envtest`). Derived code names `::koord_resource`, so that
//! a crate which uses this facade alone begins with
//!
//! ```
//! extern crate koord as koord_resource;
//! # fn main() {}
//! ```
//!
//! Read first: `docs/library.md`, which leads from an empty crate to a tested operator.

pub use koord_resource::*;
pub use koord_resource::{k8s_openapi, serde, serde_json};

#[cfg(feature = "webhook")]
pub use koord_webhook as webhook;
#[cfg(feature = "envtest")]
pub use {envtest, http, koord_schema::cel};
#[cfg(feature = "runtime")]
pub use {jiff, koord_runtime as runtime, kube, tokio, tokio_util};
