//! The search for a node: filters, scores, and the choice among the best.
//!
//! Where all that a class of pods asks is local to nodes, its answers are kept: of the next pod of that class only the
//! nodes are asked that have changed since.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    best::Best,
    cluster::{Class, ClassId, Cluster, Placed, Position, Trial},
    columns::Row,
    hold::Holds,
    plugin::{Code, Filter, Plugin, PreFilter, Refusal, Rejection, Request, Score},
    pod::Pod,
    preemption::nominated_before,
};

/// The plugins by which the pods of one scheduler name are placed, in their order.
#[derive(Clone, Default)]
pub struct Profile {
    /// The name that pods give.
    pub scheduler: Arc<str>,
    /// All plugins.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Indexes of those that filter, in order.
    pub filters: Vec<u8>,
    /// Indexes of those that score, with their weights.
    pub scores: Vec<(u8, i64)>,
    /// Indexes of those that make room, in order.
    pub post_filters: Vec<u8>,
}

/// A refusal, with the plugin that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// The index of the plugin in its profile.
    pub plugin: u8,
    /// Why.
    pub refusal: Refusal,
}

/// What became of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A node, with its score; so many nodes were as good.
    Node {
        /// The node.
        row: Row,
        /// Its score over all plugins.
        score: i64,
        /// Nodes with this score, itself among them.
        ties: u32,
    },
    /// None, and why: how many nodes each verdict refused.
    Nothing(BTreeMap<Verdict, u32>),
    /// None, whatever nodes there are, by the word of this plugin.
    Never(u8, Rejection),
}

impl Found {
    /// What is said about a pod for which no node was found.
    pub fn words(&self, plugins: &[Arc<dyn Plugin>], cluster: &Cluster) -> String {
        if cluster.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let details = match self {
            Self::Node { .. } => return String::new(),
            Self::Never(_, Rejection { code: Code::Error, message }) => return message.clone(),
            Self::Never(_, rejection) => rejection.message.clone(),
            Self::Nothing(refusals) => {
                let mut counts = BTreeMap::<String, u32>::new();
                for (verdict, nodes) in refusals {
                    let plugin = plugins.get(usize::from(verdict.plugin));
                    let reasons = plugin.map(|plugin| plugin.reasons(&verdict.refusal, cluster)).unwrap_or_default();
                    reasons.into_iter().for_each(|reason| *counts.entry(reason).or_default() += nodes);
                }
                let mut lines: Vec<String> = counts.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
                lines.sort();
                lines.join(", ")
            }
        };
        format!("0/{} nodes are available: {details}.", cluster.len())
    }

    /// The node on which room was made: where it takes the pod now, no other is asked.
    fn of_nominated(row: Row) -> Self {
        Self::Node { row, score: 0, ties: 1 }
    }
}

/// What is known about the nodes for pods of one class.
struct Candidates {
    class: Arc<Class>,
    prepared: Prepared,
    /// Of each plugin that scores, the score of every node, where all were alike.
    uniform: Vec<Option<i64>>,
    best: Best,
    verdicts: Vec<Option<Verdict>>,
    position: Position,
}

/// The candidates of the classes that were searched for lately.
#[derive(Default)]
pub struct Memory {
    classes: BTreeMap<ClassId, (u64, Candidates)>,
    searches: u64,
}

/// What the plugins of a profile ask for one pod, or for all pods of a class.
pub struct Prepared {
    filters: Vec<(u8, Box<dyn Filter>)>,
    scores: Vec<(i64, Box<dyn Score>)>,
    /// A plugin that refuses all nodes.
    refused: Option<Verdict>,
}

