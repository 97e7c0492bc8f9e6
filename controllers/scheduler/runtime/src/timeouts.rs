//! Decisions and bindings of pods that last for too long: what that is, and who counts them.

use std::time::Duration;

use koord_scheduler_framework::pod::Pod;
use prometheus::IntCounterVec;

/// When the monitor looks, and what is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitoring {
    /// How often it looks.
    pub period: Duration,
    /// What lasts longer is reported at every look.
    pub timeout: Duration,
}

impl Default for Monitoring {
    /// Those of the original.
    fn default() -> Self {
        Self { period: Duration::from_secs(10), timeout: Duration::from_secs(30) }
    }
}

/// Reports pods whose decision or binding lasts for too long.
#[derive(Clone, Default)]
pub(crate) struct TimeoutReports {
    pub(crate) settings: Monitoring,
    pub(crate) counter: Option<Timeouts>,
}

impl TimeoutReports {
    /// What lasts so long is reported if that is too long.
    pub(crate) fn report(&self, pod: &Pod, what: &'static str, lasts: Duration) {
        if lasts <= self.settings.timeout {
            return;
        }
        let profile = &*pod.template.scheduler;
        tracing::error!(pod = %pod.key, profile, ?lasts, "!!!CRITICAL TIMEOUT!!! the {what} of a pod lasts for too long");
        if let Some(counter) = &self.counter {
            counter.count(profile);
        }
    }
}

/// How often a decision or binding was seen to last for too long.
#[derive(Clone)]
pub(crate) struct Timeouts(IntCounterVec);

impl Timeouts {
    pub(crate) fn new(counter: IntCounterVec) -> Self {
        Self(counter)
    }

    /// One of this profile was.
    pub(crate) fn count(&self, profile: &str) {
        self.0.with_label_values(&[profile]).inc();
    }

    #[cfg(test)]
    pub(crate) fn of(&self, profile: &str) -> u64 {
        self.0.with_label_values(&[profile]).get()
    }
}
