//! What a pod gets of a node, as filters, scores and Reserve ask for it (`spec/scheduler.md` 3B.3 and 3B.10).

use std::sync::Arc;

use koord_engine::{
    cluster::Cluster,
    columns::Row,
    plugin::{Filter, Reason, ReasonCode, Refusal, Score},
    pod::Template,
};
use koord_resource::ResourceList;
use koord_scheduling::{NumaMask, ResourceId, ResourceVector};

use super::{
    allocate::{CpuOrder, Order, Shortage, Stock},
    devices::WantedDevices,
    ledger::Allocation,
    manager::{Hints, Provider, Rules, admit},
    node::{NumaNode, amplify, milli},
    policy::{Bind, Fill, Policy},
    score::Scorer,
    state::{NumaHold, NumaState},
    wanted::{Mismatch, Wanted},
    ways::{Way, ways},
};
use crate::{
    device_share::NumaNodes,
    reservation::{
        CountedTwice, Within,
        lots::{Asks, Source, keeps_nothing},
    },
    texts::Texts,
};

/// A pod that is asked for on nodes.
pub(super) struct Asked {
    pub(super) wanted: Wanted,
    pub(super) template: Arc<Template>,
    /// What it wants of reservations.
    pub(super) asks: Asks,
    /// The devices that it wants too.
    pub(super) devices: Option<WantedDevices>,
    /// By what nodes are compared as a whole.
    pub(super) of_nodes: Vec<Counted>,
    pub(super) settings: Arc<Configured>,
    pub(super) texts: Arc<Texts>,
}

/// A resource that counts, and what the pod requests of it.
pub(super) struct Counted {
    id: ResourceId,
    weight: i64,
    request: i64,
}

/// What is decided about a pod on a node that is right for it.
struct Decided {
    policy: Policy,
    order: Order,
}

/// Why a pod does not get what it wants of a node.
pub(super) struct Refused {
    pub(super) reasons: Vec<Reason>,
    pub(super) is_resolvable: bool,
    /// Whether nothing but Reserve would refuse the node.
    pub(super) is_of_reserve: bool,
    /// Whether the topology manager says so, who knows nothing of reservations.
    is_of_manager: bool,
}

/// What a configuration says.
#[derive(Debug)]
pub(super) struct Configured {
    /// How CPUs are bound where pod and node do not say it.
    pub(super) bind: Option<Bind>,
    /// Which nodes are best, and which NUMA nodes are filled first where the node does not say it.
    pub(super) fill: Fill,
    /// Which NUMA nodes are best.
    pub(super) numa_fill: Fill,
    /// What counts, with its weight.
    pub(super) weights: Vec<(String, i64)>,
}

/// A node in its cluster.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) row: Row,
    pub(super) state: &'a NumaState,
    pub(super) node: &'a NumaNode,
}

impl<'a> Place<'a> {
    /// The node of a row.
    pub(super) fn of(cluster: &'a Cluster, row: Row) -> Option<Self> {
        let state = cluster.state::<NumaState>()?;
        Some(Self { cluster, row, state, node: state.node(row)? })
    }
}

// === impl Refused ===

impl From<Mismatch> for Refused {
    fn from(mismatch: Mismatch) -> Self {
        Self { is_resolvable: false, ..Self::resolvable(mismatch.reason().into()) }
    }
}

impl Refused {
    /// The reason of a refusal of the filter, and that of one that Reserve would give.
    pub(super) const OF_FILTER: u16 = 0;
    pub(super) const OF_RESERVE: u16 = 1;

    fn resolvable(reasons: Vec<Reason>) -> Self {
        Self { reasons, is_resolvable: true, is_of_reserve: false, is_of_manager: false }
    }

    fn of_reserve(self, is_of_reserve: bool) -> Self {
        Self { is_of_reserve, ..self }
    }

    /// The same where a reservation has too little.
    fn by_reservation(self) -> Self {
        if self.is_of_manager {
            return self;
        }
        let kept = |reason: Reason| Reason { text: format!("Reservation(s) {reason}"), ..reason };
        let reasons = self.reasons.into_iter().map(kept).collect();
        Self { reasons, ..self }
    }
}

// === impl Asked ===