impl Profile {
    /// Searches a node for a pod. `draw` gives a number below its argument, for the choice among equals.
    pub fn search(
        &self,
        pod: &Arc<Pod>,
        cluster: &mut Cluster,
        memory: &mut Memory,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        let class = cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &self.plugins };
        if let Some((plugin, rejection)) = self.admit(&request, cluster) {
            return Found::Never(plugin, rejection);
        }
        if self.plugins.iter().any(|plugin| plugin.is_individual(pod, cluster)) {
            let mut prepared = self.prepare(&request, cluster);
            return self.search_all(&request, &mut prepared, cluster, draw);
        }
        let mut candidates = match memory.bring_up_to_date(&class, cluster) {
            Some(candidates) => candidates,
            None => {
                let mut prepared = self.prepare(&request, cluster);
                if !prepared.is_local(cluster) {
                    return self.search_all(&request, &mut prepared, cluster, draw);
                }
                Candidates::of(Arc::clone(&class), prepared, cluster)
            }
        };
        let held = held_rows(pod, &candidates.verdicts, &mut candidates.prepared, cluster);
        let nominated = cluster.nomination(&pod.uid).filter(|row| !held.contains_key(row));
        let found = match nominated.filter(|row| candidates.takes(*row)) {
            Some(row) => Found::of_nominated(row),
            None => candidates.choose_beside(&held, cluster, draw),
        };
        memory.keep(candidates);
        found
    }

    /// What the plugins say about one node: the first refusal, or the score before anything is normalised.
    pub fn ask(&self, request: &Request<'_>, cluster: &Cluster, row: Row) -> Result<i64, Verdict> {
        let prepared = self.prepare(request, cluster);
        prepared.refused.map_or(Ok(()), Err)?;
        prepared.filter(cluster, row)?;
        Ok(prepared.score(cluster, row, &prepared.uniform(cluster)))
    }

    /// The first plugin that rejects the pod for good, or else the last that rejects it.
    pub fn admit(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let mut last = None;
        for (index, plugin) in (0..).zip(&self.plugins) {
            match plugin.admit(request, cluster) {
                Ok(()) => {}
                Err(rejection) if rejection.code == Code::Unschedulable => last = Some((index, rejection)),
                Err(rejection) => return Some((index, rejection)),
            }
        }
        last
    }

    /// What is asked of every node for a pod.
    pub fn prepare(&self, request: &Request<'_>, cluster: &Cluster) -> Prepared {
        let mut prepared = Prepared { filters: Vec::new(), scores: Vec::new(), refused: None };
        for index in &self.filters {
            match self.plugins[usize::from(*index)].filter(request, cluster) {
                PreFilter::Skip => {}
                PreFilter::Nodes(filter) => prepared.filters.push((*index, filter)),
                PreFilter::None(refusal) => {
                    prepared.refused.get_or_insert(Verdict { plugin: *index, refusal });
                    // Others may say more; what lies in the pod itself needs no more words.
                    if !refusal.resolvable {
                        break;
                    }
                }
            }
        }
        let scores = self
            .scores
            .iter()
            .filter_map(|(index, weight)| Some((*weight, self.plugins[usize::from(*index)].score(request, cluster)?)));
        prepared.scores = scores.collect();
        prepared
    }

    /// The reasons of a verdict, as events and conditions show them.
    pub fn reasons(&self, verdict: &Verdict, cluster: &Cluster) -> Vec<String> {
        let plugin = self.plugins.get(usize::from(verdict.plugin));
        plugin.map(|plugin| plugin.reasons(&verdict.refusal, cluster)).unwrap_or_default()
    }

    /// Asks all nodes, and keeps nothing.
    fn search_all(
        &self,
        request: &Request<'_>,
        prepared: &mut Prepared,
        cluster: &mut Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        if let Some(verdict) = prepared.refused {
            let message = self.reasons(&verdict, cluster).join(", ");
            let code = if verdict.refusal.resolvable { Code::Unschedulable } else { Code::Unresolvable };
            return Found::Never(verdict.plugin, Rejection { code, message });
        }
        let held = held_rows(request.pod, &[], prepared, cluster);
        let nominated = cluster.nomination(&request.pod.uid).filter(|row| !held.contains_key(row));
        if let Some(row) = nominated.filter(|row| prepared.filter(cluster, *row).is_ok()) {
            return Found::of_nominated(row);
        }
        prepared.search(cluster, &held, draw)
    }
}

