//! One attempt: a node is looked for, the pod gets what it needs there, or learns why there is none.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use koord_core::{clock::Moment, uid::Uid};

use super::{
    Attempt, Engine, Outcome, Refused, Room,
    laps::Part,
    verdicts::{NodeClass, Why},
    waiting::Waiting,
};
use crate::{
    cluster::{Cluster, Hidden},
    columns::Row,
    cycle::{Found, Profile, Verdict},
    event::Event,
    extender::{Question, Victims},
    hold::{Holds, Resized},
    plugin::{Alike, Code, Operands, Orders, Patch, Permit, PostFilter, Rejection, Request, unavailable},
    pod::{Pod, Template},
    preemption::Attempted,
    queue::{PluginSet, Return, Tried},
    timing::Point,
};

/// How long a pod waits after Permit at most, whatever plugins want.
const PERMIT_WAIT_MAX: Duration = Duration::from_mins(15);

impl Engine {
    pub(super) fn attempt_with(&mut self, index: usize, pod: Arc<Pod>, tried: Tried, now: Moment) -> Attempt {
        let profile = Arc::clone(&self.profiles[index]);
        self.laps.begin();
        self.hide(&profile, &pod);
        let mut found = self.search(index, &profile, &pod);
        if found.is_outdated() {
            self.forget_answers();
            found = self.search(index, &profile, &pod);
        }
        self.laps.end(Part::Filter, matches!(found, Found::Node { .. }));
        let searched = found.searched();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &profile.plugins };
        let outcome = match found {
            Found::Node { .. } if self.asks(&request) => {
                self.cluster.hide_all();
                let rows = profile.takers(&request, &mut self.cluster);
                let nodes = rows.into_iter().filter_map(|row| self.cluster.node(row));
                let nodes = nodes.map(|node| Arc::clone(&node.name)).collect();
                self.ask(&pod, tried, Question::Nodes(nodes), now)
            }
            Found::Node { row, score, ties, .. } => self.reserve(&profile, &pod, tried, (row, score, ties), now),
            found => {
                self.cluster.hide_all();
                if let Some(rejected) = profile.of_reserve(&found, &self.cluster) {
                    self.refuse_in_reserve(&profile, &pod, tried, rejected, now)
                } else {
                    match self.refuse(&profile, &pod, &found, now) {
                        Ok((refused_by, refused)) => {
                            self.give_back(&pod, tried, refused.why(refused_by), now);
                            Outcome::Refused(refused)
                        }
                        Err(victims) => self.ask(&pod, tried, Question::Victims(victims), now),
                    }
                }
            }
        };
        self.laps.finish();
        Attempt { pod, tried, began: now, has_waited: false, searched, outcome }
    }

    fn search(&mut self, index: usize, profile: &Profile, pod: &Arc<Pod>) -> Found {
        let Self { cluster, memories, random, laps, .. } = self;
        let memory = &mut memories[index];
        let draw = |ties: u32| u32::try_from(random.below(u64::from(ties))).unwrap_or(0);
        match laps.stopwatch() {
            None => profile.search(pod, cluster, memory, draw),
            Some(mut stopwatch) => profile.search_timed(pod, cluster, memory, draw, &mut stopwatch),
        }
    }

    /// Takes away what is not there for this pod, until it is decided about it.
    pub(super) fn hide(&mut self, profile: &Profile, pod: &Arc<Pod>) {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let hidden = profile.plugins.iter().filter_map(|plugin| plugin.hides(&request, &self.cluster));
        let hidden: Vec<Hidden> = hidden.collect();
        self.cluster.offer(hidden);
    }

    /// Gives the pod what it needs on the node, and puts it there.
    fn reserve(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        tried: Tried,
        (row, score, ties): (Row, i64, u32),
        now: Moment,
    ) -> Outcome {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let node = self.cluster.node(row).map(|node| Arc::clone(&node.name)).unwrap_or_default();
        self.cluster.hide_on(row);
        let mut holds = Holds::default();
        let mut given = profile.among(&profile.reserves).map(|(index, plugin)| {
            let reserve = || plugin.reserve(&request, &self.cluster, row, &mut holds);
            self.laps.call(&**plugin, Point::Reserve, reserve).map_err(|rejection| (index, rejection))
        });
        let refused = given.find_map(Result::err);
        self.laps.end(Part::Reserve, refused.is_none());
        if let Some(refused) = refused {
            return self.refuse_in_reserve(profile, pod, tried, refused, now);
        }
        self.cluster.show();
        self.cluster.nominate(pod, None);
        self.cluster.place(resized(pod, &holds), &node, holds);
        let (mut orders, mut wait) = (Orders::default(), None);
        let mut refused = None;
        for (index, plugin) in profile.among(&profile.permits) {
            let permit = || plugin.permit(&request, &mut self.cluster, &mut orders);
            match self.laps.call(&**plugin, Point::Permit, permit) {
                Permit::Allow => {}
                Permit::Wait(limit) => {
                    let limit = limit.min(PERMIT_WAIT_MAX);
                    wait = wait.filter(|(known, _)| *known <= limit).or(Some((limit, index)));
                }
                Permit::Reject(message) => {
                    refused = Some((index, message));
                    break;
                }
            }
        }
        self.laps.end(Part::Permit, refused.is_none());
        let outcome = if let Some((index, message)) = refused {
            let (refused_by, refused) = rejected(profile, index, Rejection::unschedulable(message));
            self.unreserve(pod, tried, refused.why(refused_by), true, now);
            Outcome::Refused(refused)
        } else {
            let (limit, plugin) = wait.unwrap_or_default();
            let (pod, until, began) = (Arc::clone(pod), now + limit, now);
            let reserved = Waiting { pod, tried, began, node: Arc::clone(&node), score, ties, plugin, until, limit };
            if wait.is_none() {
                self.bind(&reserved)
            } else {
                self.waiting.insert(reserved);
                Outcome::Waiting { node }
            }
        };
        self.carry_out(orders, now);
        outcome
    }

    /// The node that was chosen cannot give the pod what it needs.
    fn refuse_in_reserve(
        &mut self,
        profile: &Profile,
        pod: &Arc<Pod>,
        tried: Tried,
        (index, rejection): (u8, Rejection),
        now: Moment,
    ) -> Outcome {
        self.cluster.show();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let orders = self.after_refusal(&request, &Found::Never(index, rejection.clone()));
        self.make_room(pod, None, now);
        self.carry_out(orders, now);
        let (refused_by, mut refused) = rejected(profile, index, rejection);
        if refused.is_error {
            refused.message = format!("running Reserve plugin {:?}: {}", profile.name_of(index), refused.message);
        }
        self.give_back(pod, tried, refused.why(refused_by), now);
        Outcome::Refused(refused)
    }

    /// The binding of a pod that is in its place.
    pub(super) fn bind(&mut self, bind: &Waiting) -> Outcome {
        let Waiting { pod, node, score, ties, .. } = bind;
        self.queue.done(&pod.uid);
        let (mut patch, mut instead) = (Patch::default(), None);
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        if let (Some(placed), Some(profile)) = (self.cluster.pod(&pod.uid), profile) {
            let request = Request { pod, class: &placed.class, plugins: &profile.plugins };
            for (_, plugin) in profile.among(&profile.pre_binds) {
                let write = || plugin.pre_bind(&request, placed, &self.cluster, &mut patch);
                self.laps.call(&**plugin, Point::PreBind, write);
            }
            instead = profile.plugins.iter().find_map(|plugin| {
                let write = plugin.bind(&request, placed, &self.cluster)?;
                Some((plugin.name(), write))
            });
        }
        Outcome::Bind { node: Arc::clone(node), score: *score, ties: *ties, patch, instead }
    }

    /// No node takes the pod: room is made for it, if there is a way. Otherwise these are the victims about which others are to be
    /// asked first.
    fn refuse(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        found: &Found,
        now: Moment,
    ) -> Result<(PluginSet, Refused), Victims> {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let (refused_by, mut message) = profile.words(&request, found, &self.cluster);
        let by = profile.refused_by(&request, found, &self.cluster);
        if matches!(found, Found::Never(_, Rejection { code: Code::Error, .. })) {
            self.cluster.show();
            let orders = self.after_refusal(&request, found);
            self.make_room(pod, None, now);
            self.carry_out(orders, now);
            return Ok((refused_by, Refused { message, is_error: true, by, ..Refused::default() }));
        }
        let random = &mut self.random;
        let mut draw = |below: u32| u32::try_from(random.below(u64::from(below))).unwrap_or(0);
        let (mut words, mut together, mut for_whom) = (Vec::new(), Vec::new(), None);
        let makes_room = !self.cluster.is_empty() && !profile.post_filters.is_empty();
        let (mut nominated, mut is_hopeless) = (None, !makes_room || pod.is_reservation());
        let (mut preempts, mut room) = ("", Room::NotSought);
        if !self.cluster.is_empty() {
            for index in &profile.post_filters {
                let mut attempted = Attempted { cluster: &mut self.cluster, profile, found, draw: &mut draw };
                let plugin = &profile.plugins[usize::from(*index)];
                preempts = plugin.name();
                let search = || plugin.post_filter(&request, &mut attempted);
                let answer = self.laps.call(&**plugin, Point::PostFilter, search);
                // A plugin that has nothing to say has not looked.
                if !matches!(&answer, PostFilter::Nothing(word) if word.is_empty()) {
                    room = Room::None;
                }
                match answer {
                    PostFilter::Ask(victims) => return Err(victims),
                    PostFilter::Nothing(word) => words.push(word),
                    PostFilter::NoRoom(word) => {
                        is_hopeless = true;
                        words.push(word);
                    }
                    PostFilter::Stop(word) => {
                        words = vec![word];
                        break;
                    }
                    PostFilter::Nominate { row, victims } => {
                        words.clear();
                        nominated = Some((row, victims));
                        break;
                    }
                    PostFilter::Together { rooms, victims, preemptor, words: said } => {
                        let own = rooms.iter().find(|(uid, _)| *uid == pod.uid).map(|(_, row)| *row);
                        nominated = own.map(|row| (row, victims));
                        together = rooms;
                        words.push(said);
                        if nominated.as_ref().is_some_and(|(_, victims)| !victims.is_empty()) {
                            (words, for_whom) = (Vec::new(), Some(Arc::from(preemptor)));
                            break;
                        }
                    }
                }
            }
        }
        self.laps.end(Part::PostFilter, nominated.is_some());
        self.cluster.show();
        let mut rows: BTreeSet<Row> = together.iter().map(|(_, row)| *row).collect();
        for (other, row) in together.into_iter().filter(|(uid, _)| *uid != pod.uid) {
            if let Some(other) = self.cluster.pending_pod(&other).cloned() {
                self.cluster.nominate(&other, Some(row));
            }
        }
        words.retain(|word| !word.is_empty());
        if !words.is_empty() {
            message = format!("{message} {}", words.join(", "));
        }
        let orders = self.after_refusal(&request, found);
        let kept = self.cluster.nomination(&pod.uid).filter(|_| !is_hopeless);
        let (row, victims) = nominated.map_or((kept, Vec::new()), |(row, victims)| (Some(row), victims));
        if !victims.is_empty() {
            room = Room::Found(victims.clone());
        } else if row.is_some() {
            room = Room::Awaited;
        }
        self.make_room(pod, row, now);
        let (unbound, victims): (Vec<_>, Vec<_>) = victims.into_iter().partition(|uid| self.waiting.contains(uid));
        let victims = victims.iter().filter_map(|uid| self.cluster.pod(uid)).map(|placed| &placed.pod);
        // Whose graceful deletion has begun already is not deleted once more.
        let victims: Vec<Arc<Pod>> = victims.filter(|victim| !victim.deleting).cloned().collect();
        for victim in &victims {
            self.cluster.evict(&victim.uid, &pod.uid);
        }
        if !victims.is_empty() {
            rows.extend(row);
            self.supersede(pod, &rows, now);
        }
        self.carry_out(orders, now);
        let node = row.and_then(|row| self.cluster.node(row)).map(|node| Arc::clone(&node.name));
        let withdrawn = unbound.iter().filter_map(|uid| self.preempt_waiting(uid, preempts, now)).collect();
        let preemptor = for_whom;
        let refused = Refused {
            message,
            is_error: false,
            nominated: node,
            victims,
            preemptor,
            withdrawn,
            looked_for_room: makes_room,
            room,
            by,
        };
        Ok((refused_by, refused))
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
    fn supersede(&mut self, pod: &Pod, rows: &BTreeSet<Row>, now: Moment) {
        let is_lower = |other: &Pod| other.template.priority < pod.template.priority && !self.cluster.is_foreign(other);
        let lower = self.cluster.nominated().filter(|(other, row)| rows.contains(row) && is_lower(other));
        for other in lower.map(|(other, _)| Arc::clone(other)).collect::<Vec<_>>() {
            self.make_room(&other, None, now);
        }
    }

    /// What plugins order after a pod was refused.
    fn after_refusal(&mut self, request: &Request<'_>, found: &Found) -> Orders {
        let mut orders = Orders::default();
        request.plugins.iter().for_each(|plugin| plugin.refused(request, found, &mut self.cluster, &mut orders));
        orders
    }
}

