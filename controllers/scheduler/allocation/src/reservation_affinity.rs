//! What a pod says about reservations, and which of them it matches therefore (3C.4).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Taint, Toleration};
use koord_resource::ResourceList;
use koord_scheduler_framework::{labels::Labels, pod::Pod};
use koord_scheduling::{Effect, NodeTerm, tolerates, untolerated};
use koord_types::{
    protocol::ProtocolError,
    reservation_protocol::{
        EXACT_MATCH_RESERVATION, ExactMatchReservationSpec, RESERVATION_AFFINITY, RESERVATION_IGNORED,
        ReservationAffinity,
    },
};

use super::ReservationInfo;

/// What a pod says about reservations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReservationSelector {
    /// It uses the resources of the node as if nothing were kept, and no reservation.
    pub is_ignoring: bool,
    /// It uses a reservation or waits.
    affinity: Option<Affinity>,
    exact: Option<ExactMatchReservationSpec>,
}

#[derive(Clone, Debug, PartialEq)]
struct Affinity {
    /// This very one; all else does not count then.
    name: Option<String>,
    /// One of them must hold, where there are any.
    terms: Option<Box<[NodeTerm]>>,
    labels: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
}

/// Whether a pod may use a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationMatch {
    /// It uses none.
    Ignored,
    /// It may.
    Matched,
    /// It is no owner.
    NotOwner,
    /// It is an owner, but may not.
    Mismatch(ReservationMismatch),
}

/// Why an owner may not use a reservation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReservationMismatch {
    /// It names another one.
    Name,
    /// It does not fit exactly.
    NotExact,
    /// It takes no owners.
    Unschedulable,
    /// It has this taint, by key and value.
    Taint(String, String),
    /// Its labels are others.
    Affinity,
    /// It is not available, or used up.
    NotMatchable,
}

/// How many reservations of a cluster a pod matches, and why not the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    owner_matched: usize,
    name_matched: usize,
    mismatches: BTreeMap<ReservationMismatch, usize>,
}

impl ReservationSelector {
    /// What the labels and annotations of a pod say. An error where an annotation is no JSON of its kind, or selects by what cannot be parsed.
    pub fn new(labels: &Labels, annotations: &Labels) -> Result<Self, ProtocolError> {
        let affinity = annotations.get(RESERVATION_AFFINITY.name());
        let exact = annotations.get(EXACT_MATCH_RESERVATION.name()).filter(|text| !text.is_empty());
        Ok(Self {
            is_ignoring: labels.get(RESERVATION_IGNORED.name()) == Some("true"),
            affinity: affinity.map(Affinity::read).transpose()?,
            exact: exact.map(|text| EXACT_MATCH_RESERVATION.read(text)).transpose()?,
        })
    }

    /// Whether the pod waits until it can use a reservation.
    pub fn needs_one(&self) -> bool {
        self.affinity.is_some()
    }

    /// The reservation that the pod names.
    pub fn name(&self) -> Option<&str> {
        self.affinity.as_ref()?.name.as_deref()
    }

    /// Whether the pod asks for this reservation, whether it may use it or not.
    pub fn selects(&self, info: &ReservationInfo, node_labels: &Labels) -> bool {
        match (self.name(), &self.affinity) {
            (Some(name), _) => *name == *info.name,
            (None, affinity) => affinity.as_ref().is_some_and(|affinity| affinity.selects(info, node_labels)),
        }
    }

    /// Whether a pod with these requests may use a reservation on a node with these labels. The lists are exact.
    pub fn matches(
        &self,
        pod: &Pod,
        requests: &ResourceList,
        info: &ReservationInfo,
        allocatable: &ResourceList,
        node_labels: &Labels,
    ) -> ReservationMatch {
        let is_owner = info.owners.as_ref().is_some_and(|owners| owners.match_pod(pod));
        if is_owner || self.is_ignoring {
            self.accepts(requests, info, allocatable, node_labels)
        } else {
            ReservationMatch::NotOwner
        }
    }

