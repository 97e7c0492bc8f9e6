//! The search for a node: filters, scores, and the choice among the best.
//!
//! Where all that a class of pods asks is local to nodes, its answers are kept: of the next pod of that class only the
//! nodes are asked that have changed since.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    best::Best,
    cluster::{Class, ClassId, Cluster, Position},
    columns::Row,
    plugin::{Filter, Plugin, PreFilter, Refusal, Score},
};

/// The plugins by which the pods of one scheduler name are placed, in their order.
pub struct Profile {
    /// The name that pods give.
    pub scheduler: Arc<str>,
    /// All plugins.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Indexes of those that filter, in order.
    pub filters: Vec<u8>,
    /// Indexes of those that score, with their weights.
    pub scores: Vec<(u8, i64)>,
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
    /// None, whatever nodes there are.
    Never(Verdict),
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

/// What the plugins of a profile ask for one class.
struct Prepared {
    filters: Vec<(u8, Box<dyn Filter>)>,
    scores: Vec<(i64, Box<dyn Score>)>,
    /// A plugin that refuses all nodes.
    refused: Option<Verdict>,
}

impl Profile {
    /// Searches a node for pods of this class. `draw` gives a number below its argument, for the choice among equals.
    pub fn search(
        &self,
        class: &Arc<Class>,
        cluster: &Cluster,
        memory: &mut Memory,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        if let Some(candidates) = memory.bring_up_to_date(class, cluster) {
            return candidates.choose(cluster, draw);
        }
        let prepared = self.prepare(class, cluster);
        if prepared.is_local(cluster) {
            let candidates = Candidates::of(Arc::clone(class), prepared, cluster);
            return memory.keep(candidates).choose(cluster, draw);
        }
        prepared.search(cluster, draw)
    }

    /// What the plugins say about one node: the first refusal, or the score before anything is normalised.
    pub fn ask(&self, class: &Class, cluster: &Cluster, row: Row) -> Result<i64, Verdict> {
        let prepared = self.prepare(class, cluster);
        prepared.refused.map_or(Ok(()), Err)?;
        prepared.filter(cluster, row)?;
        Ok(prepared.score(cluster, row, &prepared.uniform(cluster)))
    }

    fn prepare(&self, class: &Class, cluster: &Cluster) -> Prepared {
        let mut prepared = Prepared { filters: Vec::new(), scores: Vec::new(), refused: None };
        for index in &self.filters {
            match self.plugins[usize::from(*index)].filter(class, cluster) {
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
            .filter_map(|(index, weight)| Some((*weight, self.plugins[usize::from(*index)].score(class, cluster)?)));
        prepared.scores = scores.collect();
        prepared
    }
}

impl Prepared {
    fn is_local(&self, cluster: &Cluster) -> bool {
        self.refused.is_none()
            && self.filters.iter().all(|(_, filter)| filter.is_local())
            && self.scores.iter().all(|(_, score)| score.is_local() || score.uniform(cluster).is_some())
    }

    fn uniform(&self, cluster: &Cluster) -> Vec<Option<i64>> {
        self.scores.iter().map(|(_, score)| score.uniform(cluster)).collect()
    }

    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Verdict> {
        for (plugin, filter) in &self.filters {
            filter.filter(cluster, row).map_err(|refusal| Verdict { plugin: *plugin, refusal })?;
        }
        Ok(())
    }

    /// The score of a node, where all scores are local or uniform.
    fn score(&self, cluster: &Cluster, row: Row, uniform: &[Option<i64>]) -> i64 {
        let scores = self.scores.iter().zip(uniform);
        scores.map(|((weight, score), all)| weight * all.unwrap_or_else(|| score.score(cluster, row))).sum()
    }

    /// Asks all nodes, and keeps nothing.
    fn search(&self, cluster: &Cluster, draw: impl FnOnce(u32) -> u32) -> Found {
        if let Some(verdict) = self.refused {
            return Found::Never(verdict);
        }
        let mut refusals = BTreeMap::new();
        let mut feasible = Vec::new();
        for (row, _) in cluster.rows() {
            match self.filter(cluster, row) {
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

    fn bring_up_to_date(&mut self, class: &Arc<Class>, cluster: &Cluster) -> Option<&Candidates> {
        self.searches += 1;
        let (used, candidates) = self.classes.get_mut(&class.id())?;
        *used = self.searches;
        if candidates.bring_up_to_date(cluster) {
            return self.classes.get(&class.id()).map(|(_, candidates)| candidates);
        }
        self.classes.remove(&class.id());
        None
    }

    fn keep(&mut self, candidates: Candidates) -> &Candidates {
        if self.classes.len() >= Self::CLASSES_MAX {
            let oldest = self.classes.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| *id);
            oldest.map(|id| self.classes.remove(&id));
        }
        let id = candidates.class.id();
        let entry = self.classes.entry(id).insert_entry((self.searches, candidates));
        &entry.into_mut().1
    }

    /// Forgets everything, as when a profile changes.
    pub fn clear(&mut self) {
        self.classes.clear();
    }
}

#[cfg(test)]
mod tests;
