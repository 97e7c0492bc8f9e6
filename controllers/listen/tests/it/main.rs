//! Clients that keep connections and memory for themselves, against a server with small limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bodies;
mod client;
mod connections;
mod tls;
