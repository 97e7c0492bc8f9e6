use std::collections::BTreeSet;

use koord_schema::{
    field::{Errors, Path},
    structural::legality,
};
use serde_json::{Map, Value, json};

use super::schema;
use crate::{declare::kubernetes::descriptions::DESCRIPTIONS, walk::kubernetes::kubernetes_types};

/// Types that contain a JSONSchemaProps, which contains itself.
const ENDLESS: [&str; 5] = [
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
];

/// Types with a list whose keys may be absent, which API servers accept of themselves and of no custom resource.
const ABSENT_KEYS: [&str; 7] = [
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.flowcontrol.v1.FlowSchema",
    "io.k8s.api.flowcontrol.v1.FlowSchemaStatus",
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationStatus",
    "io.k8s.api.resource.v1.ResourceClaim",
    "io.k8s.api.resource.v1.ResourceClaimStatus",
];

macro_rules! by_package {
    ([] $($module:ident $package:literal: $($type:ident)+;)+) => {
        vec![$(($package, &[$(stringify!($type)),+] as &[&str])),+]
    };
}

/// All types, by package of their definitions.
fn declared() -> Vec<(&'static str, &'static [&'static str])> {
    kubernetes_types!([by_package] [])
}

fn names() -> impl Iterator<Item = String> {
    declared().into_iter().flat_map(|(package, types)| types.iter().map(move |type_| format!("{package}.{type_}")))
}

/// A schema without prose, with required fields in order.
fn structure(schema: Value) -> Value {
    let entry = |(name, value): (String, Value)| {
        let value = match value {
            Value::String(_) if name == "description" => return None,
            Value::Array(fields) if name == "required" => {
                let fields: BTreeSet<&str> = fields.iter().filter_map(Value::as_str).collect();
                json!(fields)
            }
            value => structure(value),
        };
        Some((name, value))
    };
    match schema {
        Value::Object(members) => Value::Object(members.into_iter().filter_map(entry).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(structure).collect()),
        scalar => scalar,
    }
}

/// The schema that controller-gen writes for each of the embedded types, by definition.
fn golden() -> Map<String, Value> {
    let text = include_str!("../../../../tests/data/embedded_types.yaml");
    let document = crate::yaml::parse(text).unwrap();
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    document.pointer(properties).and_then(Value::as_object).unwrap().clone()
}

#[test]
fn embedded_types_are_what_controller_gen_writes() {
    let golden = golden();
    assert!(golden.contains_key("io.k8s.api.batch.v1.CronJobSpec"));
    for (name, wanted) in golden {
        let ours = structure(serde_json::to_value(schema(&name)).unwrap());
        assert_eq!(ours, structure(wanted), "{name}");
    }
}

#[test]
fn every_type_with_fields_is_declared() {
    for (package, types) in declared() {
        let text = koord_builtins::openapi_package(package).unwrap();
        let definitions: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let fielded = definitions.iter().filter(|(_, definition)| definition.get("properties").is_some());
        let defined: BTreeSet<&str> = fielded.filter_map(|(name, _)| name.rsplit('.').next()).collect();
        let declared: BTreeSet<&str> = types.iter().copied().collect();
        assert_eq!(declared.difference(&defined).next(), None, "{package}");
        // Of these, specs embed only some.
        if package != "io.k8s.apimachinery.pkg.apis.meta.v1" {
            let missing: Vec<&str> =
                defined.difference(&declared).copied().filter(|name| !name.ends_with("List")).collect();
            assert_eq!(missing, [""; 0], "{package}");
        }
    }
}

#[test]
fn api_servers_accept_what_is_declared() {
    for name in names().filter(|name| !ENDLESS.contains(&name.as_str())) {
        let schema = schema(&name);
        assert_eq!(schema.not_structural, None, "{name}");
        let document = json!({"type": "object", "properties": {"spec": schema}});
        let errors = legality::check(&document, &Path::root("schema")).errors;
        assert_eq!(!errors.is_empty(), ABSENT_KEYS.contains(&name.as_str()), "{name}: {errors:?}");
    }
}

#[test]
fn a_type_that_contains_itself_is_refused() {
    for name in ENDLESS {
        let mut errors = Errors::new();
        schema(name).check_structural(&Path::root("spec"), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let endless = ENDLESS[4];
        let wanted = format!(
            "spec: Forbidden: type {name}: {endless} contains itself; mark the field `schemaless, preserve_unknown_fields`"
        );
        assert_eq!(texts, [wanted]);
    }
}

#[test]
fn descriptions_are_those_of_fields_that_exist() {
    for (name, description, fields) in DESCRIPTIONS {
        let schema = schema(name);
        assert_eq!(schema.description.as_deref(), Some(description), "{name}");
        let described: BTreeSet<&str> = fields.iter().map(|(field, _)| *field).collect();
        let defined: BTreeSet<&str> = schema.properties.keys().map(String::as_str).collect();
        assert_eq!(described, defined, "{name}");
    }
}
