//! What is measured on a node: samples in rings of fixed size, windows over them, and what is predicted from them.
//!
//! Read first: [`Store`], the samples by [`Subject`] and [`Measure`]; [`Window`], what is computed of the samples in a span of time.
//!
//! Nothing here reads files or knows the time.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ring;
mod store;

pub use ring::{Ring, SAMPLES_MAX, Sample, Window, percentile};
pub use store::{Measure, PressureDegree, PressureOf, Retention, Store, Subject};
