//! What pods and Reservations say about each other.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, ObjectReference, Toleration};
use koord_resource::ResourceList;
use koord_scheduling::NodeTerm;
use serde::{Deserialize, Serialize};

use crate::{
    protocol::{Flag, Key, Text, json_texts, read_json, word_texts, write_json},
    reservation::ReservationOwner,
    word::words,
};

/// Label: the pod uses no reservation.
pub const RESERVATION_IGNORED: Flag = Flag::new("scheduling.koordinator.sh/reservation-ignored");
/// Label: the pod runs only in a reservation that was made over other pods.
pub const PRE_ALLOCATION_REQUIRED: Flag = Flag::new("scheduling.koordinator.sh/pre-allocation-required");
/// Label: the room of the pod may be kept for a reservation.
pub const IS_PRE_ALLOCATABLE: Flag = Flag::new("pod.koordinator.sh/is-pre-allocatable");
/// Annotation: which pods are chosen first; higher is earlier.
pub const PRE_ALLOCATABLE_PRIORITY: Key<i64> = Key::new("pod.koordinator.sh/pre-allocatable-priority", "an integer");
/// Label of a Reservation: lower ones are used first; 0 leaves it to the score.
pub const RESERVATION_ORDER: Key<i64> = Key::new("scheduling.koordinator.sh/reservation-order", "an integer");
/// Label of a pod: whether it is a workload, or keeps room for others.
pub const OPERATING_MODE: Key<PodOperatingMode> =
    Key::new("scheduling.koordinator.sh/operating-mode", "Runnable or Reservation");
