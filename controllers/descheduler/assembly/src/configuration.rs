//! The configuration of a descheduler: checked, and completed with all that is not set.

use anyhow::Result;
use koord_config::{
    Kind,
    descheduler::DeschedulerConfiguration,
    policy::{Evictor, Note, Translation, election_note, translate},
};
use koord_configuration::{LeaderElection, Problem, Source};
use koord_resource::Duration;
use serde_json::Value;

/// A configuration that was found right, with all that is not set.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What is in force.
    pub values: DeschedulerConfiguration,
    document: Value,
    /// Whether it was made of a policy of kubernetes-sigs/descheduler.
    is_of_policy: bool,
    /// What it does otherwise than that policy.
    notes: Vec<Note>,
}

impl Configuration {
    /// The configuration of a document, which is a DeschedulerConfiguration or a policy of kubernetes-sigs/descheduler. Mistakes are named with their
    /// lines in the source.
    pub fn of_document(document: &Value, source: &Source<'_>) -> Result<Self> {
        Self::with_flags(document, source, |_| {})
    }

    /// The same with flags that are laid over the DeschedulerConfiguration.
    pub fn with_flags(document: &Value, source: &Source<'_>, lay_over: impl FnOnce(&mut Value)) -> Result<Self> {
        let Some(Kind::PolicyV1alpha1 | Kind::PolicyV1alpha2) = Kind::of(document) else {
            let mut document = LeaderElection::without_unset(document);
            lay_over(&mut document);
            return Self::checked(document, source);
        };
        let Translation { mut document, mut notes, .. } =
            translate(document, Evictor::default()).map_err(|problems| source.error(problems))?;
        lay_over(&mut document);
        notes.extend(election_note(&document));
        // The policy was right, so what is wrong now was said by a flag.
        let checked = Self::checked(document, &Source::new("the flags", ""))?;
        Ok(Self { is_of_policy: true, notes, ..checked })
    }

    fn checked(document: Value, source: &Source<'_>) -> Result<Self> {
        let problems = Kind::Descheduler.check(&document);
        if !problems.is_empty() {
            return Err(source.error(problems).into());
        }
        let values = DeschedulerConfiguration::of(&document)?;
        Ok(Self { values, document, is_of_policy: false, notes: Vec::new() })
    }

    /// What of it has no effect.
    pub fn warnings(&self) -> Vec<Problem> {
        Kind::Descheduler.warnings(&self.document)
    }

    /// What it does otherwise than kubernetes-sigs/descheduler with the policy that it was made of.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Whether the program ends after a pass: as that of kubernetes-sigs/descheduler does without an interval, and the original does not.
    pub fn ends_after_a_pass(&self) -> bool {
        self.is_of_policy && self.values.descheduling_interval == Duration::ZERO
    }

    /// All of it, with everything that is not set.
    pub fn effective(&self) -> Result<Value> {
        Ok(Kind::Descheduler.effective(&self.document)?.value)
    }
}
