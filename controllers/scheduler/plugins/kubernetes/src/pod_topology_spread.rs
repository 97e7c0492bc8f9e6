//! PodTopologySpread: pods of a kind are spread evenly over the domains of nodes (`spec/scheduler.md` 4.6).

mod spreading;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use koord_config::scheduler::{
    DefaultConstraint, DefaultingType, InclusionPolicy, PodTopologySpreadArgs, WhenUnsatisfiable,
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, NodeScore, Plugin, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Request, SCORE_MAX, SchedulingSignature, Score,
    affinity::SpreadConstraint,
    cluster::{Class, Cluster},
    columns::Row,
    event::{Event, Events},
    labels::Labels,
    node::Node,
    pod::{Pod, Template},
    workload::{self, ReplicaSet, ReplicationController, Service, StatefulSet},
};

use self::spreading::Spreading;

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

const TOO_MANY: u16 = 0;
const NO_LABEL: u16 = 1;

/// Refuses nodes in domains that would have too many pods more than the emptiest one, and prefers nodes in domains with
/// fewer pods.
#[derive(Clone, Debug, Default)]
pub struct PodTopologySpread {
    /// What holds for pods that say nothing themselves.
    pub defaults: DefaultConstraints,
}

/// The constraints of pods that have none. They are about the pods that the pod's services and controller select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DefaultConstraints {
    /// Over nodes and zones, as a preference. Nodes without a zone are spread over too.
    #[default]
    System,
    /// These. Their selectors do not count.
    List(Vec<SpreadConstraint>),
}

impl PodTopologySpread {
    /// With these arguments.
    pub fn new(args: &PodTopologySpreadArgs) -> Self {
        let constraint = |constraint: &DefaultConstraint| SpreadConstraint {
            topology_key: constraint.topology_key.as_str().into(),
            skew_max: i64::from(constraint.max_skew),
            domains_min: i64::from(constraint.min_domains),
            is_hard: constraint.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule,
            honors_affinity: constraint.node_affinity_policy == InclusionPolicy::Honor,
            honors_taints: constraint.node_taints_policy == InclusionPolicy::Honor,
            selector: None,
        };
        let defaults = match args.defaulting_type {
            DefaultingType::System => DefaultConstraints::System,
            DefaultingType::List => DefaultConstraints::List(args.default_constraints.iter().map(constraint).collect()),
        };
        Self { defaults }
    }
}

impl DefaultConstraints {
    fn list(&self) -> Vec<SpreadConstraint> {
        let system = |topology_key: &str, skew_max: i64| SpreadConstraint {
            topology_key: topology_key.into(),
            skew_max,
            domains_min: 1,
            honors_affinity: true,
            ..SpreadConstraint::default()
        };
        match self {
            Self::System => vec![system(HOSTNAME, 3), system(ZONE, 5)],
            Self::List(list) => list.clone(),
        }
    }
}

impl PodTopologySpread {
    /// The topology keys of the constraints that pods without their own have.
    pub(crate) fn default_topology_keys(&self) -> Vec<Arc<str>> {
        self.defaults.list().into_iter().map(|constraint| constraint.topology_key).collect()
    }

