//! A Kubernetes operator in one thread, in virtual time, from a seed.
//!
//! The API server's core, the watches, caches, queues and controllers of a program, and the people who change things are
//! state machines here. A seeded choice decides which of them makes the next step and what goes wrong: lists of the past,
//! watches that break, lag or repeat themselves, writes that are refused or whose answers are lost, panics, and a program
//! that dies between two of its writes. The same seed gives the same run, down to the hash of its trace. When the faults
//! stop, what is must become what should be, and then nothing may be written any more.
//!
//! ```
//! use http::Method;
//! use koord_runtime::Core;
//! use koord_simulator::{Failed, Trial};
//! use serde_json::json;
//!
//! const MAPS: &str = "/api/v1/namespaces/default/configmaps";
//!
//! fn main() -> Result<(), Failed> {
//!     // An operator adds its controllers here, as in its `main`: core.add(…)
//!     let trial = Trial::of(|_core: &mut Core| Ok::<(), String>(()))
//!         .users(|stage, random| {
//!             let name = format!("m{}", random.below(1_000_000));
//!             format!("creates {name} -> {}", stage.person(&Method::POST, MAPS, &json!({"metadata": {"name": name}})))
//!         })
//!         .eventually("there are maps", |stage| {
//!             if stage.objects(MAPS).is_empty() { Err("there are none".to_owned()) } else { Ok(()) }
//!         });
//!     let played = trial.play(2)?;
//!     assert!(played.writes >= 400);
//!     Ok(())
//! }
//! ```
//!
//! `SEED=17 cargo test` plays seed 17 alone. The crate knows the runtime and the embedded API server, and no kinds.
//!
//! Read first: [`Trial`] (an operator and what must hold), [`Scenario`] (the same for what needs more), [`Simulation`] (its
//! runs), [`Fault`] (what goes wrong).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod companion;
mod connection;
mod fault;
mod panics;
pub mod people;
mod program;
mod rounds;
mod run;
mod scenario;
mod seeds;
mod stage;
mod trace;
mod trial;
mod world;

pub use companion::{Companion, Decision, Witness};
pub use fault::Fault;
pub use rounds::{Rounds, State};
pub use run::{Failure, Options, Report, Simulation};
pub use scenario::{Disturbance, Scenario};
pub use seeds::{Counterexample, Failed, Played};
pub use stage::Stage;
pub use trial::Trial;

/// What other harnesses are made of: a run step by step, the world that it acts on, and the story of what happened.
pub mod parts {
    pub use crate::{
        panics::Panics,
        program::{FIELD_MANAGER, Program},
        run::{REPORTED, Run, start},
        stage::failure,
        trace::Trace,
        world::World,
    };
}
