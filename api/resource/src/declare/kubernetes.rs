//! Schemas of the types of Kubernetes that stand in CRDs, by hand: their published schemas lack the patterns, bounds and
//! merge rules that an API server applies to built-in kinds and that controller-gen writes into CRDs.

use k8s_openapi::{
    api::core::v1::{
        LocalObjectReference, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference, ResourceClaim,
        ResourceRequirements, SecretKeySelector, Taint, Toleration,
    },
    apimachinery::pkg::{
        api::resource::Quantity as TextQuantity,
        apis::meta::v1::{
            Condition, DeleteOptions, LabelSelector, LabelSelectorRequirement, MicroTime, ObjectMeta, OwnerReference,
            Preconditions, Time,
        },
        runtime::RawExtension,
        util::intstr::IntOrString as TextIntOrString,
    },
};
use koord_schema::{ListType, MapType, Schema as Node};
use serde_json::Number;

use super::{Emit, Schema, Shape, array, choice, int_or_string, map, object, primitive, property, text};

macro_rules! by_hand {
    ($($type:ty, $shape:ident => $schema:expr;)*) => {$(
        impl Schema for $type {
            const SHAPE: Shape = Shape::$shape;
            fn schema(_: Emit) -> Node {
                $schema
            }
        }
    )*};
}

by_hand! {
    // The API server knows what stands in metadata; a CRD may not say more than this.
    ObjectMeta, Object => object("Standard object metadata.");
    Time, String => date_time();
    MicroTime, String => date_time();
    TextQuantity, IntOrString => primitive::quantity();
    TextIntOrString, IntOrString => int_or_string();
    RawExtension, Object => Node { preserve_unknown_fields: Some(true), ..object("") };
    LabelSelector, Object => label_selector();
    LabelSelectorRequirement, Object => requirement("A condition on one label.", "In, NotIn, Exists or DoesNotExist.");
    ObjectReference, Object => object_reference();
    LocalObjectReference, Object => local_object_reference();
    OwnerReference, Object => owner_reference();
    Condition, Object => condition();
    DeleteOptions, Object => delete_options();
    Preconditions, Object => preconditions();
    Taint, Object => taint();
    Toleration, Object => toleration();
    NodeSelectorTerm, Object => node_selector_term();
    NodeSelectorRequirement, Object => node_requirement();
    ResourceRequirements, Object => resource_requirements();
    ResourceClaim, Object => resource_claim();
    SecretKeySelector, Object => secret_key_selector();
}

fn date_time() -> Node {
    Node { format: Some("date-time".to_owned()), ..text("") }
}

fn integer(format: &str) -> Node {
    Node { type_: Some(koord_schema::SchemaType::Integer), format: Some(format.to_owned()), ..Node::default() }
}

fn boolean() -> Node {
    Node { type_: Some(koord_schema::SchemaType::Boolean), ..Node::default() }
}

fn described(description: &str, schema: Node) -> Node {
    Node { description: Some(description.to_owned()), ..schema }
}

/// An object out of (name, required, schema, description).
fn fields<const N: usize>(description: &str, fields: [(&str, bool, Node, &str); N]) -> Node {
    let mut object = object(description);
    for (name, required, schema, description) in fields {
        property(&mut object, name, required, described(description, schema));
    }
    object
}

fn atomic(schema: Node) -> Node {
    Node { map_type: Some(MapType::Atomic), ..schema }
}

fn atomic_list(items: Node) -> Node {
    Node { list_type: Some(ListType::Atomic), ..array(items) }
}

fn requirement(description: &str, operators: &str) -> Node {
    fields(
        description,
        [
            ("key", true, text(""), "The label's key."),
            ("operator", true, text(""), operators),
            ("values", false, atomic_list(text("")), "The values for In and NotIn; empty otherwise."),
        ],
    )
}

fn label_selector() -> Node {
    let expressions = requirement("A condition on one label.", "In, NotIn, Exists or DoesNotExist.");
    atomic(fields(
        "Selects objects by their labels; every condition must hold.",
        [
            ("matchExpressions", false, atomic_list(expressions), "Conditions on labels."),
            ("matchLabels", false, map(text("")), "Labels with the value that each must have."),
        ],
    ))
}

fn object_reference() -> Node {
    atomic(fields(
        "Names one object, or a part of it.",
        [
            ("apiVersion", false, text(""), "API version of the object."),
            ("fieldPath", false, text(""), "The part that is meant, such as spec.containers[0]."),
            ("kind", false, text(""), "Kind of the object."),
            ("name", false, text(""), "Name of the object."),
            ("namespace", false, text(""), "Namespace of the object."),
            ("resourceVersion", false, text(""), "The resourceVersion that is meant."),
            ("uid", false, text(""), "UID of the object."),
        ],
    ))
}

fn local_object_reference() -> Node {
    let name = Node { default: Some(serde_json::json!("")), ..text("") };
    atomic(fields("Names one object in the same namespace.", [("name", false, name, "Name of the object.")]))
}

