//! Koordinator's admission handlers: one file per path, each a pure function of a request and what the caches show.
//!
//! It knows no sockets and writes nothing. Read first: [`Ctx`] (what handlers see), [`mutate_pod`] (the most frequent
//! one), [`handlers`] (the table that the program serves).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ctx;
mod decode;
mod entries;
pub mod mutate_elastic_quota;
pub mod mutate_pod;
pub mod mutate_reservation;
mod pod;
mod profile;
mod selector;
pub mod validate_elastic_quota;
pub mod validate_pod;

pub use ctx::{Ctx, Switches};
use koord_resource::admission::Handler;

/// Every handler, in the order of the paths in the webhook configurations.
pub const fn handlers() -> [&'static Handler<Ctx>; 5] {
    [
        &mutate_pod::HANDLER,
        &mutate_elastic_quota::HANDLER,
        &mutate_reservation::HANDLER,
        &validate_pod::HANDLER,
        &validate_elastic_quota::HANDLER,
    ]
}