/// The rows that would take the pod, but not beside the pods for which room is being made there and that go before it.
fn held_rows(
    pod: &Pod,
    verdicts: &[Option<Verdict>],
    prepared: &mut Prepared,
    cluster: &mut Cluster,
) -> BTreeMap<Row, Verdict> {
    let is_refused = |row: Row| verdicts.get(row.index()).is_some_and(Option::is_some);
    let rows: BTreeSet<Row> = cluster.nominated().map(|(_, row)| row).filter(|row| !is_refused(*row)).collect();
    let refused = rows.into_iter().filter_map(|row| {
        let beside = nominated_before(pod, row, cluster);
        prepared.filter(cluster, row).ok()?;
        let verdict = prepared.filter_beside(&mut cluster.trial(), row, &beside).err()?;
        Some((row, verdict))
    });
    refused.collect()
}

impl Prepared {
    /// Whether a plugin refuses all nodes.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    fn is_local(&self, cluster: &Cluster) -> bool {
        self.refused.is_none()
            && self.filters.iter().all(|(_, filter)| filter.is_local())
            && self.scores.iter().all(|(_, score)| score.is_local() || score.uniform(cluster).is_some())
    }

    fn uniform(&self, cluster: &Cluster) -> Vec<Option<i64>> {
        self.scores.iter().map(|(_, score)| score.uniform(cluster)).collect()
    }

    /// The first refusal of a node.
    pub fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Verdict> {
        for (plugin, filter) in &self.filters {
            filter.filter(cluster, row).map_err(|refusal| Verdict { plugin: *plugin, refusal })?;
        }
        Ok(())
    }

    /// The first refusal of a node on which these pods are too.
    pub(crate) fn filter_beside(&mut self, trial: &mut Trial<'_>, row: Row, pods: &[Arc<Pod>]) -> Result<(), Verdict> {
        if pods.is_empty() {
            return Ok(());
        }
        for pod in pods {
            trial.place(Arc::clone(pod), row, Holds::default());
            trial.pod(&pod.uid).into_iter().for_each(|placed| self.changed(trial, placed, true));
        }
        let result = self.filter(trial, row);
        for pod in pods {
            let placed = trial.pod(&pod.uid).cloned();
            trial.remove(&pod.uid);
            placed.iter().for_each(|placed| self.changed(trial, placed, false));
        }
        result
    }

    /// A pod was placed or removed since this was prepared.
    pub fn changed(&mut self, cluster: &Cluster, placed: &Placed, is_added: bool) {
        self.filters.iter_mut().for_each(|(_, filter)| filter.changed(cluster, placed, is_added));
    }

    /// The score of a node, where all scores are local or uniform.
    fn score(&self, cluster: &Cluster, row: Row, uniform: &[Option<i64>]) -> i64 {
        let scores = self.scores.iter().zip(uniform);
        scores.map(|((weight, score), all)| weight * all.unwrap_or_else(|| score.score(cluster, row))).sum()
    }

    /// Asks all nodes, and keeps nothing.
    fn search(&self, cluster: &Cluster, held: &BTreeMap<Row, Verdict>, draw: impl FnOnce(u32) -> u32) -> Found {
        let mut refusals = BTreeMap::new();
        let mut feasible = Vec::new();
        for (row, _) in cluster.rows() {
            match held.get(&row).map_or_else(|| self.filter(cluster, row), |verdict| Err(*verdict)) {
                Ok(()) => feasible.push(row),
                Err(verdict) => *refusals.entry(verdict).or_default() += 1,
            }
        }
        let mut totals = vec![0; feasible.len()];
        for (weight, score) in &self.scores {
            let mut scores: Vec<i64> = feasible.iter().map(|row| score.score(cluster, *row)).collect();
            score.normalize(&mut scores);
            totals.iter_mut().zip(scores).for_each(|(total, score)| *total += weight * score);
        }
        let Some(best) = totals.iter().copied().max() else { return Found::Nothing(refusals) };
        let tied: Vec<Row> =
            feasible.into_iter().zip(totals).filter(|(_, total)| *total == best).map(|(row, _)| row).collect();
        let ties = u32::try_from(tied.len()).unwrap_or(u32::MAX);
        match tied.get(draw(ties) as usize).or(tied.first()) {
            Some(row) => Found::Node { row: *row, score: best, ties },
            None => Found::Nothing(refusals),
        }
    }
}

