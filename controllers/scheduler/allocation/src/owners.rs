//! Who may use a reservation (3C.1).

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;
use koord_scheduler_framework::pod::Pod;
use koord_scheduling::{Selector, SelectorError};
use koord_types::reservation::{ReservationControllerReference, ReservationOwner};

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
pub(crate) type Mark = (Arc<str>, Arc<str>);

// No label has a blank in its key.
const POD_NAME: &str = "pod name";
const POD_UID: &str = "pod uid";
const CONTROLLER_NAME: &str = "controller name";
const CONTROLLER_UID: &str = "controller uid";

impl Owners {
    /// The terms. An error where a selector is invalid: then no pod may use the reservation.
    pub fn new(owners: &[ReservationOwner]) -> Result<Self, SelectorError> {
        let term = |owner: &ReservationOwner| {
            let labels = owner.label_selector.as_ref().map(Selector::new).transpose()?;
            let (object, controller) = (owner.object.clone(), owner.controller.clone());
            Ok(Term { object, controller, labels, mark: mark(owner) })
        };
        owners.iter().map(term).collect::<Result<_, _>>().map(Self)
    }

    /// What an owner has, of which each has at least one; none where that cannot be said.
    pub fn marks(&self) -> Option<Vec<&Mark>> {
        self.0.iter().map(|term| term.mark.as_ref()).collect()
    }

    /// Whether they distinguish pods of one workload.
    pub fn name_pods(&self) -> bool {
        self.0.iter().any(|term| term.object.is_some() || term.controller.is_some())
    }

    /// Whether a pod may use the reservation.
    pub fn match_pod(&self, pod: &Pod) -> bool {
        self.0.iter().any(|term| term.mismatch(pod).is_none())
    }

    /// Whether a pod may use the reservation by a term that selects pods by their labels.
    pub fn select_pod(&self, pod: &Pod) -> bool {
        self.0.iter().any(|term| term.labels.is_some() && term.mismatch(pod).is_none())
    }

    /// The field of the first term that a pod does not match which may not use the reservation; none where it may.
    pub fn mismatch(&self, pod: &Pod) -> Option<String> {
        let Some(first) = self.0.first() else { return Some("spec.owners".to_owned()) };
        let field = first.mismatch(pod).filter(|_| !self.match_pod(pod))?;
        Some(format!("spec.owners[0].{field}"))
    }
}

impl Term {
    /// The first part that a pod does not match.
    fn mismatch(&self, pod: &Pod) -> Option<&'static str> {
        let is_object = self.object.as_ref().is_none_or(|object| is_object(object, pod));
        let is_owned = || self.controller.as_ref().is_none_or(|controller| is_owned_by(controller, pod));
        let is_labelled =
            || self.labels.as_ref().is_none_or(|labels| labels.selects(|key| pod.template.labels.get(key)));
        match () {
            () if !is_object => Some("object"),
            () if !is_owned() => Some("controller"),
            () if !is_labelled() => Some("labelSelector"),
            () => None,
        }
    }
}

/// All that terms may ask for in a pod.
pub(crate) fn marks(pod: &Pod) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let identity = [(POD_NAME, Cow::Borrowed(pod.key.name())), (POD_UID, Cow::Owned(pod.uid.to_string()))];
    let owners = pod.owners().flat_map(|(owner, _)| {
        [(CONTROLLER_NAME, Cow::Borrowed(&*owner.name)), (CONTROLLER_UID, Cow::Owned(owner.uid.to_string()))]
    });
    pod.template.labels.iter().map(|(key, value)| (key, Cow::Borrowed(value))).chain(identity).chain(owners)
}

/// Something that every pod has which a term matches.
fn mark(owner: &ReservationOwner) -> Option<Mark> {
    let mark_of =
        |key: &str, text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| (key.into(), text.into()));
    let labels = owner.label_selector.as_ref().and_then(|selector| selector.match_labels.as_ref()?.iter().next());
    let label = labels.map(|(key, value)| (Arc::from(&**key), Arc::from(&**value)));
    let object = owner.object.as_ref();
    let object =
        object.and_then(|object| mark_of(POD_UID, object.uid.as_deref()).or(mark_of(POD_NAME, object.name.as_deref())));
    let controller = owner.controller.as_ref();
    let controller = controller
        .and_then(|one| mark_of(CONTROLLER_UID, Some(&one.uid)).or(mark_of(CONTROLLER_NAME, Some(&one.name))));
    object.or(controller).or(label)
}

