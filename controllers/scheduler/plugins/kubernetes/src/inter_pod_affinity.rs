//! InterPodAffinity: pods want to be near some pods and apart from others (`spec/scheduler.md` 4.6).

mod domain_sums;
mod relabelled;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use koord_config::scheduler::InterPodAffinityArgs;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, NodeScore, Plugin, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Request, SCORE_MAX, SchedulingSignature, Score,
    affinity::{PodAffinity, PodTerm},
    cluster::{Class, Cluster, TopologyId},
    columns::Row,
    event::{Event, Events},
    labels::Labels,
    node::Node,
    pod::{Pod, Template},
};

use self::{domain_sums::DomainSums, relabelled::Relabelled};

/// Refuses nodes that are not near the pods of a required term, or near those of a forbidding one, be it the pod's own term
/// or that of a pod that runs; and prefers nodes by the preferred terms of both.
#[derive(Clone, Copy, Debug)]
pub struct InterPodAffinity {
    /// How much a required term of a pod that runs counts for the pods that it wants near.
    pub hard_affinity_weight: i64,
    /// Whether preferred terms of pods that run count only for pods that have some themselves.
    pub ignores_preferred_of_others: bool,
}

impl InterPodAffinity {
    /// With these arguments.
    pub fn new(args: &InterPodAffinityArgs) -> Self {
        Self {
            hard_affinity_weight: args.hard_pod_affinity_weight,
            ignores_preferred_of_others: args.ignore_preferred_terms_of_existing_pods,
        }
    }
}

impl Default for InterPodAffinity {
    /// As kube-scheduler.
    fn default() -> Self {
        Self { hard_affinity_weight: 1, ignores_preferred_of_others: false }
    }
}

const NOT_NEAR: u16 = 0;
const NOT_APART: u16 = 1;
const EXISTING_ANTI_AFFINITY: u16 = 2;

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<Namespace>()] })
            .enqueue_extensions(&self)
            .filter(&self)
            .score(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for InterPodAffinity {
    fn events_to_register(&self) -> Events {
        let nodes = Events::NODE_ADDED | Events::NODE_LABELS;
        let pods = Events::POD_ASSIGNED | Events::POD_REMOVED | Events::POD_LABELS | Events::POD_CHANGED;
        nodes | pods | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        let affinity = &pod.template.pod_affinity;
        match event {
            Event::PodAssigned(other) => is_near(affinity, other),
            Event::PodRelabelled { old, new } => {
                let is_apart = |other: &Pod| affinity.forbidden.iter().any(|term| may_mean(term, &other.template));
                !is_near(affinity, old) && is_near(affinity, new) || is_apart(old) && !is_apart(new)
            }
            // With the pod go its own terms too.
            Event::PodRemoved(other) => {
                let terms = &other.template.pod_affinity.forbidden;
                affinity.forbidden.iter().any(|term| may_mean(term, &other.template))
                    || terms.iter().any(|term| may_mean(term, &pod.template))
            }
            Event::PodScaledDown { .. } | Event::NodeRemoved(_) => false,
            Event::NodeAdded(node) => {
                let has_key = |term: &PodTerm| node.labels.get(&term.topology_key).is_some();
                affinity.required.is_empty() || affinity.required.iter().any(has_key)
            }
            Event::NodeChanged { old, new } => {
                let value = |node: &Node, term: &PodTerm| node.labels.get(&term.topology_key).map(str::to_owned);
                let moved = |term: &PodTerm| value(old, term) != value(new, term);
                // Where a pod that runs forbids this one, its keys are not known here.
                (affinity.required.is_empty() && affinity.forbidden.is_empty())
                    || affinity.required.iter().any(|term| value(new, term).is_some() && moved(term))
                    || affinity.forbidden.iter().any(|term| value(old, term).is_some() && moved(term))
            }
            Event::Object(change) => Relabelled::of(change).is_some_and(|change| change.may_help(pod, cluster)),
            Event::PodChanged | Event::Timeout | Event::NominationChanged(_) => true,
        }
    }
}

impl Filter for InterPodAffinity {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let subject = Subject::new(request.class, cluster);
        let affinity = &subject.template.pod_affinity;
        let has_existing_anti_affinity =
            |other: &Arc<Class>| other.template().pod_affinity.forbidden.iter().any(|term| subject.is_meant(term));
        if affinity.required.is_empty()
            && affinity.forbidden.is_empty()
            && !cluster.classes_with_pod_affinity().any(has_existing_anti_affinity)
        {
            return PreparedFilter::Skip;
        }
        PreparedFilter::Nodes(Box::new(Required::new(subject, cluster)))
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        let (code, words) = match refusal.reason {
            NOT_NEAR => (ReasonCode::PodAffinityUnsatisfied, "node(s) didn't match pod affinity rules"),
            NOT_APART => (ReasonCode::PodAntiAffinityConflict, "node(s) didn't match pod anti-affinity rules"),
            _ => (ReasonCode::ExistingPodAntiAffinity, "node(s) didn't satisfy existing pods anti-affinity rules"),
        };
        code.reason(words).into()
    }
}

