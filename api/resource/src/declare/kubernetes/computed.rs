//! Schemas that are computed from the OpenAPI documents of the built-in kinds, by the rules of controller-gen 0.20.
//!
//! openapi-gen, which makes those documents, and controller-gen read the same Go source, but not all of it alike. controller-gen has
//! neither the words of `+enum` nor the zeros that Go writes for fields that are never left out.

use koord_builtins::{BuiltinType, Shape as Built};
use koord_schema::{MapType, Schema as Node, SchemaType};
use serde_json::Value;

use super::{by_hand, descriptions::describe, qualified_name};
use crate::{
    declare::{Emit, Schema, Shape, anything, array, int_or_string, map, object, primitive, property, text, typed},
    walk::kubernetes::kubernetes_types,
};

/// Fields whose default stands in the OpenAPI document and is none in the Go source, because Go always writes them; and two whose default
/// is the name of a constant, which controller-gen does not look up.
const WITHOUT_DEFAULT: [(&str, &[&str]); 8] = [
    ("io.k8s.api.apps.v1.StatefulSetOrdinals", &["start"]),
    ("io.k8s.api.apps.v1.StatefulSetSpec", &["serviceName"]),
    ("io.k8s.api.apps.v1.StatefulSetStatus", &["availableReplicas"]),
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", &["cachingMode", "kind"]),
    ("io.k8s.api.core.v1.Event", &["reportingComponent", "reportingInstance"]),
    ("io.k8s.api.core.v1.NodeRuntimeHandler", &["name"]),
    ("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", &["matchingPrecedence"]),
    ("io.k8s.api.flowcontrol.v1.QueuingConfiguration", &["handSize", "queueLengthLimit", "queues"]),
];

/// Types that have the fields of a LocalObjectReference among their own, and with them its being atomic.
const ATOMIC: [&str; 5] = [
    "io.k8s.api.core.v1.ConfigMapEnvSource",
    "io.k8s.api.core.v1.ConfigMapProjection",
    "io.k8s.api.core.v1.ConfigMapVolumeSource",
    "io.k8s.api.core.v1.SecretEnvSource",
    "io.k8s.api.core.v1.SecretProjection",
];

/// Types whose field `error` has rules that are markers of the Go source alone.
const PORT_STATUSES: [&str; 2] = ["io.k8s.api.core.v1.PortStatus", "io.k8s.api.networking.v1.IngressPortStatus"];

macro_rules! computed {
    ([] $($module:ident $package:literal: $($type:ident)+;)+) => {$($(
        #[diagnostic::do_not_recommend]
        impl Schema for crate::walk::kubernetes::$module::$type {
            const SHAPE: Shape = Shape::Object;
            fn schema(_: Emit) -> Node {
                schema(concat!($package, ".", stringify!($type)))
            }
        }
    )+)+};
}

kubernetes_types! { [computed] [] }

/// The schema of a definition.
fn schema(name: &str) -> Node {
    let mut build = Build::default();
    let schema = build.definition(name);
    match build.problem {
        None => schema,
        Some(problem) => Node { not_structural: Some(format!("type {name}: {problem}")), ..Node::default() },
    }
}

/// A schema that is being built.
#[derive(Default)]
struct Build<'n> {
    /// The definition that is being built, behind those that it stands in.
    within: Vec<&'n str>,
    /// Why there is no structural schema.
    problem: Option<String>,
}

impl<'n> Build<'n> {
    fn definition(&mut self, name: &'n str) -> Node {
        if let Some(schema) = by_hand(name) {
            return schema;
        }
        if self.within.contains(&name) {
            self.problem =
                Some(format!("{name} contains itself; mark the field `schemaless, preserve_unknown_fields`"));
            return Node::default();
        }
        let Some(type_) = koord_builtins::definition(name) else {
            self.problem = Some(format!("the OpenAPI documents do not define {name}"));
            return Node::default();
        };
        self.within.push(name);
        let mut schema = self.node(type_);
        self.within.pop();
        add_markers(name, &mut schema);
        describe(name, &mut schema);
        schema
    }

    fn node(&mut self, type_: &'static BuiltinType) -> Node {
        let mut node = match &type_.shape {
            Built::Any => anything(),
            Built::Boolean => typed(SchemaType::Boolean, ""),
            Built::Integer => formatted(type_, typed(SchemaType::Integer, "")),
            Built::Number => formatted(type_, typed(SchemaType::Number, "")),
            Built::String => formatted(type_, text("")),
            Built::IntOrString => int_or_string(),
            Built::Quantity => primitive::quantity(),
            Built::Object(fields) => {
                let mut schema = object("");
                for (name, field) in fields {
                    let required = type_.required.contains(name);
                    let default = self.stated_default(name, field, required);
                    property(&mut schema, name, required, Node { default, ..self.node(field) });
                }
                schema
            }
            Built::Map(values) => map(self.node(values)),
            Built::List(items) => Node {
                list_type: type_.list_type,
                list_map_keys: type_.list_map_keys.iter().map(ToString::to_string).collect(),
                ..array(self.node(items))
            },
            Built::Named(named) => self.definition(&named.name),
        };
        node.map_type = type_.map_type.or(node.map_type);
        node
    }

    /// The default of a field that the Go source states.
    fn stated_default(&self, name: &str, field: &BuiltinType, required: bool) -> Option<Value> {
        let default = field.default.as_ref().filter(|default| !(is_empty(default) || required && is_zero(default)))?;
        let stated =
            !WITHOUT_DEFAULT.iter().any(|(owner, fields)| self.within.last() == Some(owner) && fields.contains(&name));
        stated.then(|| default.clone())
    }
}

fn formatted(type_: &BuiltinType, schema: Node) -> Node {
    Node { format: type_.format.as_deref().map(str::to_owned), ..schema }
}

/// Whether it is what Go writes for a scalar that was never set.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether it is what Go writes for a struct that was never set.
fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Adds what controller-gen reads in the Go source and the OpenAPI documents do not have.
fn add_markers(name: &str, schema: &mut Node) {
    if ATOMIC.contains(&name) {
        schema.map_type = Some(MapType::Atomic);
    }
    if PORT_STATUSES.contains(&name)
        && let Some(error) = schema.properties.get_mut("error")
    {
        *error = qualified_name(std::mem::take(error));
        schema.required.insert(0, "error".to_owned());
    }
}

#[cfg(test)]
mod tests;
