//! The derives as their users see them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

mod admission;
mod agreement;
mod controller;
mod convert;
mod enums;
mod fragments;
mod functions;
mod members;
mod paths;
mod policy;
mod rearranged;
mod resource;
mod schema;
mod schemars;
mod validate;
mod versions;
