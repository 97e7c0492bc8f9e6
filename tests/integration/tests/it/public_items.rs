//! No public item of a published library goes without a word: the pages that `cargo doc` has written are compared with a list of what they had.
//!
//! `cargo doc --workspace --no-deps --all-features`, then
//! `KOORD_DOCS=target/doc UPDATE_PUBLIC_ITEMS=1 cargo test --workspace --test integration public_items` writes the list. It holds items, their methods, fields and variants, and what is exported again by name; not their types, and not which traits
//! they implement.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use integration::installed::repository;
use serde_json::{Value, json};

use crate::{documentation::written, doors::metadata, packaging::published};

const LIST: &str = "tests/data/public-items.txt";

/// Beginnings of the ids of what an item's page describes itself.
const MEMBERS: [&str; 6] =
    ["associatedconstant.", "associatedtype.", "method.", "structfield.", "tymethod.", "variant."];

/// Where an item's page goes on with what others gave it.
const OTHERS: [&str; 6] = [
    "blanket-implementations",
    "deref-methods",
    "foreign-impls",
    "implementors",
    "synthetic-implementations",
    "trait-implementations",
];

fn ids(page: &str) -> impl Iterator<Item = &str> {
    page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next())
}

/// Methods, fields and variants that a page describes.
fn members(page: &str) -> impl Iterator<Item = &str> {
    let own = ids(page).take_while(|id| !OTHERS.iter().any(|other| id.starts_with(other)));
    own.filter(|id| MEMBERS.iter().any(|member| id.starts_with(member)))
}

/// The pages of items that the list of all items leads to, such as `cache/struct.Cache.html`.
fn pages(all: &str) -> impl Iterator<Item = &str> {
    let links = all.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_item = |link: &&str| {
        let file: Vec<&str> = link.rsplit('/').next().unwrap_or_default().split('.').collect();
        !link.contains("..") && matches!(file[..], [_, _, "html"])
    };
    links.filter(is_item)
}

/// An item by its page: `koord_core::cache::Cache` and `struct`.
fn item<'a>(library: &str, page: &'a str) -> (String, &'a str) {
    let (modules, file) = page.rsplit_once('/').unwrap_or(("", page));
    let (kind, name) = file.trim_end_matches(".html").split_once('.').unwrap();
    let path = std::iter::once(library).chain(modules.split('/').filter(|module| !module.is_empty())).chain([name]);
    (path.collect::<Vec<_>>().join("::"), kind)
}

/// The modules around a page, as folders; the root is the empty one.
fn modules(page: &str) -> impl Iterator<Item = &Path> {
    Path::new(page).ancestors().skip(1)
}

/// What the documentation of a library shows, a line each.
fn shown(docs: &Path, library: &str) -> BTreeSet<String> {
    let root = docs.join(library);
    let read = |file: PathBuf| fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let all = read(root.join("all.html"));
    let mut lines = BTreeSet::new();
    let mut folders = BTreeSet::from([Path::new("")]);
    for page in pages(&all) {
        folders.extend(modules(page));
        let (path, kind) = item(library, page);
        // The page of a type alias shows what its target has.
        if kind != "type" {
            lines.extend(members(&read(root.join(page))).map(|member| format!("{path} {member}")));
        }
        lines.insert(format!("{path} {kind}"));
    }
    for folder in folders {
        let index = read(root.join(folder).join("index.html"));
        let module = Path::new(library).join(folder).display().to_string().trim_end_matches('/').replace('/', "::");
        let exported = ids(&index).filter(|id| id.starts_with("reexport."));
        lines.extend(exported.map(|name| format!("{module} {name}")));
    }
    lines
}

/// Names of the libraries that are published.
fn libraries() -> Vec<String> {
    let metadata = metadata();
    let targets = published(&metadata).into_iter().flat_map(|package| package["targets"].as_array().unwrap());
    let is_library = |target: &&Value| [json!(["lib"]), json!(["proc-macro"])].contains(&target["kind"]);
    targets.filter(is_library).map(|target| target["name"].as_str().unwrap().replace('-', "_")).collect()
}

#[test]
fn no_public_item_is_gone() {
    let Some(docs) = written("public items") else { return };
    let now: BTreeSet<String> = libraries().iter().flat_map(|library| shown(&docs, library)).collect();
    assert!(now.len() > 1_000, "{} has only {} items", docs.display(), now.len());
    if env::var_os("UPDATE_PUBLIC_ITEMS").is_some() {
        let lines: Vec<String> = now.iter().map(|line| format!("{line}\n")).collect();
        fs::write(repository(LIST), lines.concat()).unwrap();
    }
    let list = fs::read_to_string(repository(LIST)).unwrap();
    let gone: Vec<&str> = list.lines().filter(|line| !now.contains(*line)).collect();
    assert!(
        gone.is_empty(),
        "public items are gone. If that is meant, CHANGELOG.md has a **breaking** line, and {LIST} is written again \
         (docs/development.md, Publishing):\n{}",
        gone.join("\n")
    );
}

#[test]
fn the_facade_has_whatever_the_resource_library_has() {
    let list = fs::read_to_string(repository(LIST)).unwrap();
    let lines: BTreeSet<&str> = list.lines().collect();
    let of_its_root = |line: &&str| line.strip_prefix("koord_resource::").is_some_and(|rest| !rest.contains("::"));
    let exported = |line: &str| line.replacen("koord_resource::", "koord::", 1);
    let missing: Vec<String> = lines
        .iter()
        .filter(|line| of_its_root(line))
        .map(|line| exported(line))
        .filter(|line| !lines.contains(line.as_str()))
        .collect();
    assert!(missing.is_empty(), "api/koord/src/lib.rs does not export\n{}", missing.join("\n"));
}

#[test]
fn an_items_page_names_its_own_members_and_not_those_of_others() {
    let page = r#"<h2 id="fields"></h2><span id="structfield.key" class="structfield"></span>
        <section id="impl-Cache" class="impl"></section><section id="method.get" class="method"></section>
        <h2 id="trait-implementations"></h2><section id="method.clone" class="method trait-impl"></section>"#;
    assert_eq!(members(page).collect::<Vec<_>>(), ["structfield.key", "method.get"]);
}

#[test]
fn a_librarys_pages_become_lines() {
    let docs = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = docs.path().join("koord_core").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "all.html",
        r#"<link rel="stylesheet" href="../static.files/rustdoc.css"><a href="index.html"></a><h3 id="structs">Structs</h3>
        <ul class="all-items"><li><a href="cache/struct.Cache.html">cache::Cache</a></li><li><a href="type.Result.html">Result</a></li></ul>"#,
    );
    write("index.html", r#"<dt id="reexport.watch"><code>pub use koord_client::watch;</code></dt>"#);
    write("cache/index.html", "");
    write("cache/struct.Cache.html", r#"<section id="method.get" class="method"></section>"#);
    let lines: Vec<String> = shown(docs.path(), "koord_core").into_iter().collect();
    assert_eq!(
        lines,
        [
            "koord_core reexport.watch",
            "koord_core::Result type",
            "koord_core::cache::Cache method.get",
            "koord_core::cache::Cache struct"
        ]
    );
}
