//! What is measured on a node: samples in rings of fixed size, windows over them, and what is predicted from them.
//!
//! Read first: [`Store`], the samples by [`Subject`] and [`Measure`]; [`Window`], what is computed of the samples in a span of time;
//! [`collect::Collectors`], which take the samples; [`predict::Models`], what is predicted of them.
//!
//! The time is passed in. Collectors read files of the kernel, predictions have checkpoints; nothing else here does I/O.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp))]

pub mod collect;
pub mod gauges;
pub mod predict;
mod ring;
mod store;

pub use ring::{Ring, SAMPLES_MAX, Sample, Window, percentile};
pub use store::{Measure, PressureDegree, PressureOf, Retention, Store, Subject};
