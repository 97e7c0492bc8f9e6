//! NodeResourcesFit: a node must have left what a pod requests, and the strategy says which node is best.

mod allocation;

use std::{num::NonZeroU16, sync::Arc};

use koord_config::scheduler::{FitStrategyType, NodeResourcesFitArgs};
use koord_scheduler_allocation::{CountedTwice, is_counted_once};
use koord_scheduler_framework::{
    EnqueueExtensions, Figure, Filter, MetricSource, NodeFilter, NodeScore, Plugin, PreparedFilter, Reason, ReasonCode,
    Refusal, Registration, Request, SchedulingSignature, Score, SignatureFields,
    cluster::{Cluster, Unoffered},
    columns::Row,
    event::{Event, Events},
    node::Node,
    pod::Pod,
};
use koord_scheduling::{ResourceId, ResourceNames};

use self::allocation::{Allocation, Counted};
use crate::rated::Rated;

/// Refuses nodes that have less left than the pod requests, and scores the others by what is left afterwards.
#[derive(Clone, Debug)]
pub struct NodeResourcesFit {
    /// How nodes are compared.
    pub strategy: Strategy,
    /// By which resources.
    pub resources: Vec<Weighted>,
    /// Resources that are not looked at: a name, or `example.com/` for all of a domain.
    pub ignored: Vec<String>,
}

/// Which node is best.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The emptiest: pods are spread.
    #[default]
    LeastAllocated,
    /// The fullest: pods are packed.
    MostAllocated,
    /// By a line through points of (utilisation in percent, score of 0 to 10).
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// A resource and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighted {
    pub name: String,
    /// How much it counts, 1 or more.
    pub weight: i64,
}

impl Default for NodeResourcesFit {
    /// The emptiest by cpu and memory, as kube-scheduler.
    fn default() -> Self {
        let resources = ["cpu", "memory"].map(|name| Weighted { name: name.to_owned(), weight: 1 });
        Self { strategy: Strategy::default(), resources: resources.into(), ignored: Vec::new() }
    }
}

impl NodeResourcesFit {
    /// The plugin with these arguments.
    pub fn new(args: NodeResourcesFitArgs) -> Self {
        let is_extended = |name: &String| name.contains('/') && !name.contains("kubernetes.io/");
        let groups = args.ignored_resource_groups.into_iter().map(|group| group + "/");
        let line = args.scoring_strategy.requested_to_capacity_ratio.unwrap_or_default().shape;
        let weighted = args.scoring_strategy.resources.into_iter();
        Self {
            strategy: match args.scoring_strategy.type_ {
                FitStrategyType::LeastAllocated => Strategy::LeastAllocated,
                FitStrategyType::MostAllocated => Strategy::MostAllocated,
                FitStrategyType::RequestedToCapacityRatio => Strategy::RequestedToCapacityRatio(
                    line.iter().map(|point| (point.utilization, point.score)).collect(),
                ),
            },
            resources: weighted.map(|one| Weighted { name: one.name, weight: one.weight }).collect(),
            // Of all others a node must always have enough.
            ignored: args.ignored_resources.into_iter().chain(groups).filter(is_extended).collect(),
        }
    }

    /// Whether a node would take the pod if no others were there.
    fn fits_in(&self, node: &Node, pod: &Pod) -> bool {
        let mut requests =
            pod.template.requests.iter().filter(|(name, amount)| !amount.is_zero() && !self.is_ignored(name));
        node.allocatable.amount("pods").value() > 0
            && requests.all(|(name, amount)| node.allocatable.amount(name) >= amount)
    }

    /// The reasons of a pod that requests what no node offers.
    fn words(&self, number: NonZeroU16, cluster: &Cluster) -> Vec<Reason> {
        let insufficient = |name: &str| ReasonCode::InsufficientResources.reason(["Insufficient ", name].concat());
        let Some(unoffered) = cluster.unoffered(number) else { return vec![insufficient("resources")] };
        let uncounted = cluster.uncounted();
        let reasons = unoffered.names().filter(|name| !self.is_ignored(name)).map(|name| {
            let reason = if uncounted.contains(name) {
                let text =
                    format!("{name} is not counted: nodes offer more than {} resources", ResourceNames::NAMES_MAX);
                ReasonCode::ResourceNotCounted.reason(text)
            } else {
                insufficient(name)
            };
            reason.with("resource", name)
        });
        reasons.collect()
    }

