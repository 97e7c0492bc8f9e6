//! What is published is whole: it says what it is, fits what it depends on, and holds the files that it is compiled from.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use integration::installed::repository;
use serde_json::{Value, json};

use crate::{
    doors::metadata,
    readme::{blocks, broken_links},
};

/// The package from which all others that are published follow.
const FACADE: &str = "koord";

/// Categories of crates.io; it refuses a package that names one it does not have.
const CATEGORIES: [&str; 14] = [
    "algorithms",
    "api-bindings",
    "asynchronous",
    "command-line-interface",
    "config",
    "data-structures",
    "development-tools::procedural-macro-helpers",
    "development-tools::profiling",
    "development-tools::testing",
    "encoding",
    "network-programming",
    "simulation",
    "web-programming::http-client",
    "web-programming::http-server",
];

/// What every package has beside its sources.
const BESIDE_SOURCES: [&str; 7] =
    [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "LICENSE", "NOTICE", "README.md"];

/// The most that crates.io takes, compressed.
const PACKAGE_BYTES_MAX: u64 = 10 << 20;

/// The packages of the workspace that are published.
pub(crate) fn published(metadata: &Value) -> Vec<&Value> {
    metadata["packages"].as_array().unwrap().iter().filter(|package| package["publish"].is_null()).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    value[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn package<'a>(metadata: &'a Value, name: &str) -> &'a Value {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().find(|package| text(package, "name") == name).unwrap_or_else(|| panic!("no package {name}"))
}

fn folder(package: &Value) -> &Path {
    Path::new(text(package, "manifest_path")).parent().unwrap()
}

/// Dependencies on other packages of the workspace.
fn inner_dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["path"].is_string())
}

/// A package and all of the workspace that it needs outside of its tests.
fn needed_by(metadata: &Value, name: &str) -> BTreeSet<String> {
    let (mut needed, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        if needed.contains(&name) {
            continue;
        }
        let dependencies = inner_dependencies(package(metadata, &name)).filter(|it| text(it, "kind") != "dev");
        open.extend(dependencies.map(|dependency| text(dependency, "name").to_owned()));
        needed.insert(name);
    }
    needed
}

/// What a registry, docs.rs or a reader of its page would miss.
fn lacks(package: &Value) -> Vec<String> {
    let is_keyword = |word: &&str| {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "_-+".contains(letter);
        word.len() <= 20 && word.starts_with(|first: char| first.is_ascii_alphanumeric()) && word.chars().all(known)
    };
    let (keywords, categories) = (texts(package, "keywords"), texts(package, "categories"));
    let known = |category: &&str| CATEGORIES.contains(category);
    let demands = [
        ("a name that begins with that of the facade", text(package, "name").starts_with(FACADE)),
        ("a description", text(package, "description").len() > 20),
        ("a license", text(package, "license") == "Apache-2.0"),
        ("a rust-version", !text(package, "rust_version").is_empty()),
        ("a page of its own", text(package, "readme") == "README.md"),
        ("one to five keywords", (1..=5).contains(&keywords.len()) && keywords.iter().all(is_keyword)),
        ("one to five categories", (1..=5).contains(&categories.len()) && categories.iter().all(known)),
        ("documentation of all features", package["metadata"]["docs"]["rs"]["all-features"] == true),
    ];
    let missing = demands.into_iter().filter(|(_, is_met)| !is_met);
    missing.map(|(what, _)| format!("{} lacks {what}", text(package, "name"))).collect()
}

/// Why a package from a registry could not have this dependency.
fn misfit(metadata: &Value, from: &str, dependency: &Value) -> Option<String> {
    let (to, version, is_dev) = (text(dependency, "name"), text(dependency, "req"), text(dependency, "kind") == "dev");
    // Left out of what is published.
    if is_dev && version == "*" {
        return None;
    }
    let other = package(metadata, to);
    if !other["publish"].is_null() {
        return Some(format!("{from} is published and needs {to}, which is not"));
    }
    if version != format!("={}", text(other, "version")) {
        return Some(format!("{from} wants {to} {version}; packages fit those of their own version alone"));
    }
    let is_circle = is_dev && needed_by(metadata, to).contains(from);
    is_circle.then(|| format!("{from} and {to} need each other: its tests must name the path of {to} alone"))
}