/// The plugin itself, asked about one pod and one node by the topology manager.
struct Own<'a> {
    stock: &'a Stock<'a>,
    state: &'a NumaState,
    policy: Policy,
    scorer: Scorer,
}

impl Provider for Own<'_> {
    fn hints(&self) -> Result<Hints, Vec<Reason>> {
        let hints = self.stock.hints(self.policy, &self.scorer).into_iter();
        Ok(hints.map(|(id, hints)| (self.state.names().name(id).to_owned(), Some(hints))).collect())
    }

    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        self.stock.allocate(affinity).map(drop).map_err(|shortage| reasons(&shortage, self.state))
    }
}

fn reasons(shortage: &Shortage, state: &NumaState) -> Vec<Reason> {
    shortage.reasons(|id| state.names().name(id))
}

impl Asked {
    fn requests(&self) -> &ResourceList {
        &self.template.requests
    }

    /// What is decided about the pod on a node, before it is known what is free there.
    fn decided(&self, state: &NumaState, node: &NumaNode) -> Result<Decided, Refused> {
        let policy = self.wanted.policy_on(node)?;
        let cpus = self.wanted.cpus_on(node)?;
        if policy != Policy::None && node.zones.is_empty() {
            return Err(Refused::from(Mismatch::Zones).of_reserve(policy == Policy::BestEffort));
        }
        let requests = state.vector(self.requests());
        Ok(Decided { policy, order: Order { requests, cpus, fill: node.fill.unwrap_or(self.settings.fill) } })
    }

    /// Whether the pod gets neither CPUs of its own nor resources of certain NUMA nodes.
    fn shares_everything(&self, node: &NumaNode) -> Result<bool, Refused> {
        Ok(self.wanted.policy_on(node)? == Policy::None && self.wanted.cpus_on(node)?.is_none())
    }

    /// The NUMA nodes of which the pod gets everything; none where it does not matter which.
    fn affinity(
        &self,
        place: Place<'_>,
        stock: &Stock<'_>,
        policy: Policy,
        source: &Source,
    ) -> Result<Option<NumaMask>, Refused> {
        if policy == Policy::None {
            return Ok(None);
        }
        let (Place { cluster, row, state, .. }, node) = (place, stock.node);
        let scorer = Scorer { fill: self.settings.numa_fill, weights: self.weights(|name| state.names().get(name)) };
        let own = Own { stock, state, policy, scorer };
        let all = node.numa_nodes().unwrap_or_default();
        let occupation = self.wanted.keeps_apart.then(|| node.ledger.occupation(&node.cpus));
        let devices = self.devices.as_ref().map(|devices| devices.on(cluster, row, all, source));
        let devices = devices.as_ref().map(|devices| devices as &dyn Provider);
        let providers: Vec<&dyn Provider> = std::iter::once(&own as &dyn Provider).chain(devices).collect();
        let admitted = admit(&providers, Rules { policy, all, occupation });
        admitted.map_err(|reasons| Refused { is_of_manager: true, ..Refused::resolvable(reasons) })
    }

    /// The resources that count for this pod.
    fn weights(&self, number: impl Fn(&str) -> Option<ResourceId>) -> Vec<(ResourceId, i64)> {
        let counts = |name: &str| ["cpu", "memory"].contains(&name) || self.requests().amount(name).signum() > 0;
        let weights = self.settings.weights.iter().filter(|(name, _)| counts(name));
        weights.filter_map(|(name, weight)| Some((number(name)?, *weight))).collect()
    }

