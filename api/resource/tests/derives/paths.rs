//! Paths of columns, scale and selectable fields that compile, and that API servers accept.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use koord_resource::{
    Resource, Schema,
    declare::Profile,
    document::{Declared, assert_legal, custom_resource_definition},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod parts {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use koord_resource::{IntOrString, Schema};
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    #[derive(Clone, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    #[koord(removed(since = "v1", name = "legacy", type = Option<String>))]
    pub struct WellSpec {
        size: i32,
        zone: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_public: Option<bool>,
        port: IntOrString,
        #[serde(rename = "a.b")]
        dotted: String,
        pipes: Vec<Pipe>,
        rows: Vec<Vec<Pipe>>,
        pumps: BTreeMap<String, Pipe>,
        #[koord(schemaless, preserve_unknown_fields)]
        anything: Value,
        #[koord(renamed(since = "v1", from = "bottom"))]
        depth: Pipe,
    }

    #[derive(Clone, Serialize, Deserialize, Schema)]
    pub struct WellStatus {
        size: i32,
        selector: String,
        #[serde(default)]
        #[koord(list_type = "map", list_map_key = "type")]
        conditions: Vec<Condition>,
    }

    #[derive(Clone, Serialize, Deserialize, Schema)]
    pub struct Pipe {
        name: String,
    }

    #[derive(Clone, Serialize, Deserialize, Schema)]
    pub struct Pair<T> {
        one: T,
    }

    #[derive(Clone, Serialize, Deserialize, Schema)]
    pub struct Loose {
        #[serde(flatten)]
        pipe: Pipe,
    }

    #[derive(Clone, Serialize, Deserialize, Schema)]
    #[serde(transparent)]
    pub struct Shell {
        pipe: Pipe,
    }
}

type Spec = parts::WellSpec;

/// How water is lifted.
#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(tag = "kind")]
enum Engine {
    Steam { boiler: String },
    Wind { blades: i32 },
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Window {
    hours: u32,
}

/// A well, whose root has every kind of field that a path may begin with.
#[derive(Clone, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", status, older(version = "v1beta1"))]
#[koord(removed(since = "v1", name = "note", type = Option<String>))]
#[koord(scale(spec = ".spec.size", status = ".status.size", selector = ".status.selector"))]
#[koord(selectable(".spec.zone", ".spec.isPublic", ".spec.size", ".spec.pumps.first.name"))]
// Versions that differ in their schema differ in what is selectable too, or servers refuse both.
#[koord(selectable(".data.key", ".shell.name", since = "v1"))]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Owner", type = "string", path = ".metadata.labels['example.com/owner']"))]
#[koord(column(name = "Kind", type = "string", path = ".kind"))]
#[koord(column(name = "Dotted", type = "string", path = ".spec['a.b']"))]
#[koord(column(name = "All", type = "string", path = ".spec.*"))]
#[koord(column(name = "Port", type = "string", path = ".spec.port"))]
#[koord(column(name = "Pipe", type = "string", path = ".spec.pipes[0].name"))]
#[koord(column(name = "Pipes", type = "string", path = ".spec.pipes[*].name"))]
#[koord(column(name = "Row", type = "string", path = ".spec.rows[0][0].name"))]
#[koord(column(name = "Pump", type = "string", path = ".spec.pumps.first.name"))]
#[koord(column(name = "Anything", type = "string", path = ".spec.anything.at.all"))]
#[koord(column(name = "Depth", type = "string", path = ".spec.depth.name"))]
#[koord(column(name = "Ready", type = "string", path = ".status.conditions[?(@.type=='Ready')].status"))]
#[koord(column(name = "Data", type = "string", path = ".data.key"))]
#[koord(column(name = "Label", type = "string", path = ".selector.matchLabels.app"))]
#[koord(column(name = "First", type = "string", path = ".list[0].name"))]
#[koord(column(name = "Extra", type = "string", path = ".extra.at.all"))]
#[koord(column(name = "Unknown", type = "string", path = ".kept.unknown"))]
#[koord(column(name = "Loose", type = "string", path = ".loose.name"))]
#[koord(column(name = "Shell", type = "string", path = ".shell.name"))]
#[koord(column(name = "One", type = "string", path = ".pair.one"))]
#[koord(column(name = "Boiler", type = "string", path = ".engine.boiler"))]
#[koord(column(name = "Hours", type = "integer", path = ".window.hours"))]
#[koord(column(name = "Legacy", type = "string", path = ".spec.legacy", until = "v1"))]
#[koord(column(name = "Note", type = "string", path = ".note", until = "v1"))]
struct Well {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Box<parts::WellStatus>>,
    data: BTreeMap<String, String>,
    selector: LabelSelector,
    list: Vec<parts::Pipe>,
    #[koord(schemaless, preserve_unknown_fields)]
    extra: Value,
    #[koord(preserve_unknown_fields)]
    kept: parts::Pipe,
    loose: parts::Loose,
    shell: parts::Shell,
    pair: parts::Pair<String>,
    engine: Engine,
    #[koord(schemars)]
    window: Window,
}

#[test]
fn paths_go_wherever_the_schema_goes() {
    assert_legal::<Well>();
}

#[test]
fn a_path_that_ends_leads_to_what_was_removed() {
    let newest = Declared::of::<Well>();
    let document = custom_resource_definition(&[newest, newest.older("v1beta1")], Profile::Compatible);
    let shown = |version: usize| {
        let columns = document["spec"]["versions"][version]["additionalPrinterColumns"].as_array().unwrap();
        columns.iter().rev().take(2).map(|column| column["jsonPath"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(0), ".window.hours .engine.boiler");
    assert_eq!(shown(1), ".note .spec.legacy");
    let of_older = document["spec"]["versions"][1]["additionalPrinterColumns"].as_array().unwrap();
    assert!(of_older.iter().any(|column| column["jsonPath"] == ".spec.*"), "{of_older:#?}");
}
