//! Which pods are near others that they forbid. A term is evaluated once for all pods that have the same labels, and not for each pair of pods.

use std::{collections::BTreeMap, sync::Arc};

use koord_descheduler_framework::{Cluster, Labels, NodeId, Pod, PodId, PodTerm, objects::Namespace};

/// The pods that terms forbid, by the domains that they are in.
pub(super) struct Conflicts<'a> {
    classes: Vec<Class<'a>>,
    /// By the address of their templates.
    by_template: BTreeMap<usize, usize>,
    terms: Vec<Forbidden<'a>>,
    /// Of each topology key.
    domains: Vec<Domains>,
}

/// Pods of one namespace with the same labels and the same terms.
struct Class<'a> {
    namespace: &'a str,
    labels: &'a Labels,
    terms: &'a [PodTerm],
    /// The same, as numbers of [`Conflicts::terms`].
    forbidden: Vec<usize>,
    /// Those that count where a term forbids them.
    pods: Vec<(PodId, NodeId)>,
}

/// The pods that a term forbids.
struct Forbidden<'a> {
    term: &'a PodTerm,
    /// The number of its topology key.
    key: usize,
    /// By their domains.
    pods: Vec<(u32, PodId)>,
}

/// The domains of a topology key, by the numbers of the nodes.
///
/// QUIRK: a node without the label is a domain of its own, where the scheduler knows no domain: on one node pods are near each other whatever the key
/// (`a_pod_goes_when_a_pod_that_it_forbids_is_in_its_domain`).
struct Domains(Vec<u32>);

impl<'a> Conflicts<'a> {
    /// Of the pods of these nodes. `counts` says which of them count where a term forbids them.
    pub(super) fn new(cluster: &'a Cluster, nodes: &[NodeId], counts: impl Fn(PodId, &Pod) -> bool) -> Self {
        let mut conflicts =
            Self { classes: Vec::new(), by_template: BTreeMap::new(), terms: Vec::new(), domains: Vec::new() };
        let mut by_labels = BTreeMap::new();
        for node in nodes {
            for (id, pod) in cluster.pods_on(*node) {
                let class = conflicts.enter(pod, &mut by_labels);
                if counts(id, pod)
                    && let Some(class) = conflicts.classes.get_mut(class)
                {
                    class.pods.push((id, *node));
                }
            }
        }
        conflicts.evaluate(cluster, nodes);
        conflicts
    }

    /// The first term of a pod that forbids another near a node, and the pod that it forbids, without those that are gone.
    pub(super) fn of(
        &self,
        id: PodId,
        pod: &Pod,
        node: NodeId,
        is_gone: impl Fn(PodId) -> bool,
    ) -> Option<(&'a PodTerm, PodId)> {
        let class = self.classes.get(*self.by_template.get(&address(pod))?)?;
        class.forbidden.iter().find_map(|term| {
            let Forbidden { term, key, pods } = self.terms.get(*term)?;
            let domain = self.domains.get(*key)?.of(node)?;
            let near = pods.get(pods.partition_point(|(other, _)| *other < domain)..)?;
            let mut near = near.iter().take_while(|(other, _)| *other == domain).map(|(_, pod)| *pod);
            Some((*term, near.find(|other| *other != id && !is_gone(*other))?))
        })
    }

    /// The number of the class of a pod.
    fn enter(&mut self, pod: &'a Pod, by_labels: &mut BTreeMap<(&'a str, &'a Labels), Vec<usize>>) -> usize {
        let address = address(pod);
        if let Some(class) = self.by_template.get(&address) {
            return *class;
        }
        let (labels, terms) = (&pod.template.placement.labels, &*pod.template.placement.pod_affinity.forbidden);
        let alike = by_labels.entry((pod.namespace(), labels)).or_default();
        let has_these_terms = |class: &&usize| self.classes.get(**class).is_some_and(|class| class.terms == terms);
        let class = alike.iter().find(has_these_terms).copied().unwrap_or_else(|| {
            let namespace = pod.namespace();
            self.classes.push(Class { namespace, labels, terms, forbidden: Vec::new(), pods: Vec::new() });
            alike.push(self.classes.len() - 1);
            self.classes.len() - 1
        });
        self.by_template.insert(address, class);
        class
    }

    /// Finds the pods that each term forbids.
    fn evaluate(&mut self, cluster: &'a Cluster, nodes: &[NodeId]) {
        let mut by_namespace = BTreeMap::<&str, Vec<usize>>::new();
        for (number, class) in self.classes.iter().enumerate() {
            by_namespace.entry(class.namespace).or_default().push(number);
        }
        let (mut keys, mut terms) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
        for number in 0..self.classes.len() {
            let of_class = self.classes.get(number).map_or(&[][..], |class| class.terms);
            for term in of_class {
                // Many classes have the same term: the pods of a StatefulSet have labels of their own.
                let number_of_term = *terms.entry(format!("{term:?}")).or_insert_with(|| {
                    let key = *keys.entry(&*term.topology_key).or_insert_with(|| {
                        self.domains.push(Domains::new(cluster, nodes, &term.topology_key));
                        self.domains.len() - 1
                    });
                    let pods = self.forbidden(cluster, term, &by_namespace, key);
                    self.terms.push(Forbidden { term, key, pods });
                    self.terms.len() - 1
                });
                if let Some(class) = self.classes.get_mut(number) {
                    class.forbidden.push(number_of_term);
                }
            }
        }
    }

    fn forbidden(
        &self,
        cluster: &Cluster,
        term: &PodTerm,
        by_namespace: &BTreeMap<&str, Vec<usize>>,
        key: usize,
    ) -> Vec<(u32, PodId)> {
        let none = Labels::default();
        let mut pods = Vec::new();
        let Some(domains) = self.domains.get(key) else { return pods };
        let is_looked_at = |namespace: &str| term.namespace_selector.is_some() || term.namespaces.contains(namespace);
        for (namespace, classes) in by_namespace.iter().filter(|(namespace, _)| is_looked_at(namespace)) {
            let known = cluster.objects().get::<Namespace>(namespace);
            let of_namespace = known.map_or(&none, |namespace| &namespace.labels);
            let classes = classes.iter().filter_map(|class| self.classes.get(*class));
            for class in classes.filter(|class| term.means(namespace, class.labels, of_namespace)) {
                pods.extend(class.pods.iter().filter_map(|(id, node)| Some((domains.of(*node)?, *id))));
            }
        }
        pods.sort_by_key(|(domain, _)| *domain);
        pods
    }
}

impl Domains {
    fn new(cluster: &Cluster, nodes: &[NodeId], key: &str) -> Self {
        let size = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let (mut domains, mut numbers, mut next) = (vec![u32::MAX; size], BTreeMap::<&str, u32>::new(), 0);
        for id in nodes {
            let label = cluster.node(*id).and_then(|node| node.label(key));
            let known = label.and_then(|value| numbers.get(value)).copied();
            let number = known.unwrap_or_else(|| {
                next += 1;
                next
            });
            if let Some(value) = label {
                numbers.insert(value, number);
            }
            if let Some(domain) = domains.get_mut(id.index()) {
                *domain = number;
            }
        }
        Self(domains)
    }

    fn of(&self, node: NodeId) -> Option<u32> {
        self.0.get(node.index()).copied()
    }
}

/// The address of the template, which says what belongs to a pod's class.
fn address(pod: &Pod) -> usize {
    Arc::as_ptr(&pod.template.placement).addr()
}
