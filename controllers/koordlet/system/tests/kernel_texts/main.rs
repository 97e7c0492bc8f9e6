//! Texts of the kernel: what is read every second costs no memory, any bytes are survived, and recorded machines are understood.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod any_bytes;
mod no_allocations;
mod recorded_machines;
