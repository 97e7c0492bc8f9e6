//! The controllers on the embedded API server's core: what the original did in recorded situations, and what is promised
//! beyond them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod colocationprofile;
mod noderesource;
mod out_of_range;
mod recordings;
mod refusals;
mod stage;
mod takeover;
