//! The spread constraints of all pods, each once, with what they count.

use std::collections::{BTreeMap, HashMap};

use koord_config::descheduler::SpreadConstraint as Enforced;
use koord_descheduler_framework::{Node, Pod, PodId, SpreadConstraint, toleration};
use koord_scheduling::{Effect, Selector};

use super::index::{Index, Topology};

/// A constraint that pods of a namespace have.
pub(super) struct Constraint<'a> {
    pub(super) spec: &'a SpreadConstraint,
    /// A pod that has it, and whose node affinity and tolerations count.
    like: &'a Pod,
    /// The classes that have it, by their number.
    pub(super) owners: Vec<usize>,
    /// The classes whose pods it counts.
    pub(super) counted: Vec<usize>,
    /// The number of its topology.
    pub(super) topology: usize,
    /// How many pods each domain has; `None` for values of the label that are no domain for this constraint.
    pub(super) domains: Vec<Option<i64>>,
    /// How many domains have a number of pods.
    sizes: BTreeMap<i64, usize>,
}

/// The number of a class, and one of its pods.
type Class<'a> = (usize, &'a Pod);

/// The classes of a namespace.
struct Classes<'i, 'a> {
    all: &'i [Class<'a>],
    /// By a key and a value of labels; of each key once one of its values was asked for.
    by_label: BTreeMap<&'i str, HashMap<&'a str, Vec<Class<'a>>>>,
}

/// All constraints, those of a namespace one after the other, and of these the ones with fewer domains first: what they move helps those with more.
pub(super) struct Constraints<'a> {
    pub(super) all: Vec<Constraint<'a>>,
    /// By the number of a class: the constraints that count its pods.
    pub(super) counting: Vec<Vec<usize>>,
}