impl Score for InterPodAffinity {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let subject = Subject::new(request.class, cluster);
        let has_preferences = !subject.template.pod_affinity.preferred.is_empty();
        if self.ignores_preferred_of_others && !has_preferences {
            return None;
        }
        let weight = self.hard_affinity_weight;
        if !has_preferences
            && !cluster
                .classes_with_pod_affinity()
                .any(|other| preferences_of(other.template(), &subject, weight).next().is_some())
        {
            return None;
        }
        let sums = DomainSums::new(cluster, |other| preferences(&subject, other, weight, cluster));
        Some(Box::new(Preferred { subject, weight, sums }))
    }
}

impl SchedulingSignature for InterPodAffinity {
    fn epoch(&self, cluster: &Cluster) -> u64 {
        cluster.bearers_epoch() + cluster.objects().changes::<Namespace>()
    }
}

/// Whether all affinity terms of a pod may select another one.
fn is_near(affinity: &PodAffinity, other: &Pod) -> bool {
    !affinity.required.is_empty() && affinity.required.iter().all(|term| may_mean(term, &other.template))
}

/// Whether a term may mean a pod; labels of namespaces are not known here.
fn may_mean(term: &PodTerm, template: &Template) -> bool {
    let is_selected = |term: &PodTerm| {
        term.selector.as_ref().is_some_and(|selector| selector.selects(|key| template.labels.get(key)))
    };
    (term.namespaces.contains(&template.namespace) || term.namespace_selector.is_some()) && is_selected(term)
}

/// The pod for which a node is wanted.
struct Subject {
    template: Arc<Template>,
    /// The labels of its namespace.
    of_namespace: Labels,
}

impl Subject {
    fn new(class: &Class, cluster: &Cluster) -> Self {
        let template = Arc::clone(class.template());
        Self { of_namespace: of_namespace(&template.namespace, cluster), template }
    }

    /// Whether another pod's term means it.
    fn is_meant(&self, term: &PodTerm) -> bool {
        term.means(&self.template.namespace, &self.template.labels, &self.of_namespace)
    }
}

/// Whether a term means pods of another template.
fn means(term: &PodTerm, other: &Template, cluster: &Cluster) -> bool {
    let selects_namespaces = term.namespace_selector.is_some();
    let labels = if selects_namespaces { of_namespace(&other.namespace, cluster) } else { Labels::default() };
    term.means(&other.namespace, &other.labels, &labels)
}

/// The labels of a namespace; none where it is not known.
fn of_namespace(name: &str, cluster: &Cluster) -> Labels {
    labels_of(cluster.objects().get::<Namespace>(name))
}

fn labels_of(namespace: Option<&Namespace>) -> Labels {
    let labels = namespace.and_then(|namespace| namespace.metadata.labels.as_ref());
    labels.into_iter().flatten().map(|(key, value)| (&**key, &**value)).collect()
}

/// Amounts per pod in the domains of a topology key.
type Amounts = Vec<(TopologyId, i64)>;

/// The required terms: the pod's own, and those of pods that run.
struct Required {
    subject: Subject,
    /// The keys of the pod's own required terms.
    keys: Vec<Option<TopologyId>>,
    /// Whether the pod's own required terms mean the pod itself.
    means_itself: bool,
    /// Pods that all required terms mean.
    near: DomainSums,
    /// Pods that a forbidding term means.
    apart: DomainSums,
    /// Pods with a forbidding term that means this one.
    existing_anti_affinity: DomainSums,
}

impl Required {
    fn new(subject: Subject, cluster: &Cluster) -> Self {
        let affinity = &subject.template.pod_affinity;
        Self {
            keys: affinity.required.iter().map(|term| cluster.topology(&term.topology_key)).collect(),
            means_itself: affinity.required.iter().all(|term| subject.is_meant(term)),
            near: DomainSums::new(cluster, |other| near(&subject, other, cluster)),
            apart: DomainSums::new(cluster, |other| apart(&subject, other, cluster)),
            existing_anti_affinity: DomainSums::new(cluster, |other| existing_anti_affinity(&subject, other, cluster)),
            subject,
        }
    }

