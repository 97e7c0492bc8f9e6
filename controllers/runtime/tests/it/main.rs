//! The runtime as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod connections;
mod events;
mod handover;
mod lease_with_go;
mod manager;
#[path = "../../examples/name_cards/controller.rs"]
mod name_cards;
mod projections;
mod sources;
mod supervision;
mod waking;