    fn is_ignored(&self, name: &str) -> bool {
        self.ignored.iter().any(|ignored| match ignored.strip_suffix('/') {
            Some(domain) => name.strip_prefix(domain).is_some_and(|rest| rest.starts_with('/')),
            None => name == ignored,
        })
    }
}

/// In the operand of a refusal, beside whose reason stands what no node offers: bit 0 for the number of pods, and the bit of each resource after it.
const PODS: u64 = 1;
/// Resources beyond share the last bit.
const LAST_BIT: u32 = 63;

/// What the pod requests of each resource, where it requests any.
struct Requests {
    offered: Vec<(ResourceId, i64)>,
    /// What it requests and no node offers.
    unoffered: Option<Arc<Unoffered>>,
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .enqueue_extensions(&self)
            .filter(&self)
            .score(&self)
            .metrics(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeResourcesFit {
    fn events_to_register(&self) -> Events {
        let of_pods = Events::POD_REMOVED | Events::POD_SCALED_DOWN | Events::POD_CHANGED;
        of_pods | Events::NODE_ADDED | Events::NODE_ALLOCATABLE
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        let lists = |incoming: &Pod, name: &str| incoming.template.requests.amount(name).value() > 0;
        match event {
            // What is gone must have had something that the pod requests; every pod counts as one.
            Event::PodRemoved(_)
            | Event::PodAssigned(_)
            | Event::PodRelabelled { .. }
            | Event::NominationChanged(_)
            | Event::PodChanged
            | Event::Timeout => true,
            Event::PodScaledDown { old, new } => {
                let shrank = |name: &str| new.template.requests.amount(name) < old.template.requests.amount(name);
                pod.template.requests.names().any(|name| lists(pod, name) && shrank(name))
            }
            Event::NodeAdded(node) => self.fits_in(node, pod),
            Event::Object(_) | Event::NodeRemoved(_) => false,
            Event::NodeChanged { old, new } => {
                let grew = |name: &str| new.allocatable.amount(name) > old.allocatable.amount(name);
                let is_larger =
                    grew("pods") || pod.template.requests.names().any(|name| lists(pod, name) && grew(name));
                is_larger && self.fits_in(new, pod)
            }
        }
    }
}

impl Filter for NodeResourcesFit {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let requests = request.class.requests().iter();
        let counted = requests.filter(|(resource, _)| !self.is_ignored(cluster.resources().name(*resource)));
        let is_counted = |unoffered: &&Arc<Unoffered>| unoffered.names().any(|name| !self.is_ignored(name));
        let unoffered = request.class.unoffered().filter(is_counted).cloned();
        PreparedFilter::Nodes(Box::new(Requests { offered: counted.collect(), unoffered }))
    }

    fn reasons(&self, refusal: &Refusal, cluster: &Cluster) -> Vec<Reason> {
        let pods = (refusal.operand & PODS != 0).then(|| ReasonCode::TooManyPods.reason("Too many pods"));
        let insufficient = |name: &str| ReasonCode::InsufficientResources.reason(["Insufficient ", name].concat());
        let resources = cluster.resources().names().zip(1_u32..).filter(|(_, bit)| *bit < LAST_BIT);
        let short = resources.filter(|(_, bit)| refusal.operand & 1 << bit != 0);
        let short = short.map(|(name, _)| insufficient(name).with("resource", name));
        let others = (refusal.operand >> LAST_BIT != 0).then(|| insufficient("resources"));
        let unoffered = NonZeroU16::new(refusal.reason).map(|number| self.words(number, cluster));
        pods.into_iter().chain(short).chain(others).chain(unoffered.into_iter().flatten()).collect()
    }
}

impl Score for NodeResourcesFit {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let counted = self.resources.iter().filter_map(|Weighted { name, weight }| {
            let id = cluster.resources().get(name)?;
            let assumed = [ResourceId::CPU, ResourceId::MEMORY].iter().position(|known| *known == id);
            let request = match assumed {
                Some(which) => request.template().assumed_usage[which],
                None => request.class.requests().get(id),
            };
            // An extended resource that the pod does not request says nothing about it.
            let counts = request > 0 || assumed.is_some() || id == ResourceId::EPHEMERAL_STORAGE;
            counts.then_some(Counted { id, weight: *weight, request, assumed })
        });
        Some(Box::new(Rated(Allocation { strategy: self.strategy.clone(), resources: counted.collect() })))
    }
}

