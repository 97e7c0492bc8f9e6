//! Schemas of the types of Kubernetes that stand in CRDs, as controller-gen writes them.
//!
//! Those of specs are computed from the OpenAPI documents of the built-in kinds (feature `kubernetes`). By hand are those that these
//! documents do not describe: their JSON is not that of their fields, or their rules are markers of the Go source alone.

#[cfg(feature = "kubernetes")]
mod computed;
#[cfg(feature = "kubernetes")]
mod descriptions;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON,
    apimachinery::pkg::{
        api::resource::Quantity as TextQuantity,
        apis::meta::v1::{Condition, MicroTime, ObjectMeta, Time},
        runtime::RawExtension,
        util::intstr::IntOrString as TextIntOrString,
    },
};
use koord_schema::Schema as Node;
use serde_json::Number;

use super::{Emit, Schema, Shape, anything, choice, int_or_string, object, primitive, property, text};

macro_rules! by_hand {
    ($($type:ty, $name:literal, $shape:ident => $schema:expr;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl Schema for $type {
                const SHAPE: Shape = Shape::$shape;
                fn schema(_: Emit) -> Node {
                    $schema
                }
            }
        )*

        /// The schema of a definition that is written by hand.
        #[cfg(feature = "kubernetes")]
        fn by_hand(name: &str) -> Option<Node> {
            $(
                if name == $name {
                    return Some($schema);
                }
            )*
            None
        }
    };
}

by_hand! {
    // The API server knows what stands in metadata; a CRD may not say more than this.
    ObjectMeta, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", Object => object("Standard object metadata.");
    Time, "io.k8s.apimachinery.pkg.apis.meta.v1.Time", String => primitive::date_time();
    MicroTime, "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", String => primitive::date_time();
    TextQuantity, "io.k8s.apimachinery.pkg.api.resource.Quantity", IntOrString => primitive::quantity();
    TextIntOrString, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", IntOrString => int_or_string();
    RawExtension, "io.k8s.apimachinery.pkg.runtime.RawExtension", Object =>
        Node { preserve_unknown_fields: Some(true), ..object("") };
    JSON, "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", Anything => anything();
    Condition, "io.k8s.apimachinery.pkg.apis.meta.v1.Condition", Object => condition();
}

/// A word with an optional DNS prefix, such as `example.com/Ready`.
fn qualified_name(schema: Node) -> Node {
    const PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
    Node { max_length: Some(316), pattern: Some(PATTERN.to_owned()), ..schema }
}

fn described(description: &str, schema: Node) -> Node {
    Node { description: Some(description.to_owned()), ..schema }
}

fn condition() -> Node {
    let reason = Node {
        min_length: Some(1),
        max_length: Some(1024),
        pattern: Some("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$".to_owned()),
        ..text("")
    };
    let type_ = qualified_name(text(""));
    let message = Node { max_length: Some(32768), ..text("") };
    let generation = Node { minimum: Some(Number::from(0)), ..<i64 as Schema>::schema(Emit::default()) };
    let mut condition = object("One aspect of the object's state.");
    for (name, required, schema, description) in [
        ("lastTransitionTime", true, primitive::date_time(), "When the status last changed."),
        ("message", true, message, "What happened, for people."),
        ("observedGeneration", false, generation, "The generation of the object that was judged."),
        ("reason", true, reason, "What happened, as one word for programs."),
        ("status", true, choice("", &["True", "False", "Unknown"]), "Whether the condition holds."),
        ("type", true, type_, "Which aspect this is."),
    ] {
        property(&mut condition, name, required, described(description, schema));
    }
    condition
}
