//! The handlers behind the server's routing, against recordings of the original and by their properties.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod allocations;
mod charges;
mod config_sync;
mod declared;
mod divergences;
mod mistakes;
mod properties;
mod readme;
mod recordings;
mod replay;
