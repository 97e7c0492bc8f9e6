//! What a pod gets of a node, as filters, scores and Reserve ask for it (`spec/scheduler.md` 3B.3 and 3B.10).

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use koord_resource::ResourceList;
use koord_scheduler_allocation::{
    CountedTwice, ReservationRequirement, any_fits, are_too_small, is_unreserved,
    numa::{
        allocate::{CpuOrder, Order, Shortage, Stock},
        node::{NumaLimits, NumaNode, amplify, milli},
        policy::{Bind, Fill, Policy},
        score::NumaScorer,
        state::{NumaHold, NumaState},
        stock_provider::{StockProvider, reasons},
        topology_manager::{Provider, Rules, admit},
        zone::NumaZone,
    },
    reservations_with,
};
use koord_scheduler_framework::{
    AllocationSource, NodeNumaHints, ReasonCode, cluster::Cluster, columns::Row, pod::Template, texts::Texts,
};
use koord_scheduling::{NumaMask, ResourceId, ResourceVector};
use smallvec::{SmallVec, smallvec};

use super::{
    node_views::{NodeView, node_views},
    numbered_requests::{NumberedRequests, counting},
    others::OtherPlugin,
    refused::Refused,
    resource_options::{Mismatch, ResourceOptions},
};

/// The pre-filter state of a pod.
pub(super) struct PreFilterState {
    pub(super) options: ResourceOptions,
    pub(super) template: Arc<Template>,
    /// What it requires of reservations.
    pub(super) requirement: ReservationRequirement,
    /// What other plugins allocate to it from NUMA nodes.
    pub(super) others: Vec<Box<dyn NodeNumaHints>>,
    /// By what nodes are compared as a whole.
    pub(super) of_nodes: Vec<WeightedResource>,
    /// What it requests in the numbers of the nodes, once one was filtered.
    pub(super) numbered: OnceLock<NumberedRequests>,
    pub(super) settings: Arc<Configured>,
    pub(super) texts: Arc<Texts>,
}

/// A resource that counts, and what the pod requests of it.
pub(super) struct WeightedResource {
    id: ResourceId,
    weight: i64,
    request: i64,
}

/// How a pod takes what it wants of a node.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// How strictly its resources are kept together.
    pub(super) policy: Policy,
    /// The exclusive CPUs; none where it shares them.
    pub(super) cpus: Option<CpuOrder>,
}

/// What a configuration says.
#[derive(Debug)]
pub(super) struct Configured {
    /// How CPUs are bound where pod and node do not say it.
    pub(super) bind: Option<Bind>,
    /// Which nodes are best.
    pub(super) fill: Fill,
    /// Which NUMA nodes are best, and which are filled first where the node does not say it.
    pub(super) numa_fill: Fill,
    /// What counts, with its weight.
    pub(super) weights: Vec<(String, i64)>,
}

/// A node in its cluster.
#[derive(Clone, Copy)]
pub(super) struct NodeInCluster<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) row: Row,
    pub(super) state: &'a NumaState,
    pub(super) node: &'a NumaNode,
}

impl<'a> NodeInCluster<'a> {
    /// The node of a row.
    pub(super) fn of(cluster: &'a Cluster, row: Row) -> Option<Self> {
        let state = cluster.state::<NumaState>()?;
        Some(Self { cluster, row, state, node: state.node(row)? })
    }
}

// === impl PreFilterState ===

impl PreFilterState {
    fn requests(&self) -> &ResourceList {
        &self.template.requests
    }

