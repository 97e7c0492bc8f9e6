//! A plan on its way to the server, as a state machine: which write comes next, and what becomes of the whole.
//!
//! What is refused for one object says nothing about the others, so the writes to them go on; what cannot be reached or
//! is asked too much is left in peace. In the end one error tells of all refusals.

use std::{collections::BTreeSet, time::Duration, vec};

use koord_resource::controller::ResourceKind;

use crate::{
    error::{ReconcileError, Retry},
    key::ObjectKey,
    write::Write,
};

/// So many refusals are told in words; the others are counted.
const TOLD: usize = 5;

/// See the module.
#[derive(Debug)]
pub struct Carrying {
    writes: vec::IntoIter<Write>,
    /// Objects of which a write was refused: what follows was decided for what they would have become.
    refused: BTreeSet<(ResourceKind, ObjectKey)>,
    errors: Vec<ReconcileError>,
}

impl Carrying {
    /// A plan of which nothing is written yet.
    pub fn of(plan: Vec<Write>) -> Self {
        Self { writes: plan.into_iter(), refused: BTreeSet::new(), errors: Vec::new() }
    }

    /// The write that comes next; none when there is nothing more to do.
    pub fn next_write(&mut self) -> Option<Write> {
        if hinder_all(&self.errors) {
            return None;
        }
        self.writes.find(|write| self.refused.is_empty() || !self.refused.contains(&(write.kind, write.key.clone())))
    }

    /// Hears what became of a write.
    pub fn written(&mut self, write: &Write, result: Result<(), ReconcileError>) {
        if let Err(error) = result {
            self.refused.insert((write.kind, write.key.clone()));
            self.errors.push(error);
        }
    }

    /// What became of the whole.
    pub fn end(self) -> Result<(), ReconcileError> {
        together(self.errors).map_or(Ok(()), Err)
    }
}

/// One error for several. The server's own wish when to come back counts more than our delays.
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
    let words: Vec<&str> = errors.iter().take(TOLD).map(|error| error.message.as_str()).collect();
    let more = match errors.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message = format!("{} writes failed: {}{more}", errors.len(), words.join("; "));
    Some(ReconcileError { retry, fault, message, hinders_all: hinder_all(&errors) })
}

fn hinder_all(errors: &[ReconcileError]) -> bool {
    errors.iter().any(|error| error.hinders_all)
}

#[cfg(test)]
mod tests {
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
        let mut carrying = Carrying::of(writes);
        let mut sent = String::new();
        while let Some(write) = carrying.next_write() {
            sent += write.key.name();
            let (_, code) = plan.iter().find(|(name, _)| *name == write.key.name()).unwrap();
            let retry_after = (*code == 429).then_some(Duration::from_secs(7));
            let result = write.judge(&Answer { code: *code, retry_after, body: "why".to_owned() });
            carrying.written(&write, result);
        }
        (sent, carrying.end())
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
}