/// What a reference leaves out matches anything.
fn says(text: Option<&str>, is: &str) -> bool {
    text.is_none_or(|text| text.is_empty() || text == is)
}

fn is_object(object: &ObjectReference, pod: &Pod) -> bool {
    says(object.uid.as_deref(), &pod.uid.to_string())
        && says(object.name.as_deref(), pod.key.name())
        && says(object.namespace.as_deref(), pod.key.namespace())
}

/// Whether an owner of the pod is the one that is wanted, be it the one that controls the pod or not, where that is not said.
fn is_owned_by(reference: &ReservationControllerReference, pod: &Pod) -> bool {
    let mut owners = pod.owners();
    says(Some(&reference.namespace), pod.key.namespace())
        && owners.any(|(owner, controller)| {
            (reference.controller.is_none() || reference.controller == controller)
                && says(Some(&reference.uid), &owner.uid.to_string())
                && says(Some(&reference.name), &owner.name)
                && says(Some(&reference.kind), &owner.kind)
                && says(Some(&reference.api_version), &owner.api_version)
        })
}

#[cfg(test)]
mod tests {
    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_scheduler_framework::pod::{FurtherOwner, Owner, Template};
    use serde_json::{Value, json};

    use super::*;

    fn owner(name: &str, uid: &str) -> Arc<Owner> {
        let (api_version, kind) = ("apps/v1".into(), "ReplicaSet".into());
        Arc::new(Owner { api_version, kind, name: name.into(), uid: Uid::from(uid) })
    }

    fn matches(owners: Value, namespace: &str, name: &str, app: &str, controller: &str) -> bool {
        let controller = (!controller.is_empty()).then(|| owner(controller, "u"));
        let labels = [("app", app)].into_iter().collect();
        let pod = Pod {
            key: ObjectKey::new(namespace, name),
            uid: Uid::from("1"),
            template: Arc::new(Template { labels, ..Template::default() }),
            controller,
            ..Pod::default()
        };
        matches_pod(owners, &pod)
    }

    fn matches_pod(owners: Value, pod: &Pod) -> bool {
        let owners: Vec<ReservationOwner> = serde_json::from_value(owners).unwrap();
        let owners = Owners::new(&owners).unwrap();
        let is_owner = owners.match_pod(pod);
        let has = |mark: &Mark| marks(pod).any(|(key, value)| (key, &*value) == (&*mark.0, &*mark.1));
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
    fn a_term_may_name_an_owner_that_does_not_control_the_pod() {
        let further = |name: &str, uid: &str, controller| FurtherOwner { owner: owner(name, uid), controller };
        let pod = Pod {
            key: ObjectKey::new("ns", "p"),
            controller: Some(owner("rs", "u")),
            further_owners: [further("job", "v", None), further("set", "w", Some(false))].into(),
            ..Pod::default()
        };
        for (reference, expected) in [
            (json!({"name": "job"}), true),
            (json!({"name": "set", "uid": "w"}), true),
            (json!({"name": "job", "uid": "w"}), false),
            (json!({"name": "rs", "controller": true}), true),
            (json!({"name": "rs", "controller": false}), false),
            (json!({"name": "set", "controller": false}), true),
            (json!({"name": "set", "controller": true}), false),
            (json!({"name": "job", "controller": false}), false),
            (json!({"controller": false}), true),
        ] {
            let mut whole = json!({"apiVersion": "", "kind": "", "name": "", "uid": ""});
            whole.as_object_mut().unwrap().extend(reference.as_object().unwrap().clone());
            assert_eq!(matches_pod(json!([{"controller": whole}]), &pod), expected, "{reference}");
        }
    }

    #[test]
    fn the_version_of_the_api_of_a_pod_does_not_matter() {
        let object = json!([{"object": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "ns"}}]);
        assert!(matches_pod(object, &Pod { key: ObjectKey::new("ns", "p"), ..Pod::default() }));
    }

    #[test]
    fn a_selector_that_is_none_is_an_error() {
        let bad = json!([{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}]);
        assert!(Owners::new(&serde_json::from_value::<Vec<ReservationOwner>>(bad).unwrap()).is_err());
    }
}
