//! Listening for HTTP with limits: no client can keep others out, and no client decides how much memory is used.
//!
//! A [`Server`] puts an `axum::Router` behind listeners, with or without TLS. Every stage of a connection has a time
//! limit ([`Limits`]). When there are as many connections as allowed, the one that matters least is closed for the new
//! one ([`Limits::connections_max`]). The bodies of all requests in flight share a budget ([`BodyLimits`]). A response
//! may take as long as it likes, so that watches are not cut, as long as its client reads it.
//!
//! The crate knows nothing of Kubernetes. Time is tokio's, because a limit protects against other machines.
//!
//! Read first: [`Server`], [`Limits`], [`read`] (how a handler reads a body within the budget).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod body;
mod budget;
mod chunks;
mod connections;
mod limits;
mod memory;
mod open_files;
mod peer;
mod server;
mod sockets;
mod stream;
mod table;
mod tally;

pub use body::{ReadError, read};
pub use limits::{BodyLimits, Limits};
pub use open_files::raise_open_files;
pub use peer::PeerCertificates;
pub use server::Server;
pub use sockets::{BindError, bind};
