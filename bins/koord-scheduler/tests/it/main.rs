//! koord-scheduler as a process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod claims;
mod debug;
mod effects;
mod extenders;
mod messages;
mod page;
mod program;
mod readiness;
mod replicas;
mod rights;
mod secure;
mod traces;