    /// The constraints of a class that must hold, or those that should.
    fn constraints(&self, class: &Class, cluster: &Cluster, is_hard: bool) -> Vec<SpreadConstraint> {
        let template = class.template();
        if !template.spread.is_empty() {
            return template.spread.iter().filter(|constraint| constraint.is_hard == is_hard).cloned().collect();
        }
        let mut constraints = self.defaults.list();
        constraints.retain(|constraint| constraint.is_hard == is_hard);
        if constraints.is_empty() {
            return constraints;
        }
        let Some(selector) = workload::selector(template, cluster.objects()) else { return Vec::new() };
        for constraint in &mut constraints {
            constraint.selector = Some(selector.clone());
        }
        constraints
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .topology_keys(self.default_topology_keys())
            .reads(
                const {
                    &[
                        ResourceKind::typed::<Service>(),
                        ResourceKind::typed::<ReplicationController>(),
                        ResourceKind::typed::<ReplicaSet>(),
                        ResourceKind::typed::<StatefulSet>(),
                    ]
                },
            )
            .enqueue_extensions(&self)
            .filter(&self)
            .score(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for PodTopologySpread {
    fn events_to_register(&self) -> Events {
        let nodes = Events::NODE_ADDED | Events::NODE_REMOVED | Events::NODE_LABELS | Events::NODE_TAINTS;
        nodes | Events::POD_ASSIGNED | Events::POD_REMOVED | Events::POD_LABELS | Events::POD_CHANGED
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        let template = &pod.template;
        if template.spread.is_empty() {
            return true;
        }
        let has_keys =
            |node: &Node| hard(template).all(|constraint| node.labels.get(&constraint.topology_key).is_some());
        match event {
            Event::PodAssigned(other) | Event::PodRemoved(other) => {
                let other = &other.template;
                other.namespace == template.namespace && hard(template).any(|one| selects(one, &other.labels))
            }
            Event::PodRelabelled { old, new } => {
                let [old, new] = [old, new].map(|pod| &pod.template);
                let differs = |one: &SpreadConstraint| selects(one, &old.labels) != selects(one, &new.labels);
                new.namespace == template.namespace && hard(template).any(differs)
            }
            Event::PodScaledDown { .. } => false,
            // Without it there may be a domain less, and more pods in the emptiest.
            Event::NodeAdded(node) | Event::NodeRemoved(node) => has_keys(node),
            Event::NodeChanged { old, new } => {
                let moved =
                    |one: &SpreadConstraint| old.labels.get(&one.topology_key) != new.labels.get(&one.topology_key);
                let is_different = || hard(template).any(moved) || old.taints != new.taints;
                has_keys(old) != has_keys(new) || has_keys(new) && is_different()
            }
            Event::PodChanged | Event::Timeout | Event::Object(_) | Event::NominationChanged(_) => true,
        }
    }
}

impl Filter for PodTopologySpread {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let class = request.class;
        let constraints = self.constraints(class, cluster, true);
        if constraints.is_empty() {
            return PreparedFilter::Skip;
        }
        PreparedFilter::Nodes(Box::new(Hard(Spreading::new(class.template(), constraints, true, cluster))))
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        const WORDS: &str = "node(s) didn't match pod topology spread constraints";
        if refusal.reason == NO_LABEL {
            return ReasonCode::TopologyLabelMissing.reason(format!("{WORDS} (missing required label)")).into();
        }
        ReasonCode::TopologySpreadExceeded.reason(WORDS).into()
    }
}

impl Score for PodTopologySpread {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let class = request.class;
        let constraints = self.constraints(class, cluster, false);
        if constraints.is_empty() {
            return None;
        }
        // Nodes without a zone are spread over too where no zones are configured.
        let needs_all = !class.template().spread.is_empty() || self.defaults != DefaultConstraints::System;
        let weights = vec![0.0; constraints.len()];
        Some(Box::new(Soft { spreading: Spreading::new(class.template(), constraints, needs_all, cluster), weights }))
    }
}

impl SchedulingSignature for PodTopologySpread {
    fn epoch(&self, cluster: &Cluster) -> u64 {
        workload::changes(cluster.objects())
    }
}

/// The constraints that must hold.
struct Hard(Spreading);

impl NodeFilter for Hard {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        for tally in &self.0.tallies {
            let Some(domain) = tally.domain(cluster, row) else { return Err(Refusal::unresolvable(NO_LABEL)) };
            if tally.pods(domain) + tally.itself - tally.fewest() > tally.constraint.skew_max {
                return Err(Refusal::resolvable(TOO_MANY, 0));
            }
        }
        Ok(())
    }

    fn is_local(&self) -> bool {
        false
    }

    fn follows_rows(&self) -> bool {
        true
    }

    fn refresh(&mut self, cluster: &Cluster, row: Row) {
        self.0.refresh(cluster, row);
    }
}

/// The constraints that should hold, with how much a pod counts in each.
struct Soft {
    spreading: Spreading,
    weights: Vec<f64>,
}

/// The score of a node that lacks a label, before scores are normalised.
const IGNORED: i64 = -1;

impl Soft {
    fn is_ignored(&self, cluster: &Cluster, row: Row) -> bool {
        self.spreading.needs_all && !self.spreading.has_all(cluster, row)
    }
}

impl NodeScore for Soft {
    fn is_local(&self) -> bool {
        false
    }

    fn follows_rows(&self) -> bool {
        true
    }

    fn refresh(&mut self, cluster: &Cluster, row: Row) {
        self.spreading.refresh(cluster, row);
    }

    /// The more domains there are the more a pod in one of them counts, so that large domains do not drown small ones.
    fn compare(&mut self, cluster: &Cluster, rows: &[Row]) {
        let counted: Vec<Row> = rows.iter().copied().filter(|row| !self.is_ignored(cluster, *row)).collect();
        let weights = self.spreading.tallies.iter().map(|tally| {
            let domains = if tally.is_per_node() { counted.len() } else { tally.domains_among(cluster, &counted) };
            (domains as f64 + 2.0).ln()
        });
        self.weights = weights.collect();
    }

    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        if self.is_ignored(cluster, row) {
            return IGNORED;
        }
        let tallies = self.spreading.tallies.iter().zip(&self.weights);
        let scores = tallies.filter_map(|(tally, weight)| {
            let domain = tally.domain(cluster, row)?;
            let pods = if tally.is_per_node() { tally.pods_on(row) } else { tally.pods(domain) };
            Some(pods as f64 * weight + (tally.constraint.skew_max - 1) as f64)
        });
        scores.sum::<f64>().round() as i64
    }

    /// The fewer the better; nodes that lack a label get nothing.
    fn normalize(&self, scores: &mut [i64]) {
        let counted = || scores.iter().copied().filter(|score| *score != IGNORED);
        let (least, most) = (counted().min().unwrap_or(0), counted().max().unwrap_or(0));
        for score in scores {
            *score = match (*score, most) {
                (IGNORED, _) => 0,
                (_, 0) => SCORE_MAX,
                (score, most) => SCORE_MAX * (most + least - score) / most,
            };
        }
    }
}

fn hard(template: &Template) -> impl Iterator<Item = &SpreadConstraint> {
    template.spread.iter().filter(|constraint| constraint.is_hard)
}

/// Whether a constraint is about pods with these labels.
fn selects(constraint: &SpreadConstraint, labels: &Labels) -> bool {
    constraint.selector.as_ref().is_some_and(|selector| selector.selects(|key| labels.get(key)))
}
