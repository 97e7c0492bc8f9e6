//! The execution of a plan as a state machine: which write comes next, what the controller remembers, and the result.
//!
//! A refusal of one object says nothing about the others, so the writes to them go on; where the server cannot be reached
//! or is overloaded, the plan is aborted. One error reports all refusals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
    vec,
};

use koord_resource::controller::ResourceKind;

use crate::{
    effect::Wanted,
    error::{MissingPermission, ReconcileError, Retry},
    events::Event,
    key::ObjectKey,
    outcome::{Keep, Memory, Outcome},
    write::Write,
};

/// So many refusals are reported in words; the others are counted.
const REPORTED: usize = 5;

/// A plan that is being executed.
#[derive(Debug)]
pub struct Execution {
    writes: vec::IntoIter<Write>,
    /// Writes that were not answered yet, by object.
    open: BTreeMap<(ResourceKind, ObjectKey), usize>,
    /// Objects of which a write was refused: what follows was decided for what they would have become.
    refused: BTreeSet<(ResourceKind, ObjectKey)>,
    errors: Vec<ReconcileError>,
    memory: Vec<Memory>,
    effects: Vec<Wanted>,
    events: Vec<Event>,
    requeue: Option<Duration>,
}

/// The end of an execution.
#[must_use]
pub struct Executed {
    /// When to reconcile again, or what went wrong.
    pub result: Result<Option<Duration>, ReconcileError>,
    /// What is to be kept in the controller's memory.
    pub kept: Vec<Kept>,
    /// Work outside of the cluster that is wanted now; none when writes failed, and it stays as it was.
    pub effects: Option<BeginEffects>,
    /// Events about objects.
    pub events: Vec<Event>,
}

/// The effects that a decision asked for.
#[must_use]
pub struct BeginEffects(Vec<Wanted>);

impl BeginEffects {
    /// Begins those that are not under way. Gives the names of all that are wanted.
    pub fn begin(self) -> Vec<&'static str> {
        let begun = self.0.into_iter().map(|wanted| {
            (wanted.begin)();
            wanted.name
        });
        begun.collect()
    }
}

impl Execution {
    /// The execution of an outcome, of which nothing is written yet.
    pub fn of(outcome: Outcome) -> Self {
        let Outcome { plan, events, requeue, memory, effects, .. } = outcome;
        let mut open: BTreeMap<_, usize> = BTreeMap::new();
        for write in &plan {
            *open.entry((write.kind, write.key.clone())).or_default() += 1;
        }
        Self {
            writes: plan.into_iter(),
            open,
            refused: BTreeSet::new(),
            errors: Vec::new(),
            memory,
            effects,
            events,
            requeue,
        }
    }

    /// The write that comes next; none when there is nothing more to do.
    pub fn next_write(&mut self) -> Option<Write> {
        if abort_plan(&self.errors) {
            return None;
        }
        self.writes.find(|write| self.refused.is_empty() || !self.refused.contains(&(write.kind, write.key.clone())))
    }

    /// Records the result of a write. Gives what is to be kept of it in the controller's memory.
    #[must_use]
    pub fn written(&mut self, write: &Write, result: Result<(), ReconcileError>) -> Vec<Kept> {
        let object = (write.kind, write.key.clone());
        let is_last = match self.open.get_mut(&object) {
            Some(open) => {
                *open = open.saturating_sub(1);
                *open == 0
            }
            None => false,
        };
        if is_last || result.is_err() {
            self.open.remove(&object);
        }
        let kept = if is_last || result.is_err() {
            self.take_memory(|of| of == Some(&object), result.as_ref().err())
        } else {
            Vec::new()
        };
        if let Err(error) = result {
            self.refused.insert(object);
            self.errors.push(error);
        }
        kept
    }

    /// The end: nothing more is sent.
    pub fn end(mut self) -> Executed {
        let open = std::mem::take(&mut self.open);
        let succeeded = self.errors.is_empty() && open.is_empty();
        let kept = self.take_memory(|of| of.map_or(succeeded, |of| !open.contains_key(of)), None);
        let effects = succeeded.then(|| BeginEffects(std::mem::take(&mut self.effects)));
        let result = together(self.errors).map_or(Ok(self.requeue), Err);
        Executed { result, kept, effects, events: self.events }
    }

    fn take_memory(
        &mut self,
        mut is_due: impl FnMut(Option<&(ResourceKind, ObjectKey)>) -> bool,
        error: Option<&ReconcileError>,
    ) -> Vec<Kept> {
        let (due, rest) = std::mem::take(&mut self.memory).into_iter().partition(|memory| is_due(memory.of.as_ref()));
        self.memory = rest;
        let due: Vec<Memory> = due;
        due.into_iter().map(|Memory { keep, .. }| Kept { keep, error: error.cloned() }).collect()
    }
}

/// What is to be kept in a controller's memory, with the result of the writes that it follows.
#[must_use]
pub struct Kept {
    keep: Keep,
    error: Option<ReconcileError>,
}

impl Kept {
    /// Changes the controller's memory.
    pub fn keep(self) {
        (self.keep)(self.error.as_ref().map_or(Ok(()), Err));
    }
}

/// Different texts, each once.
fn joined<'t>(texts: impl Iterator<Item = &'t String>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&text.as_str()) {
            all.push(text);
        }
    }
    all.join(", ")
}

