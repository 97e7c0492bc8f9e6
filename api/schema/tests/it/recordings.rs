//! What a real API server answered. Without the folder of recordings these tests have nothing to compare and pass.

use std::{io::Write as _, path::PathBuf, time::Duration};

use koord_schema::{
    Schema,
    cel::Rules,
    field::Path,
    structural::{defaults, legality, prune, validate_object},
};
use serde_json::Value;

/// The recorded cases of a group, by name.
pub(crate) fn cases(group: &str) -> Vec<(String, Value)> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared = std::env::var("KOORD_SHARED").unwrap_or_else(|_| beside.to_owned());
    let folder = PathBuf::from(shared).join("corpus/apiserver/cases").join(group);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        // Not through the print macros: the test harness keeps those to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED recordings of {group}: KOORD_SHARED names no folder with them");
        return Vec::new();
    };
    let mut cases: Vec<(String, Value)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap())
        })
        .collect();
    cases.sort_by(|left, right| left.0.cmp(&right.0));
    cases
}

pub(crate) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn is_crd(body: &Value) -> bool {
    body["kind"] == "CustomResourceDefinition"
}

/// The causes of a recorded refusal, each as `field: message`, sorted.
fn recorded_causes(step: &Value) -> Vec<String> {
    let causes = step.pointer("/recorded/body/details/causes").and_then(Value::as_array);
    let mut causes: Vec<String> = causes
        .into_iter()
        .flatten()
        .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect();
    causes.sort();
    causes
}

#[test]
fn schemas_are_refused_as_recorded() {
    let mut compared = 0;
    for (name, case) in cases("crd") {
        for step in list(&case, "steps").iter().filter(|step| is_crd(&step["body"])) {
            let Some(document) = step.pointer("/body/spec/versions/0/schema/openAPIV3Schema") else { continue };
            let at = Path::root("spec.validation.openAPIV3Schema");
            let found: Vec<String> = legality::check(document, &at).errors.iter().map(ToString::to_string).collect();
            // What rules say is compared where CEL is.
            let mut recorded = recorded_causes(step);
            recorded.retain(|cause| cause.starts_with("spec.validation.") && !cause.contains(".rule:"));
            assert_eq!(found, recorded, "{name}");
            compared += 1;
        }
    }
    println!("{compared} schemas compared");
}

#[test]
fn objects_are_refused_and_stored_as_recorded() {
    let mut compared = 0;
    for (name, case) in cases("crd") {
        let Some(crd) = list(&case, "setup").iter().map(|request| &request["body"]).find(|body| is_crd(body)) else {
            continue;
        };
        let document = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let schema: Schema = serde_json::from_value(document.clone()).unwrap();
        let (rules, _) = Rules::compile(&schema, &Path::root(""));
        for step in list(&case, "steps") {
            let collection = step["path"].as_str().is_some_and(|path| path.contains("/widgets"));
            let status = step.pointer("/recorded/status").and_then(Value::as_u64);
            if step["method"] != "POST" || !collection || !matches!(status, Some(201 | 422)) {
                continue;
            }
            // A text body is the request's bytes.
            let mut object = match &step["body"] {
                Value::String(text) => serde_json::from_str(text).unwrap(),
                body => body.clone(),
            };
            if object["kind"] != crd["spec"]["names"]["kind"] {
                continue;
            }
            defaults::apply(&schema, &mut object);
            defaults::drop_needless_nulls(&schema, &mut object);
            prune::prune(&schema, &mut object);
            let mut errors = validate_object(&schema, &object, None);
            if errors.is_empty() {
                errors.extend(rules.evaluate(&object, None, Duration::from_secs(20)));
            }
            let mut found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            found.sort();
            let mut recorded = recorded_causes(step);
            // The object's own metadata is the server's matter.
            recorded.retain(|cause| !cause.starts_with("metadata."));
            assert_eq!(found, recorded, "{name}: {object}");
            if status == Some(201) {
                // The recorder reads -0 as 0.
                let text = |value: &Value| koord_schema::go_text::json(value).replace(":-0,", ":0,");
                assert_eq!(text(&object["spec"]), text(&step["recorded"]["body"]["spec"]), "{name}");
            }
            compared += 1;
        }
    }
    println!("{compared} objects compared");
}