/// Annotation: the reservation that the pod uses.
pub const RESERVATION_ALLOCATED: Key<ReservationAllocated> =
    Key::new("scheduling.koordinator.sh/reservation-allocated", r#"a JSON object such as {"name":"r","uid":"…"}"#);
/// Annotation: which reservations the pod may use.
pub const RESERVATION_AFFINITY: Key<ReservationAffinity> = Key::new(
    "scheduling.koordinator.sh/reservation-affinity",
    r#"a JSON object such as {"reservationSelector":{"pool":"a"}}"#,
);
/// Annotation: resources of which the reservation has exactly what the pod requests.
pub const EXACT_MATCH_RESERVATION: Key<ExactMatchReservationSpec> =
    Key::new("scheduling.koordinator.sh/exact-match-reservation", r#"a JSON object such as {"resourceNames":["cpu"]}"#);
/// Annotation of a Reservation: resources of which owners may use only its own.
pub const RESERVATION_RESTRICTED_OPTIONS: Key<ReservationRestrictedOptions> = Key::new(
    "scheduling.koordinator.sh/reservation-restricted-options",
    r#"a JSON object such as {"resources":["cpu"]}"#,
);
/// Annotation of a Reservation: amounts that it keeps instead of what its template requests.
pub const RESERVATION_RESIZE_ALLOCATABLE: Key<ReservationResizeAllocatable> = Key::new(
    "scheduling.koordinator.sh/reservation-resize-allocatable",
    r#"a JSON object such as {"resources":{"koordinator.sh/gpu-memory":"16Gi"}}"#,
);
/// Annotation of a pod that keeps room: who may use it.
pub const RESERVATION_OWNERS: Key<ReservationOwners> =
    Key::new("scheduling.koordinator.sh/reservation-owners", r#"a JSON list such as [{"labelSelector":{}}]"#);
/// Annotation of a pod that keeps room: who uses it.
pub const RESERVATION_CURRENT_OWNER: Key<CurrentOwner> =
    Key::new("scheduling.koordinator.sh/reservation-current-owner", r#"a JSON object such as {"name":"pod"}"#);

words! {
    /// Whether a pod is a workload, or keeps room for others.
    pub open enum PodOperatingMode {
        /// It is a workload.
        Runnable = "Runnable",
        /// It keeps room.
        Reservation = "Reservation",
    }
}

/// The reservation that a pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationAllocated {
    /// Name of the Reservation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the Reservation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Which reservations a pod may use. An empty annotation is an affinity without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReservationAffinity {
    /// This very one; everything else does not count then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Conditions on the Reservation; the pod waits until one fulfils them.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", skip_serializing_if = "Option::is_none")]
    pub required: Option<ReservationAffinitySelector>,
    /// Labels of the Reservation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reservation_selector: BTreeMap<String, String>,
    /// Taints of Reservations that do not keep the pod away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// Conditions on a Reservation; one term must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReservationAffinitySelector {
    /// The terms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservation_selector_terms: Vec<NodeSelectorTerm>,
}

impl Text for ReservationAffinity {
    /// Terms that cannot be parsed are an error in the words of client-go.
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let affinity: Self = read_json(text)?;
        if let Some(required) = &affinity.required {
            NodeTerm::all(&required.reservation_selector_terms)?;
        }
        Ok(affinity)
    }

    fn write(&self) -> String {
        write_json(self)
    }
}

/// Resources of which a reservation must have exactly what the pod requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExactMatchReservationSpec {
    /// Names of the resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

impl ExactMatchReservationSpec {
    /// Whether a reservation has exactly what a pod requests.
    ///
    /// QUIRK: a resource that neither lists ends the comparison with yes; names after it are not looked at
    /// (`a_resource_that_neither_lists_ends_the_comparison`).
    pub fn matches(&self, requests: &ResourceList, reserved: &ResourceList) -> bool {
        for name in &self.resource_names {
            match (requests.get(name), reserved.get(name)) {
                (None, None) => return true,
                (Some(requested), Some(reserved)) if requested == reserved => {}
                _ => return false,
            }
        }
        true
    }
}

/// Resources of which owners may use only the reservation's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationRestrictedOptions {
    /// Names of the resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}

/// Amounts that a reservation keeps instead of what its template requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationResizeAllocatable {
    /// The amounts.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}

/// Who may use the room that a pod keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReservationOwners(pub Vec<ReservationOwner>);

/// Who uses the room that a pod keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CurrentOwner(pub ObjectReference);

json_texts!(
    ReservationAllocated,
    ExactMatchReservationSpec,
    ReservationRestrictedOptions,
    ReservationResizeAllocatable,
    ReservationOwners,
    CurrentOwner,
);
word_texts!(PodOperatingMode);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text};

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&PRE_ALLOCATABLE_PRIORITY);
        reads_any_text(&RESERVATION_ORDER);
        reads_any_text(&OPERATING_MODE);
        reads_any_text(&RESERVATION_ALLOCATED);
        reads_any_text(&RESERVATION_AFFINITY);
        reads_any_text(&EXACT_MATCH_RESERVATION);
        reads_any_text(&RESERVATION_RESTRICTED_OPTIONS);
        reads_any_text(&RESERVATION_RESIZE_ALLOCATABLE);
        reads_any_text(&RESERVATION_OWNERS);
        reads_any_text(&RESERVATION_CURRENT_OWNER);
    }

    #[test]
    fn values_survive() {
        use proptest::prelude::*;
        let allocated = (any::<String>(), any::<String>()).prop_map(|(name, uid)| ReservationAllocated { name, uid });
        keeps_values(&RESERVATION_ALLOCATED, allocated);
    }

    #[test]
    fn an_empty_affinity_is_one() {
        assert_eq!(read(&RESERVATION_AFFINITY, ""), Ok(ReservationAffinity::default()));
    }

    #[test]
    fn terms_that_cannot_be_parsed_are_an_error_that_names_the_annotation() {
        let terms = r#"{"reservationSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Near"}]}]}"#;
        let text = format!(r#"{{"requiredDuringSchedulingIgnoredDuringExecution":{terms}}}"#);
        let error = RESERVATION_AFFINITY.read(&text).unwrap_err();
        assert_eq!(error.key, "scheduling.koordinator.sh/reservation-affinity");
        let start = r#"nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near""#;
        assert!(error.reason.starts_with(start), "{error}");
        let right = text.replace("Near", "Exists");
        assert!(RESERVATION_AFFINITY.read(&right).unwrap().required.is_some());
    }

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(name, amount)| (*name, amount.parse().unwrap())).collect()
    }

    #[test]
    fn a_resource_that_neither_lists_ends_the_comparison() {
        let spec = |names: &[&str]| ExactMatchReservationSpec {
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let (one, two) = (list(&[("cpu", "1")]), list(&[("cpu", "2"), ("memory", "1Gi")]));
        for (names, expected) in
            [(&[][..], true), (&["cpu"], false), (&["memory"], false), (&["gpu"], true), (&["gpu", "cpu"], true)]
        {
            assert_eq!(spec(names).matches(&one, &two), expected, "{names:?}");
        }
        assert!(spec(&["cpu"]).matches(&one, &list(&[("cpu", "1000m")])));
    }
}