impl MetricSource for NodeResourcesFit {
    fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        let uncounted = cluster.uncounted().len();
        vec![Figure { name: "koord_scheduler_uncounted_resources", labels: Vec::new(), value: uncounted as f64 }]
    }
}

impl SchedulingSignature for NodeResourcesFit {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl Requests {
    /// Whether a node has enough of everything, where nothing is counted twice and no amount is too large to be subtracted: most nodes
    /// do, and are asked nothing else.
    fn fits(&self, cluster: &Cluster, row: Row) -> bool {
        let (offered, requested) = (cluster.allocatable_on(row), cluster.requested_on(row));
        let fits = |(resource, request): &(ResourceId, i64)| {
            let left = offered.get(*resource).checked_sub(requested.get(*resource));
            left.is_some_and(|left| *request <= left)
        };
        self.unoffered.is_none() && self.offered.iter().all(fits)
    }

    /// What is refused beside what others request of the node and what this adds for each of these requests.
    fn check(&self, cluster: &Cluster, row: Row, further: impl Fn(i64) -> i64) -> Result<(), Refusal> {
        let (mut short, mut is_resolvable) = (0, self.unoffered.is_none());
        let twice = CountedTwice::on(cluster, row);
        let (offered, requested) = (cluster.allocatable_on(row), cluster.requested_on(row));
        for (resource, request) in self.offered.iter().copied() {
            let offered = offered.get(resource);
            let requested = requested.get(resource).saturating_add(further(request));
            if request > offered.saturating_sub(requested).saturating_add(twice.of(resource)) {
                if resource == ResourceId::PODS {
                    short |= PODS;
                } else {
                    short |= 1 << u32::try_from(resource.index() + 1).unwrap_or(LAST_BIT).min(LAST_BIT);
                    is_resolvable &= request <= offered;
                }
            }
        }
        let reason = self.unoffered.as_ref().map_or(0, |unoffered| unoffered.number().get());
        let is_refused = short != 0 || reason != 0;
        Refusal { reason, resolvable: is_resolvable, operand: short }.when(is_refused)
    }
}

impl NodeFilter for Requests {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        self.check(cluster, row, |_| 0)
    }

