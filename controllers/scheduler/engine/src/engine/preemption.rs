//! Room that is made for a pod that no node takes.

use std::{collections::BTreeSet, sync::Arc};

use koord_core::{clock::Moment, uid::Uid};

use super::{Engine, queueing_hints::Judged};
use crate::{
    columns::Row,
    cycle::{Found, Profile},
    event::Event,
    extender::Victims,
    framework::{Attempted, PostFilterResult, Request},
    pod::Pod,
    timing::Point,
};

/// What came of looking for pods whose eviction makes room for a pod that no node takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// No plugin had anything to do with it.
    #[default]
    NotSought,
    /// There is none.
    None,
    /// It is being made since an earlier attempt.
    Awaited,
    /// It is being made from now on: these pods leave, those among them that are being deleted already.
    Found(Vec<Uid>),
}

/// What plugins said that were asked for room.
#[derive(Default)]
pub(super) struct Sought {
    /// The node for the pod, with the pods that are evicted there.
    pub(super) nominated: Option<(Row, Vec<Uid>)>,
    /// The pods that go together, each with the node on which its room is.
    pub(super) together: Vec<(Uid, Row)>,
    /// For whom pods are evicted, where that is not this pod alone.
    pub(super) preemptor: Option<Arc<str>>,
    /// What is added to the message.
    pub(super) words: Vec<String>,
    /// Whether no room can be made, and the pod is nominated no longer.
    pub(super) is_hopeless: bool,
    /// The plugin that was asked last.
    pub(super) asked_last: &'static str,
    /// What came of it.
    pub(super) room: Room,
}

impl Engine {
    /// Asks plugins for room for a pod that no node takes. An error where others are to be asked first about these victims.
    pub(super) fn look_for_room(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        found: &Found,
    ) -> Result<Sought, Victims> {
        let mut sought = Sought::default();
        if self.cluster.is_empty() {
            return Ok(sought);
        }
        let random = &mut self.random;
        let mut draw = |below: u32| u32::try_from(random.below(u64::from(below))).unwrap_or(0);
        for index in &profile.post_filters {
            let mut attempted = Attempted { cluster: &mut self.cluster, profile, found, draw: &mut draw };
            let plugin = &profile.plugins[usize::from(*index)];
            let Some(point) = &plugin.post_filter else { continue };
            sought.asked_last = plugin.name();
            let search = || point.post_filter(request, &mut attempted);
            let answer = self.laps.call(plugin, Point::PostFilter, search);
            // A plugin that has nothing to say has not looked.
            if !matches!(&answer, PostFilterResult::Nothing(word) if word.is_empty()) {
                sought.room = Room::None;
            }
            match answer {
                PostFilterResult::Ask(victims) => return Err(victims),
                PostFilterResult::Nothing(word) => sought.words.push(word),
                PostFilterResult::NoRoom(word) => {
                    sought.is_hopeless = true;
                    sought.words.push(word);
                }
                PostFilterResult::Stop(word) => {
                    sought.words = vec![word];
                    break;
                }
                PostFilterResult::Nominate { row, victims } => {
                    sought.words.clear();
                    sought.nominated = Some((row, victims));
                    break;
                }
                PostFilterResult::Together { rooms, victims, preemptor, words } => {
                    let own = rooms.iter().find(|(uid, _)| *uid == request.pod.uid).map(|(_, row)| *row);
                    let evicts = own.is_some() && !victims.is_empty();
                    sought.nominated = own.map(|row| (row, victims));
                    sought.together = rooms;
                    sought.words.push(words);
                    if evicts {
                        (sought.words, sought.preemptor) = (Vec::new(), Some(Arc::from(preemptor)));
                        break;
                    }
                }
            }
        }
        Ok(sought)
    }

    /// Room is made for a pod on this node from now on, or on none any more.
    pub(super) fn make_room(&mut self, pod: &Arc<Pod>, row: Option<Row>, now: Moment) {
        let had = self.cluster.nomination(&pod.uid);
        self.cluster.nominate(pod, row);
        if had.is_some() && had != row {
            self.notify(&Event::NominationChanged(pod.template.priority), now);
        }
    }

    /// The node on which room is being made for a pod.
    pub(super) fn nominated_node(&self, uid: &Uid) -> Option<Arc<str>> {
        let row = self.cluster.nomination(uid)?;
        self.cluster.node(row).map(|node| Arc::clone(&node.name))
    }

    /// Pods of lower priority do not get the room any more that was made for them on these rows before. What other schedulers
    /// have nominated is theirs to take back.
    pub(super) fn supersede(&mut self, pod: &Pod, rows: &BTreeSet<Row>, now: Moment) {
        let is_lower = |other: &Pod| other.template.priority < pod.template.priority && !self.cluster.is_foreign(other);
        let lower = self.cluster.nominated().filter(|(other, row)| rows.contains(row) && is_lower(other));
        for other in lower.map(|(other, _)| Arc::clone(other)).collect::<Vec<_>>() {
            self.make_room(&other, None, now);
        }
    }

    /// An eviction that an attempt ordered has failed. Who waits for it waits no longer.
    pub fn eviction_failed(&mut self, victim: &Uid, now: Moment) {
        if let Some(by) = self.cluster.not_evicted(victim) {
            let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.release(&by, now, &judge);
        }
    }
}
