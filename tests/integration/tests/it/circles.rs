//! The modules of every crate use each other in one direction.
//!
//! A module is a file below `src/` with the folder of its name. What the crate root re-exports counts as the module's that declares it. What is compiled for
//! tests alone may use any module.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use integration::installed::repository;

/// A handler names the type of the table in which it stands, and depends on nothing else of that module.
const TABLE: (&str, &str) = ("webhooks/handlers/src", "Ctx");

/// Modules, each with those that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every member of the workspace that is a library.
fn crates() -> Vec<PathBuf> {
    let manifest = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let sources = members.split('"').skip(1).step_by(2).map(|member| repository(member).join("src"));
    sources.filter(|source| source.join("lib.rs").exists()).collect()
}

fn graph(source: &Path) -> Graph {
    let mut graph = Graph::new();
    for entry in fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()) {
        let module = entry.file_stem().unwrap().to_string_lossy().into_owned();
        // The root and programs name all modules.
        if !["lib", "main", "bin"].contains(&&*module) {
            collect(&entry, 1, graph.entry(module).or_default());
        }
    }
    let root = fs::read_to_string(source.join("lib.rs")).unwrap();
    let declared = declared(&root);
    for module in of_tests(&root) {
        graph.remove(&module);
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    let is_named = |name: &str| source.ends_with(TABLE.0) && name == TABLE.1;
    for (module, used) in &mut graph {
        let names = std::mem::take(used).into_iter().filter(|name| !is_named(name));
        let others = names.map(|name| declared.get(&name).cloned().unwrap_or(name));
        *used = others.filter(|other| other != module && modules.contains(other)).collect();
    }
    graph
}

/// What a crate root re-exports, with the module that declares it.
fn declared(root: &str) -> BTreeMap<String, String> {
    let mut declared = BTreeMap::new();
    let code = without_tests(root);
    for (_, rest) in code.split("pub").skip(1).filter_map(|rest| rest.split_once(" use ")) {
        let Some((path, _)) = rest.split_once(';') else { continue };
        let path = path.trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty()) {
            let name = name.rsplit([' ', ':']).next().unwrap_or(name);
            declared.insert(name.to_owned(), module.to_owned());
        }
    }
    declared
}

/// The modules of a file that are compiled for tests alone.
fn of_tests(root: &str) -> Vec<String> {
    let items = root.split("#[cfg(test)]").skip(1).filter_map(|item| item.split_once(';')).map(|(item, _)| item.trim());
    items.filter_map(|item| item.strip_prefix("mod ")).map(str::to_owned).collect()
}

/// A text without comments and without what is compiled for tests alone: the item behind each `#[cfg(test)]`.
fn without_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let text = lines.join("\n");
    let mut parts = text.split("#[cfg(test)]");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        code.push_str(&part[end_of_item(part)..]);
    }
    code
}

/// Where an item ends: behind its semicolon or its last brace.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(character, ';' | '}') {
            return at + 1;
        }
    }
    text.len()
}

/// Adds what a file, or the files of a folder, use. `depth`: how many `super::` lead from there to the root.
fn collect(path: &Path, depth: usize, found: &mut BTreeSet<String>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    if path.is_dir() {
        let parent = fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
        let of_tests = of_tests(&parent);
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let is_of_tests =
            |entry: &Path| of_tests.iter().any(|module| entry.file_stem().is_some_and(|name| name == &**module));
        for entry in entries.filter(|entry| !is_of_tests(entry)) {
            collect(&entry, depth + 1, found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.extend(used(&fs::read_to_string(path).unwrap(), depth));
    }
}

/// The names behind `crate::`, or behind as many `super::` as lead to the root.
fn used(text: &str, depth: usize) -> BTreeSet<String> {
    let code = without_tests(text);
    let mut found = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            let begins = !code[..at].ends_with("::") && !code[..at].ends_with(char::is_alphanumeric);
            if begins {
                first_names(&code[at + root.len()..], &mut found);
            }
        }
    }
    found
}

/// The name at the start of a path, or the names at the start of each path in braces.
fn first_names(path: &str, found: &mut BTreeSet<String>) {
    let name = |text: &str| text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let Some(inside) = path.strip_prefix('{') else {
        found.insert(name(path));
        return;
    };
    let (mut depth, mut begins) = (0, true);
    for (at, character) in inside.char_indices() {
        match character {
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => begins = true,
            _ if begins && !character.is_whitespace() => {
                found.insert(name(&inside[at..]));
                begins = false;
            }
            _ => {}
        }
    }
}

