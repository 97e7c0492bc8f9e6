//! What is measured on a node: samples in rings of fixed size, windows over them, and what is predicted from them.
//!
//! Read first: [`Store`], the samples by [`Subject`] and [`Measure`]; [`Window`], what is computed of the samples in a span of time;
//! [`collect::Collectors`], which take the samples; [`predict::Models`], what is predicted of them.
//!
//! ```
//! use std::time::Duration;
//!
//! use koord_core::clock::Moment;
//! use koord_koordlet_metrics::{Measure, Store, Subject};
//!
//! let at = |second| Moment::at(Duration::from_secs(second));
//! let mut store = Store::default();
//! for (second, cpus) in [(1, 0.5), (2, 1.5)] {
//!     store.append(Subject::Pod("8211bafb"), Measure::Cpu, at(second), cpus);
//! }
//! assert_eq!(store.window(Subject::Pod("8211bafb"), Measure::Cpu, at(0), at(2)).average(), Some(1.0));
//! ```
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