fn misfits(metadata: &Value, from: &Value) -> Vec<String> {
    inner_dependencies(from).filter_map(|dependency| misfit(metadata, text(from, "name"), dependency)).collect()
}

/// The files of a package, as `cargo package` would send them.
fn files(package: &Value) -> BTreeSet<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["package", "--list", "--allow-dirty", "--offline", "-p", text(package, "name"), "--manifest-path"])
        .arg(repository("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect()
}

/// Where a path leads from a folder, unless out of what both are paths in.
pub(crate) fn resolved(folder: &Path, reference: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for component in Path::new(reference).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path)
}

/// What the compiler reads of other files: texts, bytes, and modules whose path is written.
fn references(source: &str) -> Vec<&str> {
    let starts = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
    let after = starts.iter().flat_map(|start| source.split(*start).skip(1));
    after.filter_map(|rest| rest.split('"').next()).collect()
}

/// The files that sources refer to, and the references that lead out of the package.
fn referred(package: &Value, files: &BTreeSet<PathBuf>) -> (BTreeSet<PathBuf>, Vec<String>) {
    let (mut within, mut outside) = (BTreeSet::new(), Vec::new());
    for file in files.iter().filter(|file| file.starts_with("src") && file.extension().is_some_and(|it| it == "rs")) {
        let source = fs::read_to_string(folder(package).join(file)).unwrap();
        for reference in references(&source) {
            match resolved(file.parent().unwrap(), reference) {
                Some(path) => _ = within.insert(path),
                None => outside.push(format!("{}: {}: {reference}", text(package, "name"), file.display())),
            }
        }
    }
    (within, outside)
}

#[test]
fn the_facade_and_all_that_it_needs_are_published_and_nothing_else() {
    let metadata = metadata();
    let names: BTreeSet<String> = published(&metadata).into_iter().map(|it| text(it, "name").to_owned()).collect();
    assert_eq!(names, needed_by(&metadata, FACADE));
    assert!(names.len() > 10, "{names:?}");
}

#[test]
fn what_is_published_says_what_it_is() {
    let metadata = metadata();
    let lacks: Vec<String> = published(&metadata).into_iter().flat_map(lacks).collect();
    assert!(lacks.is_empty(), "{}", lacks.join("\n"));
    let addresses: BTreeSet<&str> = published(&metadata).into_iter().map(|it| text(it, "repository")).collect();
    assert_eq!(addresses.len(), 1, "the packages are of one repository: {addresses:?}");
}

#[test]
fn each_lack_is_found() {
    let bare = json!({"name": "envtest", "keywords": ["a b"], "categories": ["kubernetes"], "metadata": null});
    assert_eq!(lacks(&bare).len(), 8, "{:?}", lacks(&bare));
}

