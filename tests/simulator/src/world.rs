//! What the program's steps act on: the stage, chance, the faults that are under way, and the story of the run.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use koord_runtime::{
    clock::{Clock, ManualClock, Moment},
    key::ObjectKey,
    random::Random,
    write::{Action, Answer, Write},
};

use crate::{
    companion::Witness,
    fault::Fault,
    panics::Panics,
    scenario::Scenario,
    stage::{Stage, failure},
    trace::Trace,
};

/// How long a taken-away permission stays away.
const REVOCATION: Duration = Duration::from_mins(1);
/// Conflicts that one storm has, at most.
const STORM: u64 = 6;

/// The cluster, the clock, and what goes wrong in a run.
pub struct World {
    /// The cluster.
    pub stage: Stage,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) panics: Arc<Panics>,
    pub(crate) faults: BTreeMap<Fault, u64>,
    /// Writes that the program sent.
    pub program_writes: u64,
    /// See [`Scenario::repeated`].
    pub(crate) repeated: u64,
    pub(crate) broken: Option<String>,
    /// The newest revision that any life has seen.
    pub(crate) seen: u64,
    /// What was denied lately.
    pub(crate) denied: Denials,
    /// Judges the present life of the program.
    pub(crate) witness: Option<Box<dyn Witness>>,
    /// Decisions that witnesses of earlier lives have judged.
    judged: u64,
    is_denied: fn(&Write) -> bool,
    is_repeated: fn(&Write) -> bool,
    trouble: bool,
    revoked: Option<Revoked>,
    storm: u64,
}

/// Writes that an admission webhook denies for ever.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// How often each object was to be written.
    pub(crate) objects: BTreeMap<ObjectKey, u64>,
    /// Events that were recorded meanwhile.
    events: u64,
}

impl Denials {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The writes that follow from denials.
    pub(crate) fn writes(&self) -> u64 {
        let denied: u64 = self.objects.values().sum();
        if denied == 0 { 0 } else { denied + self.events }
    }
}

/// A permission that is taken away.
struct Revoked {
    verb: &'static str,
    plural: &'static str,
    until: Moment,
}

impl World {
    /// A world in which things go wrong, if there is to be `trouble`.
    pub fn new(stage: Stage, clock: Arc<ManualClock>, random: Random, trouble: bool, scenario: &dyn Scenario) -> Self {
        Self {
            stage,
            clock,
            panics: Panics::new(random.clone().number(), trouble),
            random,
            trace: Trace::default(),
            faults: BTreeMap::new(),
            program_writes: 0,
            repeated: 0,
            broken: None,
            seen: 0,
            denied: Denials::default(),
            witness: None,
            judged: 0,
            is_denied: scenario.denied(),
            is_repeated: scenario.repeated(),
            trouble,
            revoked: None,
            storm: 0,
        }
    }

