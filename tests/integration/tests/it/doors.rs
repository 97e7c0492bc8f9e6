//! Who may depend on whom. The table is the one of docs/architecture.md; the manifests are held against it.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// Each crate and the crates of this house that it may depend on, directly, outside its tests.
const DOORS: &[(&str, &[&str])] = &[
    ("koord-schema", &[]),
    ("koord-macros", &[]),
    ("koord-resource", &["koord-schema", "koord-macros"]),
    ("koord-scheduling", &["koord-resource", "koord-schema"]),
    ("koord-api", &["koord-resource", "koord-scheduling", "koord-schema"]),
    ("koord-config", &["koord-resource"]),
    ("koord-quota", &["koord-api", "koord-resource", "koord-scheduling", "koord-schema"]),
    ("koord-listen", &[]),
    ("koord-runtime", &["koord-listen", "koord-resource", "koord-schema"]),
    ("koord-webhook", &["koord-listen", "koord-resource", "koord-runtime", "koord-schema"]),
    ("koord", &["koord-macros", "koord-resource", "koord-schema", "koord-runtime", "koord-webhook", "envtest"]),
    ("koord-profile", &["koord-api", "koord-resource", "koord-runtime", "koord-scheduling", "koord-schema"]),
    (
        "koord-manager-controllers",
        &["koord-api", "koord-profile", "koord-resource", "koord-runtime", "koord-scheduling", "koord-schema"],
    ),
    (
        "koord-webhooks",
        &[
            "koord-api",
            "koord-profile",
            "koord-quota",
            "koord-resource",
            "koord-runtime",
            "koord-scheduling",
            "koord-schema",
            "koord-webhook",
        ],
    ),
    ("envtest", &["koord-listen", "koord-schema", "koord-resource", "koord-scheduling"]),
    ("hollow", &["koord-api", "koord-resource", "koord-runtime"]),
];

/// The crates of the root folders `bins`, `tests` and `examples`: they wire things together, within the rules of [`FORBIDDEN`].
const WIRING: &[&str] = &["bins", "tests", "examples"];

/// Who must not reach whom, however long the way: the crate, what it must not link, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    ("koord-manager", &["envtest", "hollow"], "a production binary carries no test server"),
    ("crdgen", &["envtest", "hollow"], "printing documents needs no server"),
    ("koord-envtest", &["koord-runtime", "koord-webhook", "koord-api"], "the server serves any cluster, not only ours"),
    ("koord-runtime", &["koord-api", "envtest"], "the runtime serves other operators too"),
    ("koord-webhook", &["koord-api", "envtest"], "the webhook server serves other operators too"),
    ("koord-webhooks", &["koord-manager-controllers"], "brains meet in koord-api or in a crate of their own"),
    ("koord-manager-controllers", &["koord-webhooks"], "brains meet in koord-api or in a crate of their own"),
    ("koord-resource", &["tokio", "kube", "hyper", "axum"], "what a declared type is needs no input and output"),
    ("koord-schema", &["tokio", "kube", "hyper", "axum", "k8s-openapi"], "schemas are data"),
    (
        "koord-scheduling",
        &["tokio", "kube", "hyper", "axum", "koord-api"],
        "the embedded server and every operator use it",
    ),
    ("koord-quota", &["tokio", "kube", "hyper", "axum", "koord-runtime"], "rules are functions of plain data"),
];

struct Crate {
    folder: String,
    /// Direct dependencies outside tests and build scripts; the optional ones too.
    uses: BTreeSet<String>,
    /// The same without the optional ones.
    always_uses: BTreeSet<String>,
}

fn workspace() -> BTreeMap<String, Crate> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(format!("{root}/Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let top = metadata["workspace_root"].as_str().expect("a root").to_owned();
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| {
            let folder = package["manifest_path"].as_str().expect("a manifest").to_owned();
            let direct = |optional_too: bool| -> BTreeSet<String> {
                package["dependencies"]
                    .as_array()
                    .expect("dependencies")
                    .iter()
                    .filter(|dependency| dependency["kind"].is_null())
                    .filter(|dependency| optional_too || dependency["optional"] == false)
                    .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                    .collect()
            };
            let entry = Crate {
                folder: folder.trim_start_matches(&top).trim_start_matches('/').to_owned(),
                uses: direct(true),
                always_uses: direct(false),
            };
            (package["name"].as_str().expect("a name").to_owned(), entry)
        })
        .collect()
}

#[test]
fn every_crate_keeps_to_its_doors() {
    let workspace = workspace();
    let doors: BTreeMap<&str, &[&str]> = DOORS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, member) in &workspace {
        let ours: Vec<&String> = member.uses.iter().filter(|used| workspace.contains_key(*used)).collect();
        match doors.get(name.as_str()) {
            Some(allowed) => wrong.extend(
                ours.iter()
                    .filter(|used| !allowed.contains(&used.as_str()))
                    .map(|used| format!("{name} may not depend on {used}")),
            ),
            None if WIRING.iter().any(|folder| member.folder.starts_with(folder)) => {}
            None => wrong.push(format!(
                "{name} ({}) has no doors: add a row to DOORS and to docs/architecture.md",
                member.folder
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nobody_reaches_what_is_forbidden_however_long_the_way() {
    let workspace = workspace();
    let mut wrong = Vec::new();
    for (from, forbidden, why) in FORBIDDEN {
        assert!(
            workspace.contains_key(*from),
            "{from} is no crate of this workspace; its row in FORBIDDEN proves nothing"
        );
        let mut reached = BTreeMap::from([((*from).to_owned(), (*from).to_owned())]);
        let mut open = vec![(*from).to_owned()];
        while let Some(name) = open.pop() {
            for used in workspace.get(&name).into_iter().flat_map(|member| &member.always_uses) {
                let way = format!("{} → {used}", reached[&name]);
                if reached.insert(used.clone(), way).is_none() {
                    open.push(used.clone());
                }
            }
        }
        wrong.extend(forbidden.iter().filter_map(|target| reached.get(*target)).map(|way| format!("{way}: {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_names_crates_that_exist() {
    let workspace = workspace();
    let unknown: Vec<&str> = DOORS
        .iter()
        .flat_map(|(name, allowed)| std::iter::once(name).chain(*allowed))
        .copied()
        .filter(|name| !workspace.contains_key(*name))
        .collect();
    assert!(unknown.is_empty(), "no such crates: {unknown:?}");
}