#[test]
fn packages_depend_on_those_of_their_own_version_alone() {
    let metadata = metadata();
    let wrong: Vec<String> = published(&metadata).into_iter().flat_map(|it| misfits(&metadata, it)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_dependency_that_does_not_fit_is_found() {
    let on = |name: &str, version: &str, kind: &str| json!({"name": name, "req": version, "kind": kind, "path": "/"});
    let package = |name: &str, publish: Value, dependencies: &[Value]| json!({"name": name, "version": "0.1.0", "publish": publish, "dependencies": dependencies});
    let metadata = json!({"packages": [
        package("core", Value::Null, &[on("runtime", "=0.1.0", "dev"), on("runtime", "*", "dev")]),
        package("runtime", Value::Null, &[on("core", "*", ""), on("own", "=0.1.0", ""), on("core", "=0.1.0", "")]),
        package("own", json!([]), &[]),
    ]});
    let found: Vec<String> = published(&metadata).into_iter().flat_map(|it| misfits(&metadata, it)).collect();
    assert_eq!(
        found,
        [
            "core and runtime need each other: its tests must name the path of runtime alone",
            "runtime wants core *; packages fit those of their own version alone",
            "runtime is published and needs own, which is not",
        ]
    );
}

#[test]
fn a_package_holds_its_sources_what_they_refer_to_and_no_more() {
    let metadata = metadata();
    for package in published(&metadata) {
        let (name, files) = (text(package, "name"), files(package));
        let missing = BESIDE_SOURCES.into_iter().skip(1).filter(|file| !files.contains(Path::new(file)));
        let missing: Vec<&str> = missing.collect();
        assert!(missing.is_empty(), "{name} lacks {missing:?}");
        let (referred, outside) = referred(package, &files);
        assert!(outside.is_empty(), "sources refer to what is in no package:\n{}", outside.join("\n"));
        let unlisted: Vec<&PathBuf> = referred.difference(&files).collect();
        assert!(unlisted.is_empty(), "{name}: `include` of Cargo.toml leaves out {unlisted:?}");
        let is_needed = |file: &&PathBuf| {
            file.starts_with("src")
                || referred.contains(*file)
                || BESIDE_SOURCES.iter().any(|it| Path::new(it) == **file)
        };
        let needless: Vec<&PathBuf> = files.iter().filter(|file| !is_needed(file)).collect();
        assert!(needless.is_empty(), "{name} holds {needless:?}");
        let sizes = files.iter().filter_map(|file| fs::metadata(folder(package).join(file)).ok());
        let bytes: u64 = sizes.map(|file| file.len()).sum();
        assert!((1_000..PACKAGE_BYTES_MAX).contains(&bytes), "{name} has {bytes} bytes");
    }
}

#[test]
fn a_reference_is_found_and_one_that_leads_out_is_known() {
    let source = r#"const A: &str = include_str!("a.txt"); #[path = "../b.rs"] mod b; include_bytes!("../../../c");"#;
    assert_eq!(references(source), ["a.txt", "../../../c", "../b.rs"]);
    let from = |reference| resolved(Path::new("src/rules"), reference);
    assert_eq!(from("a.txt"), Some("src/rules/a.txt".into()));
    assert_eq!(from("../../tests/b.rs"), Some("tests/b.rs".into()));
    assert_eq!(from("../../../c"), None);
}

/// Lines without indentation and signs of documentation, and without those that rustdoc hides.
fn bare_lines(text: &str) -> Vec<&str> {
    let bare = text.lines().map(|line| line.trim_start_matches(['/', '!', ' ']).trim_end());
    bare.filter(|line| *line != "#" && !line.starts_with("# ")).collect()
}

/// The first column of the table of features.
fn features_shown(page: &str) -> BTreeSet<&str> {
    let section = page.split_once("\n## Features\n").map_or("", |(_, rest)| rest);
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_page_of_each_package_is_true() {
    let metadata = metadata();
    let root = Path::new(text(&metadata, "workspace_root"));
    for package in published(&metadata) {
        let (name, page) = (text(package, "name"), folder(package).join("README.md"));
        let content = fs::read_to_string(&page).unwrap();
        assert!(content.starts_with(&format!("# {name}\n")), "{name}");
        let oldest = format!("\nMinimal supported Rust version: Rust {}.\n", text(package, "rust_version"));
        assert!(content.contains(&oldest), "{name}: {oldest}");
        assert!(content.contains("docs/library.md)"), "{name} does not lead to the guide");
        let features: BTreeSet<&str> = package["features"].as_object().unwrap().keys().map(String::as_str).collect();
        let optional: BTreeSet<&str> = features.into_iter().filter(|feature| *feature != "default").collect();
        assert_eq!(features_shown(&content), optional, "{name}");
        let broken = broken_links(page.strip_prefix(root).unwrap().to_str().unwrap());
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        let blocks = blocks(&content);
        assert!(!blocks.is_empty(), "{name} shows nothing");
        for (file, block) in blocks {
            let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
            let (source, block) = (bare_lines(&source), bare_lines(block));
            assert!(
                source.windows(block.len()).any(|lines| lines == block),
                "{name}: {file} does not have\n{block:#?}"
            );
        }
    }
}

#[test]
fn the_page_about_development_names_each_package_that_is_published() {
    let metadata = metadata();
    let page = fs::read_to_string(repository("docs/development.md")).unwrap();
    let section = page.split_once("\n## Publishing\n").unwrap().1.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let names: BTreeSet<&str> = published(&metadata).into_iter().map(|package| text(package, "name")).collect();
    assert_eq!(rows.collect::<BTreeSet<_>>(), names);
}

/// Before the first release `.ci/nightly` compares public items with those of this commit.
#[test]
fn the_baseline_of_public_items_is_one_whole_commit_id() {
    let baseline = fs::read_to_string(repository("tests/data/semver-baseline")).unwrap();
    let id = baseline.strip_suffix('\n').unwrap_or(&baseline);
    assert!(id.len() == 40 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{baseline:?}");
}
