//! The exact small types against what Go answers, and the schemas of Kubernetes' types.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "kubernetes")]
mod kubernetes_types;
mod quantity;
