//! The kinds of configurations that are known.

use koord_configuration::{Configuration as _, Effective, Problem, read, schema};
use serde_json::Value;

use crate::{
    PluginArgs,
    descheduler::{self, DeschedulerConfiguration},
    scheduler::{self, SchedulerConfiguration},
};

/// A kind of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`.
    Scheduler,
    /// `DeschedulerConfiguration` of `descheduler/v1alpha2`.
    Descheduler,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Scheduler, Self::Descheduler];

    /// The kind of a document, by its version and kind.
    pub fn of(document: &Value) -> Option<Self> {
        let is = |kind: &Self| document["apiVersion"] == kind.api_version() && document["kind"] == kind.name();
        Self::ALL.into_iter().find(is)
    }

    /// Group and version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Scheduler => SchedulerConfiguration::API_VERSION,
            Self::Descheduler => DeschedulerConfiguration::API_VERSION,
        }
    }

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduler => SchedulerConfiguration::KIND,
            Self::Descheduler => DeschedulerConfiguration::KIND,
        }
    }

    /// The plugins whose arguments are known.
    pub fn plugins(self) -> &'static [PluginArgs] {
        match self {
            Self::Scheduler => scheduler::PLUGINS,
            Self::Descheduler => descheduler::PLUGINS,
        }
    }

    /// The JSON Schema, without the arguments of plugins.
    pub fn schema(self) -> Value {
        match self {
            Self::Scheduler => schema::<SchedulerConfiguration>(),
            Self::Descheduler => schema::<DeschedulerConfiguration>(),
        }
    }

    /// What is wrong with a document.
    pub fn check(self, document: &Value) -> Vec<Problem> {
        let wrong = match self {
            Self::Scheduler => read::<SchedulerConfiguration>(document).err(),
            Self::Descheduler => read::<DeschedulerConfiguration>(document).err(),
        };
        wrong.unwrap_or_default()
    }

    /// What of a document has no effect, though nothing is wrong with it: fields that are ignored, and for the scheduler names of plugins that do
    /// not exist, where they are disabled or configured.
    pub fn warnings(self, document: &Value) -> Vec<Problem> {
        match self {
            Self::Scheduler => scheduler::warnings(document),
            Self::Descheduler => descheduler::warnings(document),
        }
    }

    /// What is in force with a document that [`Kind::check`] finds right.
    pub fn effective(self, document: &Value) -> Result<Effective, serde_json::Error> {
        let (complete, item_keys) = match self {
            Self::Scheduler => (scheduler::complete(document)?, SchedulerConfiguration::ITEM_KEYS),
            Self::Descheduler => (descheduler::complete(document)?, DeschedulerConfiguration::ITEM_KEYS),
        };
        Ok(Effective::new(complete, document, item_keys))
    }
}