/// One error for several. A delay that the server asks for counts more than our own.
fn together(mut errors: Vec<ReconcileError>) -> Option<ReconcileError> {
    if errors.len() < 2 {
        return errors.pop();
    }
    let wished: Option<Duration> = errors.iter().filter_map(|error| error.retry.wished()).max();
    let backoff = errors.iter().any(|error| error.retry == Retry::Backoff);
    let retry = match wished {
        Some(delay) => Retry::After(delay),
        None if backoff => Retry::Backoff,
        None => Retry::Never,
    };
    let fault = errors.iter().map(|error| error.fault).max()?;
    let words: Vec<&str> = errors.iter().take(REPORTED).map(|error| error.message.as_str()).collect();
    let more = match errors.len().saturating_sub(REPORTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message = format!("{} writes failed: {}{more}", errors.len(), words.join("; "));
    let stale = errors.iter().all(|error| error.stale);
    // Several permissions that are missing are one matter as long as nothing else is wrong.
    let lacking: Option<Vec<&MissingPermission>> = errors.iter().map(|error| error.lacks.as_ref()).collect();
    let lacks = lacking.map(|lacking| MissingPermission {
        permission: joined(lacking.iter().map(|missing| &missing.permission)),
        refusal: joined(lacking.iter().map(|missing| &missing.refusal)),
    });
    Some(ReconcileError { retry, fault, message, aborts_plan: abort_plan(&errors), stale, lacks })
}

fn abort_plan(errors: &[ReconcileError]) -> bool {
    errors.iter().any(|error| error.aborts_plan)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::{
        error::Fault,
        write::{Action, Answer},
    };

    fn write(name: &str, subresource: &'static str) -> Write {
        let action = Action::Patch { subresource, patch: serde_json::json!({}) };
        Write { kind: ResourceKind::POD, key: ObjectKey::new("ns", name), action }
    }

    /// What is sent of these writes, when the first one to each object is answered with its code; and what comes of it.
    fn carried_out(plan: &[(&'static str, u16)]) -> (String, Result<(), ReconcileError>) {
        let writes = plan.iter().flat_map(|(name, _)| [write(name, "status"), write(name, "")]).collect();
        let mut execution = Execution::of(Outcome { plan: writes, ..Outcome::default() });
        let mut sent = String::new();
        while let Some(write) = execution.next_write() {
            sent += write.key.name();
            let (_, code) = plan.iter().find(|(name, _)| *name == write.key.name()).unwrap();
            let retry_after = (*code == 429).then_some(Duration::from_secs(7));
            let result = write.judge(Answer { code: *code, retry_after, body: "why".to_owned() }).map(drop);
            execution.written(&write, result).into_iter().for_each(Kept::keep);
        }
        (sent, execution.end().result.map(drop))
    }

    #[test]
    fn a_refusal_concerns_its_object_alone() {
        let (sent, ended) = carried_out(&[("a", 200), ("b", 403), ("c", 200), ("d", 409), ("e", 500), ("f", 200)]);
        assert_eq!(sent, "aabccdeff");
        let error = ended.unwrap_err();
        assert_eq!((error.retry, error.fault), (Retry::Backoff, Fault::User));
        assert!(
            error.message.starts_with("3 writes failed: patch Pod/status ns/b {}: the API server answered 403: why")
        );
        assert!(error.message.contains("; patch Pod/status ns/e {}: the API server answered 500"));
        assert!(carried_out(&[("a", 200), ("b", 200)]).1.is_ok());
    }

    #[test]
    fn a_server_that_is_asked_too_much_is_left_in_peace_for_as_long_as_it_says() {
        let (sent, ended) = carried_out(&[("a", 409), ("b", 429), ("c", 200)]);
        assert_eq!((sent.as_str(), ended.unwrap_err().retry), ("ab", Retry::After(Duration::from_secs(7))));
        for code in [401, 502, 503, 504] {
            assert_eq!(carried_out(&[("a", code), ("b", 200)]).0, "a", "{code}");
        }
    }

    #[test]
    fn many_refusals_are_counted() {
        let refused = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, 422));
        let message = carried_out(&refused).1.unwrap_err().message;
        assert!(message.starts_with("7 writes failed: ") && message.ends_with("; and 2 more"), "{message}");
    }

    #[test]
    fn memory_follows_the_writes_to_its_object() {
        let remembered = |codes: &[(&'static str, u16)]| {
            let log = Arc::new(Mutex::new(Vec::new()));
            let mut outcome = Outcome::settled();
            for (name, _) in codes {
                outcome.plan.extend([write(name, "status"), write(name, "")]);
            }
            for name in ["a", "b", "c", "unwritten"] {
                let log = Arc::clone(&log);
                outcome.remember_of(ResourceKind::POD, &ObjectKey::new("ns", name), move |result| {
                    log.lock().push(format!("{name} {}", result.is_ok()));
                });
            }
            let whole = Arc::clone(&log);
            outcome.remember(move || whole.lock().push("whole".to_owned()));
            let mut execution = Execution::of(outcome);
            while let Some(write) = execution.next_write() {
                let (_, code) = codes.iter().find(|(name, _)| *name == write.key.name()).unwrap();
                let result = write.judge(Answer { code: *code, ..Answer::default() }).map(drop);
                execution.written(&write, result).into_iter().for_each(Kept::keep);
            }
            execution.end().kept.into_iter().for_each(Kept::keep);
            log.lock().join(", ")
        };
        assert_eq!(remembered(&[("a", 200), ("b", 200)]), "a true, b true, c true, unwritten true, whole");
        assert_eq!(remembered(&[("a", 200), ("b", 403), ("c", 200)]), "a true, b false, c true, unwritten true");
        assert_eq!(remembered(&[("a", 503), ("b", 200)]), "a false, c true, unwritten true", "nothing is sent of b");
    }
}
