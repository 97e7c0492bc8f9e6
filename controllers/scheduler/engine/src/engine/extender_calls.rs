//! Attempts that wait for an answer from outside.
//!
//! One pod is asked about at a time, as in kube-scheduler: who counts what he has given relies on it. Pods about which nobody is
//! asked go on meanwhile, and so do not wait for somebody who is slow.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, uid::Uid};

use super::{Attempt, Engine, Outcome};
use crate::{
    extender::{Answer, Answers, Question},
    framework::Request,
    pod::Pod,
    queue::Tried,
};

/// The pod that is asked about, and those that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    /// How many questions were asked.
    questions: u64,
    open: Option<Open>,
    /// By priority, then by when they were to be tried.
    line: BTreeMap<(Reverse<i32>, u64), (Uid, Tried)>,
    lined_up: u64,
}

/// An attempt that waits for an answer.
#[derive(Clone, Debug)]
struct Open {
    pod: Uid,
    tried: Tried,
    /// When the attempt began.
    began: Moment,
    is_answered: bool,
}

impl Asking {
    /// Forgets all pods. Answers that are still to come belong to no question any more.
    pub(super) fn clear(&mut self) {
        *self = Self { questions: self.questions, ..Self::default() };
    }

    /// Whether a pod is being asked about.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether an attempt can be made that waited for an answer, or for its turn.
    pub(super) fn has_work(&self) -> bool {
        self.open.as_ref().map_or(!self.line.is_empty(), |open| open.is_answered)
    }

    /// A pod waits until others were asked about.
    pub(super) fn line_up(&mut self, pod: &Pod, tried: Tried) {
        self.lined_up += 1;
        self.line.insert((Reverse(pod.template.priority), self.lined_up), (pod.uid.clone(), tried));
    }

    /// A pod is not to be tried any more. Says whether it was waiting here.
    fn forget(&mut self, uid: &Uid) -> bool {
        let before = self.line.len();
        self.line.retain(|_, (known, _)| known != uid);
        let was_open = self.open.take_if(|open| open.pod == *uid).is_some();
        was_open || self.line.len() < before
    }

    /// The pod whose turn it is: the one that is wanted, if there is one.
    fn next(&mut self, wanted: Option<&Uid>) -> Option<(Uid, Tried)> {
        let key = match wanted {
            Some(uid) => *self.line.iter().find(|(_, (known, _))| known == uid)?.0,
            None => *self.line.first_key_value()?.0,
        };
        self.line.remove(&key)
    }
}

impl Engine {
    /// A question was answered, by its number. An answer that nobody waits for any more changes nothing.
    pub fn answered(&mut self, number: u64, answer: Answer) {
        let Some(open) = self.asking.open.as_mut().filter(|_| self.asking.questions == number) else { return };
        open.is_answered = true;
        if let Some(answers) = self.cluster.state_mut::<Answers>() {
            answers.set(&open.pod, answer);
        }
    }

    /// Whether nobody else is tried while a pod is asked about, because plugins want certain pods to follow each other.
    pub(super) fn is_held(&self) -> bool {
        self.asking.is_open() && self.wanted().is_some()
    }

    /// The pod that a plugin wants to be next.
    pub(super) fn wanted(&self) -> Option<Uid> {
        let mut points = self.profiles.iter().flat_map(|profile| profile.each(|plugin| &plugin.next_pod));
        points.find_map(|point| point.next_pod(&self.cluster))
    }

    /// Whether others may be asked about a pod.
    pub(super) fn consults(&self, index: usize, pod: &Pod) -> bool {
        let profile = self.profiles.get(index);
        profile.is_some_and(|profile| profile.each(|plugin| &plugin.extender_calls).any(|point| point.may_call(pod)))
    }

    /// The attempt whose answer is there, or the first one of those that wait for their turn.
    pub(super) fn attempt_asked(&mut self, now: Moment) -> Option<Attempt> {
        while self.asking.has_work() {
            let (uid, tried, began) = match self.asking.open.take() {
                Some(Open { pod, tried, began, .. }) => (pod, tried, began),
                None => self.asking.next(self.wanted().as_ref()).map(|(uid, tried)| (uid, tried, now))?,
            };
            let pod = self.cluster.pending_pod(&uid).filter(|pod| !pod.deleting).cloned();
            let index = pod.as_ref().and_then(|pod| self.profile_of(pod));
            let (Some(pod), Some(index)) = (pod, index) else {
                self.forget_answers();
                self.queue.done(&uid);
                continue;
            };
            let mut attempt = self.attempt_with(index, pod, tried, now);
            attempt.began = began;
            match &mut self.asking.open {
                Some(open) => open.began = began,
                None => self.forget_answers(),
            }
            return Some(attempt);
        }
        None
    }

    /// Whether others are to be asked about the nodes that take a pod before one of them is chosen.
    pub(super) fn asks(&self, request: &Request<'_>) -> bool {
        let points = request.plugins.iter().filter_map(|plugin| plugin.extender_calls.as_ref());
        points.into_iter().any(|point| point.calls(request, &self.cluster))
    }

    /// The attempt ends with a question, and is made again with the answer.
    pub(super) fn ask(&mut self, pod: &Arc<Pod>, tried: Tried, question: Question, now: Moment) -> Outcome {
        self.cluster.show();
        self.asking.questions += 1;
        self.asking.open = Some(Open { pod: pod.uid.clone(), tried, began: now, is_answered: false });
        Outcome::Asks { number: self.asking.questions, question }
    }

    pub(super) fn forget_answers(&mut self) {
        if let Some(answers) = self.cluster.state_mut::<Answers>() {
            *answers = Answers::default();
        }
    }

    /// A pod is bound or gone: nothing is to be asked about it any more.
    pub(super) fn ask_no_more(&mut self, uid: &Uid) {
        if !self.asking.forget(uid) {
            return;
        }
        self.queue.done(uid);
        if !self.asking.is_open() {
            self.forget_answers();
        }
    }
}
