//! PostFilter and nominations: preemption for a pod that no node takes.

use std::{collections::BTreeSet, sync::Arc};

use koord_core::{clock::Moment, uid::Uid};
use koord_scheduler_framework::{
    Attempted, Found, PostFilterResult, Profile, Request, columns::Row, event::Event, extender::Victims, pod::Pod,
    timing::ExtensionPoint,
};

use super::{Engine, queueing_hints::PluginHints};

/// What came of preemption for a pod that no node takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PreemptionOutcome {
    /// No plugin tried.
    #[default]
    NotSought,
    /// There are no victims that would help.
    None,
    /// Victims of an earlier attempt are still leaving.
    Awaited,
    /// These victims leave from now on, those among them that are being deleted already.
    Found(Vec<Uid>),
}

/// What the PostFilter plugins answered.
#[derive(Default)]
pub(super) struct PostFilterOutcome {
    /// The node that the pod is nominated to, with its victims there.
    pub(super) nominated: Option<(Row, Vec<Uid>)>,
    /// Pods that are placed together, each with the node that it is nominated to.
    pub(super) together: Vec<(Uid, Row)>,
    /// The preemptor, where that is not this pod alone.
    pub(super) preemptor: Option<Arc<str>>,
    /// Texts that are added to the message.
    pub(super) words: Vec<String>,
    /// Whether there is no candidate, and the nomination of the pod ends.
    pub(super) is_hopeless: bool,
    /// The plugin that was called last.
    pub(super) last_preemptor: &'static str,
    /// What came of preemption.
    pub(super) preemption: PreemptionOutcome,
}

impl Engine {
    /// Calls the PostFilter plugins for a pod that no node takes. An error where extenders are to be called about these victims first.
    pub(super) fn run_post_filters(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        found: &Found,
    ) -> Result<PostFilterOutcome, Victims> {
        let mut outcome = PostFilterOutcome::default();
        if self.cluster.is_empty() {
            return Ok(outcome);
        }
        let random = &mut self.random;
        let mut draw = |below: u32| u32::try_from(random.below(u64::from(below))).unwrap_or(0);
        for (_, plugin, point) in profile.at(&profile.post_filters, |plugin| &plugin.post_filter) {
            let mut attempted = Attempted { cluster: &mut self.cluster, profile, found, draw: &mut draw };
            outcome.last_preemptor = plugin.name();
            let search = || point.post_filter(request, &mut attempted);
            let answer = self.latencies.call(plugin, ExtensionPoint::PostFilter, search);
            // A plugin without an answer has not tried.
            if !matches!(&answer, PostFilterResult::Nothing(word) if word.is_empty()) {
                outcome.preemption = PreemptionOutcome::None;
            }
            match answer {
                PostFilterResult::CallExtenders(victims) => return Err(victims),
                PostFilterResult::Nothing(word) => outcome.words.push(word),
                PostFilterResult::NoCandidate(word) => {
                    outcome.is_hopeless = true;
                    outcome.words.push(word);
                }
                PostFilterResult::Stop(word) => {
                    outcome.words = vec![word];
                    break;
                }
                PostFilterResult::Nominate { row, victims } => {
                    outcome.words.clear();
                    outcome.nominated = Some((row, victims));
                    break;
                }
                PostFilterResult::Together { nominations, victims, preemptor, words } => {
                    let nominated_row =
                        nominations.iter().find(|(uid, _)| *uid == request.pod.uid).map(|(_, row)| *row);
                    let evicts = nominated_row.is_some() && !victims.is_empty();
                    outcome.nominated = nominated_row.map(|row| (row, victims));
                    outcome.together = nominations;
                    outcome.words.push(words);
                    if evicts {
                        (outcome.words, outcome.preemptor) = (Vec::new(), Some(Arc::from(preemptor)));
                        break;
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// Nominates a pod to this node, or to none any more.
    pub(super) fn nominate(&mut self, pod: &Arc<Pod>, row: Option<Row>, now: Moment) {
        let had = self.cluster.nomination(&pod.uid);
        self.cluster.nominate(pod, row);
        if had.is_some() && had != row {
            self.notify(&Event::NominationChanged(pod.template.priority), now);
        }
    }

    /// The node that a pod is nominated to.
    pub(super) fn nominated_node(&self, uid: &Uid) -> Option<Arc<str>> {
        let row = self.cluster.nomination(uid)?;
        self.cluster.node(row).map(|node| Arc::clone(&node.name))
    }

    /// Takes nominations to these rows from pods of lower priority. Those of other schedulers' pods are theirs to take back.
    pub(super) fn supersede(&mut self, pod: &Pod, rows: &BTreeSet<Row>, now: Moment) {
        let is_lower = |other: &Pod| other.template.priority < pod.template.priority && !self.cluster.is_foreign(other);
        let lower = self.cluster.nominated().filter(|(other, row)| rows.contains(row) && is_lower(other));
        for other in lower.map(|(other, _)| Arc::clone(other)).collect::<Vec<_>>() {
            self.nominate(&other, None, now);
        }
    }

    /// An eviction that an attempt ordered has failed: its preemptor waits for it no longer.
    pub fn eviction_failed(&mut self, victim: &Uid, now: Moment) {
        if let Some(by) = self.cluster.not_evicted(victim) {
            let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.release(&by, now, &hints);
        }
    }
}
