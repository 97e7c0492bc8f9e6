//! The embedded API server answers as the real one was recorded to answer.
//!
//! `tests/data/known-differences.json` names the recordings that are answered otherwise, and why; any other difference fails.
//!
//! `tests/data/apiserver` holds our own selection of the recordings. Where a folder with more of them is at hand
//! (`KOORD_SHARED`, or `shared` beside the repository), they are played too. One group or one recording:
//! `PARITY=patch` or `PARITY=patch/merge-null cargo test -p parity -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apiserver;
mod differential;
mod scheduler_recordings;
mod servers;