    /// What the pod requests in the numbers of the nodes.
    pub(super) fn numbered(&self, state: &NumaState) -> Cow<'_, NumberedRequests> {
        let numbered = || NumberedRequests::of(state.names(), self.requests(), &self.settings.weights);
        let known = self.numbered.get_or_init(numbered);
        if known.known == state.names().len() { Cow::Borrowed(known) } else { Cow::Owned(numbered()) }
    }

    /// How the pod takes what it wants of a node.
    pub(super) fn terms(&self, node: &NumaNode) -> Result<Terms, Mismatch> {
        Ok(Terms { policy: self.options.policy_on(node)?, cpus: self.options.cpus_on(node)? })
    }

    /// What the pod requests of a node, before it is known what is free there.
    pub(super) fn order<'n>(
        &self,
        terms: Terms,
        numbered: &'n NumberedRequests,
        node: &NumaNode,
    ) -> Result<Order<'n>, Refused> {
        let Terms { policy, cpus } = terms;
        if policy != Policy::None && node.zones.is_empty() {
            return Err(Refused::from(Mismatch::Zones).of_reserve(policy == Policy::BestEffort));
        }
        let requests = Cow::Borrowed(&numbered.requests);
        Ok(Order { requests, cpus, fill: node.fill.unwrap_or(self.settings.numa_fill) })
    }

    fn rules(&self, node: &NumaNode, policy: Policy) -> Rules {
        let occupation = self.options.keeps_apart.then(|| node.ledger.occupation(&node.cpus));
        Rules { policy, all: node.numa_nodes(), occupation }
    }

    /// Whether the pod gets everything of one NUMA node, and no other plugin allocates to it.
    fn is_alone(&self, policy: Policy) -> bool {
        policy == Policy::SingleNumaNode && self.others.is_empty()
    }

    /// The NUMA nodes of which the pod gets everything; none where it does not matter which.
    pub(super) fn affinity(
        &self,
        place: NodeInCluster<'_>,
        stock: &Stock<'_>,
        (policy, numbered): (Policy, &NumberedRequests),
        source: &AllocationSource,
    ) -> Result<Option<NumaMask>, Refused> {
        if policy == Policy::None {
            return Ok(None);
        }
        let (NodeInCluster { cluster, row, state, .. }, rules) = (place, self.rules(stock.node, policy));
        let scorer = NumaScorer { fill: self.settings.numa_fill, weights: &numbered.weights };
        let best = || stock.best_alone(rules, &scorer).filter(|affinity| *affinity != rules.all);
        if self.is_alone(policy)
            && let Some(affinity) = best()
        {
            return Ok(Some(affinity));
        }
        let stock_provider = StockProvider::new(stock, state, &numbered.resources, (policy, scorer));
        let others = self.others_on(cluster, row, source);
        let mut providers: SmallVec<[&dyn Provider; 2]> = smallvec![&stock_provider as &dyn Provider];
        providers.extend(others.iter().map(|other| -> &dyn Provider { other }));
        admit(&providers, rules).map_err(|reasons| Refused { is_of_manager: true, ..Refused::resolvable(reasons) })
    }

    /// The first way to take something from a node that has enough for the pod; the last refusal otherwise.
    pub(super) fn first<T>(
        &self,
        place: NodeInCluster<'_>,
        source: &AllocationSource,
        order: &Order<'_>,
        take: impl Fn(&Stock<'_>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mut refused = None;
        if is_unreserved(place.cluster, place.row) {
            if self.requirement.take_of_node(source) {
                match take(&Stock::new(place.node, order, &NumaLimits::default())) {
                    Ok(taken) => return Ok(taken),
                    Err(last) => refused = Some(last),
                }
            }
        } else {
            for NodeView { node, limits } in node_views(place, &self.requirement, source) {
                match take(&Stock::new(&node, order, &limits)) {
                    Ok(taken) => return Ok(taken),
                    Err(last) => refused = Some(last),
                }
            }
        }
        let refused = refused.unwrap_or_else(|| Refused::resolvable(reasons(&Shortage::Cpus, place.state)));
        let reservations_with = || reservations_with::<NumaHold>(place.cluster, place.row);
        Err(if self.requirement.needs_one { refused.by_reservations(reservations_with()) } else { refused })
    }

    /// What the pod gets; none where it shares everything.
    pub(super) fn reserve(
        &self,
        place: NodeInCluster<'_>,
        source: &AllocationSource,
    ) -> Result<Option<NumaHold>, Refused> {
        let NodeInCluster { state, node, .. } = place;
        let terms = self.terms(node)?;
        if terms.policy == Policy::None && terms.cpus.is_none() {
            return Ok(None);
        }
        let numbered = self.numbered(state);
        let order = self.order(terms, &numbered, node)?;
        let take = |stock: &Stock<'_>| {
            let affinity = self.affinity(place, stock, (terms.policy, &numbered), source)?;
            let allocation = stock.allocate(affinity).map_err(|short| Refused::resolvable(reasons(&short, state)))?;
            let share = |(number, share): &(u32, ResourceVector)| (*number, self.list(state, stock, *number, share));
            let shares: Vec<(u32, ResourceList)> = allocation.shares.iter().map(share).collect();
            Ok((affinity, allocation, shares))
        };
        let (affinity, allocation, shares) = self.first(place, source, &order, take)?;
        Ok(Some(NumaHold {
            shares,
            cpus: allocation.cpus,
            exclusive: allocation.exclusive,
            affinity,
            spec: order.cpus.and_then(|cpus| self.options.written(&cpus)),
        }))
    }

    /// What a NUMA node gives, as annotations show it: in the format in which the pod requests it, or in that of the NUMA node
    /// where this is all it has left.
    fn list(&self, state: &NumaState, stock: &Stock<'_>, number: u32, share: &ResourceVector) -> ResourceList {
        let amount = |(id, amount): (ResourceId, i64)| {
            let name = state.names().name(id);
            let is_all = amount == stock.free(number, id);
            let of_zone = stock.node.zone(number).filter(|_| is_all).and_then(|zone| zone.format(id));
            let format = of_zone.unwrap_or_else(|| self.requests().amount(name).format());
            (name, koord_scheduling::quantity(name, amount, format))
        };
        share.iter().map(amount).collect()
    }

    /// What pods request of a node's cpu.
    fn plain_requested_cpu(cluster: &Cluster, row: Row) -> i64 {
        let twice = CountedTwice::on(cluster, row).of(ResourceId::CPU);
        cluster.requested(ResourceId::CPU, row).saturating_sub(twice)
    }

    /// What pods request of a node's cpu, where exclusive CPUs cost amplified ones.
    fn requested_cpu(node: &NumaNode, cluster: &Cluster, row: Row) -> i64 {
        let requested = Self::plain_requested_cpu(cluster, row);
        let bound = milli(node.ledger.cpu_count());
        if bound > 0 && requested >= bound {
            requested.saturating_add(amplify(bound, node.cpu_ratio) - bound)
        } else {
            requested
        }
    }

    /// What the pod itself requests of a node's cpu.
    fn cpu(&self, node: &NumaNode, is_bound: bool) -> i64 {
        if is_bound { amplify(self.options.cpu, node.cpu_ratio) } else { self.options.cpu }
    }

    pub(super) fn check(&self, cluster: &Cluster, row: Row, source: &AllocationSource) -> Result<(), Refused> {
        let Some(place) = NodeInCluster::of(cluster, row) else { return Ok(()) };
        let NodeInCluster { state, node, .. } = place;
        let policy = self.options.policy_on(node)?;
        let needs_cpu = self.options.cpu > 0;
        if needs_cpu && node.is_ratio_unreadable {
            self.options.binds_on(node)?;
            return Err(Mismatch::Ratio.into());
        }
        if needs_cpu && node.cpu_ratio > 1.0 {
            let is_bound = self.options.binds_on(node)?;
            let is_reported = || cluster.node(row).is_some_and(|node| state.is_reported(&node.name));
            if node.cpus_per_core() == 0 && is_reported() {
                // QUIRK: without CPUs, a report is worse than none, also for pods that share their cpu
                // (`an_amplified_node_whose_report_lacks_its_cpus_is_refused`).
                return Err(Mismatch::Topology.into());
            }
            let left =
                cluster.allocatable(ResourceId::CPU, row).saturating_sub(Self::requested_cpu(node, cluster, row));
            if self.cpu(node, is_bound) > left {
                let short = ReasonCode::CpusUnavailable.reason("Insufficient amplified cpu");
                return Err(Refused::resolvable(short.into()));
            }
        }
        let cpus = self.options.cpus_on(node)?;
        if policy == Policy::None && cpus.is_none() {
            return Ok(());
        }
        let short = |cpus: Option<CpuOrder>| {
            let is_preferred = cpus.is_some_and(|cpus| !cpus.is_required);
            Refused::resolvable(reasons(&Shortage::Cpus, state)).of_reserve(is_preferred)
        };
        let is_wish = policy == Policy::None && cpus.is_some_and(|cpus| !cpus.is_required);
        let is_any = *source == AllocationSource::Any;
        if is_wish && is_any && self.requirement.needs_one && !any_fits(cluster, row, &self.requirement) {
            // The plugin Reservation says what the reservations lack.
            return Ok(());
        }
        let numbered = self.numbered(state);
        let order = self.order(Terms { policy, cpus }, &numbered, node)?;
        let found = self.first(place, source, &order, |stock| {
            if self.is_alone(policy) {
                let rules = self.rules(stock.node, policy);
                if stock.alone(rules).any(|affinity| affinity != rules.all) {
                    return Ok(());
                }
            }
            if policy != Policy::None {
                let affinity = self.affinity(place, stock, (policy, &numbered), source);
                return affinity.map(drop).map_err(|refused| refused.of_reserve(policy == Policy::BestEffort));
            }
            if stock.has_cpus() { Ok(()) } else { Err(short(cpus)) }
        });
        match found {
            // The other plugin runs after this one, and reports itself what is lacking; pods may be preempted for that.
            Err(refused) if refused.is_of_reserve && self.others_lack(place, source) => Ok(()),
            // So does Reservation where the node without what is kept has too little as well.
            Err(refused) if refused.is_of_reserve && is_any && are_too_small(cluster, row, &self.requirement) => Ok(()),
            found => found,
        }
    }

    /// The other plugins that allocate from NUMA nodes to the pod, asked about a node.
    fn others_on<'a>(
        &'a self,
        cluster: &'a Cluster,
        row: Row,
        source: &'a AllocationSource,
    ) -> SmallVec<[OtherPlugin<'a>; 1]> {
        self.others.iter().map(|hints| OtherPlugin { hints: &**hints, cluster, row, source }).collect()
    }

    /// Whether another plugin lacks something that the pod requests, whatever NUMA nodes it is on.
    fn others_lack(&self, NodeInCluster { cluster, row, .. }: NodeInCluster<'_>, source: &AllocationSource) -> bool {
        self.others_on(cluster, row, source).iter().any(|other| other.verify(None).is_err())
    }

    /// The resources by which nodes are compared as a whole, with their weights and what the pod requests.
    pub(super) fn of_nodes(&self, cluster: &Cluster) -> Vec<WeightedResource> {
        let amount = |id| {
            koord_scheduling::count(cluster.resources().name(id), self.requests().amount(cluster.resources().name(id)))
        };
        let weights = counting(self.requests(), &self.settings.weights);
        let counted = weights.filter_map(|(name, weight)| Some((cluster.resources().get(name)?, weight)));
        counted.map(|(id, weight)| WeightedResource { id, weight, request: amount(id) }).collect()
    }

    /// The score of a node as a whole.
    pub(super) fn score_of_node(&self, node: &NumaNode, is_bound: bool, cluster: &Cluster, row: Row) -> i64 {
        let bound = milli(node.ledger.cpu_count());
        // Unlike the filter, it does not ask whether the pods request as much as their CPUs are.
        let extra = if self.options.cpu == 0 { 0 } else { amplify(bound, node.cpu_ratio) - bound };
        let requested_cpu = Self::plain_requested_cpu(cluster, row).saturating_add(extra);
        self.score_with_cpu(requested_cpu.saturating_add(self.cpu(node, is_bound)), cluster, row)
    }

    /// The score of a node as a whole, of whose cpu so much is requested with the pod.
    fn score_with_cpu(&self, requested_cpu: i64, cluster: &Cluster, row: Row) -> i64 {
        let twice = CountedTwice::on(cluster, row);
        let parts = self.of_nodes.iter().map(|WeightedResource { id, weight, request }| {
            let requested = if *id == ResourceId::CPU {
                requested_cpu
            } else {
                cluster.requested(*id, row).saturating_sub(twice.of(*id)).saturating_add(*request)
            };
            (*weight, requested, cluster.allocatable(*id, row))
        });
        self.settings.fill.score(parts)
    }

    /// The score under a policy: of the NUMA nodes that give the pod something, or of the node as a whole where none does, as where
    /// it does not matter which, and with BestEffort, for which they are chosen after the node. None where the pod gets nothing.
    pub(super) fn score_of_numa_nodes(&self, place: NodeInCluster<'_>, terms: Terms) -> Option<i64> {
        let NodeInCluster { cluster, row, state, node } = place;
        let numbered = self.numbered(state);
        let order = self.order(terms, &numbered, node).ok()?;
        let scorer = NumaScorer { fill: self.settings.fill, weights: &numbered.weights };
        let is_bound = order.cpus.is_some();
        let cpu = self.cpu(node, is_bound);
        let take = |stock: &Stock<'_>| {
            let affinity = match terms.policy {
                Policy::BestEffort => None,
                policy => self.affinity(place, stock, (policy, &numbered), &AllocationSource::Any)?,
            };
            // One NUMA node that gives everything gives something.
            let one = affinity.filter(|affinity| affinity.len() == 1 && stock.requests().next().is_some());
            let givers = one.or_else(|| stock.givers(affinity)).ok_or_else(|| Refused::resolvable(Vec::new()))?;
            // QUIRK: for a pod with exclusive CPUs, those of all pods of the node count, and no cpu that pods share
            // (spec/scheduler.md 3B.10; `beside_cpus_of_its_own_all_those_of_the_node_count`).
            let bound_cpu = is_bound.then(|| amplify(milli(stock.node.ledger.cpu_count()), node.cpu_ratio));
            if givers.is_empty() {
                let requested_cpu = bound_cpu.unwrap_or_else(|| Self::plain_requested_cpu(cluster, row));
                return Ok(self.score_with_cpu(requested_cpu.saturating_add(cpu), cluster, row));
            }
            let sum = |of: fn(&NumaZone) -> &ResourceVector, resource| {
                let amounts = stock.node.zones_of(givers).map(|zone| of(zone).get(resource));
                amounts.fold(0, i64::saturating_add)
            };
            Ok(scorer.score(|resource| {
                let requested = match bound_cpu.filter(|_| resource == ResourceId::CPU) {
                    Some(bound_cpu) => bound_cpu.saturating_add(cpu),
                    // Without what a reservation and its owners both have.
                    None => order.requests.get(resource).saturating_add(sum(|zone| &zone.allocated, resource)),
                };
                (requested, sum(|zone| &zone.total, resource))
            }))
        };
        self.first(place, &AllocationSource::Any, &order, take).ok()
    }
}