fn secret_key_selector() -> Node {
    let name = Node { default: Some(serde_json::json!("")), ..text("") };
    atomic(fields(
        "Names one key of a Secret in the same namespace.",
        [
            ("key", true, text(""), "Key in the Secret."),
            ("name", false, name, "Name of the Secret."),
            ("optional", false, boolean(), "Whether the Secret or its key may be missing."),
        ],
    ))
}

fn owner_reference() -> Node {
    atomic(fields(
        "Names the object that another one belongs to.",
        [
            ("apiVersion", true, text(""), "API version of the owner."),
            ("blockOwnerDeletion", false, boolean(), "Whether the owner stays until this object is gone."),
            ("controller", false, boolean(), "Whether the owner is the managing controller."),
            ("kind", true, text(""), "Kind of the owner."),
            ("name", true, text(""), "Name of the owner."),
            ("uid", true, text(""), "UID of the owner."),
        ],
    ))
}

fn condition() -> Node {
    let reason = Node {
        min_length: Some(1),
        max_length: Some(1024),
        pattern: Some("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$".to_owned()),
        ..text("")
    };
    let type_ = Node {
        max_length: Some(316),
        pattern: Some(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                .to_owned(),
        ),
        ..text("")
    };
    let message = Node { max_length: Some(32768), ..text("") };
    let generation = Node { minimum: Some(Number::from(0)), ..integer("int64") };
    fields(
        "One aspect of the object's state.",
        [
            ("lastTransitionTime", true, date_time(), "When the status last changed."),
            ("message", true, message, "What happened, for people."),
            ("observedGeneration", false, generation, "The generation of the object that was judged."),
            ("reason", true, reason, "What happened, as one word for programs."),
            ("status", true, choice("", &["True", "False", "Unknown"]), "Whether the condition holds."),
            ("type", true, type_, "Which aspect this is."),
        ],
    )
}

fn preconditions() -> Node {
    fields(
        "What must be true of the object before it is deleted.",
        [
            ("resourceVersion", false, text(""), "The resourceVersion that it must have."),
            ("uid", false, text(""), "The UID that it must have."),
        ],
    )
}

fn delete_options() -> Node {
    fields(
        "How an object is deleted.",
        [
            ("apiVersion", false, text(""), "API version of these options."),
            ("dryRun", false, atomic_list(text("")), "All, to change nothing."),
            ("gracePeriodSeconds", false, integer("int64"), "Seconds until the object is removed; 0 is at once."),
            (
                "ignoreStoreReadErrorWithClusterBreakingPotential",
                false,
                boolean(),
                "Whether to delete an object that cannot be read any more, without its finalizers.",
            ),
            ("kind", false, text(""), "Kind of these options."),
            ("orphanDependents", false, boolean(), "Whether dependents stay; propagationPolicy takes its place."),
            ("preconditions", false, preconditions(), "What must be true of the object."),
            ("propagationPolicy", false, text(""), "Orphan, Background or Foreground."),
        ],
    )
}

fn taint() -> Node {
    fields(
        "Keeps pods away that do not tolerate it.",
        [
            ("effect", true, text(""), "NoSchedule, PreferNoSchedule or NoExecute."),
            ("key", true, text(""), "The taint's key."),
            ("timeAdded", false, date_time(), "When the taint was added."),
            ("value", false, text(""), "The taint's value."),
        ],
    )
}

fn toleration() -> Node {
    fields(
        "Lets a pod onto nodes with a matching taint.",
        [
            ("effect", false, text(""), "The effect that is tolerated; empty for all."),
            ("key", false, text(""), "The key that is tolerated; empty for all."),
            ("operator", false, text(""), "Exists or Equal, which is the default."),
            ("tolerationSeconds", false, integer("int64"), "How long a NoExecute taint is tolerated."),
            ("value", false, text(""), "The value that is tolerated."),
        ],
    )
}

fn node_requirement() -> Node {
    requirement("A condition on one label or field of a node.", "In, NotIn, Exists, DoesNotExist, Gt or Lt.")
}

fn node_selector_term() -> Node {
    atomic(fields(
        "Selects nodes; every condition must hold.",
        [
            ("matchExpressions", false, atomic_list(node_requirement()), "Conditions on labels."),
            ("matchFields", false, atomic_list(node_requirement()), "Conditions on fields."),
        ],
    ))
}

fn resource_claim() -> Node {
    fields(
        "Names a claim of the pod.",
        [
            ("name", true, text(""), "Name of the claim in the pod."),
            ("request", false, text(""), "Name of one request in the claim; empty for all."),
        ],
    )
}

fn resource_requirements() -> Node {
    let claims =
        Node { list_type: Some(ListType::Map), list_map_keys: vec!["name".to_owned()], ..array(resource_claim()) };
    fields(
        "What a container needs.",
        [
            ("claims", false, claims, "Claims of the pod that the container uses."),
            ("limits", false, map(primitive::quantity()), "The most that it may use."),
            ("requests", false, map(primitive::quantity()), "What is set aside for it."),
        ],
    )
}