/// The pod as it requests what it was given.
fn resized(pod: &Arc<Pod>, holds: &Holds) -> Arc<Pod> {
    let Some(resized) = holds.get::<Resized>() else { return Arc::clone(pod) };
    let template = Template { requests: resized.over(&pod.template.requests), ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) })
}

/// The words of a pod that was rejected on the node that was chosen.
pub(super) fn rejected(profile: &Profile, plugin: u8, rejection: Rejection) -> (PluginSet, Refused) {
    let is_error = rejection.code == Code::Error;
    let each = || rejection.reasons.iter().map(|reason| (reason.text.clone(), 1)).collect();
    let message = if is_error { rejection.message() } else { unavailable(&each(), 1) };
    let by = Arc::from([profile.whole(plugin, rejection)]);
    (PluginSet::of(plugin), Refused { message, is_error, by, ..Refused::default() })
}

impl Refused {
    pub(super) fn why(&self, refused_by: PluginSet) -> Return {
        if self.is_error { Return::Failed } else { Return::Refused(refused_by) }
    }
}

impl Profile {
    /// Who refused the pod, by alike nodes.
    fn refused_by(&self, request: &Request<'_>, found: &Found, cluster: &Cluster) -> Arc<[NodeClass]> {
        let class = |(verdict, alike): (&Verdict, &Alike)| NodeClass {
            plugin: self.name_of(verdict.plugin),
            nodes: Some(alike.nodes),
            example: cluster.node(alike.example).map(|node| Arc::clone(&node.name)),
            input_age: self.input_age(verdict.plugin, cluster, alike.example),
            details: verdict.details(request, cluster, alike.example),
            why: Why::Verdict(*verdict),
        };
        match found {
            Found::Node { .. } => Arc::default(),
            Found::Never(plugin, rejection) => Arc::from([self.whole(*plugin, rejection.clone())]),
            Found::Nothing(refusals) => refusals.iter().map(class).collect(),
        }
    }