/// The modules that are left when those that use none of the others are taken away, again and again.
fn circles(mut graph: Graph) -> Graph {
    loop {
        let modules: BTreeSet<String> = graph.keys().cloned().collect();
        let before = graph.len();
        graph.retain(|_, used| !used.is_disjoint(&modules));
        if graph.len() == before {
            return graph;
        }
    }
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let crates = crates();
    assert!(crates.len() > 20);
    let mut modules = 0;
    for source in crates {
        let graph = graph(&source);
        modules += graph.len();
        let circles = circles(graph);
        assert!(circles.is_empty(), "{}: these modules use each other: {circles:#?}", source.display());
    }
    assert!(modules > 200, "{modules}");
}

#[test]
fn the_embedded_servers_modules_use_their_own_group_and_those_above() {
    let source = repository("tests/envtest/src");
    let text = fs::read_to_string(source.join("lib.rs")).unwrap();
    let (_, modules) = text.split_once("\npub mod ").unwrap();
    let mut groups = BTreeMap::new();
    for (number, group) in format!("pub mod {modules}").split("\n\n").enumerate() {
        let names = group.lines().map(|line| line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';')));
        groups.extend(names.map(|name| (name.unwrap().to_owned(), number)));
    }
    assert!(groups.len() > 30);
    for (module, used) in graph(&source) {
        for other in used {
            assert!(groups[&other] <= groups[&module], "{module} uses {other}, which stands in a later group");
        }
    }
}

#[test]
fn uses_are_found_alone_in_braces_and_behind_super() {
    let text = "//! [`crate::doc`]\nuse crate::{\n    a::{b, c},\n    d,\n    e::f::{self, g},\n};\nlet x = crate::h::i();\nuse super::super::j;\nuse super::k;\n#[cfg(test)]\nuse crate::l;\n#[cfg(test)]\nmod m { use crate::{n}; }\nuse crate::o;";
    let names = |depth| used(text, depth).into_iter().collect::<Vec<_>>();
    assert_eq!(names(1), ["a", "d", "e", "h", "k", "o", "super"]);
    assert_eq!(names(2), ["a", "d", "e", "h", "j", "o"]);
}

#[test]
fn what_the_root_re_exports_is_the_modules_that_declares_it() {
    let root = "mod a;\npub mod b;\n#[cfg(test)]\nmod testing;\npub use a::{One, c::Two};\npub(crate) use crate::b::Three as Four;\n#[cfg(test)]\npub use testing::Five;";
    let declared = declared(root);
    let declared: Vec<_> = declared.iter().map(|(name, module)| format!("{module} {name}")).collect();
    assert_eq!(declared, ["b Four", "a One", "a Two"]);
    assert_eq!(of_tests(root), ["testing"]);
}

#[test]
fn no_plugin_of_the_scheduler_uses_another() {
    // Each crate, the modules that it has at least, and what its plugins share.
    for (crate_, least, shared) in [("kubernetes", 15, &["rated"] as &[&str]), ("koordinator", 9, &[])] {
        let graph = graph(&repository("controllers/scheduler/plugins").join(crate_).join("src"));
        assert!(graph.len() >= least && shared.iter().all(|module| graph.contains_key(*module)), "{graph:#?}");
        let plugins = graph.iter().filter(|(module, _)| !shared.contains(&&***module));
        let uses = plugins.flat_map(|(plugin, used)| used.iter().map(move |other| (plugin, other)));
        let uses: Vec<_> = uses.filter(|(_, other)| !shared.contains(&&***other)).collect();
        assert!(uses.is_empty(), "plugins that use others: {uses:?}");
    }
}

#[test]
fn modules_that_use_each_other_over_a_third_are_found() {
    let graph = |uses: &[(&str, &str)]| -> Graph {
        uses.iter().map(|(module, used)| ((*module).to_owned(), used.split(' ').map(str::to_owned).collect())).collect()
    };
    let found = circles(graph(&[("a", "b"), ("b", "c"), ("c", "a d"), ("d", ""), ("e", "a")]));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["a", "b", "c", "e"]);
    assert!(circles(graph(&[("a", "b c"), ("b", "c"), ("c", "")])).is_empty());
}
