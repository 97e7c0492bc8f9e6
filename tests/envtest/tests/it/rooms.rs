//! The modules of the crate use each other in one direction, as its documentation says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const TESTS: &str = "#[cfg(test)]\nmod tests {";

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Modules by the number of their group.
fn groups() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let (_, modules) = text.split_once("\npub mod ").unwrap();
    let mut groups = BTreeMap::new();
    for (number, group) in format!("pub mod {modules}").split("\n\n").enumerate() {
        for line in group.lines() {
            let name = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';')).unwrap();
            groups.insert(name.to_owned(), number);
        }
    }
    groups
}

fn files(path: PathBuf, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
        found.push(path);
    }
}

/// The modules that a text names behind `crate::`, alone or in braces.
fn used(text: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let mut used = BTreeSet::new();
    for part in text.split("crate::").skip(1) {
        let Some(inside) = part.strip_prefix('{') else {
            used.insert(word(part));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, character) in inside.char_indices() {
            match character {
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                '{' => depth += 1,
                ',' if depth == 0 => begins = true,
                _ if begins && !character.is_whitespace() => {
                    used.insert(word(&inside[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    used
}

fn graph(groups: &BTreeMap<String, usize>) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in groups.keys() {
        let mut found = Vec::new();
        for path in [source().join(format!("{module}.rs")), source().join(module)] {
            if path.exists() {
                files(path, &mut found);
            }
        }
        assert!(!found.is_empty(), "{module} has no file");
        for file in found {
            let text = fs::read_to_string(file).unwrap();
            let text = text.split(TESTS).next().unwrap();
            let used = used(text).into_iter().filter(|name| name != module && groups.contains_key(name));
            graph.entry(module.clone()).or_default().extend(used);
        }
    }
    graph
}

#[test]
fn no_module_uses_one_of_a_later_group() {
    let groups = groups();
    assert!(groups.len() > 30);
    for (module, used) in graph(&groups) {
        for other in used {
            assert!(groups[&other] <= groups[&module], "{module} uses {other}, which stands in a later group");
        }
    }
}

#[test]
fn no_two_modules_use_each_other() {
    let mut graph = graph(&groups());
    while !graph.is_empty() {
        let free: Vec<String> =
            graph.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
        assert!(!free.is_empty(), "these modules use each other: {graph:#?}");
        for module in free {
            graph.remove(&module);
            for used in graph.values_mut() {
                used.remove(&module);
            }
        }
    }
}

#[test]
fn uses_are_found_alone_and_in_braces() {
    let text = "use crate::{\n    encode, environment,\n    options::{Delete, List},\n    status::{self, ApiError},\n};\ncrate::store::View";
    let expected = ["encode", "environment", "options", "status", "store"].map(str::to_owned);
    assert_eq!(used(text), BTreeSet::from(expected));
}
