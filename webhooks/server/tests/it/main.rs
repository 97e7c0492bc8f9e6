//! The server with its certificates and configurations, against an API server of three objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_server;
mod caller;
mod controller;
mod drills;
mod paced;
mod replica;
mod supervised;