    /// The same, whoever its owners are.
    pub fn accepts(
        &self,
        requests: &ResourceList,
        info: &ReservationInfo,
        allocatable: &ResourceList,
        node_labels: &Labels,
    ) -> ReservationMatch {
        if !info.is_matchable() {
            return ReservationMatch::Mismatch(ReservationMismatch::NotMatchable);
        }
        if self.is_ignoring {
            return ReservationMatch::Ignored;
        }
        let is_exact = self.exact.as_ref().is_none_or(|exact| exact.matches(requests, allocatable));
        self.mismatch(info, node_labels, is_exact).map_or(ReservationMatch::Matched, ReservationMatch::Mismatch)
    }

    fn mismatch(&self, info: &ReservationInfo, node_labels: &Labels, is_exact: bool) -> Option<ReservationMismatch> {
        if let Some(name) = self.name() {
            return if *name == *info.name {
                (!is_exact).then_some(ReservationMismatch::NotExact)
            } else {
                Some(ReservationMismatch::Name)
            };
        }
        let affinity = self.affinity.as_ref();
        if info.unschedulable && !affinity.is_some_and(Affinity::tolerates_unschedulable) {
            return Some(ReservationMismatch::Unschedulable);
        }
        if let Some(affinity) = affinity {
            let effects = [Effect::NoSchedule, Effect::NoExecute];
            // QUIRK: a pod without an affinity is kept away by no taint (`without_an_affinity_no_taint_keeps_a_pod_away`).
            if let Some(taint) = untolerated(&info.taints, &affinity.tolerations, &effects) {
                return Some(ReservationMismatch::Taint(taint.key.clone(), taint.value.clone().unwrap_or_default()));
            }
            if !affinity.selects(info, node_labels) {
                return Some(ReservationMismatch::Affinity);
            }
        }
        (!is_exact).then_some(ReservationMismatch::NotExact)
    }
}

impl ReservationMismatch {
    /// What is so of the reservation.
    pub fn words(&self) -> String {
        let words = match self {
            Self::Name => "didn't match the requested reservation name",
            Self::NotExact => "is not exact matched",
            Self::Unschedulable => "is unschedulable",
            Self::Taint(key, value) => return format!("had untolerated taint {{{key}: {value}}}"),
            Self::Affinity => "didn't match affinity rules",
            Self::NotMatchable => "is not available, or used up",
        };
        words.to_owned()
    }
}

impl Affinity {
    fn read(text: &str) -> Result<Self, ProtocolError> {
        let ReservationAffinity { name, required, reservation_selector, tolerations } =
            RESERVATION_AFFINITY.read(text)?;
        let terms = required.map(|required| NodeTerm::all(&required.reservation_selector_terms)).transpose();
        Ok(Self {
            name: (!name.is_empty()).then_some(name),
            terms: terms.map_err(|reason| RESERVATION_AFFINITY.wrong(text, reason))?,
            labels: reservation_selector,
            tolerations,
        })
    }

    fn tolerates_unschedulable(&self) -> bool {
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: Effect::NoSchedule.as_str().to_owned(),
            ..Taint::default()
        };
        self.tolerations.iter().any(|toleration| tolerates(toleration, &taint))
    }

    /// Labels of the node count too, where the reservation has none of the key.
    fn selects(&self, info: &ReservationInfo, node_labels: &Labels) -> bool {
        let label = |key: &str| info.labels.get(key).or_else(|| node_labels.get(key));
        self.labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.selects(&info.name, label)))
    }
}

impl Summary {
    /// Counts one more reservation.
    pub fn count(&mut self, matched: &ReservationMatch, selector: &ReservationSelector) {
        match matched {
            ReservationMatch::Ignored
            | ReservationMatch::NotOwner
            | ReservationMatch::Mismatch(ReservationMismatch::NotMatchable) => return,
            ReservationMatch::Matched => self.name_matched += usize::from(selector.name().is_some()),
            ReservationMatch::Mismatch(mismatch) => *self.mismatches.entry(mismatch.clone()).or_default() += 1,
        }
        self.owner_matched += 1;
    }

