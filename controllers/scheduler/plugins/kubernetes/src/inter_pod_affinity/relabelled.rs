//! A namespace whose labels have changed: terms that select namespaces mean the pods in it, or do so no more.

use k8s_openapi::api::core::v1::Namespace;
use koord_scheduler_framework::{
    affinity::PodTerm,
    cluster::Cluster,
    labels::Labels,
    object::ObjectChange,
    pod::{Pod, Template},
};

use super::{labels_of, of_namespace};

/// The labels of a namespace before and after a change. One that is not there has none.
pub(super) struct Relabelled<'a> {
    name: &'a str,
    old: Labels,
    new: Labels,
}

impl<'a> Relabelled<'a> {
    /// None where no label of a namespace has changed.
    pub(super) fn of(change: &'a ObjectChange) -> Option<Self> {
        let (old, new) = change.of::<Namespace>()?;
        let (old, new) = (labels_of(old), labels_of(new));
        (old != new).then_some(Self { name: change.key()?.name(), old, new })
    }

    /// Whether a pod that was refused because of other pods may fit now: a pod in the namespace is near it, or is not one from which it
    /// must be apart any more, or its own namespace is not one from which another pod must be apart.
    pub(super) fn may_help(&self, pod: &Pod, cluster: &Cluster) -> bool {
        let affinity = &pod.template.pod_affinity;
        let is_in_it = *pod.template.namespace == *self.name;
        let is_affected =
            |terms: &[PodTerm]| terms.iter().any(|term| self.selects(term, &self.old) != self.selects(term, &self.new));
        let own_terms = [is_affected(&affinity.required), is_affected(&affinity.forbidden)];
        own_terms[0] && self.is_near(&pod.template, cluster)
            || own_terms[1]
                && self.residents(cluster).any(|other| affinity.forbidden.iter().any(|term| self.leaves(term, other)))
            || is_in_it
                && cluster.classes_with_pod_affinity().any(|other| {
                    other.template().pod_affinity.forbidden.iter().any(|term| self.leaves(term, &pod.template))
                })
    }

    /// Whether all required terms mean a pod in the namespace that they did not mean before. A pod that they mean itself needs no other
    /// where they mean none: that may have become so too.
    fn is_near(&self, template: &Template, cluster: &Cluster) -> bool {
        let terms = &template.pod_affinity.required;
        let means = |other: &Template, labels: &Labels| {
            terms.iter().all(|term| term.means(&other.namespace, &other.labels, labels))
        };
        let comes = |other: &Template| means(other, &self.new) && !means(other, &self.old);
        if self.residents(cluster).any(comes) {
            return true;
        }
        let is_in_it = *template.namespace == *self.name;
        let goes = |other: &Template| means(other, &self.old) && !means(other, &self.new);
        let means_itself =
            means(template, &if is_in_it { self.new.clone() } else { of_namespace(&template.namespace, cluster) });
        means_itself && (is_in_it && comes(template) || self.residents(cluster).any(goes))
    }

    /// Whether a term meant this pod and means it no more.
    fn leaves(&self, term: &PodTerm, other: &Template) -> bool {
        let means = |labels: &Labels| term.means(&other.namespace, &other.labels, labels);
        means(&self.old) && !means(&self.new)
    }

    fn selects(&self, term: &PodTerm, labels: &Labels) -> bool {
        let by_labels =
            term.namespace_selector.as_ref().is_some_and(|selector| selector.selects(|key| labels.get(key)));
        by_labels || term.namespaces.contains(self.name)
    }

    /// The pods in the namespace that have a node, one of each class.
    fn residents<'c>(&self, cluster: &'c Cluster) -> impl Iterator<Item = &'c Template> {
        let templates = cluster.classes().flatten().map(|class| &**class.template());
        templates.filter(|template| *template.namespace == *self.name)
    }
}
