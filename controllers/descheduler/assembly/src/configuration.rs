//! The configuration of a descheduler: checked, and completed with all that is not set.

use anyhow::Result;
use koord_config::{Kind, descheduler::DeschedulerConfiguration};
use koord_configuration::{Problem, Source};
use serde_json::Value;

/// A configuration that was found right, with all that is not set.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What is in force.
    pub values: DeschedulerConfiguration,
    document: Value,
}

impl Configuration {
    /// The configuration of a document. Mistakes are named with their lines in the source.
    pub fn of_document(document: Value, source: &Source<'_>) -> Result<Self> {
        let problems = Kind::Descheduler.check(&document);
        if !problems.is_empty() {
            return Err(source.error(problems).into());
        }
        Ok(Self { values: DeschedulerConfiguration::of(&document)?, document })
    }

    /// What of it has no effect.
    pub fn warnings(&self) -> Vec<Problem> {
        Kind::Descheduler.warnings(&self.document)
    }

    /// All of it, with everything that is not set.
    pub fn effective(&self) -> Result<Value> {
        Ok(Kind::Descheduler.effective(&self.document)?.value)
    }
}