    /// The lines of the message of a pod that found no node (3C.13), with lines about the nodes and reservations that were
    /// tried before the last.
    pub fn lines(&self, selector: &ReservationSelector, tried: &[String]) -> Vec<String> {
        if self.owner_matched == 0 && !selector.needs_one() {
            return Vec::new();
        }
        let line = |count: usize, words: &str| format!("{count} Reservation(s) {words}");
        let named = "exactly matches the requested reservation name";
        let named = (self.name_matched > 0).then(|| line(self.name_matched, named));
        let first = [
            ReservationMismatch::Name,
            ReservationMismatch::Affinity,
            ReservationMismatch::Unschedulable,
            ReservationMismatch::NotExact,
        ];
        let taints = self.mismatches.keys().filter(|mismatch| matches!(mismatch, ReservationMismatch::Taint(..)));
        let of = |mismatch: &ReservationMismatch| Some(line(*self.mismatches.get(mismatch)?, &mismatch.words()));
        named
            .into_iter()
            .chain(first.iter().chain(taints).filter_map(of))
            .chain(tried.iter().cloned())
            .chain([line(self.owner_matched, "matched owner total")])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use koord_core::{key::ObjectKey, uid::Uid};
    use serde_json::{Value, json};

    use super::{super::testing::reservation, *};

    fn selector(affinity: &str) -> ReservationSelector {
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", affinity)].into_iter().collect();
        ReservationSelector::new(&Labels::default(), &annotations).unwrap()
    }

    fn matched_by(selector: &ReservationSelector, members: Value) -> ReservationMatch {
        let pod = Pod { key: ObjectKey::new("ns", "p"), uid: Uid::from("p"), ..Pod::default() };
        let list = |cpu: &str| [("cpu", cpu.parse().unwrap())].into_iter().collect();
        let node_labels = [("zone", "a")].into_iter().collect();
        selector.matches(&pod, &list("3"), &reservation(members), &list("4"), &node_labels)
    }

    fn tainted() -> Value {
        json!({"spec": {"taints": [{"key": "gpu", "value": "no", "effect": "NoSchedule"}]}})
    }

    #[test]
    fn a_pod_without_an_affinity_uses_the_reservations_that_it_matches() {
        assert_eq!(matched_by(&ReservationSelector::default(), json!({})), ReservationMatch::Matched);
        assert_eq!(
            matched_by(&ReservationSelector::default(), json!({"spec": {"owners": []}})),
            ReservationMatch::NotOwner
        );
        let unschedulable = json!({"spec": {"unschedulable": true}});
        assert_eq!(
            matched_by(&ReservationSelector::default(), unschedulable),
            ReservationMatch::Mismatch(ReservationMismatch::Unschedulable)
        );
        let gone = json!({"status": {"phase": "Failed"}});
        assert_eq!(
            matched_by(&ReservationSelector::default(), gone),
            ReservationMatch::Mismatch(ReservationMismatch::NotMatchable)
        );
        let ignoring = ReservationSelector { is_ignoring: true, ..ReservationSelector::default() };
        assert_eq!(matched_by(&ignoring, json!({"spec": {"owners": []}})), ReservationMatch::Ignored);
    }

    #[test]
    fn without_an_affinity_no_taint_keeps_a_pod_away() {
        assert_eq!(matched_by(&ReservationSelector::default(), tainted()), ReservationMatch::Matched);
        let taint = ReservationMismatch::Taint("gpu".to_owned(), "no".to_owned());
        assert_eq!(matched_by(&selector("{}"), tainted()), ReservationMatch::Mismatch(taint));
        assert_eq!(
            matched_by(&selector(r#"{"tolerations":[{"key":"gpu","operator":"Exists"}]}"#), tainted()),
            ReservationMatch::Matched
        );
    }

    #[test]
    fn a_name_is_all_that_counts() {
        let unschedulable = || json!({"spec": {"unschedulable": true, "taints": tainted()["spec"]["taints"]}});
        let named = selector(r#"{"name":"r","reservationSelector":{"k":"v"}}"#);
        assert_eq!(matched_by(&named, unschedulable()), ReservationMatch::Matched);
        assert_eq!(
            matched_by(&selector(r#"{"name":"other"}"#), json!({})),
            ReservationMatch::Mismatch(ReservationMismatch::Name)
        );
    }

    #[test]
    fn labels_of_the_node_count_where_the_reservation_has_none() {
        let selects =
            |affinity: &str, labels: Value| matched_by(&selector(affinity), json!({"metadata": {"labels": labels}}));
        let zone = r#"{"reservationSelector":{"zone":"a"}}"#;
        assert_eq!(selects(zone, json!({})), ReservationMatch::Matched, "affinity-node-labels");
        assert_eq!(selects(zone, json!({"zone": "b"})), ReservationMatch::Mismatch(ReservationMismatch::Affinity));
        let required = r#"{"requiredDuringSchedulingIgnoredDuringExecution":{"reservationSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["2"]}]}]}}"#;
        assert_eq!(selects(required, json!({"k": "2"})), ReservationMatch::Matched, "affinity-selector-picks");
        assert_eq!(selects(required, json!({"k": "1"})), ReservationMatch::Mismatch(ReservationMismatch::Affinity));
        let tolerant =
            r#"{"tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists","effect":"NoSchedule"}]}"#;
        let unschedulable = json!({"spec": {"unschedulable": true}});
        assert_eq!(
            matched_by(&selector(tolerant), unschedulable),
            ReservationMatch::Matched,
            "unschedulable-tolerated"
        );
    }

    #[test]
    fn an_exact_match_compares_what_it_names() {
        let exact = |resource: &str| {
            let text = format!(r#"{{"resourceNames":["{resource}"]}}"#);
            let annotations = [("scheduling.koordinator.sh/exact-match-reservation", &*text)].into_iter().collect();
            matched_by(&ReservationSelector::new(&Labels::default(), &annotations).unwrap(), json!({}))
        };
        assert_eq!(exact("cpu"), ReservationMatch::Mismatch(ReservationMismatch::NotExact));
        assert_eq!(exact("x/y"), ReservationMatch::Matched);
    }

    #[test]
    fn an_affinity_that_is_no_json_is_an_error() {
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", "{bad")].into_iter().collect();
        let error = ReservationSelector::new(&Labels::default(), &annotations).unwrap_err();
        assert_eq!(error.reason, "invalid character 'b' looking for beginning of object key string");
        let terms = r#"{"reservationSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Near"}]}]}"#;
        let text = format!(r#"{{"requiredDuringSchedulingIgnoredDuringExecution":{terms}}}"#);
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", &*text)].into_iter().collect();
        let error = ReservationSelector::new(&Labels::default(), &annotations).unwrap_err();
        assert_eq!(
            error.reason,
            r#"nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#
        );
    }

    #[test]
    fn the_summary_counts_what_owners_could_not_use() {
        let lines = |selector: &ReservationSelector, reservations: Vec<Value>| {
            let mut summary = Summary::default();
            for members in reservations {
                summary.count(&matched_by(selector, members), selector);
            }
            summary.lines(selector, &["tried".to_owned()]).join(", ")
        };
        let affine = selector(r#"{"reservationSelector":{"k":"v"}}"#);
        assert_eq!(lines(&affine, vec![]), "tried, 0 Reservation(s) matched owner total", "affinity-required-none");
        assert_eq!(lines(&ReservationSelector::default(), vec![]), "");
        assert_eq!(
            lines(&affine, vec![json!({"spec": {"unschedulable": true}}), tainted(), tainted(), json!({})]),
            "1 Reservation(s) didn't match affinity rules, 1 Reservation(s) is unschedulable, \
             2 Reservation(s) had untolerated taint {gpu: no}, tried, 4 Reservation(s) matched owner total"
        );
        let named = selector(r#"{"name":"r"}"#);
        assert_eq!(
            lines(
                &named,
                vec![json!({}), json!({"metadata": {"name": "s"}}), json!({"status": {"phase": "Succeeded"}})]
            ),
            "1 Reservation(s) exactly matches the requested reservation name, \
             1 Reservation(s) didn't match the requested reservation name, tried, 2 Reservation(s) matched owner total"
        );
        let annotations = [
            ("scheduling.koordinator.sh/reservation-affinity", r#"{"name":"r"}"#),
            ("scheduling.koordinator.sh/exact-match-reservation", r#"{"resourceNames":["cpu"]}"#),
        ];
        let exact = ReservationSelector::new(&Labels::default(), &annotations.into_iter().collect()).unwrap();
        assert_eq!(
            lines(&exact, vec![json!({})]),
            "1 Reservation(s) is not exact matched, tried, 1 Reservation(s) matched owner total",
            "one that is named and does not fit exactly"
        );
    }
}