    /// The first way to take something from a node that has enough for the pod; the last refusal otherwise.
    fn first<T>(
        &self,
        place: Place<'_>,
        source: &Source,
        order: &Order,
        take: impl Fn(&Stock<'_>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mut refused = Refused::resolvable(reasons(&Shortage::Cpus, place.state));
        for Way { node, limits } in ways(place, &self.asks, source) {
            match take(&Stock::new(&node, order, &limits)) {
                Ok(taken) => return Ok(taken),
                Err(last) => refused = last,
            }
        }
        Err(if self.asks.needs_one { refused.by_reservation() } else { refused })
    }

    /// What the pod gets; none where it shares everything.
    pub(super) fn reserve(&self, place: Place<'_>, source: &Source) -> Result<Option<NumaHold>, Refused> {
        let Place { state, node, .. } = place;
        if self.shares_everything(node)? {
            return Ok(None);
        }
        let Decided { policy, order } = self.decided(state, node)?;
        let take = |stock: &Stock<'_>| {
            let affinity = self.affinity(place, stock, policy, source)?;
            let allocation = stock.allocate(affinity).map_err(|short| Refused::resolvable(reasons(&short, state)))?;
            Ok((affinity, allocation))
        };
        let (affinity, allocation) = self.first(place, source, &order, take)?;
        let shares = allocation.shares.iter().map(|(node, share)| (*node, self.list(state, share)));
        Ok(Some(NumaHold {
            shares: shares.collect(),
            cpus: allocation.cpus,
            exclusive: allocation.exclusive,
            affinity,
            spec: order.cpus.and_then(|cpus| self.wanted.written(&cpus)),
        }))
    }

    /// Amounts as annotations show them: in the format in which the pod requests them.
    fn list(&self, state: &NumaState, vector: &ResourceVector) -> ResourceList {
        let amount = |(id, amount)| {
            let name = state.names().name(id);
            (name, koord_scheduling::quantity(name, amount, self.requests().amount(name).format()))
        };
        vector.iter().map(amount).collect()
    }

    /// What pods request of a node's cpu, where CPUs of their own cost amplified ones.
    fn requested_cpu(node: &NumaNode, cluster: &Cluster, row: Row) -> i64 {
        let twice = CountedTwice::on(cluster, row).of(ResourceId::CPU);
        let requested = cluster.requested(ResourceId::CPU, row).saturating_sub(twice);
        let bound = milli(node.ledger.cpu_count());
        if bound > 0 && requested >= bound {
            requested.saturating_add(amplify(bound, node.cpu_ratio) - bound)
        } else {
            requested
        }
    }

    /// What the pod itself requests of a node's cpu.
    fn cpu(&self, node: &NumaNode, is_bound: bool) -> i64 {
        if is_bound { amplify(self.wanted.cpu, node.cpu_ratio) } else { self.wanted.cpu }
    }

    fn check(&self, cluster: &Cluster, row: Row, source: &Source) -> Result<(), Refused> {
        let Some(place) = Place::of(cluster, row) else { return Ok(()) };
        let Place { state, node, .. } = place;
        let policy = self.wanted.policy_on(node)?;
        if node.cpu_ratio > 1.0 {
            let left =
                cluster.allocatable(ResourceId::CPU, row).saturating_sub(Self::requested_cpu(node, cluster, row));
            if self.cpu(node, self.wanted.binds_on(node)?) > left {
                let short = ReasonCode::CpusUnavailable.says("Insufficient amplified cpu");
                return Err(Refused::resolvable(short.into()));
            }
        }
        let cpus = self.wanted.cpus_on(node)?;
        if policy == Policy::None && cpus.is_none() {
            return Ok(());
        }
        let short = |cpus: Option<CpuOrder>| {
            let is_preferred = cpus.is_some_and(|cpus| !cpus.is_required);
            Refused::resolvable(reasons(&Shortage::Cpus, state)).of_reserve(is_preferred)
        };
        if let (Policy::None, Some(wanted)) = (policy, &cpus)
            && !self.asks.needs_one
            && keeps_nothing(cluster, row)
        {
            return if wanted.is_enough(node) { Ok(()) } else { Err(short(cpus)) };
        }
        let Decided { policy, order } = self.decided(state, node)?;
        self.first(place, source, &order, |stock| {
            if policy != Policy::None {
                let affinity = self.affinity(place, stock, policy, source);
                return affinity.map(drop).map_err(|refused| refused.of_reserve(policy == Policy::BestEffort));
            }
            if stock.has_cpus() { Ok(()) } else { Err(short(cpus)) }
        })
    }

    /// The resources by which nodes are compared as a whole, with their weights and what the pod requests.
    pub(super) fn of_nodes(&self, cluster: &Cluster) -> Vec<Counted> {
        let amount = |id| {
            koord_scheduling::count(cluster.resources().name(id), self.requests().amount(cluster.resources().name(id)))
        };
        let weights = self.weights(|name| cluster.resources().get(name)).into_iter();
        weights.map(|(id, weight)| Counted { id, weight, request: amount(id) }).collect()
    }