    fn is_near(&self, cluster: &Cluster, row: Row) -> bool {
        let mut has_all = true;
        for key in &self.keys {
            let Some((key, domain)) = key.and_then(|key| Some((key, cluster.domain(key, row)?))) else { return false };
            has_all &= self.near.get(key, domain) > 0;
        }
        // The first pod of those that want to be near each other may go anywhere.
        has_all || self.near.is_empty() && self.means_itself
    }
}

impl NodeFilter for Required {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        if !self.is_near(cluster, row) {
            return Err(Refusal::unresolvable(NOT_NEAR));
        }
        if self.apart.is_positive(cluster, row) {
            return Err(Refusal::resolvable(NOT_APART, 0));
        }
        if self.existing_anti_affinity.is_positive(cluster, row) {
            return Err(Refusal::resolvable(EXISTING_ANTI_AFFINITY, 0));
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
        let Self { subject, near: near_sums, apart: apart_sums, existing_anti_affinity: existing_sums, .. } = self;
        near_sums.refresh(cluster, row, |other| near(subject, other, cluster));
        apart_sums.refresh(cluster, row, |other| apart(subject, other, cluster));
        existing_sums.refresh(cluster, row, |other| existing_anti_affinity(subject, other, cluster));
    }
}

/// The preferred terms: the pod's own, and those of pods that run.
struct Preferred {
    subject: Subject,
    weight: i64,
    sums: DomainSums,
}

impl NodeScore for Preferred {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        self.sums.sum(cluster, row)
    }

    fn normalize(&self, scores: &mut [i64]) {
        let (least, most) = (scores.iter().copied().min().unwrap_or(0), scores.iter().copied().max().unwrap_or(0));
        for score in scores {
            let share = if most > least { (*score - least) as f64 / (most - least) as f64 } else { 0.0 };
            *score = (SCORE_MAX as f64 * share) as i64;
        }
    }

    fn is_local(&self) -> bool {
        false
    }

    fn uniform(&self, _: &Cluster) -> Option<i64> {
        self.sums.is_empty().then_some(0)
    }

    fn follows_rows(&self) -> bool {
        true
    }

    fn refresh(&mut self, cluster: &Cluster, row: Row) {
        let Self { subject, weight, sums } = self;
        sums.refresh(cluster, row, |other| preferences(subject, other, *weight, cluster));
    }
}

/// A pod counts as near only where all required terms mean it.
fn near(subject: &Subject, other: &Template, cluster: &Cluster) -> Amounts {
    let terms = &subject.template.pod_affinity.required;
    if terms.is_empty() || !terms.iter().all(|term| means(term, other, cluster)) {
        return Amounts::new();
    }
    each(terms.iter(), cluster)
}

fn apart(subject: &Subject, other: &Template, cluster: &Cluster) -> Amounts {
    each(subject.template.pod_affinity.forbidden.iter().filter(|term| means(term, other, cluster)), cluster)
}

fn existing_anti_affinity(subject: &Subject, other: &Template, cluster: &Cluster) -> Amounts {
    each(other.pod_affinity.forbidden.iter().filter(|term| subject.is_meant(term)), cluster)
}

fn each<'t>(terms: impl Iterator<Item = &'t PodTerm>, cluster: &Cluster) -> Amounts {
    terms.filter_map(|term| Some((cluster.topology(&term.topology_key)?, 1))).collect()
}

fn preferences(subject: &Subject, other: &Template, weight: i64, cluster: &Cluster) -> Amounts {
    let preferred = subject.template.pod_affinity.preferred.iter().filter(|(_, term)| means(term, other, cluster));
    let preferred = preferred.map(|(weight, term)| (*weight, term));
    let all = preferred.chain(preferences_of(other, subject, weight));
    all.filter_map(|(weight, term)| Some((cluster.topology(&term.topology_key)?, weight))).collect()
}

/// What another pod prefers about this one, with its weight; what it requires counts as a preference.
fn preferences_of<'o>(other: &'o Template, subject: &Subject, weight: i64) -> impl Iterator<Item = (i64, &'o PodTerm)> {
    let required = other.pod_affinity.required.iter().map(move |term| (weight, term));
    let preferred = other.pod_affinity.preferred.iter().map(|(weight, term)| (*weight, term));
    required.filter(move |_| weight > 0).chain(preferred).filter(|(_, term)| subject.is_meant(term))
}
