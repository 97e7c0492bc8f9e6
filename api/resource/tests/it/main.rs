//! The exact small types against what Go answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod quantity;