    /// A plugin refused the pod as a whole.
    fn whole(&self, plugin: u8, rejection: Rejection) -> NodeClass {
        let why = Why::Reasons(rejection.reasons);
        let (plugin, details) = (self.name_of(plugin), Operands::new());
        NodeClass { plugin, nodes: None, example: None, input_age: None, details, why }
    }

    /// The refusal of Reserve among those of nodes, if there is one.
    fn of_reserve(&self, found: &Found, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let Found::Nothing(refusals) = found else { return None };
        refusals.iter().find_map(|(Verdict { plugin, refusal }, _)| {
            let refusing = self.plugins.get(usize::from(*plugin)).filter(|plugin| plugin.is_of_reserve(refusal))?;
            Some((*plugin, Rejection::unschedulable(refusing.reasons(refusal, cluster))))
        })
    }

    /// Who refused the pod, and what is said about it.
    fn words(&self, request: &Request<'_>, found: &Found, cluster: &Cluster) -> (PluginSet, String) {
        let refused_by = match found {
            _ if cluster.is_empty() => PluginSet::default(),
            Found::Node { .. } => PluginSet::default(),
            Found::Never(plugin, _) => self.rejecting(*plugin, request, cluster),
            Found::Nothing(refusals) => {
                refusals.iter().fold(PluginSet::default(), |set, (verdict, _)| set.union(verdict.plugins()))
            }
        };
        (refused_by, found.words(&self.plugins, cluster))
    }
}
