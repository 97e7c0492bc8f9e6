//! Koordinator's kinds and its extension protocol: types and pure functions.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod elastic_quota;

use koord_resource::document::Declared;

/// All kinds, each with its versions.
pub const KINDS: &[&[Declared]] = &[&[Declared::of::<elastic_quota::ElasticQuota>()]];
