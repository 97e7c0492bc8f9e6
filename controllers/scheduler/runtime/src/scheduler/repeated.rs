//! Writes that are repeated until they have taken effect: each object has one in flight at a time, and one that did not help is not
//! repeated at once.

use std::{collections::BTreeMap, time::Duration};

use koord_runtime::clock::Moment;

use super::work::Subject;

/// How long a write that has succeeded may take to be seen; it is sent again if it is still needed then.
const UNSEEN: Duration = Duration::from_secs(10);
/// How long a write that has failed is left alone: twice as long after each failure, within these limits.
pub(super) const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// What is on its way, and what was sent lately, by object. `W` is what a write is to achieve.
pub(super) struct Repeated<W>(BTreeMap<Subject, Sent<W>>);

struct Sent<W> {
    content: W,
    /// None while it is on its way; else the time before which it is not sent again.
    until: Option<Moment>,
    /// How often in a row writes of the object have failed.
    failures: u32,
    /// When it was first sent.
    since: Moment,
}

impl<W> Default for Repeated<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W: Clone + PartialEq> Repeated<W> {
    /// When the first pause ends.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        self.0.values().filter_map(|sent| sent.until).min()
    }

    /// Whether a write of this object is sent now; then it is on its way. Other content than before waits for no pause.
    pub(super) fn begins(&mut self, subject: &Subject, content: &W, now: Moment) -> bool {
        let known = self.0.get(subject);
        let begins = known.is_none_or(|sent| sent.until.is_some_and(|until| until <= now || sent.content != *content));
        if begins {
            let failures = known.map_or(0, |sent| sent.failures);
            self.0.insert(subject.clone(), Sent { content: content.clone(), until: None, failures, since: now });
        }
        begins
    }

    /// The write has ended. Gives how long it took, from when it was first sent.
    pub(super) fn ended(&mut self, subject: &Subject, is_done: bool, now: Moment) -> Option<Duration> {
        let sent = self.0.get_mut(subject)?;
        let lasted = sent.until.is_none().then(|| now.since(sent.since));
        let (first, longest) = PAUSE;
        let pause = first.saturating_mul(1_u32.checked_shl(sent.failures).unwrap_or(u32::MAX)).min(longest);
        (sent.failures, sent.until) =
            if is_done { (0, Some(now + UNSEEN)) } else { (sent.failures.saturating_add(1), Some(now + pause)) };
        lasted
    }

    /// The write has failed because the API server could not serve it: its next try does not come later for that.
    pub(super) fn unserved(&mut self, subject: &Subject, now: Moment) {
        if let Some(sent) = self.0.get_mut(subject) {
            sent.until = Some(now + PAUSE.0);
        }
    }

    /// What has helped, or is not needed any more, may be sent at once when it is needed again.
    pub(super) fn keep(&mut self, is_needed: impl Fn(&Subject) -> bool) {
        self.0.retain(|subject, sent| sent.until.is_none() || is_needed(subject));
    }

    /// Forgets objects whose pause has been over for as long as the longest one: their writes are not needed any more.
    pub(super) fn forget_idle(&mut self, now: Moment) {
        self.0.retain(|_, sent| sent.until.is_none_or(|until| now < until + PAUSE.1));
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::ResourceKind;
    use koord_runtime::key::ObjectKey;

    use super::*;

    #[test]
    fn what_the_api_server_could_not_serve_is_tried_every_second() {
        let node = (ResourceKind::NODE, ObjectKey::cluster("n"));
        let at = |second: u64| Moment::default() + Duration::from_secs(second);
        let mut repeated = Repeated::default();
        let sent = (0..100).filter(|second| {
            let begins = repeated.begins(&node, &"same", at(*second));
            if begins {
                repeated.unserved(&node, at(*second));
            }
            begins
        });
        assert_eq!(sent.count(), 100);
        repeated.ended(&node, false, at(100));
        assert!(repeated.begins(&node, &"same", at(101)), "this is the first failure of its own");
    }

    #[test]
    fn an_object_whose_pause_is_long_over_is_forgotten_and_one_whose_write_is_on_its_way_is_not() {
        let pod = |name: &str| (ResourceKind::POD, ObjectKey::new("ns", name));
        let at = |second: u64| Moment::default() + Duration::from_secs(second);
        let mut repeated = Repeated::default();
        for name in ["failed", "sent"] {
            assert!(repeated.begins(&pod(name), &"why", at(0)));
        }
        assert_eq!(repeated.ended(&pod("failed"), false, at(1)), Some(Duration::from_secs(1)));
        repeated.forget_idle(at(61));
        let known = |repeated: &Repeated<&str>| repeated.0.keys().cloned().collect::<Vec<_>>();
        assert_eq!(known(&repeated), [pod("failed"), pod("sent")]);
        repeated.forget_idle(at(62));
        assert_eq!(known(&repeated), [pod("sent")]);
    }
}
