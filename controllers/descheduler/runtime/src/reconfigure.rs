//! A configuration that changes while the program runs.

use std::{sync::Arc, time::Duration};

use koord_config::descheduler::Prometheus;
use koord_descheduler_framework::Descheduler;
use koord_descheduler_migration::MigrationController;
use koord_runtime::events::EventType;
use parking_lot::RwLock;
use tokio::sync::mpsc;

/// What the configuration says beside profiles.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Whether nothing is written.
    pub is_dry_run: bool,
    /// Where Prometheus is, if it is known.
    pub prometheus: Option<Prometheus>,
}

/// A configuration that takes the place of the one in effect.
pub struct Reconfiguration {
    pub descheduler: Descheduler,
    /// The time from the start of a pass to the start of the next; 0 for a single pass.
    pub interval: Duration,
    pub behaviour: Behaviour,
    /// The plugin that migrates pods, and how often it arbitrates; where it was enabled before, and only there.
    pub migration: Option<(Arc<MigrationController>, Duration)>,
    /// Whether what strategies keep of earlier passes means the same.
    pub keeps_memory: bool,
    /// The fields that are different.
    pub changed: Vec<String>,
    /// All of it, as `/configz` shows it.
    pub shown: Arc<str>,
}

/// What becomes of a change of the configuration file.
pub enum ConfigurationChange {
    /// It is in effect from the next pass on.
    Taken(Box<Reconfiguration>),
    /// It is wrong; why.
    Refused(String),
    /// These fields only change when the program starts.
    NeedsRestart(Vec<String>),
}

/// Where changes of the configuration come from, and what is in effect.
pub struct ConfigurationChanges {
    pub changes: mpsc::Receiver<ConfigurationChange>,
    /// What `/configz` shows.
    pub shown: Arc<RwLock<Arc<str>>>,
}

impl ConfigurationChange {
    /// What is reported of it: how bad it is, the reason of the event, the message, the result as the metric has it.
    pub(crate) fn report(&self) -> (EventType, &'static str, String, &'static str) {
        match self {
            Self::Taken(taken) => {
                let changed = taken.changed.join(", ");
                let message =
                    format!("the configuration has changed, and is in effect from the next pass on: {changed}");
                (EventType::Normal, "ConfigurationTaken", message, "taken")
            }
            Self::Refused(reason) => {
                let message =
                    format!("the configuration has changed and cannot be used; the one before goes on: {reason}");
                (EventType::Warning, "ConfigurationRefused", message, "refused")
            }
            Self::NeedsRestart(fields) => {
                let fields = fields.join(", ");
                let message = format!(
                    "the configuration has changed, and the one before goes on: {fields} can only change when the program starts; restart it"
                );
                (EventType::Warning, "ConfigurationNeedsRestart", message, "needs_restart")
            }
        }
    }
}
