//! Published JSON Schemas: complete in themselves, with the defaults that are in force.

#![allow(clippy::unwrap_used, clippy::panic)]

use koord_config::Kind;
use serde_json::{Value, json};

/// Every schema that is published, by its title.
fn all() -> Vec<Value> {
    let of = |kind: Kind| {
        let args = kind.plugins().iter().map(move |args| args.published_schema(kind.api_version()).unwrap());
        std::iter::once(kind.published_schema().unwrap()).chain(args)
    };
    Kind::ALL.into_iter().flat_map(of).collect()
}

fn schema(title: &str) -> Value {
    all().into_iter().find(|schema| schema["title"] == title).unwrap_or_else(|| panic!("no {title}"))
}

fn visit(value: &Value, see: &mut dyn FnMut(&Value)) {
    see(value);
    match value {
        Value::Object(members) => members.values().for_each(|member| visit(member, see)),
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_within_the_schema() {
    for schema in all() {
        let mut references = 0;
        visit(&schema, &mut |value| {
            if let Some(reference) = value["$ref"].as_str() {
                references += 1;
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(schema.pointer(pointer).is_some(), "{}: {reference}", schema["title"]);
            }
        });
        assert!(references > 0 || schema.get("$defs").is_none(), "{}", schema["title"]);
    }
}

#[test]
fn forms_are_patterns_that_every_validator_knows() {
    for schema in all() {
        visit(&schema, &mut |value| assert!(!value["format"].is_string(), "{}: {value}", schema["title"]));
    }
    let timeout = &schema("CoschedulingArgs")["properties"]["defaultTimeout"];
    assert!(timeout["pattern"].is_string() || timeout["anyOf"][0]["pattern"].is_string(), "{timeout}");
}

#[test]
fn defaults_are_those_in_force_and_not_what_is_unset() {
    let reservation = schema("ReservationArgs");
    assert_eq!(reservation["properties"]["gcDurationSeconds"]["default"], 86_400);
    let keys = &reservation["properties"]["preAllocationConfig"]["default"];
    assert_eq!(keys["clusterLabelKey"], "pod.koordinator.sh/is-pre-allocatable");
    let load = schema("LoadAwareSchedulingArgs");
    assert_eq!(load["properties"]["usageThresholds"]["default"], json!({"cpu": 65, "memory": 95}));
    assert_eq!(load["properties"]["supportedResources"].get("default"), None);
    assert_eq!(schema("KubeSchedulerConfiguration")["properties"]["clientConnection"]["default"]["qps"], 50.0);
}

/// What is in force is said once: where the field is declared.
#[test]
fn descriptions_do_not_repeat_defaults() {
    for schema in all() {
        visit(&schema, &mut |value| {
            let words = value["description"].as_str().unwrap_or_default();
            assert!(!words.contains(". Default "), "{}: {words}", schema["title"]);
        });
    }
}

#[test]
fn a_document_has_the_arguments_of_each_plugin_by_its_name() {
    let document = schema("KubeSchedulerConfiguration");
    let cases = document["$defs"]["PluginConfig"]["allOf"].as_array().unwrap();
    assert_eq!(cases.len(), Kind::Scheduler.plugins().len());
    for (case, args) in cases.iter().zip(Kind::Scheduler.plugins()) {
        assert_eq!(case["if"]["properties"]["name"]["const"], args.plugin);
        let reference = case["then"]["properties"]["args"]["anyOf"][0]["$ref"].as_str().unwrap();
        let definition = document.pointer(&reference[1..]).unwrap();
        let alone = args.published_schema(Kind::Scheduler.api_version()).unwrap();
        assert_eq!(definition["properties"], alone["properties"], "{}", args.plugin);
        for (name, shared) in alone["$defs"].as_object().into_iter().flatten() {
            assert_eq!(&document["$defs"][name], shared, "{}: {name}", args.plugin);
        }
    }
}