    fn filter_rows(&self, cluster: &Cluster, rows: &mut Vec<Row>, refused: &mut dyn FnMut(Row, Refusal)) {
        let is_counted_once = is_counted_once(cluster);
        rows.retain(|row| {
            let fits = is_counted_once && self.fits(cluster, *row);
            fits || self.filter(cluster, *row).map_err(|refusal| refused(*row, refusal)).is_ok()
        });
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, alike: usize) -> Option<Result<(), Refusal>> {
        let alike = i64::try_from(alike).unwrap_or(i64::MAX);
        Some(self.check(cluster, row, |request| request.saturating_mul(alike)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{clock::Moment, random::Random};
    use koord_scheduler_engine::{Engine, queue::Timings};
    use koord_scheduler_framework::{AttemptState, Found, Profile, cycle::CandidateCache, timing::Untimed};
    use koord_scheduler_testing::{cluster, filtered_in, node, pod, scored_in};
    use serde_json::{Value, json};

    use super::*;

    fn sized(name: &str, cpu: &str, memory: &str, pods: &str) -> Arc<koord_scheduler_framework::node::Node> {
        let allocatable = json!({"cpu": cpu, "memory": memory, "pods": pods, "example.com/gpu": "2"});
        node(name, &json!({"status": {"allocatable": allocatable}}))
    }

    fn requesting(requests: &Value) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
    }

    #[test]
    fn every_shortage_is_named_and_what_the_node_never_had_is_unresolvable() {
        let mut cluster = cluster(&[sized("a", "2", "1Gi", "1"), sized("b", "8", "8Gi", "9")]);
        cluster.place(
            pod("x", &requesting(&json!({"cpu": "1", "example.com/gpu": "1"}))),
            &"a".into(),
            koord_scheduler_framework::hold::Holds::default(),
        );
        let incoming = requesting(&json!({"cpu": "2", "memory": "1Gi", "example.com/gpu": "2"}));
        let fit = NodeResourcesFit::default();
        let short = "U Too many pods, Insufficient cpu, Insufficient example.com/gpu";
        assert_eq!(filtered_in(&fit, &mut cluster, &incoming), [short, ""]);
        let too_large = "UU Too many pods, Insufficient cpu";
        let incoming = requesting(&json!({"cpu": "3"}));
        assert_eq!(filtered_in(&fit, &mut cluster, &incoming), [too_large, ""]);
        assert_eq!(filtered_in(&fit, &mut cluster, &json!({})), ["U Too many pods", ""]);
        let ignoring = NodeResourcesFit { ignored: vec!["example.com/".to_owned(), "cpu".to_owned()], ..fit };
        let incoming = requesting(&json!({"cpu": "99", "example.com/gpu": "99"}));
        assert_eq!(filtered_in(&ignoring, &mut cluster, &incoming), ["U Too many pods", ""]);
    }

    #[test]
    fn what_no_node_offers_is_refused_by_name_however_many_there_are() {
        let mut cluster = cluster(&[sized("a", "2", "1Gi", "10")]);
        let fit = NodeResourcesFit::default();
        let names = |count: usize| -> Value {
            let names = (0..count).map(|number| (format!("example.com/r{number:05}"), json!("1")));
            requesting(&Value::Object(names.chain([("cpu".to_owned(), json!("9"))]).collect()))
        };
        let said = filtered_in(&fit, &mut cluster, &names(2));
        assert_eq!(said, ["UU Insufficient cpu, Insufficient example.com/r00000, Insufficient example.com/r00001"]);
        let many = ResourceNames::NAMES_MAX + 100;
        let said = filtered_in(&fit, &mut cluster, &names(many)).remove(0);
        assert!(said.starts_with("UU ") && said.ends_with(&format!("example.com/r{:05}", many - 1)), "{said}");
        assert_eq!(cluster.resources().len(), 5, "names that users write get no column");
        let ignoring = NodeResourcesFit { ignored: vec!["example.com/".to_owned()], ..fit };
        assert_eq!(filtered_in(&ignoring, &mut cluster, &names(2)), ["UU Insufficient cpu"]);
    }

    #[test]
    fn a_resource_that_cannot_be_counted_is_refused_until_names_are_free() {
        let offering = |node_name: &str, names: std::ops::Range<usize>| {
            let names = names.map(|number| (format!("example.com/r{number}"), json!("1")));
            let all = names.chain([("pods".to_owned(), json!("9"))]);
            node(node_name, &json!({"status": {"allocatable": Value::Object(all.collect())}}))
        };
        let fit = NodeResourcesFit::default();
        let mut engine = Engine::new(Vec::new(), Timings::default(), Random::seeded(1));
        engine.set_node(offering("junk", 0..ResourceNames::NAMES_MAX - 4), Moment::default());
        engine.set_node(offering("new", 5000..5001), Moment::default());
        let mut cluster = engine.cluster().clone();
        let incoming = requesting(&json!({"example.com/r5000": "1"}));
        let not_counted = "UU example.com/r5000 is not counted: nodes offer more than 4096 resources";
        assert_eq!(filtered_in(&fit, &mut cluster, &incoming)[1], not_counted);
        assert!((fit.figures(&cluster)[0].value - 1.0).abs() < 0.1);
        engine.set_node(offering("junk", 0..40), Moment::default());
        engine.set_node(offering("new", 5000..5001), Moment::default());
        let mut cluster = engine.cluster().clone();
        assert_eq!(filtered_in(&fit, &mut cluster, &incoming), ["UU Insufficient example.com/r5000", ""]);
        assert_eq!((cluster.resources().len(), fit.figures(&cluster)[0].value as i64), (4 + 40 + 1, 0));
    }

    #[test]
    fn what_pods_request_of_a_resource_counts_when_a_node_offers_it() {
        let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(NodeResourcesFit::default())];
        let profile = Profile { filters: vec![0], ..Profile::of("test", plugins) };
        let (mut cluster, mut memory) = (cluster(&[sized("a", "9", "9Gi", "10")]), CandidateCache::default());
        let wants = |name: &str, amount: &str| pod(name, &requesting(&json!({"example.com/new": amount})));
        cluster.place(wants("bound", "2"), &"a".into(), koord_scheduler_framework::hold::Holds::default());
        let mut takers = |cluster: &mut Cluster, name: &str, amount: &str| match profile.search_timed(
            &wants(name, amount),
            &AttemptState::default(),
            cluster,
            &mut memory,
            |_| 0,
            &mut Untimed,
        ) {
            Found::Node { ties, .. } => Ok(ties),
            found => Err(found.words(&profile.plugins, cluster)),
        };
        let refused =
            |count: usize| Err(format!("0/{count} nodes are available: {count} Insufficient example.com/new."));
        assert_eq!(takers(&mut cluster, "waits", "1"), refused(1));
        let offering =
            |name: &str| node(name, &json!({"status": {"allocatable": {"pods": "9", "example.com/new": "3"}}}));
        cluster.set_node(offering("b"));
        assert_eq!(takers(&mut cluster, "waits", "1"), Ok(1), "b offers some");
        cluster.set_node(offering("a"));
        assert_eq!(takers(&mut cluster, "waits", "1"), Ok(2));
        assert_eq!(takers(&mut cluster, "waits", "2"), Ok(1), "a has less left");
        assert_eq!(takers(&mut cluster, "waits", "4"), refused(2));
        assert_eq!(cluster.discrepancies(), []);
    }

    #[test]
    fn arguments_choose_the_strategy_and_what_is_not_looked_at() {
        let args = json!({
            "ignoredResources": ["example.com/gpu", "cpu", "kubernetes.io/batch-cpu"], "ignoredResourceGroups": ["other.org"],
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio", "resources": [{"name": "cpu", "weight": 3}],
                "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
            },
        });
        let fit = NodeResourcesFit::new(serde_json::from_value(args).unwrap());
        assert_eq!(fit.strategy, Strategy::RequestedToCapacityRatio(vec![(0, 0), (100, 10)]));
        assert_eq!(fit.resources, [Weighted { name: "cpu".to_owned(), weight: 3 }]);
        assert_eq!(fit.ignored, ["example.com/gpu", "other.org/"]);
    }

