//! docs/dependencies.md says what every package is for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The names of the lines `name = …` and `name.workspace = …` in a section of a manifest.
fn names(manifest: &str, is_section: impl Fn(&str) -> bool) -> BTreeMap<&str, &str> {
    let (mut inside, mut names) = (false, BTreeMap::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = is_section(line);
        } else if let Some((name, value)) = line.split_once('=').filter(|_| inside && !line.starts_with('#')) {
            names.insert(name.trim().trim_end_matches(".workspace"), value);
        }
    }
    names
}

/// The packages from crates.io that the workspace declares.
fn declared(workspace: &str) -> BTreeSet<&str> {
    let declared = names(workspace, |section| section == "[workspace.dependencies]");
    declared.into_iter().filter(|(_, value)| !value.contains("path =")).map(|(name, _)| name).collect()
}

fn manifests() -> Vec<PathBuf> {
    let members = names_of_members(&read(format!("{ROOT}/Cargo.toml")));
    members.into_iter().map(|member| Path::new(ROOT).join(member).join("Cargo.toml")).collect()
}

fn names_of_members(workspace: &str) -> Vec<String> {
    let list = workspace.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("members").0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_package_has_a_row_that_says_what_it_is_for() {
    let workspace = read(format!("{ROOT}/Cargo.toml"));
    let page = read(format!("{ROOT}/docs/dependencies.md"));
    let rows: Vec<(&str, &str)> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")).collect();
    let described: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, declared(&workspace), "docs/dependencies.md and Cargo.toml differ");
    assert_eq!(described.len(), rows.len(), "a package has two rows");
    assert!(rows.iter().all(|(_, why)| why.len() > 3), "{rows:?}");
}

#[test]
fn every_package_is_used() {
    let workspace = read(format!("{ROOT}/Cargo.toml"));
    let mut used = BTreeSet::new();
    for manifest in manifests() {
        let text = read(&manifest);
        used.extend(names(&text, |section| section.contains("dependencies")).into_keys().map(str::to_owned));
    }
    let unused: Vec<&str> = declared(&workspace).into_iter().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "declared in Cargo.toml and used by no member: {unused:?}");
}