impl<'a> Constraints<'a> {
    pub(super) fn new(index: &mut Index<'a>, enforced: &[Enforced]) -> Self {
        let mut namespaces = BTreeMap::<&str, Vec<(usize, &'a Pod)>>::new();
        for (class, pods) in index.pods.iter().enumerate() {
            let pod = pods.first().and_then(|(id, _)| index.cluster.pod(*id));
            if let Some(pod) = pod {
                namespaces.entry(pod.namespace()).or_default().push((class, pod));
            }
        }
        let is_enforced = |spec: &SpreadConstraint| {
            enforced.contains(if spec.is_hard { &Enforced::DoNotSchedule } else { &Enforced::ScheduleAnyway })
        };
        let (mut all, mut counting) = (Vec::new(), vec![Vec::new(); index.pods.len()]);
        for classes in namespaces.into_values() {
            let mut of_namespace: Vec<Constraint<'a>> = Vec::new();
            // By what has a hash; the rest is compared one by one.
            let mut known = HashMap::<(&str, i64, String), Vec<usize>>::new();
            for (class, pod) in &classes {
                for spec in pod.template.placement.spread.iter().filter(|spec| is_enforced(spec)) {
                    let Some(selector) = &spec.selector else { continue };
                    let key = (&*spec.topology_key, spec.skew_max, selector.to_string());
                    let same = known.entry(key).or_default();
                    if let Some(number) = same.iter().find(|number| of_namespace[**number].is_of(spec, pod)) {
                        of_namespace[*number].owners.push(*class);
                        continue;
                    }
                    same.push(of_namespace.len());
                    let topology = index.topology_of(&spec.topology_key);
                    of_namespace.push(Constraint::new(index, spec, pod, *class, topology));
                }
            }
            let mut classes = Classes { all: &classes, by_label: BTreeMap::new() };
            for constraint in &mut of_namespace {
                let selector = constraint.spec.selector.as_ref();
                let candidates = selector.map_or(&[][..], |selector| classes.candidates(selector));
                constraint.count(index, candidates);
            }
            of_namespace.sort_by_key(|constraint| constraint.domains.iter().flatten().count());
            for constraint in of_namespace {
                constraint.counted.iter().for_each(|class| counting[*class].push(all.len()));
                all.push(constraint);
            }
        }
        Self { all, counting }
    }
}

impl<'i, 'a: 'i> Classes<'i, 'a> {
    /// Those that a selector may select, in their order. Constraints mostly demand one value of a label: of as many workloads as there are, each would
    /// otherwise be compared with each other.
    fn candidates(&mut self, selector: &'a Selector) -> &[(usize, &'a Pod)] {
        let Some((key, value)) = selector.required_label() else { return self.all };
        let by_value = self.by_label.entry(key).or_insert_with(|| {
            let mut by_value = HashMap::<&str, Vec<(usize, &Pod)>>::new();
            for (class, pod) in self.all {
                if let Some(value) = pod.label(key) {
                    by_value.entry(value).or_default().push((*class, pod));
                }
            }
            by_value
        });
        by_value.get(value).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Constraint<'a> {
    /// Without pods: domains are the values of the label on nodes that count.
    fn new(index: &Index<'a>, spec: &'a SpreadConstraint, like: &'a Pod, class: usize, topology: usize) -> Self {
        let by_value = index.topology(topology);
        let count = by_value.values.len();
        let placement = &like.template.placement;
        let mut constraint = Self {
            spec,
            like,
            owners: vec![class],
            counted: Vec::new(),
            topology,
            domains: vec![Some(0); count],
            sizes: BTreeMap::new(),
        };
        let honors_affinity = spec.honors_affinity && !placement.affinity.is_everything();
        if honors_affinity || spec.honors_taints {
            constraint.domains.fill(None);
            for (at, id) in index.nodes.iter().enumerate() {
                if let (Some(domain), Some(node)) = (by_value.domain(at), index.cluster.node(*id))
                    && constraint.includes(node)
                {
                    constraint.domains[domain] = Some(0);
                }
            }
        }
        constraint
    }

    /// Whether a node counts by the policies of the constraint.
    fn includes(&self, node: &Node) -> bool {
        let placement = &self.like.template.placement;
        let keeps_away = |effect: &str| Effect::HARD.iter().any(|hard| hard.as_str() == effect);
        let is_tolerated = |taint| placement.tolerations.iter().any(|one| toleration::tolerates(one, taint));
        (!self.spec.honors_affinity || placement.affinity.selects(&node.name, |key| node.label(key)))
            && (!self.spec.honors_taints
                || node.taints.iter().filter(|taint| keeps_away(&taint.effect)).all(is_tolerated))
    }

    /// Whether another pod's constraint with the same key, skew and selector is this one.
    fn is_of(&self, spec: &SpreadConstraint, pod: &Pod) -> bool {
        let (own, other) = (&self.like.template.placement, &pod.template.placement);
        (self.spec.honors_affinity, self.spec.honors_taints) == (spec.honors_affinity, spec.honors_taints)
            && self.spec.selector == spec.selector
            && (!spec.honors_affinity || own.affinity == other.affinity)
            && (!spec.honors_taints || own.tolerations == other.tolerations)
    }

    /// Counts the pods of these classes that it selects. A pod on a node that does not count makes its domain one all the same.
    fn count(&mut self, index: &Index<'_>, classes: &[(usize, &Pod)]) {
        let by_value = index.topology(self.topology);
        let selector = self.spec.selector.as_ref();
        for (class, pod) in classes {
            if !selector.is_some_and(|selector| selector.selects(|key| pod.label(key))) {
                continue;
            }
            self.counted.push(*class);
            for domain in index.pods_of(*class).iter().filter_map(|(_, at)| by_value.domain(*at)) {
                *self.domains[domain].get_or_insert(0) += 1;
            }
        }
        for size in self.domains.iter().flatten() {
            *self.sizes.entry(*size).or_default() += 1;
        }
    }

    /// By how many pods domains differ at most.
    pub(super) fn skew(&self) -> i64 {
        self.largest() - self.smallest()
    }

    pub(super) fn smallest(&self) -> i64 {
        self.sizes.keys().next().copied().unwrap_or(0)
    }

    fn largest(&self) -> i64 {
        self.sizes.keys().next_back().copied().unwrap_or(0)
    }

    pub(super) fn size(&self, domain: Option<usize>) -> Option<i64> {
        self.domains.get(domain?).copied().flatten()
    }

    /// Whether it would be violated, and more than it is, if a pod moved between these domains.
    pub(super) fn worsens(&self, from: Option<usize>, to: Option<usize>) -> bool {
        if from == to {
            return false;
        }
        let (from, to) = (self.size(from), self.size(to));
        let remains = |(size, count): (&i64, &usize)| {
            let moved = usize::from(from == Some(*size)) + usize::from(to == Some(*size));
            (*count > moved).then_some(*size)
        };
        let (less, more) = (from.map(|size| size - 1), to.map(|size| size + 1));
        let sizes = [self.sizes.iter().find_map(remains), self.sizes.iter().rev().find_map(remains), less, more];
        let largest = sizes.iter().flatten().max().copied().unwrap_or(0);
        let smallest = sizes.iter().flatten().min().copied().unwrap_or(0);
        largest - smallest > self.spec.skew_max.max(self.skew())
    }

    /// A pod moves.
    pub(super) fn move_pod(&mut self, from: Option<usize>, to: Option<usize>) {
        for (domain, change) in [(from, -1), (to, 1)] {
            let Some(Some(size)) = domain.and_then(|domain| self.domains.get_mut(domain)) else { continue };
            if let Some(count) = self.sizes.get_mut(size) {
                *count -= 1;
                if *count == 0 {
                    self.sizes.remove(size);
                }
            }
            *size += change;
            *self.sizes.entry(*size).or_default() += 1;
        }
    }

    /// The pods that it counts, with the positions of their nodes and their domains.
    pub(super) fn pods<'i>(
        &'i self,
        index: &'i Index<'_>,
    ) -> impl Iterator<Item = (PodId, usize, usize, Option<usize>)> + 'i {
        let by_value: &Topology<'_> = index.topology(self.topology);
        let classes = self.counted.iter();
        classes.flat_map(move |class| {
            index.pods_of(*class).iter().map(move |(id, at)| (*id, *class, *at, by_value.domain(*at)))
        })
    }
}
