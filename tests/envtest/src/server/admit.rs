//! The way of every write through admission, from the decoded object to the store.

use super::{
    ApiServer, Outcome, delete, identity, ownership,
    write::{Admitted, Effect, Phase, Review, Write},
};
use crate::{metadata, request::ApiRequest, status::ApiError};

/// Whether the server itself writes: it asks no webhooks about that.
pub(super) fn is_own(request: &ApiRequest) -> bool {
    request.user.name == crate::custom::lifecycle::SERVER_USER
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
        self.check_and_admit(write).map_err(|error| error.after_warnings(warnings))
    }

    fn check_and_admit(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
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
    pub(super) fn admit(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
        self.admit_mutating(&mut write)?;
        if self.has_webhooks(Phase::Mutating) && !is_own(&write.request) {
            return Ok(Outcome::Review(Box::new(Review { phase: Phase::Mutating, write })));
        }
        self.prepare(write)
    }

    /// Sets what only the server sets, checks the object, and asks validating webhooks when there are any.
    fn prepare(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
        if write.effect == Effect::Store {
            if write.old.is_none() {
                self.identify(&mut write);
            }
            self.prepare_object(&mut write)?;
        }
        delete::tell_grace(&mut write);
        if self.has_webhooks(Phase::Validating) && !is_own(&write.request) {
            return Ok(Outcome::Review(Box::new(Review { phase: Phase::Validating, write })));
        }
        self.finish_admitted(write)
    }

    /// The last built-in admission, then the write itself.
    fn finish_admitted(&mut self, write: Write) -> Result<Outcome, ApiError> {
        self.admit_quota(&write)?;
        self.finish(write)
    }

    /// Goes on after webhooks have answered.
    pub fn resume(&mut self, review: Review, verdict: Result<Admitted, ApiError>) -> Outcome {
        let Review { phase, mut write } = review;
        let deprecation = write.definition.deprecation.clone();
        let mut warnings = write.warnings.clone();
        let go_on = |server: &mut Self| {
            let admitted = verdict?;
            write.warnings.extend(admitted.warnings);
            warnings.clone_from(&write.warnings);
            match phase {
                Phase::Mutating => {
                    if let Some(object) = admitted.object {
                        write.object = object;
                        warn_of_duplicate_owners(&mut write, " after mutating admission happens");
                        write.definition.strategy.set_defaults(&mut write.object);
                        ownership::keep_times_of_unchanged(&mut write);
                    }
                    server.prepare(write)
                }
                Phase::Validating => server.finish_admitted(write),
            }
        };
        let result = go_on(self);
        let result = result.map_err(|error| error.after_warnings(warnings));
        let outcome = Outcome::from(result).with_warning(deprecation);
        self.follow_changes();
        outcome
    }
}
