//! Writes the table of built-in kinds from the OpenAPI v3 documents that a real API server publishes:
//!
//! ```text
//! cargo run -p koord-apiserver --example builtins -- DIR
//! ```
//!
//! `DIR` holds one file per document of `/openapi/v3`, named by its path with `/` written as `__`, beside `index.json`. Two files
//! are made: `src/builtins/resources.txt`, which a person can read and compare, and `openapi.table` of `api/builtins`, the types and paths
//! themselves. Descriptions are dropped: the table is structure only.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::{env, error, fs};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn error::Error>>;

fn main() -> Outcome<()> {
    let source = env::args().nth(1).ok_or("name the folder with the OpenAPI v3 documents")?;
    let source = Path::new(&source);
    let envtest = Path::new(env!("CARGO_MANIFEST_DIR"));

    let index: Value = read(&source.join("index.json"))?;
    let documents: Vec<&str> =
        index["paths"].as_array().ok_or("index.json: no list `paths`")?.iter().filter_map(Value::as_str).collect();

    let mut types: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let mut resources = BTreeSet::new();
    for path in documents {
        let mut document: Value = read(&source.join(format!("{}.json", path.replace('/', "__"))))?;
        drop_prose(&mut document);
        if let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) {
            for (name, schema) in schemas {
                let package = name.rsplit_once('.').map_or("", |(package, _)| package);
                types.entry(package.to_owned()).or_default().insert(name.clone(), schema.clone());
            }
        }
        collect_resources(path, &document["paths"], &mut resources);
        members.push((format!("paths:{path}"), deflate(document["paths"].to_string().as_bytes())?));
    }
    for (package, schemas) in types {
        members.push((format!("types:{package}"), deflate(Value::Object(schemas).to_string().as_bytes())?));
    }

    let mut table = Vec::new();
    let index: Vec<Value> = members.iter().map(|(name, bytes)| json!([name, bytes.len()])).collect();
    serde_json::to_writer(&mut table, &index)?;
    table.push(b'\n');
    for (_, bytes) in members {
        table.extend(bytes);
    }
    fs::write(envtest.join("../../api/builtins/src/openapi.table"), table)?;
    let mut text = String::from(
        "# Written by `cargo run -p koord-apiserver --example builtins`; columns: group/version, resource, kind, scope, verbs.\n",
    );
    for line in resources {
        text.push_str(&line);
        text.push('\n');
    }
    fs::write(envtest.join("src/builtins/resources.txt"), text)?;
    Ok(())
}

fn read(path: &Path) -> Outcome<Value> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

fn deflate(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Removes every description; a property that is named `description` is a schema, not a text, and stays.
fn drop_prose(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("description").is_some_and(Value::is_string) {
                fields.remove("description");
            }
            fields.values_mut().for_each(drop_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_prose),
        _ => {}
    }
}

/// One line per resource and subresource that the paths of a document serve.
fn collect_resources(document: &str, paths: &Value, lines: &mut BTreeSet<String>) {
    let group_version = match document.split('/').collect::<Vec<_>>()[..] {
        ["api", version] => version.to_owned(),
        ["apis", group, version] => format!("{group}/{version}"),
        _ => return,
    };
    let mut found: BTreeMap<String, (String, bool, BTreeSet<&str>)> = BTreeMap::new();
    for (path, item) in paths.as_object().into_iter().flatten() {
        let Some(rest) = path.strip_prefix(&format!("/{document}/")) else { continue };
        let mut segments: Vec<&str> = rest.split('/').filter(|segment| !segment.is_empty()).collect();
        if segments.is_empty() || segments.contains(&"{path}") {
            continue;
        }
        let watch = segments[0] == "watch";
        if watch {
            segments.remove(0);
        }
        let namespaced = segments.len() > 2 && segments[1] == "{namespace}";
        if namespaced {
            segments.drain(..2);
        }
        let name = match segments[..] {
            [resource] | [resource, "{name}"] => resource.to_owned(),
            [resource, "{name}", subresource] => format!("{resource}/{subresource}"),
            _ => continue,
        };
        for (method, operation) in item.as_object().into_iter().flatten() {
            let kind = &operation["x-kubernetes-group-version-kind"];
            let Some(kind_name) = kind["kind"].as_str() else { continue };
            let verb = match (operation["x-kubernetes-action"].as_str(), method.as_str()) {
                _ if watch => "watch",
                (Some("post"), _) | (Some("connect"), "post") => "create",
                (Some("put"), _) | (Some("connect"), "put") => "update",
                (Some("get"), _) | (Some("connect"), "get") => "get",
                (Some("patch"), _) | (Some("connect"), "patch") => "patch",
                (Some("delete"), _) | (Some("connect"), "delete") => "delete",
                (Some("list"), _) => "list",
                (Some("deletecollection"), _) => "deletecollection",
                _ => continue,
            };
            let group = kind["group"].as_str().unwrap_or_default();
            let version = kind["version"].as_str().unwrap_or_default();
            let own = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            let kind = if own == group_version { kind_name.to_owned() } else { format!("{own}/{kind_name}") };
            let entry = found.entry(name.clone()).or_insert_with(|| (kind, false, BTreeSet::new()));
            entry.1 |= namespaced;
            entry.2.insert(verb);
        }
    }
    for (name, (kind, namespaced, verbs)) in found {
        let scope = if namespaced { "namespaced" } else { "cluster" };
        let verbs = verbs.into_iter().collect::<Vec<_>>().join(",");
        lines.insert(format!("{group_version} {name} {kind} {scope} {verbs}"));
    }
}
