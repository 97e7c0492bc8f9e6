//! Who may use a reservation (3C.1).

use std::{borrow::Cow, sync::Arc};

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
    mark: Option<Mark>,
}

/// Something that a pod has which matches a term, by which owners are found: a label, its name, its controller.
pub(super) type Mark = (Arc<str>, Arc<str>);

// No label has a blank in its key.
const POD_NAME: &str = "pod name";
const POD_UID: &str = "pod uid";
const CONTROLLER_NAME: &str = "controller name";
const CONTROLLER_UID: &str = "controller uid";

impl Owners {
    /// The terms. An error where a selector is none: then nobody may use the reservation.
    pub fn new(owners: &[ReservationOwner]) -> Result<Self, SelectorError> {
        let term = |owner: &ReservationOwner| {
            let labels = owner.label_selector.as_ref().map(Selector::new).transpose()?;
            let (object, controller) = (owner.object.clone(), owner.controller.clone());
            Ok(Term { object, controller, labels, mark: mark(owner) })
        };
        owners.iter().map(term).collect::<Result<_, _>>().map(Self)
    }

    /// What an owner has, of which each has at least one; none where that cannot be said.
    pub(super) fn marks(&self) -> Option<Vec<&Mark>> {
        self.0.iter().map(|term| term.mark.as_ref()).collect()
    }

    /// Whether they tell pods of one workload apart.
    pub(super) fn name_pods(&self) -> bool {
        self.0.iter().any(|term| term.object.is_some() || term.controller.is_some())
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

impl PodIdentity<'_> {
    /// All that terms may ask for.
    pub(super) fn marks(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let own = [(POD_NAME, Cow::Borrowed(self.key.name())), (POD_UID, Cow::Owned(self.uid.to_string()))];
        let controller = self.controller.into_iter().flat_map(|owner| {
            [(CONTROLLER_NAME, Cow::Borrowed(&*owner.name)), (CONTROLLER_UID, Cow::Owned(owner.uid.to_string()))]
        });
        self.labels.iter().map(|(key, value)| (key, Cow::Borrowed(value))).chain(own).chain(controller)
    }
}

/// Something that every pod has which a term matches.
fn mark(owner: &ReservationOwner) -> Option<Mark> {
    let said =
        |key: &str, text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| (key.into(), text.into()));
    let labels = owner.label_selector.as_ref().and_then(|selector| selector.match_labels.as_ref()?.iter().next());
    let label = labels.map(|(key, value)| (Arc::from(&**key), Arc::from(&**value)));
    let object = owner.object.as_ref();
    let object =
        object.and_then(|object| said(POD_UID, object.uid.as_deref()).or(said(POD_NAME, object.name.as_deref())));
    let controller = owner.controller.as_ref();
    let controller =
        controller.and_then(|one| said(CONTROLLER_UID, Some(&one.uid)).or(said(CONTROLLER_NAME, Some(&one.name))));
    object.or(controller).or(label)
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
        let (owners, pod) =
            (Owners::new(&owners).unwrap(), PodIdentity { key: &key, uid: &uid, labels: &labels, controller });
        let is_owner = owners.match_pod(&pod);
        let has = |mark: &Mark| pod.marks().any(|(key, value)| (key, &*value) == (&*mark.0, &*mark.1));
        assert!(!is_owner || owners.marks().is_none_or(|marks| marks.into_iter().any(has)), "it is not found");
        is_owner
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
