//! What would happen if something were otherwise: changes that are tried on a copy of the engine.
//!
//! Nothing is written, and the engine that is copied stays as it is. Read first: [`unblock`](fn@unblock) (what would let a pod that waits be
//! placed), [`Objects`] (the objects whose changes are tried).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod objects;
mod unblock;

use koord_scheduler_engine::Engine;
use koord_scheduler_framework::Query;
use serde_json::Value;

pub use self::{
    objects::Objects,
    unblock::{Unblock, Unblocked, unblock},
};

/// What a plugin answers about a path; none where no profile has it, or it has no answer.
pub fn service(engine: &Engine, plugin: &str, path: &[&str]) -> Option<Value> {
    let mut plugins = engine.profiles().flat_map(|profile| &profile.plugins);
    let endpoint = plugins.find(|known| known.name() == plugin)?.service_endpoint.as_ref()?;
    endpoint.serve(path, &Query::default(), engine.cluster()).ok()
}
