//! An agent that asks the kubelet every second, and does nothing else.

use std::time::Duration;

use koord_koordlet_testing::{Agent, Input, Output};

#[derive(Default)]
pub(crate) struct Idle {
    next: Duration,
}

impl Agent for Idle {
    fn due(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn handle(&mut self, _: Duration, _: Input) {}

    fn advance_to(&mut self, at: Duration) -> Vec<Output> {
        if at < self.next {
            return Vec::new();
        }
        self.next = at + Duration::from_secs(1);
        ["/pods/", "/configz"].map(|path| Output::Kubelet { path: path.to_owned(), has_credentials: false }).into()
    }
}
