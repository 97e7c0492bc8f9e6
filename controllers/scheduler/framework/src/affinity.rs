//! What a pod says about other pods: where it wants to be beside them, and how it is spread among them.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::core::v1::{PodAffinityTerm, PodSpec, TopologySpreadConstraint, WeightedPodAffinityTerm},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use koord_scheduling::Selector;

use crate::labels::Labels;

/// The terms of a pod's affinity and anti-affinity to pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAffinity {
    /// Pods beside which it must be.
    pub required: Box<[PodTerm]>,
    /// Pods beside which it must not be.
    pub forbidden: Box<[PodTerm]>,
    /// Pods beside which it prefers to be, with weights; a negative weight is that of an anti-affinity.
    pub preferred: Box<[(i64, PodTerm)]>,
}

/// Other pods, and the domains of nodes in which they count as near.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTerm {
    /// The label of nodes whose values are the domains.
    pub topology_key: Arc<str>,
    /// The pods; none are meant without a selector.
    pub selector: Option<Selector>,
    /// Their namespaces by name.
    pub namespaces: BTreeSet<Arc<str>>,
    /// And by the labels of namespaces.
    pub namespace_selector: Option<Selector>,
}

/// How evenly pods are spread over the domains of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadConstraint {
    /// The label of nodes whose values are the domains.
    pub topology_key: Arc<str>,
    /// How many pods a domain may have more than the emptiest one.
    pub skew_max: i64,
    /// With fewer domains the emptiest one counts as empty.
    pub domains_min: i64,
    /// Whether it must hold: `DoNotSchedule`.
    pub is_hard: bool,
    /// The pods that count; none without a selector.
    pub selector: Option<Selector>,
    /// Whether only nodes count that the pod's node affinity selects.
    pub honors_affinity: bool,
    /// Whether only nodes count whose taints the pod tolerates.
    pub honors_taints: bool,
}

impl PodAffinity {
    /// What a pod of this namespace with these labels says.
    pub fn of(namespace: &Arc<str>, labels: &Labels, spec: &PodSpec) -> Self {
        let affinity = spec.affinity.as_ref();
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let terms = |terms: Option<&Vec<PodAffinityTerm>>| -> Box<[PodTerm]> {
            terms.into_iter().flatten().map(|term| PodTerm::of(namespace, labels, term)).collect()
        };
        let weighted = |terms: Option<&Vec<WeightedPodAffinityTerm>>, sign: i64| -> Vec<(i64, PodTerm)> {
            let term = |weighted: &WeightedPodAffinityTerm| {
                (sign * i64::from(weighted.weight), PodTerm::of(namespace, labels, &weighted.pod_affinity_term))
            };
            terms.into_iter().flatten().map(term).collect()
        };
        let mut preferred =
            weighted(near.and_then(|near| near.preferred_during_scheduling_ignored_during_execution.as_ref()), 1);
        preferred.extend(weighted(
            apart.and_then(|apart| apart.preferred_during_scheduling_ignored_during_execution.as_ref()),
            -1,
        ));
        Self {
            required: terms(near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref())),
            forbidden: terms(
                apart.and_then(|apart| apart.required_during_scheduling_ignored_during_execution.as_ref()),
            ),
            preferred: preferred.into(),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.forbidden.is_empty() && self.preferred.is_empty()
    }

    pub fn terms(&self) -> impl Iterator<Item = &PodTerm> {
        self.required.iter().chain(&self.forbidden).chain(self.preferred.iter().map(|(_, term)| term))
    }
}

impl PodTerm {
    fn of(namespace: &Arc<str>, labels: &Labels, term: &PodAffinityTerm) -> Self {
        let names = term.namespaces.as_deref().unwrap_or_default();
        let is_own = names.is_empty() && term.namespace_selector.is_none();
        let own_namespace = is_own.then(|| Arc::clone(namespace));
        let selector = term.label_selector.as_ref().and_then(|selector| {
            let selector = with_keys(selector, labels, term.match_label_keys.as_deref(), "In");
            Selector::stored(&with_keys(&selector, labels, term.mismatch_label_keys.as_deref(), "NotIn"))
        });
        Self {
            topology_key: term.topology_key.as_str().into(),
            selector,
            namespaces: names.iter().map(|name| name.as_str().into()).chain(own_namespace).collect(),
            namespace_selector: term.namespace_selector.as_ref().and_then(Selector::stored),
        }
    }

    /// Whether it means pods of this namespace with these labels. `of_namespace` are the namespace's own labels.
    pub fn means(&self, namespace: &str, labels: &Labels, of_namespace: &Labels) -> bool {
        let by_labels = |selector: &Selector| selector.selects(|key| of_namespace.get(key));
        (self.namespaces.contains(namespace) || self.namespace_selector.as_ref().is_some_and(by_labels))
            && self.selector.as_ref().is_some_and(|selector| selector.selects(|key| labels.get(key)))
    }
}

