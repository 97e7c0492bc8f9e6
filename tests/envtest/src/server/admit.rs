//! The way of every write through admission, from the decoded object to the store.
//!
//! Each step is a function that returns to its caller: a write asks webhooks ([`Admission::Asks`]) or is admitted
//! ([`Admission::Passed`]). Nothing here calls the step before it, so the depth of the stack does not depend on the
//! number of objects that one request changes.

use super::{
    ApiServer, Outcome,
    collection::CollectionDeletion,
    delete, identity, ownership,
    write::{Admitted, Effect, Phase, Review, Write},
};
use crate::{
    metadata,
    request::{ApiRequest, SERVER_USER},
    status::ApiError,
};

/// How far a write has come.
#[derive(Debug)]
pub(super) enum Admission {
    /// Webhooks are asked next.
    Asks(Phase, Box<Write>),
    /// Nothing is left to ask: the write is carried out next.
    Passed(Box<Write>),
}

/// Whether the server itself writes: it asks no webhooks about that.
pub(super) fn is_own(request: &ApiRequest) -> bool {
    request.user.name == SERVER_USER
}

fn warn_of_duplicate_owners(write: &mut Write, when: &str) {
    let uids = metadata::drop_duplicate_owners(&mut write.object);
    if !uids.is_empty() {
        write.warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            uids.join(", ")
        ));
    }
}

impl ApiServer {
    /// Goes on with an object that was decoded or patched together: the one door of all writes that store an object.
    pub(super) fn submit(&mut self, write: Write) -> Result<Outcome, ApiError> {
        let warnings = write.warnings.clone();
        let admission = self.check_and_admit(write).and_then(|admission| self.carry_out(admission, None));
        admission.map_err(|error| error.after_warnings(warnings))
    }

    fn check_and_admit(&mut self, mut write: Write) -> Result<Admission, ApiError> {
        match &write.old {
            None => identity::check_new(&mut write)?,
            Some((record, old)) => {
                identity::check_preconditions(&write, old, record)?;
                identity::keep(&mut write);
            }
        }
        warn_of_duplicate_owners(&mut write, "");
        write.definition.strategy.set_defaults(&mut write.object);
        if !write.is_applied {
            self.record_ownership(&mut write);
        }
        self.admit(write)
    }

    /// Asks mutating webhooks when there are any.
    pub(super) fn admit(&mut self, mut write: Write) -> Result<Admission, ApiError> {
        self.admit_mutating(&mut write)?;
        if self.has_webhooks(Phase::Mutating) && !is_own(&write.request) {
            return Ok(Admission::Asks(Phase::Mutating, Box::new(write)));
        }
        self.prepare(write)
    }

    /// Sets what only the server sets, checks the object, and asks validating webhooks when there are any.
    fn prepare(&mut self, mut write: Write) -> Result<Admission, ApiError> {
        if write.effect == Effect::Store {
            if let Some(authorizer) = self.authorizer.as_ref().filter(|_| !is_own(&write.request)) {
                authorizer.check_store(self, &write.attributes())?;
            }
            if write.old.is_none() {
                self.identify(&mut write);
            }
            self.prepare_object(&mut write)?;
        }
        delete::set_grace_of_review(&mut write);
        if self.has_webhooks(Phase::Validating) && !is_own(&write.request) {
            return Ok(Admission::Asks(Phase::Validating, Box::new(write)));
        }
        self.pass(write)
    }

    /// The last built-in admission.
    fn pass(&mut self, write: Write) -> Result<Admission, ApiError> {
        self.admit_quota(&write)?;
        Ok(Admission::Passed(Box::new(write)))
    }

    /// Waits for webhooks, or does the write. `rest` is what follows the write in a deletecollection.
    pub(super) fn carry_out(
        &mut self,
        admission: Admission,
        rest: Option<Box<CollectionDeletion>>,
    ) -> Result<Outcome, ApiError> {
        match (admission, rest) {
            (Admission::Asks(phase, write), rest) => {
                Ok(Outcome::Review(Box::new(Review { phase, write: *write, rest })))
            }
            (Admission::Passed(write), None) => self.finish(*write),
            (Admission::Passed(write), Some(rest)) => self.delete_item_and_rest(&write, rest),
        }
    }

    /// Goes on after webhooks have answered.
    pub fn resume(&mut self, review: Review, verdict: Result<Admitted, ApiError>) -> Outcome {
        let Review { phase, write, rest } = review;
        let deprecation = write.definition.deprecation.clone();
        let result = self.resumed(phase, write, rest, verdict);
        let outcome = Outcome::from(result).with_warning(deprecation);
        self.follow_changes();
        outcome
    }

    fn resumed(
        &mut self,
        phase: Phase,
        mut write: Write,
        rest: Option<Box<CollectionDeletion>>,
        verdict: Result<Admitted, ApiError>,
    ) -> Result<Outcome, ApiError> {
        let admitted = match verdict {
            Ok(admitted) => admitted,
            Err(error) => return Err(error.after_warnings(write.warnings)),
        };
        write.warnings.extend(admitted.warnings);
        let warnings = write.warnings.clone();
        let admission = match phase {
            Phase::Mutating => {
                if let Some(object) = admitted.object {
                    write.object = object;
                    identity::check_admitted(&mut write)?;
                    warn_of_duplicate_owners(&mut write, " after mutating admission happens");
                    write.definition.strategy.set_defaults(&mut write.object);
                    ownership::keep_times_of_unchanged(&mut write);
                }
                self.prepare(write)
            }
            Phase::Validating => self.pass(write),
        };
        let result = admission.and_then(|admission| self.carry_out(admission, rest));
        result.map_err(|error| error.after_warnings(warnings))
    }
}