    #[test]
    fn strategies_compare_what_is_left_or_used() {
        let mut cluster = cluster(&[sized("a", "4", "10000Mi", "10"), sized("b", "10", "10000Mi", "10")]);
        cluster.place(
            pod("x", &requesting(&json!({"cpu": "1", "memory": "5000Mi"}))),
            &"a".into(),
            koord_scheduler_framework::hold::Holds::default(),
        );
        let incoming = requesting(&json!({"cpu": "1", "memory": "1000Mi"}));
        let mut score = |strategy| {
            let fit = NodeResourcesFit { strategy, ..NodeResourcesFit::default() };
            scored_in(&fit, &mut cluster, &incoming).unwrap()
        };
        // a: cpu 2 of 4, memory 6000 of 10000; b: 1 of 10, 1000 of 10000.
        assert_eq!(score(Strategy::LeastAllocated), [45, 90]);
        assert_eq!(score(Strategy::MostAllocated), [55, 10]);
        assert_eq!(score(Strategy::RequestedToCapacityRatio(vec![(0, 0), (100, 10)])), [55, 10]);
        assert_eq!(score(Strategy::RequestedToCapacityRatio(vec![(0, 10), (50, 0)])), [0, 80]);
    }

    #[test]
    fn a_sum_that_overflows_is_more_than_a_node_offers() {
        let mut cluster = cluster(&[sized("a", "4", "8Gi", "10")]);
        let huge = pod("x", &requesting(&json!({"memory": "9223372036854775807"})));
        cluster.place(huge, &"a".into(), koord_scheduler_framework::hold::Holds::default());
        let incoming = requesting(&json!({"cpu": "1", "memory": "1Gi"}));
        assert_eq!(filtered_in(&NodeResourcesFit::default(), &mut cluster, &incoming), ["U Insufficient memory"]);
        assert_eq!(scored_in(&NodeResourcesFit::default(), &mut cluster, &incoming), Some(vec![36]));
        assert_eq!(scored_in(&crate::BalancedAllocation::default(), &mut cluster, &incoming), Some(vec![62]));
    }