impl SpreadConstraint {
    /// A constraint of a pod with these labels.
    pub fn of(constraint: &TopologySpreadConstraint, labels: &Labels) -> Self {
        let selector = constraint.label_selector.as_ref().and_then(|selector| {
            Selector::stored(&with_keys(selector, labels, constraint.match_label_keys.as_deref(), "In"))
        });
        Self {
            topology_key: constraint.topology_key.as_str().into(),
            skew_max: i64::from(constraint.max_skew),
            domains_min: i64::from(constraint.min_domains.unwrap_or(1)),
            is_hard: constraint.when_unsatisfiable == "DoNotSchedule",
            selector,
            honors_affinity: constraint.node_affinity_policy.as_deref().unwrap_or("Honor") == "Honor",
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}

/// A selector with what the pod's own labels add to it. The API server adds that too when it stores a pod, and what it has
/// stored about a key remains.
fn with_keys(selector: &LabelSelector, labels: &Labels, keys: Option<&[String]>, operator: &str) -> LabelSelector {
    let mut selector = selector.clone();
    for key in keys.unwrap_or_default() {
        let expressions = selector.match_expressions.get_or_insert_default();
        let is_stored = expressions.iter().any(|known| known.key == *key && known.operator == operator);
        if let Some(value) = labels.get(key).filter(|_| !is_stored) {
            let values = Some(vec![value.to_owned()]);
            expressions.push(LabelSelectorRequirement { key: key.clone(), operator: operator.to_owned(), values });
        }
    }
    selector
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    fn term(term: &Value) -> PodTerm {
        let spec = json!({"containers": [], "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
        let spec = serde_json::from_value(spec).unwrap();
        PodAffinity::of(&"own".into(), &labels(&[("app", "web"), ("hash", "1")]), &spec).required[0].clone()
    }

    #[test]
    fn a_term_is_about_the_own_namespace_unless_it_names_others_or_selects_them() {
        let web = labels(&[("app", "web")]);
        let means = |value: Value| {
            let term = term(&value);
            ["own", "listed", "prod"].map(|namespace| {
                let of_namespace = if namespace == "prod" { labels(&[("env", "prod")]) } else { Labels::default() };
                term.means(namespace, &web, &of_namespace)
            })
        };
        let selector = json!({"matchLabels": {"app": "web"}});
        let prod = json!({"matchLabels": {"env": "prod"}});
        let with = |namespaces: Value, namespace_selector: Value| json!({"topologyKey": "zone", "labelSelector": selector, "namespaces": namespaces, "namespaceSelector": namespace_selector});
        assert_eq!(means(with(json!(null), json!(null))), [true, false, false]);
        assert_eq!(means(with(json!(["listed"]), json!(null))), [false, true, false]);
        assert_eq!(means(with(json!(null), prod.clone())), [false, false, true]);
        assert_eq!(means(with(json!(["listed"]), prod)), [false, true, true]);
        assert_eq!(means(with(json!(null), json!({}))), [true; 3], "an empty selector selects all namespaces");
        assert_eq!(means(json!({"topologyKey": "zone"})), [false; 3], "without a selector no pod is meant");
    }

    #[test]
    fn keys_add_what_the_pod_itself_is_labelled_with() {
        let means =
            |value: Value, pairs: &[(&str, &str)]| term(&value).means("own", &labels(pairs), &Labels::default());
        let web = [("app", "web"), ("hash", "1")];
        let base = |keys: &str| json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, keys: ["hash", "absent"]});
        assert!(
            means(base("matchLabelKeys"), &web) && !means(base("matchLabelKeys"), &[("app", "web"), ("hash", "2")])
        );
        assert!(
            !means(base("mismatchLabelKeys"), &web)
                && means(base("mismatchLabelKeys"), &[("app", "web"), ("hash", "2")])
        );
        let mut stored = base("matchLabelKeys");
        stored["labelSelector"]["matchExpressions"] = json!([{"key": "hash", "operator": "In", "values": ["0"]}]);
        assert!(means(stored, &[("app", "web"), ("hash", "0")]), "what the API server has stored remains");
    }

    #[test]
    fn preferred_terms_of_both_kinds_differ_by_sign() {
        let weighted = |weight: i32| json!([{"weight": weight, "podAffinityTerm": {"topologyKey": "zone"}}]);
        let spec = json!({"containers": [], "affinity": {
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(5)},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(7)},
        }});
        let affinity = PodAffinity::of(&"ns".into(), &Labels::default(), &serde_json::from_value(spec).unwrap());
        assert_eq!(affinity.preferred.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), [5, -7]);
        assert!(!affinity.is_empty() && affinity.terms().all(|term| &*term.topology_key == "zone"));
    }

    #[test]
    fn a_constraint_has_the_defaults_of_the_api() {
        let constraint =
            |value: Value| SpreadConstraint::of(&serde_json::from_value(value).unwrap(), &labels(&[("v", "2")]));
        let plain = constraint(json!({"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}));
        assert_eq!((plain.skew_max, plain.domains_min, plain.is_hard), (2, 1, false));
        assert_eq!((plain.honors_affinity, plain.honors_taints, &plain.selector), (true, false, &None));
        let keyed = constraint(json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
            "labelSelector": {}, "matchLabelKeys": ["v", "absent"], "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
        }));
        assert_eq!(
            (keyed.domains_min, keyed.is_hard, keyed.honors_affinity, keyed.honors_taints),
            (3, true, false, true)
        );
        assert_eq!(keyed.selector.map(|selector| selector.to_string()).as_deref(), Some("v=2"));
    }
}