    /// The score of a node as a whole.
    fn score_of_node(&self, node: &NumaNode, is_bound: bool, cluster: &Cluster, row: Row) -> i64 {
        let twice = CountedTwice::on(cluster, row);
        let parts = self.of_nodes.iter().map(|Counted { id, weight, request }| {
            let requested = if *id == ResourceId::CPU {
                Self::requested_cpu(node, cluster, row).saturating_add(self.cpu(node, is_bound))
            } else {
                cluster.requested(*id, row).saturating_sub(twice.of(*id)).saturating_add(*request)
            };
            (*weight, requested, cluster.allocatable(*id, row))
        });
        self.settings.fill.score(parts)
    }

    /// The score of the NUMA nodes that the pod would get; 0 where it gets none, and where the policy is BestEffort, which is
    /// looked at only after a node was chosen.
    fn score_of_numa_nodes(&self, place: Place<'_>, decided: &Decided) -> Option<i64> {
        let Place { state, node, .. } = place;
        if decided.policy == Policy::BestEffort {
            return None;
        }
        let take = |stock: &Stock<'_>| {
            let affinity = self.affinity(place, stock, decided.policy, &Source::Any)?;
            stock.allocate(affinity).map_err(|short| Refused::resolvable(reasons(&short, state)))
        };
        let Allocation { cpus, shares, .. } = self.first(place, &Source::Any, &decided.order, take).ok()?;
        let (mut requested, mut total) = (decided.order.requests.clone(), ResourceVector::default());
        if decided.order.cpus.is_some() {
            requested.set(ResourceId::CPU, amplify(milli(cpus.len()), node.cpu_ratio));
        }
        for (numa_node, _) in &shares {
            requested.add(&node.allocated(*numa_node));
            total.add(node.zones.get(numa_node)?);
        }
        let weights = self.weights(|name| state.names().get(name));
        Some(Scorer { fill: self.settings.numa_fill, weights }.score(&requested, &total))
    }
}

impl NumaNodes for Asked {
    fn on(&self, cluster: &Cluster, row: Row) -> Option<NumaMask> {
        let place = Place::of(cluster, row)?;
        let Decided { policy, order } = self.decided(place.state, place.node).ok()?;
        // With BestEffort they are chosen when the node is.
        if matches!(policy, Policy::None | Policy::BestEffort) {
            return None;
        }
        self.first(place, &Source::Any, &order, |stock| self.affinity(place, stock, policy, &Source::Any)).ok()?
    }
}

impl Within for Asked {
    fn takes(&self, cluster: &Cluster, row: Row, source: &Source) -> bool {
        self.check(cluster, row, source).is_ok()
    }
}

impl Filter for Asked {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        self.check(cluster, row, &Source::Any).map_err(|Refused { reasons, is_resolvable, is_of_reserve, .. }| {
            Refusal {
                reason: if is_of_reserve { Refused::OF_RESERVE } else { Refused::OF_FILTER },
                resolvable: is_resolvable,
                operand: self.texts.number(reasons),
            }
        })
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        let takes_part = |node: &NumaNode| node.cpu_ratio > 1.0 || matches!(self.shares_everything(node), Ok(false));
        let is_apart = Place::of(cluster, row).is_none_or(|place| !takes_part(place.node));
        is_apart.then(|| self.filter(cluster, row))
    }
}

impl Score for Asked {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let Some(place) = Place::of(cluster, row) else { return 0 };
        let Place { state, node, .. } = place;
        let (Ok(policy), Ok(cpus)) = (self.wanted.policy_on(node), self.wanted.cpus_on(node)) else { return 0 };
        if policy == Policy::None {
            return self.score_of_node(node, cpus.is_some(), cluster, row);
        }
        let decided = self.decided(state, node).ok();
        decided.and_then(|decided| self.score_of_numa_nodes(place, &decided)).unwrap_or(0)
    }

    fn is_local(&self) -> bool {
        true
    }
}