    pub(crate) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.trace.note(self.clock.moment(), what);
    }

    /// A life of a program begins, with what judges it.
    pub(crate) fn begin_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.judged = self.judged();
        self.witness = witness;
    }

    /// How many decisions were judged.
    pub(crate) fn judged(&self) -> u64 {
        self.judged + self.witness.as_ref().map_or(0, |witness| witness.judged())
    }

    /// Shows something to what judges the present life.
    pub(crate) fn shows(&mut self, what: impl FnOnce(&mut dyn Witness)) {
        if let Some(witness) = &mut self.witness {
            what(witness.as_mut());
        }
    }

    /// Whether things go wrong.
    pub(crate) fn faulty(&self) -> bool {
        self.trouble
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        self.trouble = false;
        self.panics.stop();
        self.revoked = None;
        self.storm = 0;
    }

    /// Whether a one-in-so-many chance comes true.
    pub(crate) fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// Up to so much time.
    pub(crate) fn span(&self, longest: Duration) -> Duration {
        Duration::from_millis(self.random.below(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Runs this without panics.
    pub(crate) fn without_panics<R>(&self, work: impl FnOnce() -> R) -> R {
        self.panics.suspend(work)
    }

    /// Everything that went wrong, and how often.
    pub(crate) fn all_faults(&self) -> BTreeMap<Fault, u64> {
        let mut faults = self.faults.clone();
        faults.extend(self.panics.faults());
        faults
    }

    pub(crate) fn struck(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    /// Takes a permission away for a minute.
    pub(crate) fn revoke(&mut self, plural: &'static str) {
        const VERBS: [&str; 5] = ["list", "watch", "create", "patch", "delete"];
        let verb = VERBS[usize::try_from(self.random.below(VERBS.len() as u64)).unwrap_or_default()];
        self.note(format_args!("the permission to {verb} {plural} is taken away"));
        self.revoked = Some(Revoked { verb, plural, until: self.clock.moment() + REVOCATION });
    }

    /// The refusal of a request for which the permission is taken away just now.
    pub(crate) fn gated(&mut self, verb: &str, plural: &str) -> Option<Answer> {
        let revoked = self.revoked.as_ref()?;
        let forbidden = revoked.verb == verb && revoked.plural == plural && self.clock.moment() < revoked.until;
        if forbidden {
            self.struck(Fault::Revoked);
        }
        forbidden.then(|| failure(403, "Forbidden", &format!("{plural} is forbidden: cannot {verb}")))
    }

    /// The fault for this write, if any. Conflicts come in storms.
    pub(crate) fn of_write(&mut self) -> Option<Fault> {
        if !self.trouble {
            return None;
        }
        let fault = if self.storm > 0 {
            self.storm -= 1;
            Some(Fault::Conflict)
        } else {
            Fault::of_write(&self.random)
        };
        if fault == Some(Fault::Conflict) && self.storm == 0 && self.chance(4) {
            self.storm = self.random.below(STORM);
        }
        fault
    }

    /// Sends a write through whatever goes wrong on the way; an error is that no answer came. A change has to name these
    /// fields of what it was decided on.
    pub(crate) fn send(&mut self, write: &Write, field_manager: &str, basis: &[&str]) -> Result<Answer, &'static str> {
        if !names_its_basis(write, basis) {
            self.broken = Some(format!("a change does not name what it was decided on: {write}"));
        }
        let request = write.request(field_manager);
        let verb = write.action.verb();
        if let Some(refusal) = self.gated(verb, write.kind.plural) {
            self.sent(write, false, true);
            self.wrote(write, Some(Fault::Revoked), refusal.code);
            return Ok(refusal);
        }
        if (self.is_denied)(write) {
            *self.denied.objects.entry(write.key.clone()).or_default() += 1;
            let denial =
                failure(403, "Forbidden", "admission webhook \"frozen\" denied the request: nobody changes it");
            self.wrote(write, None, denial.code);
            return Ok(denial);
        }
        self.denied.events += u64::from(write.kind.kind == "Event");
        let fault = self.of_write();
        if let Some(fault) = fault {
            self.struck(fault);
        }
        let answer = match fault {
            Some(Fault::Conflict) => failure(409, "Conflict", "the object has been modified"),
            Some(Fault::TooMany) => {
                let seconds = 1 + self.random.below(10);
                let refusal = failure(429, "TooManyRequests", "too many requests");
                Answer { retry_after: Some(Duration::from_secs(seconds)), ..refusal }
            }
            Some(Fault::ErrorBefore) => failure(500, "InternalError", "before the commit"),
            Some(Fault::Refused) => failure(403, "Forbidden", "admission webhook denied the request"),
            Some(Fault::ErrorAfter) => {
                let arrived = self.stage.send(&request).is_success();
                self.sent(write, arrived, false);
                failure(504, "Timeout", "after the commit")
            }
            Some(Fault::Lost) => {
                let arrived = self.stage.send(&request).is_success();
                self.sent(write, arrived, false);
                self.wrote(write, fault, 0);
                return Err("the connection broke");
            }
            _ => self.stage.send(&request),
        };
        if fault != Some(Fault::ErrorAfter) {
            let is_certain = answer.code < 500 && answer.code != 429;
            self.sent(write, answer.is_success(), is_certain);
        }
        if answer.is_success() && changed_nothing(write, &answer) {
            self.broken = Some(format!("a write changed nothing: {write}"));
        }
        self.wrote(write, fault, answer.code);
        Ok(answer)
    }

    fn sent(&mut self, write: &Write, arrived: bool, is_certain: bool) {
        if let Some(witness) = &mut self.witness {
            witness.sent(write, arrived, is_certain);
        }
    }

    fn wrote(&mut self, write: &Write, fault: Option<Fault>, code: u16) {
        self.program_writes += 1;
        self.repeated += u64::from((self.is_repeated)(write));
        match fault {
            Some(fault) => self.note(format_args!("  {write} -> {code} ({fault:?})")),
            None => self.note(format_args!("  {write} -> {code}")),
        }
    }
}

/// Whether a change was answered with the revision that it was decided on.
fn changed_nothing(write: &Write, answer: &Answer) -> bool {
    #[derive(serde::Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: std::borrow::Cow<'a, str>,
    }
    let Action::Patch { patch, .. } = &write.action else { return false };
    let Some(basis) = patch.pointer("/metadata/resourceVersion") else { return false };
    let object: Result<Object<'_>, _> = serde_json::from_str(&answer.body);
    object.is_ok_and(|object| *basis == *object.metadata.resource_version)
}

/// Whether a change names what it was decided on.
fn names_its_basis(write: &Write, basis: &[&str]) -> bool {
    let Action::Patch { patch, .. } = &write.action else { return true };
    basis.iter().all(|field| patch.pointer(&format!("/metadata/{field}")).is_some())
}
