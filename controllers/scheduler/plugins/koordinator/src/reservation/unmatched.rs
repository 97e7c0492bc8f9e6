//! Why a pod with a reservation affinity matches no reservation.

use koord_resource::ResourceList;
use koord_scheduler_allocation::{ReservationInfo, ReservationSelector};
use koord_scheduler_framework::{Reason, ReasonCode, cluster::Cluster, labels::Labels, pod::Pod};
use koord_types::reservation::{Reservation, ReservationPhase};

use super::filters::NO_MATCH;

/// Reservations that are looked at for a reason.
const LOOKED_MAX: usize = 64;

/// The reason for a pod that matches none: of the reservation that it names, or of one that it selects and comes closest to.
pub(super) fn reason(pod: &Pod, selector: &ReservationSelector, cluster: &Cluster) -> Reason {
    let objects = cluster.objects();
    if let Some(name) = selector.name() {
        return objects.get::<Reservation>(name).map_or_else(
            || ReasonCode::ReservationNotMatched.reason(NO_MATCH).with("reservation", name).with("phase", "absent"),
            |object| of_one(pod, object),
        );
    }
    let nothing = Labels::default();
    let selected = objects.of::<Reservation>().map(|(_, object)| object).take(LOOKED_MAX).filter(|object| {
        let node = cluster.row(&object.status.node_name).and_then(|row| cluster.node(row));
        selector.selects(&info(object), node.map_or(&nothing, |node| &node.labels))
    });
    let reasons = selected.map(|object| of_one(pod, object));
    let closest = reasons.min_by_key(|reason| match reason.code {
        ReasonCode::ReservationExpired => 0,
        ReasonCode::ReservationFull => 1,
        ReasonCode::ReservationOwnerMismatch => 3,
        _ => 2,
    });
    closest.unwrap_or_else(|| ReasonCode::ReservationNotMatched.reason(NO_MATCH))
}

/// Why a pod cannot use a reservation that it names or selects.
fn of_one(pod: &Pod, object: &Reservation) -> Reason {
    let info = info(object);
    let mismatch = match &info.owners {
        Some(owners) => owners.mismatch(pod),
        None => Some("spec.owners".to_owned()),
    };
    let of = |code: ReasonCode| code.reason(NO_MATCH).with("reservation", &info.name);
    let with_phase = |code: ReasonCode| {
        let phase = object.status.phase.as_ref().map_or("Pending", |phase| koord_types::word::Word::as_str(phase));
        of(code).with("phase", phase)
    };
    match (mismatch, &object.status.phase) {
        (Some(field), _) => of(ReasonCode::ReservationOwnerMismatch).with("field", field),
        (None, Some(ReservationPhase::Failed)) => with_phase(ReasonCode::ReservationExpired),
        (None, Some(ReservationPhase::Succeeded)) => with_phase(ReasonCode::ReservationFull),
        (None, _) => with_phase(ReasonCode::ReservationNotMatched),
    }
}

fn info(object: &Reservation) -> ReservationInfo {
    ReservationInfo::of(object, &ResourceList::default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_scheduler_framework::{object::Object, pod::Template};
    use serde_json::{Value, json};

    use super::*;

    /// What is said of a pod with the label `app: web` and this affinity, with these reservations.
    fn said(affinity: &str, reservations: &[Value]) -> String {
        let mut cluster = Cluster::default();
        for members in reservations {
            let object: Reservation = serde_json::from_value(members.clone()).unwrap();
            let name = object.metadata.name.clone().unwrap();
            cluster.set_object(Object::new(ObjectKey::cluster(&name), Uid::from(&*name), false, Arc::new(object)));
        }
        let template = Template { labels: [("app", "web")].into_iter().collect(), ..Template::default() };
        let pod = Pod { key: ObjectKey::new("ns", "p"), template: Arc::new(template), ..Pod::default() };
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", affinity)].into_iter().collect();
        let selector = ReservationSelector::new(&Labels::default(), &annotations).unwrap();
        let reason = reason(&pod, &selector, &cluster);
        assert_eq!(reason.text, NO_MATCH, "events and conditions say the same whatever the code is");
        koord_scheduler_testing::code(&reason)
    }

    fn reservation(name: &str, app: &str, phase: &str) -> Value {
        json!({
            "metadata": {"name": name, "uid": name, "labels": {"pool": "a"}},
            "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": app}}}], "template": {"spec": {"containers": []}}},
            "status": {"phase": phase, "nodeName": "n1"},
        })
    }

    #[test]
    fn the_one_that_is_named_says_why() {
        let named = r#"{"name":"r"}"#;
        assert_eq!(said(named, &[]), "ReservationNotMatched reservation=r phase=absent");
        for (app, phase, expected) in [
            ("other", "Available", "ReservationOwnerMismatch reservation=r field=spec.owners[0].labelSelector"),
            ("web", "Failed", "ReservationExpired reservation=r phase=Failed"),
            ("web", "Succeeded", "ReservationFull reservation=r phase=Succeeded"),
            ("web", "Pending", "ReservationNotMatched reservation=r phase=Pending"),
        ] {
            assert_eq!(said(named, &[reservation("r", app, phase), reservation("s", "web", "Failed")]), expected);
        }
    }

    #[test]
    fn of_those_that_are_selected_the_closest_says_why() {
        let selects = r#"{"reservationSelector":{"pool":"a"}}"#;
        let owned = |phase| reservation("owned", "web", phase);
        let foreign = reservation("foreign", "other", "Available");
        let by_foreign = "ReservationOwnerMismatch reservation=foreign field=spec.owners[0].labelSelector";
        assert_eq!(said(selects, std::slice::from_ref(&foreign)), by_foreign);
        assert_eq!(
            said(selects, &[foreign.clone(), owned("Failed")]),
            "ReservationExpired reservation=owned phase=Failed"
        );
        assert_eq!(said(r#"{"reservationSelector":{"pool":"b"}}"#, &[foreign]), "ReservationNotMatched");
    }
}
