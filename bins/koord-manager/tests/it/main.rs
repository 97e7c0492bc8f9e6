//! The program as a process, beside an API server in the process of the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod messages;
mod process;
mod starvation;