impl Candidates {
    fn of(class: Arc<Class>, prepared: Prepared, cluster: &Cluster) -> Self {
        let (uniform, best, position) = (prepared.uniform(cluster), Best::default(), cluster.position());
        let mut candidates = Self { class, prepared, uniform, best, verdicts: Vec::new(), position };
        candidates.ask_all(cluster);
        candidates
    }

    fn ask_all(&mut self, cluster: &Cluster) {
        let mut scores = vec![None; cluster.width()];
        self.verdicts = vec![None; cluster.width()];
        for (row, _) in cluster.rows() {
            match self.prepared.filter(cluster, row) {
                Ok(()) => scores[row.index()] = Some(self.prepared.score(cluster, row, &self.uniform)),
                Err(verdict) => self.verdicts[row.index()] = Some(verdict),
            }
        }
        self.best = Best::new(&scores);
        self.position = cluster.position();
    }

    /// Asks the nodes that have changed. Says no where the answers do not depend on single nodes any more.
    fn bring_up_to_date(&mut self, cluster: &Cluster) -> bool {
        let is_wide_enough = cluster.width() <= self.verdicts.len();
        if self.prepared.uniform(cluster) != self.uniform {
            return false;
        }
        let Some(changed) = cluster.changed_since(self.position).filter(|_| is_wide_enough) else {
            self.ask_all(cluster);
            return true;
        };
        for row in changed {
            let asked = cluster.node(row).map(|_| self.prepared.filter(cluster, row));
            let score = matches!(asked, Some(Ok(()))).then(|| self.prepared.score(cluster, row, &self.uniform));
            self.best.set(row, score);
            self.verdicts[row.index()] = asked.and_then(Result::err);
        }
        self.position = cluster.position();
        true
    }

    /// Whether the node of a row takes the pods of the class.
    fn takes(&self, row: Row) -> bool {
        self.best.score(row).is_some()
    }

    /// Chooses among all rows but these.
    fn choose_beside(
        &mut self,
        held: &BTreeMap<Row, Verdict>,
        cluster: &Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        for (row, verdict) in held {
            self.best.set(*row, None);
            self.verdicts[row.index()] = Some(*verdict);
        }
        let found = self.choose(cluster, draw);
        for row in held.keys() {
            self.best.set(*row, Some(self.prepared.score(cluster, *row, &self.uniform)));
            self.verdicts[row.index()] = None;
        }
        found
    }

    fn choose(&self, cluster: &Cluster, draw: impl FnOnce(u32) -> u32) -> Found {
        let found = self.best.top().and_then(|(score, ties)| {
            let row = self.best.choose(draw(ties)).or_else(|| self.best.choose(0))?;
            Some(Found::Node { row, score, ties })
        });
        found.unwrap_or_else(|| {
            let mut refusals = BTreeMap::new();
            for (row, _) in cluster.rows() {
                if let Some(verdict) = self.verdicts.get(row.index()).copied().flatten() {
                    *refusals.entry(verdict).or_default() += 1;
                }
            }
            Found::Nothing(refusals)
        })
    }
}

impl Memory {
    /// Classes that are kept; a cluster schedules few kinds of pods at a time.
    const CLASSES_MAX: usize = 64;

    /// Takes the candidates of a class, up to date; none where there are none, or where they are not local any more.
    fn bring_up_to_date(&mut self, class: &Arc<Class>, cluster: &Cluster) -> Option<Candidates> {
        let (_, mut candidates) = self.classes.remove(&class.id())?;
        candidates.bring_up_to_date(cluster).then_some(candidates)
    }

    fn keep(&mut self, candidates: Candidates) {
        if self.classes.len() >= Self::CLASSES_MAX {
            let oldest = self.classes.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| *id);
            oldest.map(|id| self.classes.remove(&id));
        }
        self.searches += 1;
        self.classes.insert(candidates.class.id(), (self.searches, candidates));
    }

    /// Forgets everything, as when a profile changes.
    pub fn clear(&mut self) {
        self.classes.clear();
    }
}

#[cfg(test)]
mod tests;
