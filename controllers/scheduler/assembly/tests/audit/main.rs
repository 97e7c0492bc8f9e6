//! After any history of a cluster, sums that are kept up to date with every change are what the objects amount to: an audit finds
//! nothing. One file for each state, with the objects and the pods that matter to it, malformed ones among them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod claims;
mod devices;
mod filled;
mod gangs;
mod loads;
mod nodes;
mod numa;
mod quotas;
mod reservations;
mod volumes;
mod world;
