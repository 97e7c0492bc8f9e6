//! How parts beside the agent report whether they work.

use tokio::sync::mpsc;

use crate::{capability::State, exchange::Input};

/// Reports how one feature fares; a state that is the same as before is not reported again.
pub(super) struct Report {
    feature: &'static str,
    inputs: mpsc::UnboundedSender<Input>,
    last: Option<State>,
}

impl Report {
    pub(super) fn of(feature: &'static str, inputs: &mpsc::UnboundedSender<Input>) -> Self {
        Self { feature, inputs: inputs.clone(), last: None }
    }

    pub(super) fn set(&mut self, state: State) {
        if self.last.as_ref() != Some(&state) {
            self.last = Some(state.clone());
            // An agent that has ended needs no report.
            drop(self.inputs.send(Input::Capability { feature: self.feature, state }));
        }
    }

    pub(super) fn active(&mut self) {
        self.set(State::Active);
    }

    pub(super) fn off(&mut self) {
        self.set(State::Off);
    }

    #[allow(clippy::needless_pass_by_value, reason = "errors and texts are given as they are")]
    pub(super) fn degraded(&mut self, reason: impl std::fmt::Display, remedy: impl Into<String>) {
        self.set(State::Degraded { reason: reason.to_string(), remedy: remedy.into() });
    }
}
