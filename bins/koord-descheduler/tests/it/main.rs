//! koord-descheduler and the permissions that it has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod occasions;
mod process;
mod rights;
