//! What the pods of a scenario request, before any scheduler has seen them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use koord_runtime::{
    Core,
    clock::{ManualClock, Moment},
    key::ObjectKey,
    metrics::Metrics,
    random::Random,
};
use koord_scheduler_allocation::devices;
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_framework::pod::{Pod, Template};
use koord_scheduler_openb::Demand;
use koord_scheduler_runtime::feed::Feed;
use koord_scheduling::{NodeAffinity, count};

use crate::{Scenario, listener::Listener, world::World};

/// The label of a pod with the name of its quota.
const QUOTA: &str = "quota.scheduling.koordinator.sh/name";

/// What the pods of a scenario request.
pub(crate) struct Survey {
    pods: BTreeMap<ObjectKey, Arc<Template>>,
    /// What all nodes offer of each resource that is requested, and of cpu and memory.
    pub(crate) capacity: BTreeMap<String, i64>,
    /// The most frequent kinds of pods.
    pub(crate) kinds: Vec<Kind>,
}

/// Pods that request the same.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) amounts: BTreeMap<String, i64>,
    pub(crate) demand: Demand,
    pub(crate) affinity: NodeAffinity,
    /// How many of the pods that come are of it.
    pub(crate) pods: usize,
}

impl Survey {
    /// Kinds of which further ones are together less than this part of all pods are left out, in percent.
    const TYPICAL: usize = 95;
    /// More kinds are not looked at.
    const KINDS_MAX: usize = 256;

    pub(crate) fn of(scenario: &Scenario) -> Result<Self> {
        let clock = ManualClock::new(scenario.start);
        let mut core = Core::new("simulator", clock, Random::seeded(0), Metrics::new()?, Listener::shared());
        let mut engine = Engine::new(Vec::new(), Timings::default(), Random::seeded(0));
        let feed = Feed::of(&mut core, &engine.reads());
        let mut world = World::new(core, &scenario.objects)?;
        for arrival in &scenario.arrivals {
            world.add(arrival.pod.clone())?;
        }
        feed.fill(&mut engine, Moment::default());
        let cluster = engine.cluster();
        let of = |pod: &Arc<Pod>| (pod.key.clone(), Arc::clone(&pod.template));
        let pods: BTreeMap<ObjectKey, Arc<Template>> = cluster.pending().map(of).collect();
        let placed = cluster.pods().map(|placed| &placed.pod.template);
        let requested = placed.chain(pods.values()).flat_map(|template| template.requests.iter());
        let mut names: BTreeSet<&str> = requested.map(|(name, _)| name).collect();
        names.extend(["cpu", "memory"]);
        let offered = |name: &&str| {
            let amounts = cluster.rows().filter_map(|(_, node)| node.allocatable.get(name));
            amounts.map(|amount| count(name, amount)).fold(0, i64::saturating_add)
        };
        let capacity = names.iter().map(|name| ((*name).to_owned(), offered(name))).filter(|(_, offered)| *offered > 0);
        let capacity = capacity.collect();
        let arriving = scenario.arrivals.iter().filter_map(|arrival| pods.get(&arrival.key()));
        Ok(Self { kinds: typical(arriving), capacity, pods })
    }

    /// What a pod requests, and how it says where it may run; none where it cannot be read.
    pub(crate) fn template(&self, pod: &ObjectKey) -> Option<&Template> {
        self.pods.get(pod).map(|template| &**template)
    }

    /// What a pod requests of the resources of nodes.
    pub(crate) fn amounts(&self, pod: &ObjectKey) -> BTreeMap<String, i64> {
        self.template(pod).map(amounts).unwrap_or_default()
    }

    /// The largest share of any resource of all nodes that a pod requests.
    pub(crate) fn dominant_share(&self, pod: &ObjectKey) -> f64 {
        let shares = self.amounts(pod).into_iter().filter_map(|(name, amount)| {
            let offered = self.capacity.get(&name)?;
            Some(amount as f64 / *offered as f64)
        });
        shares.fold(0.0, f64::max)
    }

    /// The quota that a pod names.
    pub(crate) fn quota(&self, pod: &ObjectKey) -> Option<&str> {
        self.template(pod)?.labels.get(QUOTA)
    }

    /// What a pod requests of GPUs, in thousandths.
    pub(crate) fn gpu_milli(&self, pod: &ObjectKey) -> i64 {
        self.template(pod).map(demand).map_or(0, |demand| demand.gpus.saturating_mul(demand.each_milli))
    }
}

fn amounts(template: &Template) -> BTreeMap<String, i64> {
    template.requests.iter().map(|(name, amount)| (name.to_owned(), count(name, amount))).collect()
}

fn demand(template: &Template) -> Demand {
    let cpu_milli = template.requests.amount("cpu").milli_value();
    match devices::Demand::of(template) {
        Some(demand) => Demand { each_milli: 10 * i64::from(demand.percent), gpus: i64::from(demand.count), cpu_milli },
        None => Demand { each_milli: 0, gpus: 0, cpu_milli },
    }
}

/// The most frequent kinds, until they are most of all pods.
fn typical<'t>(templates: impl Iterator<Item = &'t Arc<Template>>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    let (mut known, mut all) = (BTreeMap::<usize, usize>::new(), 0);
    for template in templates {
        all += 1;
        // Pods of a workload share their template.
        let address = Arc::as_ptr(template).addr();
        let index = known.get(&address).copied().unwrap_or_else(|| {
            let (amounts, demand, affinity) = (amounts(template), demand(template), &template.affinity);
            let alike = |kind: &Kind| kind.demand == demand && kind.amounts == amounts && kind.affinity == *affinity;
            kinds.iter().position(alike).unwrap_or_else(|| {
                kinds.push(Kind { amounts, demand, affinity: affinity.clone(), pods: 0 });
                kinds.len() - 1
            })
        });
        known.insert(address, index);
        if let Some(kind) = kinds.get_mut(index) {
            kind.pods += 1;
        }
    }
    // A stable order: the most frequent first, then who came first.
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.pods));
    let mut seen = 0;
    kinds.retain(|kind| {
        let is_typical = seen * 100 < all * Survey::TYPICAL;
        seen += if is_typical { kind.pods } else { 0 };
        is_typical
    });
    kinds.truncate(Survey::KINDS_MAX);
    kinds
}
