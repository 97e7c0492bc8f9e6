//! koordctl as a program: what its users see when all is well, and when something is in the way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agreement;
mod bad_input;
mod bench;
mod cluster;
mod coexist;
mod commands;
mod convert;
mod data_dir;
mod deschedule;
mod descheduler_page;
mod descheduling_scenario;
mod doctor;
mod error_messages;
mod explain;
mod new;
mod node;
mod pages;
mod peer;
mod plan;
mod profile;
mod program;
mod quota;
mod real_node;
mod reference;
mod replay;
mod scheduler_page;
mod scheduling_scenario;
mod simulate;
mod snapshot;
mod tour;
mod two_days;
mod unblock;
mod up;
mod why;
