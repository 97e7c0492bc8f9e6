//! Nodes that have just rejected a pod because it lacks a resource.
//!
//! A kubelet rejects a pod, with a reason such as `OutOfcpu`, when it knows of pods that the scheduler did not: those of another
//! scheduler, or static ones. Until the scheduler knows of them too, pods that request as much are not sent there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use koord_core::uid::Uid;
use koord_scheduler_framework::{
    EnqueueExtensions, FailureHandler, Filter, Found, NodeFilter, Orders, Plugin, PluginState, PodActivation,
    PreparedFilter, Reason, ReasonCode, Refusal, Registration, Request, SchedulingSignature, SignatureFields,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    pod::{Pod, Template},
};
use koord_scheduling::count;

/// Refuses a node for a while to pods that request at least as much of a resource as a pod that the node rejected because it lacked it.
/// It is part of every profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeRejections;

/// What nodes have rejected lately.
#[derive(Clone, Debug, Default)]
struct Rejections {
    by_row: BTreeMap<Row, Vec<Rejected>>,
    /// Pods that were refused for it, which are tried again when it is over.
    refused: BTreeSet<Uid>,
    /// Whether the time of some is over since those were looked at.
    is_over: bool,
    epoch: u64,
}

/// A pod that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rejected {
    resource: Box<str>,
    amount: i64,
    until: Timestamp,
}

/// Filters nodes for pods of a template.
struct RejectionFilter(BTreeMap<Box<str>, i64>);

impl Rejections {
    /// How long a node is left alone.
    const LASTS: SignedDuration = SignedDuration::from_secs(30);
    /// Rejections of a node that are kept: the last ones.
    const PER_NODE_MAX: usize = 16;

    fn refuses(&self, row: Row, amounts: &BTreeMap<Box<str>, i64>) -> bool {
        let is_as_large =
            |rejected: &Rejected| amounts.get(&rejected.resource).copied().unwrap_or(0) >= rejected.amount;
        self.by_row.get(&row).is_some_and(|rejected| rejected.iter().any(is_as_large))
    }
}

impl State for Rejections {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn rejected(&mut self, cluster: &Cluster, placed: &Placed, resource: &str) -> Vec<Row> {
        let amount = amount(&placed.pod.template, resource);
        let until = cluster.time().saturating_add(Self::LASTS).unwrap_or(Timestamp::MAX);
        let known = self.by_row.entry(placed.row).or_default();
        known.retain(|other| *other.resource != *resource || other.amount != amount);
        if known.len() >= Self::PER_NODE_MAX {
            known.remove(0);
        }
        known.push(Rejected { resource: resource.into(), amount, until });
        self.epoch += 1;
        vec![placed.row]
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        if cluster.node(row).is_none() && self.by_row.remove(&row).is_some() {
            self.epoch += 1;
        }
    }

    fn tick(&mut self, _: &Cluster, now: Timestamp) -> Vec<Row> {
        let mut rows = Vec::new();
        self.by_row.retain(|row, rejected| {
            let before = rejected.len();
            rejected.retain(|rejected| rejected.until > now);
            rows.extend((rejected.len() < before).then_some(*row));
            !rejected.is_empty()
        });
        if !rows.is_empty() {
            self.is_over = true;
            self.epoch += 1;
        }
        rows
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.by_row.values().flatten().map(|rejected| rejected.until).min()
    }
}

impl Plugin for NodeRejections {
    fn name(&self) -> &'static str {
        "NodeRejections"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .enqueue_extensions(&self)
            .pod_activation(&self)
            .filter(&self)
            .failure_handler(&self)
            .state(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeRejections {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED
    }

    fn is_helped_by(&self, _: &Pod, _: &Event, _: &Cluster) -> bool {
        true
    }
}

impl PodActivation for NodeRejections {
    fn order(&self, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(known) = cluster.state_mut::<Rejections>().filter(|known| known.is_over) {
            known.is_over = false;
            orders.activate.extend(std::mem::take(&mut known.refused));
        }
    }
}

impl Filter for NodeRejections {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let Some(known) = cluster.state::<Rejections>().filter(|known| !known.by_row.is_empty()) else {
            return PreparedFilter::Skip;
        };
        let resources = known.by_row.values().flatten().map(|rejected| &rejected.resource);
        let amounts = resources.map(|name| (name.clone(), amount(request.template(), name)));
        PreparedFilter::Nodes(Box::new(RejectionFilter(amounts.collect())))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::NodeRejected.reason("node(s) have just rejected a pod that requests no more").into()
    }
}

impl FailureHandler for NodeRejections {
    fn attempt_failed(&self, request: &Request<'_>, _: &Found, cluster: &mut Cluster, _: &mut Orders) {
        if let Some(known) = cluster.state_mut::<Rejections>().filter(|known| !known.by_row.is_empty()) {
            known.refused.insert(request.pod.uid.clone());
        }
    }
}

