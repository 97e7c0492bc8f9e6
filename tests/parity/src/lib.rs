//! Compares an API server with a real one: plays recorded conversations, and sends mutated requests to both.
//!
//! A recording is a JSON file: requests that set the scene, then steps with the answer that the real server gave.
//! What cannot be equal on two servers (uids, revisions, times, generated names) is replaced by symbols on both sides;
//! equal symbols stand for equal values. The server under test is an [`axum::Router`], called without a socket; the crate knows
//! nothing else of it.
//!
//! Read first: [`Case`] (a recording), [`play`] (the conversation), [`Normaliser`] (the symbols), [`differential`] (the
//! comparison of mutated requests with a [`RealServer`]).

mod answer;
mod case;
pub mod differential;
mod mutate;
mod normalise;
mod path;
mod play;
mod real_server;
mod relay;
mod watch;

pub use case::{Case, LoadError};
pub use normalise::Normaliser;
pub use play::{Outcome, PlayError, Tokens, play};
pub use real_server::{ADMIN_TOKEN, DEV_TOKEN, RealServer};
pub use relay::relay;
