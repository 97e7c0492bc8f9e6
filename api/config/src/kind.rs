//! The kinds of configurations that are known.

use koord_configuration::{Configuration as _, Effective, Problem, read, schema};
use serde_json::Value;

use crate::{
    PluginArgs,
    descheduler::{self, COMMUNITY_PLUGINS, DeschedulerConfiguration},
    policy::{Evictor, PolicyV1alpha1, PolicyV1alpha2, translate},
    scheduler::{self, SchedulerConfiguration},
};

/// A kind of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`.
    Scheduler,
    /// `DeschedulerConfiguration` of `descheduler/v1alpha2`.
    Descheduler,
    /// `DeschedulerPolicy` of `descheduler/v1alpha1`, a configuration of kubernetes-sigs/descheduler.
    PolicyV1alpha1,
    /// `DeschedulerPolicy` of `descheduler/v1alpha2`.
    PolicyV1alpha2,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Scheduler, Self::Descheduler, Self::PolicyV1alpha1, Self::PolicyV1alpha2];

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
            Self::PolicyV1alpha1 => PolicyV1alpha1::API_VERSION,
            Self::PolicyV1alpha2 => PolicyV1alpha2::API_VERSION,
        }
    }

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduler => SchedulerConfiguration::KIND,
            Self::Descheduler => DeschedulerConfiguration::KIND,
            Self::PolicyV1alpha1 => PolicyV1alpha1::KIND,
            Self::PolicyV1alpha2 => PolicyV1alpha2::KIND,
        }
    }

    /// The plugins whose arguments are known.
    pub fn plugins(self) -> &'static [PluginArgs] {
        match self {
            Self::Scheduler => scheduler::PLUGINS,
            Self::Descheduler => descheduler::PLUGINS,
            Self::PolicyV1alpha1 => &[],
            Self::PolicyV1alpha2 => COMMUNITY_PLUGINS,
        }
    }

    /// The JSON Schema, without the arguments of plugins.
    pub fn schema(self) -> Value {
        match self {
            Self::Scheduler => schema::<SchedulerConfiguration>(),
            Self::Descheduler => schema::<DeschedulerConfiguration>(),
            Self::PolicyV1alpha1 => schema::<PolicyV1alpha1>(),
            Self::PolicyV1alpha2 => schema::<PolicyV1alpha2>(),
        }
    }

    /// What is wrong with a document.
    pub fn check(self, document: &Value) -> Vec<Problem> {
        let wrong = match self {
            Self::Scheduler => read::<SchedulerConfiguration>(document).err(),
            Self::Descheduler => read::<DeschedulerConfiguration>(document).err(),
            Self::PolicyV1alpha1 | Self::PolicyV1alpha2 => translate(document, Evictor::default()).err(),
        };
        let mut wrong = wrong.unwrap_or_default();
        if self == Self::Descheduler && document["kind"] == PolicyV1alpha2::KIND {
            let versions = format!("{} and {}", PolicyV1alpha1::API_VERSION, PolicyV1alpha2::API_VERSION);
            let remedy = format!("policies of kubernetes-sigs/descheduler are read in {versions}");
            for problem in &mut wrong {
                problem.suggestion = Some(remedy.clone());
            }
        }
        wrong
    }

    /// What of a document has no effect, though nothing is wrong with it: fields that are ignored, for the scheduler names of plugins that do
    /// not exist, where they are disabled or configured, and for a policy what its configuration does otherwise.
    pub fn warnings(self, document: &Value) -> Vec<Problem> {
        match self {
            Self::Scheduler => scheduler::warnings(document),
            Self::Descheduler => descheduler::warnings(document),
            Self::PolicyV1alpha1 | Self::PolicyV1alpha2 => {
                translate(document, Evictor::default()).map(|translation| translation.warnings()).unwrap_or_default()
            }
        }
    }

    /// What is in force with a document that [`Kind::check`] finds right; of a policy, the configuration that it becomes.
    ///
    /// # Errors
    ///
    /// The document has another form than its type.
    pub fn effective(self, document: &Value) -> Result<Effective, serde_json::Error> {
        let (complete, item_keys) = match self {
            Self::Scheduler => (scheduler::complete(document)?, SchedulerConfiguration::ITEM_KEYS),
            Self::Descheduler => (descheduler::complete(document)?, DeschedulerConfiguration::ITEM_KEYS),
            Self::PolicyV1alpha1 | Self::PolicyV1alpha2 => {
                let translation = translate(document, Evictor::default()).map_err(|problems| {
                    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    serde::de::Error::custom(problems.join("; "))
                })?;
                return Ok(translation.effective(descheduler::complete(&translation.document)?));
            }
        };
        Ok(Effective::new(complete, document, item_keys))
    }
}