impl PluginState for NodeRejections {
    fn state(&self) -> Box<dyn State> {
        Box::<Rejections>::default()
    }
}

impl SchedulingSignature for NodeRejections {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }

    fn epoch(&self, cluster: &Cluster) -> u64 {
        cluster.state::<Rejections>().map_or(0, |known| known.epoch)
    }
}

impl NodeFilter for RejectionFilter {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let is_refused = cluster.state::<Rejections>().is_some_and(|known| known.refuses(row, &self.0));
        if is_refused { Err(Refusal::unresolvable(0)) } else { Ok(()) }
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        Some(self.filter(cluster, row))
    }
}

/// What pods of a template request of a resource. Each of them is one of `pods`.
fn amount(template: &Template, resource: &str) -> i64 {
    if resource == "pods" { 1 } else { count(resource, template.requests.amount(resource)) }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use koord_core::{clock::Moment, random::Random};
    use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
    use koord_scheduler_framework::Profile;
    use serde_json::json;

    use super::*;
    use crate::NodeResourcesFit;

    struct World {
        engine: Engine,
        seconds: u64,
    }

    impl World {
        /// Nodes of 8 cores.
        fn of(nodes: &[&str]) -> Self {
            let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(NodeResourcesFit::default()), Arc::new(NodeRejections)];
            let profile = Profile { filters: vec![0, 1], ..Profile::of("test", plugins) };
            let mut world =
                Self { engine: Engine::new(vec![profile], Timings::default(), Random::seeded(1)), seconds: 0 };
            for name in nodes {
                world.add_node(name);
            }
            world
        }

        fn add_node(&mut self, name: &str) {
            let allocatable = json!({"cpu": "8", "memory": "8Gi", "pods": "10"});
            let now = self.now();
            self.engine
                .set_node(koord_scheduler_testing::node(name, &json!({"status": {"allocatable": allocatable}})), now);
        }

        fn now(&self) -> Moment {
            Moment::at(Duration::from_secs(self.seconds))
        }

        fn pass(&mut self, seconds: u64) {
            self.seconds += seconds;
            self.engine.tick(Timestamp::from_second(i64::try_from(self.seconds).unwrap()).unwrap());
        }

        fn reject(&mut self, pod: &str, resource: &str) {
            let now = self.now();
            self.engine.reject_pod(&Uid::from(pod), resource, now);
        }

        /// What becomes of a new pod.
        fn create(&mut self, name: &str, cpu: &str) -> String {
            let resources = json!({"requests": {"cpu": cpu}});
            let spec = json!({"schedulerName": "test", "containers": [{"resources": resources}]});
            let now = self.now();
            self.engine.set_pod(koord_scheduler_testing::pod(name, &spec), now);
            self.next().unwrap()
        }

        fn next(&mut self) -> Option<String> {
            let now = self.now();
            Some(match self.engine.attempt(now)?.outcome {
                Outcome::Bind { node, .. } => node.to_string(),
                Outcome::Refused(refused) => refused.message,
                other @ (Outcome::Waiting { .. } | Outcome::ExtenderCall { .. }) => panic!("{other:?}"),
            })
        }
    }

    const REFUSED: &str = "0/1 nodes are available: 1 node(s) have just rejected a pod that requests no more.";

    #[test]
    fn a_node_that_has_rejected_a_pod_is_avoided_by_pods_as_large_and_tried_again_later() {
        let mut world = World::of(&["n1"]);
        assert_eq!(world.create("a", "2"), "n1");
        world.reject("a", "cpu");
        assert_eq!((world.create("b", "2"), world.create("c", "1")), (REFUSED.to_owned(), "n1".to_owned()));
        world.pass(29);
        assert_eq!((world.next(), world.create("d", "3")), (None, REFUSED.to_owned()));
        world.pass(1);
        assert_eq!((world.next().as_deref(), world.next().as_deref()), (Some("n1"), Some("n1")), "b and d");
        assert_eq!(world.engine.cluster().wake_at(), None);
    }

    #[test]
    fn other_nodes_are_tried_at_once_and_a_node_that_comes_anew_is_not_avoided() {
        let mut world = World::of(&["n1"]);
        assert_eq!(world.create("a", "2"), "n1");
        world.reject("a", "pods");
        assert_eq!(world.create("b", "0"), REFUSED, "no pod is taken");
        world.add_node("n2");
        world.seconds += 60;
        assert_eq!((world.next().as_deref(), world.create("c", "2")), (Some("n2"), "n2".to_owned()));
        let now = world.now();
        world.engine.remove_node("n1", now);
        world.engine.remove_node("n2", now);
        world.add_node("n1");
        assert_eq!(world.create("d", "2"), "n1");
    }

    #[test]
    fn a_pod_that_is_not_known_is_not_rejected_by_anybody() {
        let mut world = World::of(&["n1"]);
        world.reject("a", "cpu");
        assert_eq!(world.create("b", "2"), "n1");
    }
}
