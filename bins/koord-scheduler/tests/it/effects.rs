//! Every option of the configuration has an effect, or is said to have none.

use std::{collections::BTreeSet, fs, path::Path};

use koord_config::Kind;
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Fields that are read by code of koord-config itself, which resolves profiles.
const RESOLVED: [&str; 5] = ["multi_point", "queue_sort", "pre_filter", "pre_score", "post_bind"];

/// The fields of a schema that are declared to have no effect.
fn without_effect(schema: &Value, found: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if property["description"].as_str().is_some_and(|words| words.contains("Accepted without an effect: ")) {
            found.insert(name.clone());
        }
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| without_effect(member, found)),
        Value::Array(items) => items.iter().for_each(|item| without_effect(item, found)),
        _ => {}
    }
}

/// The sources below a folder, without their tests.
fn sources(folder: &Path, text: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "benches", "target"].contains(&name) {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            let source = fs::read_to_string(&path).unwrap();
            text.push_str(source.split("#[cfg(test)]\nmod tests {").next().unwrap());
        }
    }
}

/// The public fields of the structs in a source.
fn fields(source: &str) -> BTreeSet<String> {
    let structs = source.split("pub struct ").skip(1).filter_map(|rest| rest.split_once("{\n"));
    let bodies = structs.filter_map(|(_, rest)| rest.split("\n}").next());
    let lines = bodies.flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
    lines.map(|(name, _)| name.to_owned()).collect()
}

/// Whether a name stands in a text as a word.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    text.match_indices(name)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next()))
}

fn camel(name: &str) -> String {
    let mut words = name.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap().to_owned();
    words.fold(first, |text, word| text + &word[..1].to_uppercase() + &word[1..])
}

#[test]
fn every_field_of_the_configuration_is_read_or_said_to_have_no_effect() {
    let mut read = String::new();
    for folder in ["plugins/kubernetes", "plugins/koordinator", "runtime", "assembly"] {
        sources(&Path::new(ROOT).join("controllers/scheduler").join(folder).join("src"), &mut read);
    }
    sources(&Path::new(ROOT).join("bins/koord-scheduler/src"), &mut read);
    let mut declared = fields(&fs::read_to_string(Path::new(ROOT).join("api/config/src/scheduler.rs")).unwrap());
    for entry in fs::read_dir(Path::new(ROOT).join("api/config/src/scheduler")).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("resolve.rs") {
            declared.extend(fields(&fs::read_to_string(path).unwrap()));
        }
    }
    assert!(declared.len() > 80, "{declared:?}");
    let mut idle = BTreeSet::new();
    without_effect(&Kind::Scheduler.published_schema().unwrap(), &mut idle);
    assert!(idle.len() > 10, "{idle:?}");
    // What is below a field without an effect has none.
    let below = ["keys", "key_prefixes"];
    let is_known =
        |name: &str| RESOLVED.contains(&name) || idle.contains(camel(name).as_str()) || below.contains(&name);
    let unread: Vec<&String> = declared.iter().filter(|name| !has_word(&read, name) && !is_known(name)).collect();
    assert!(unread.is_empty(), "nobody reads {unread:?}; say so with `no_effect`, or read them");
}
