//! Derives inside of a `macro_rules!`, which passes types, texts and numbers on as groups.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Convert, Mutate, Resource, Schema, Validate, admission,
    admission::{Handler, Review, Verdict},
    controller,
    controller::{ControllerSpec, ResourceKind},
    controllers,
    convert::Conversion,
    declare::Emit,
    field::{Errors, Path},
    handlers,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

macro_rules! limits {
    ($name:ident, $description:expr, $number:ty, $optional:ty, $least:expr, $default:path) => {
        #[doc = $description]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
        struct $name {
            #[serde(default)]
            #[koord(minimum = $least)]
            count: $number,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[koord(maximum = 9, default_fn($default))]
            limit: $optional,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[koord(items(minimum = $least))]
            steps: Vec<$number>,
        }
    };
}

limits!(Limits, "How much.", u16, Option<u16>, 3, twice);

fn twice(limits: &Limits) -> u16 {
    2 * limits.count
}

#[test]
fn the_schema_sees_through_fragments() {
    let schema = serde_json::to_value(Limits::schema(Emit::default())).unwrap();
    assert_eq!(schema["description"], "How much.");
    assert_eq!(schema["properties"]["count"]["minimum"], 3);
    assert_eq!(schema["properties"]["count"]["type"], "integer");
    assert_eq!(schema["properties"]["limit"]["maximum"], 9);
    assert_eq!(schema["properties"]["steps"]["items"]["minimum"], 3);
    assert_eq!(schema.get("required"), None);
}

#[test]
fn rules_and_defaults_see_through_fragments() {
    let mut limits: Limits = serde_json::from_value(json!({"count": 4, "steps": [3, 2]})).unwrap();
    limits.mutate();
    assert_eq!(limits.limit, Some(8));
    let mut errors = Errors::new();
    limits.validate_schema(&Path::root("limits"), &mut errors);
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["limits.steps[1]"]);
}

// === kinds, handlers and tables ===

macro_rules! kind {
    ($name:ident, $spec:ident, $group:expr, $plural:literal, $older:expr, $before:literal, $number:ty, $hook:expr) => {
        #[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Validate, Convert)]
        #[koord(group = $group, version = "v1", scope = "Cluster", plural = $plural, older(version = $older, storage))]
        #[koord(admission(validate(path = "/validate-meter", name = $hook, on = [Create])))]
        struct $name {
            metadata: ObjectMeta,
            spec: $spec,
        }

        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Convert)]
        struct $spec {
            #[koord(renamed(since = "v1", from = $before))]
            reading: $number,
        }
    };
}

kind!(Meter, MeterSpec, "example.com", "meters", "v1beta1", "value", i64, "vmeter.example.com");

macro_rules! handler {
    ($name:ident, $object:ty, $snapshot:ty, $path:literal) => {
        #[admission(path = $path, name = "vall.example.com", on = [Create])]
        fn $name(_: &Review<'_, $object>, _: &$snapshot) -> Verdict {
            Verdict::allow()
        }
    };
}

handler!(allow_meter, Meter, (), "/validate-all");

#[controller(name = "meters", for = Meter)]
struct Meters;

macro_rules! tables {
    ($handler:expr, $controller:expr) => {
        const HANDLERS: &[Handler<()>] = handlers![$handler, Meter::validating_handler()];
        const CONTROLLERS: &[ControllerSpec] = controllers![$controller];
    };
}

tables!(allow_meter, Meters);

#[test]
fn kinds_and_their_versions_see_through_fragments() {
    let info = Meter::INFO;
    assert_eq!((info.group, info.plural, info.older[0].version), ("example.com", "meters", "v1beta1"));
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Meter", "metadata": {"name": "m"}, "spec": {"reading": 3},
    });
    Conversion::of::<Meter>(&["v1beta1"]).convert(&mut object, "v1beta1").unwrap();
    assert_eq!(object["spec"], json!({"value": 3}));
}

#[test]
fn tables_see_through_fragments() {
    let paths: Vec<&str> = HANDLERS.iter().map(|handler| handler.path).collect();
    assert_eq!(paths, ["/validate-all", "/validate-meter"]);
    assert_eq!(Meter::VALIDATING.entries[0].name, "vmeter.example.com");
    assert_eq!((CONTROLLERS[0].name, CONTROLLERS[0].for_kind), ("meters", ResourceKind::of(&Meter::INFO)));
    let _ = Meters;
}
