//! Plays recorded conversations with a real API server against another one, and says where the answers differ.
//!
//! A recording is a JSON file: requests that set the scene, then steps with the answer that the real server gave.
//! What cannot be equal on two servers (uids, revisions, times, generated names) is replaced by symbols on both sides;
//! equal symbols stand for equal values. The server under test is an [`axum::Router`], called without a socket.
//!
//! Read first: [`Case`] (a recording), [`play`] (the conversation), [`Normaliser`] (the symbols).

mod case;
mod normalise;
mod path;
mod play;
mod watch;

pub use case::{Case, LoadError};
pub use normalise::Normaliser;
pub use play::{Outcome, PlayError, Tokens, play};
