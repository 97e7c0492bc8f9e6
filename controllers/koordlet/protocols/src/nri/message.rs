//! Messages of `nri.pkg.api.v1alpha1`, with the fields that a node agent uses; others are skipped.

pub mod adjustment;
pub mod object;
pub mod resources;
pub mod service;
