//! Writes beside bindings: conditions that say why pods wait, and status updates of plugins. There may be thousands at once, and
//! no binding waits for them.
//!
//! An object has one that waits, the newest. Few are on their way at one time, so that places for bindings are left.

use std::collections::BTreeMap;

use koord_runtime::api::Priority;

use super::{
    Scheduler,
    work::{Purpose, Subject, Work, subject},
};

/// How many may be on their way at one time.
const SENT_MAX: usize = 16;

/// What waits to be sent.
#[derive(Default)]
pub(super) struct BackgroundWrites {
    /// By priority, in the order in which objects came.
    waiting: BTreeMap<(Priority, u64), Work>,
    places: BTreeMap<Subject, (Priority, u64)>,
    added: u64,
}

impl BackgroundWrites {
    /// Adds a write. It takes the place of one of the same object that waits, which is not sent any more.
    fn add(&mut self, work: Work) -> Option<Work> {
        let (priority, object) = (work.purpose.priority(), subject(&work.write));
        if let Some(place) = self.places.get(&object).filter(|(known, _)| *known == priority) {
            return self.waiting.insert(*place, work);
        }
        let replaced = self.withdraw(&object);
        let place = (priority, self.added);
        self.added += 1;
        self.waiting.insert(place, work);
        self.places.insert(object, place);
        replaced
    }

    /// Takes back what waits to be sent of an object.
    fn withdraw(&mut self, object: &Subject) -> Option<Work> {
        self.places.remove(object).and_then(|place| self.waiting.remove(&place))
    }

    /// The first whose object has no write on its way.
    fn first(&self, is_free: impl Fn(&Subject) -> bool) -> Option<Subject> {
        self.waiting.values().map(|work| subject(&work.write)).find(is_free)
    }
}

impl Scheduler {
    /// Has a write sent when there is a place for it.
    pub(super) fn write_in_background(&mut self, work: Work) {
        if let Some(replaced) = self.writes.background.add(work) {
            self.withdrawn(&replaced);
        }
    }

    /// The pod of an object is bound: what waits to be said of it is outdated.
    pub(super) fn withdraw_in_background(&mut self, object: &Subject) {
        if let Some(work) = self.writes.background.withdraw(object) {
            self.withdrawn(&work);
        }
    }

    fn withdrawn(&mut self, work: &Work) {
        if matches!(work.purpose, Purpose::Held) {
            self.writes.conditions.ended(&subject(&work.write), false, self.clock.moment());
        }
    }

    /// The next of them that is sent now.
    pub(super) fn next_in_background(&mut self) -> Option<Work> {
        let object = self.sendable_in_background()?;
        self.writes.background.withdraw(&object)
    }

    /// Whether one of them can be sent now.
    pub(super) fn has_background_write(&self) -> bool {
        self.sendable_in_background().is_some()
    }

    fn sendable_in_background(&self) -> Option<Subject> {
        if self.writes.background.waiting.is_empty()
            || self.writes.in_flight.values().filter(|write| write.is_in_background).count() >= SENT_MAX
        {
            return None;
        }
        self.writes.background.first(|object| !self.writes.in_flight.contains_key(object))
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::ResourceKind;
    use koord_runtime::{
        key::ObjectKey,
        write::{Action, Write},
    };
    use serde_json::json;

    use super::*;

    fn work(name: &str, purpose: Purpose, message: &str) -> Work {
        let action = Action::Patch { subresource: "status", patch: json!({ "message": message }) };
        Work { write: Write { kind: ResourceKind::POD, key: ObjectKey::new("ns", name), action }, purpose }
    }

    fn take(background: &mut BackgroundWrites) -> Option<String> {
        let object = background.first(|_| true)?;
        let Action::Patch { patch, .. } = background.withdraw(&object)?.write.action else { return None };
        Some(format!("{} {}", object.1.name(), patch["message"].as_str()?))
    }

    #[test]
    fn what_is_repeated_is_sent_once_with_its_newest_content_and_others_keep_their_order() {
        let mut background = BackgroundWrites::default();
        for (name, message) in [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3")] {
            background.add(work(name, Purpose::Explain, message));
        }
        background.add(work("kept", Purpose::Keep, "1"));
        background.withdraw(&subject(&work("c", Purpose::Explain, "").write));
        let sent: Vec<String> = std::iter::from_fn(|| take(&mut background)).collect();
        assert_eq!(sent, ["kept 1", "a 3", "b 1"], "what plugins want comes before conditions");
        assert!(background.waiting.is_empty() && background.places.is_empty());
    }

    #[test]
    fn an_object_whose_write_is_on_its_way_holds_up_no_other() {
        let mut background = BackgroundWrites::default();
        background.add(work("a", Purpose::Explain, "1"));
        background.add(work("b", Purpose::Explain, "1"));
        let a = subject(&work("a", Purpose::Explain, "").write);
        assert_eq!(
            background.first(|object| *object != a).map(|object| object.1.name().to_owned()).as_deref(),
            Some("b")
        );
        assert!(background.first(|_| false).is_none());
    }
}