    #[test]
    fn a_pod_without_requests_counts_as_a_small_one_and_extended_resources_by_request_alone() {
        let mut cluster = cluster(&[sized("a", "1", "1000Mi", "10")]);
        assert_eq!(scored_in(&NodeResourcesFit::default(), &mut cluster, &requesting(&json!({}))), Some(vec![85]));
        let gpu = Weighted { name: "example.com/gpu".to_owned(), weight: 3 };
        let cpu = Weighted { name: "cpu".to_owned(), weight: 1 };
        let fit = NodeResourcesFit { resources: vec![cpu, gpu], ..NodeResourcesFit::default() };
        assert_eq!(scored_in(&fit, &mut cluster, &requesting(&json!({}))), Some(vec![90]));
        let one = requesting(&json!({"example.com/gpu": "1"}));
        assert_eq!(scored_in(&fit, &mut cluster, &one), Some(vec![(90 + 3 * 50) / 4]));
    }

    #[test]
    fn a_pod_that_requests_less_of_a_requested_resource_helps() {
        let fit = NodeResourcesFit::default();
        let sized = |cpu: &str, memory: &str| pod("x", &requesting(&json!({"cpu": cpu, "memory": memory})));
        let resized =
            |cpu: &str, memory: &str| Event::PodScaledDown { old: sized("2", "2Gi"), new: sized(cpu, memory) };
        let helps =
            |incoming: &Value, event| fit.is_helped_by(&pod("w", &requesting(incoming)), &event, &Cluster::default());
        let (wants_cpu, wants_memory) = (json!({"cpu": "1", "memory": "0"}), json!({"memory": "1Gi"}));
        assert!(helps(&wants_cpu, resized("1", "2Gi")) && !helps(&wants_memory, resized("1", "2Gi")));
        assert!(helps(&wants_memory, resized("3", "1Gi")) && !helps(&wants_cpu, resized("3", "1Gi")));
    }

    #[test]
    fn a_pod_that_is_changed_itself_may_fit() {
        let fit = NodeResourcesFit::default();
        let waiting = pod("x", &requesting(&json!({"cpu": "3"})));
        assert!(fit.is_helped_by(&waiting, &Event::PodChanged, &Cluster::default()));
        assert!(fit.events_to_register().meets(Events::POD_CHANGED));
    }

    #[test]
    fn a_node_that_is_too_small_or_did_not_grow_does_not_help() {
        let fit = NodeResourcesFit::default();
        let waiting = pod("x", &requesting(&json!({"cpu": "3", "memory": "1Gi"})));
        let added = |cpu: &str| Event::NodeAdded(sized("a", cpu, "8Gi", "9"));
        assert_eq!(["2", "3"].map(|cpu| fit.is_helped_by(&waiting, &added(cpu), &Cluster::default())), [false, true]);
        let changed = |cpu: &str, pods: &str| Event::NodeChanged {
            old: sized("a", "2", "8Gi", "9"),
            new: sized("a", cpu, "8Gi", pods),
        };
        assert!(fit.is_helped_by(&waiting, &changed("4", "9"), &Cluster::default()));
        for (cpu, pods) in [("1", "9"), ("2", "10")] {
            assert!(!fit.is_helped_by(&waiting, &changed(cpu, pods), &Cluster::default()), "{cpu} {pods}");
        }
    }
}
