//! Who may use a reservation (3C.1).

use k8s_openapi::api::core::v1::ObjectReference;
use koord_api::reservation::{ReservationControllerReference, ReservationOwner};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_engine::{labels::Labels, pod::Owner};
use koord_scheduling::{Selector, SelectorError};

/// What owner terms look at.
#[derive(Clone, Copy, Debug)]
pub struct PodIdentity<'a> {
    /// Its namespace and name.
    pub key: &'a ObjectKey,
    /// Its uid.
    pub uid: &'a Uid,
    /// Its labels.
    pub labels: &'a Labels,
    /// The object that controls it.
    pub controller: Option<&'a Owner>,
}

/// The owner terms of a reservation, of which one must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners(Vec<Term>);

/// One term, all of whose parts must match.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    object: Option<ObjectReference>,
    controller: Option<ReservationControllerReference>,
    labels: Option<Selector>,
}

impl Owners {
    /// The terms. An error where a selector is none: then nobody may use the reservation.
    pub fn new(owners: &[ReservationOwner]) -> Result<Self, SelectorError> {
        let term = |owner: &ReservationOwner| {
            let labels = owner.label_selector.as_ref().map(Selector::new).transpose()?;
            Ok(Term { object: owner.object.clone(), controller: owner.controller.clone(), labels })
        };
        owners.iter().map(term).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a pod may use the reservation.
    pub fn match_pod(&self, pod: &PodIdentity<'_>) -> bool {
        self.0.iter().any(|term| {
            term.object.as_ref().is_none_or(|object| is_object(object, pod))
                && term.controller.as_ref().is_none_or(|controller| is_controlled_by(controller, pod))
                && term.labels.as_ref().is_none_or(|labels| labels.selects(|key| pod.labels.get(key)))
        })
    }
}

/// What a reference leaves out matches anything.
fn says(text: Option<&str>, is: &str) -> bool {
    text.is_none_or(|text| text.is_empty() || text == is)
}

fn is_object(object: &ObjectReference, pod: &PodIdentity<'_>) -> bool {
    says(object.uid.as_deref(), &pod.uid.to_string())
        && says(object.name.as_deref(), pod.key.name())
        && says(object.namespace.as_deref(), pod.key.namespace())
}

fn is_controlled_by(wanted: &ReservationControllerReference, pod: &PodIdentity<'_>) -> bool {
    let Some(owner) = pod.controller else { return false };
    says(Some(&wanted.namespace), pod.key.namespace())
        && wanted.controller != Some(false)
        && says(Some(&wanted.uid), &owner.uid.to_string())
        && says(Some(&wanted.name), &owner.name)
        && says(Some(&wanted.kind), &owner.kind)
        && says(Some(&wanted.api_version), &owner.api_version)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn matches(owners: Value, namespace: &str, name: &str, app: &str, controller: &str) -> bool {
        let owners: Vec<ReservationOwner> = serde_json::from_value(owners).unwrap();
        let owner = Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: controller.into(),
            uid: Uid::from("u"),
        };
        let (key, uid, labels) =
            (ObjectKey::new(namespace, name), Uid::from("1"), [("app", app)].into_iter().collect());
        let controller = (!controller.is_empty()).then_some(&owner);
        Owners::new(&owners).unwrap().match_pod(&PodIdentity { key: &key, uid: &uid, labels: &labels, controller })
    }

    #[test]
    fn terms_are_alternatives_and_their_parts_are_not() {
        let labels = |app: &str| json!({"matchLabels": {"app": app}});
        let object = |namespace: &str| json!({"name": "p", "namespace": namespace});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "namespace": "ns", "controller": true});
        for (owners, expected) in [
            (json!([]), false),
            (json!([{}]), true),
            (json!([{"labelSelector": {}}]), true),
            (json!([{"labelSelector": labels("x")}, {"labelSelector": labels("y")}]), true),
            (json!([{"labelSelector": labels("z")}]), false),
            (json!([{"object": object("ns")}]), true),
            (json!([{"object": object("other")}]), false),
            (json!([{"object": {"uid": "2"}}]), false),
            (json!([{"object": object("ns"), "labelSelector": labels("z")}]), false),
            (json!([{"controller": set}]), true),
        ] {
            assert_eq!(matches(owners.clone(), "ns", "p", "y", "rs"), expected, "{owners}");
        }
        assert!(!matches(json!([{"controller": set}]), "ns", "p", "y", ""), "owner-controller: a pod of nobody");
        assert!(!matches(json!([{"controller": set}]), "other", "p", "y", "rs"));
    }

    #[test]
    fn a_selector_that_is_none_is_an_error() {
        let bad = json!([{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}]);
        assert!(Owners::new(&serde_json::from_value::<Vec<ReservationOwner>>(bad).unwrap()).is_err());
    }
}
