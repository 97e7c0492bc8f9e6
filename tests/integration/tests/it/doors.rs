//! Who may depend on whom. docs/architecture.md says it; the manifests are held against that page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder of suites: a package there without a line of its own may depend on any other.
const SUITES: &str = "tests/";

/// A package of the workspace, by its manifest.
#[derive(Clone, Debug, Default)]
struct Package {
    folder: String,
    /// Direct dependencies outside of tests and build scripts, the optional ones too.
    uses: BTreeSet<String>,
    /// The same without the optional ones.
    always_uses: BTreeSet<String>,
}

/// What the page says.
#[derive(Clone, Debug, Default)]
struct Page {
    /// Folders and packages of the rooms. A folder may end with `*`; such a row names no package.
    rooms: Vec<(String, Option<String>)>,
    /// A package and those that it may depend on.
    doors: Vec<(String, BTreeSet<String>)>,
    /// A package, what it must not reach, and why.
    forbidden: Vec<(String, BTreeSet<String>, String)>,
}

/// What `cargo metadata` says of the packages of the workspace.
pub(crate) fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(format!("{ROOT}/Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn workspace() -> BTreeMap<String, Package> {
    let metadata = metadata();
    let root = metadata["workspace_root"].as_str().expect("a root");
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().map(|package| package_of(package, root)).collect()
}

fn package_of(package: &Value, root: &str) -> (String, Package) {
    let manifest = package["manifest_path"].as_str().expect("a manifest");
    let folder = manifest.trim_start_matches(root).trim_start_matches('/').trim_end_matches("/Cargo.toml").to_owned();
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    let direct = |optional_too: bool| -> BTreeSet<String> {
        let direct = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
        let wanted = direct.filter(|dependency| optional_too || dependency["optional"] == false);
        wanted.filter_map(|dependency| dependency["name"].as_str().map(str::to_owned)).collect()
    };
    let name = package["name"].as_str().expect("a name").to_owned();
    (name, Package { folder, uses: direct(true), always_uses: direct(false) })
}

fn page() -> Page {
    Page::read(&fs::read_to_string(format!("{ROOT}/docs/architecture.md")).expect("the page"))
}

impl Page {
    fn read(text: &str) -> Self {
        let section = |title: &str| {
            let (_, rest) = text.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
            rest.split_once("\n## ").map_or(rest, |(section, _)| section)
        };
        let mut page = Self::default();
        for line in section("Rooms").lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let name = |cell: &str| cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).map(str::to_owned);
            page.rooms.push((name(cells[0]).expect("a folder"), name(cells[1])));
        }
        for line in section("Doors").split("```").skip(1).step_by(2).flat_map(str::lines) {
            let names = |list: &str| list.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
            if let Some((name, allowed)) = line.split_once("──►") {
                page.doors.push((name.trim().to_owned(), names(allowed.trim())));
            } else if let Some((name, rest)) = line.split_once("──✕") {
                let (targets, why) = rest.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
                page.forbidden.push((name.trim().to_owned(), names(targets.trim()), why.to_owned()));
            } else {
                assert!(line.is_empty(), "a line that is no door: {line}");
            }
        }
        page
    }
}

/// Packages without a room, and rooms without a package.
fn misplaced(page: &Page, workspace: &BTreeMap<String, Package>) -> Vec<String> {
    let is_room_of = |(folder, named): &(String, Option<String>), name: &str, package: &Package| {
        let is_in = match folder.strip_suffix('*') {
            Some(parent) => package.folder.starts_with(parent),
            None => package.folder == *folder,
        };
        is_in && named.as_ref().is_none_or(|named| named == name)
    };
    let rooms =
        |name: &str, package: &Package| page.rooms.iter().filter(|room| is_room_of(room, name, package)).count();
    let packages = workspace.iter().filter_map(|(name, package)| match rooms(name, package) {
        1 => None,
        found => Some(format!("{name} ({}) has {found} rooms", package.folder)),
    });
    let is_empty = |room: &&(String, Option<String>)| !workspace.iter().any(|(name, it)| is_room_of(room, name, it));
    let empty = page.rooms.iter().filter(is_empty).map(|(folder, _)| format!("no package is in the room {folder}"));
    packages.chain(empty).collect()
}

/// Dependencies without a door, doors that nobody uses, and doors of or to packages that do not exist.
fn wrong_doors(page: &Page, workspace: &BTreeMap<String, Package>) -> Vec<String> {
    let mut wrong = Vec::new();
    let doors: BTreeMap<&str, &BTreeSet<String>> =
        page.doors.iter().map(|(name, allowed)| (name.as_str(), allowed)).collect();
    if doors.len() != page.doors.len() {
        wrong.push("a package has two lines of doors".to_owned());
    }
    for (name, package) in workspace {
        let used: BTreeSet<&String> = package.uses.iter().filter(|used| workspace.contains_key(*used)).collect();
        let Some(allowed) = doors.get(name.as_str()) else {
            if !package.folder.starts_with(SUITES) {
                wrong.push(format!("{name} ({}) has no line of doors", package.folder));
            }
            continue;
        };
        let without_door = used.iter().filter(|used| !allowed.contains(**used));
        wrong.extend(without_door.map(|used| format!("{name} may not depend on {used}")));
        let unused = allowed.iter().filter(|allowed| !used.contains(allowed));
        wrong.extend(unused.map(|unused| format!("{name} does not use its door to {unused}")));
    }
    let unknown = doors.keys().filter(|name| !workspace.contains_key(**name));
    wrong.extend(unknown.map(|name| format!("{name} has doors and is no package")));
    wrong
}

/// The ways by which a package reaches what it must not.
fn forbidden_ways(page: &Page, workspace: &BTreeMap<String, Package>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, forbidden, why) in &page.forbidden {
        let ours = |name: &&String| name.starts_with("koord") && !workspace.contains_key(*name);
        let unknown = std::iter::once(from).chain(forbidden).filter(ours);
        wrong.extend(unknown.map(|name| format!("{name} is no package, so that it proves nothing")));
        let mut ways = BTreeMap::from([(from.clone(), from.clone())]);
        let mut open = vec![from.clone()];
        while let Some(name) = open.pop() {
            for used in workspace.get(&name).into_iter().flat_map(|package| &package.always_uses) {
                let way = format!("{} → {used}", ways[&name]);
                if !ways.contains_key(used) {
                    ways.insert(used.clone(), way);
                    open.push(used.clone());
                }
            }
        }
        wrong.extend(forbidden.iter().filter_map(|target| ways.get(target)).map(|way| format!("{way}: {why}")));
    }
    wrong
}

#[test]
fn every_package_has_one_room_and_every_room_a_package() {
    let misplaced = misplaced(&page(), &workspace());
    assert!(misplaced.is_empty(), "{}", misplaced.join("\n"));
}

/// What of a package is called differently: its name ends with that of its folder, and its library has the name of the package.
fn names_that_differ(metadata: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('-', "_");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .flat_map(|package| {
            let (name, manifest) = (text(&package["name"]), text(&package["manifest_path"]));
            let folder = manifest.rsplit('/').nth(1).unwrap_or_default().to_owned();
            let targets = package["targets"].as_array().expect("targets").iter();
            let is_library = |target: &&Value| {
                let kinds = target["kind"].as_array().expect("kinds");
                kinds.iter().any(|kind| kind == "lib" || kind == "proc-macro")
            };
            let other =
                targets.filter(is_library).map(|library| text(&library["name"])).find(|library| *library != name);
            let folder = Some(folder).filter(|folder| !format!("_{name}").ends_with(&format!("_{folder}")));
            let differs = [("folder", folder), ("library", other)];
            differs.map(|(what, other)| other.map(|other| format!("{name}: its {what} is called {other}")))
        })
        .flatten()
        .collect()
}

#[test]
fn a_package_its_folder_and_its_library_have_one_name() {
    // What such a server is called; that name of a package is taken.
    let taken = ["koord_apiserver: its folder is called envtest", "koord_apiserver: its library is called envtest"];
    assert_eq!(names_that_differ(&metadata()), taken);
    let target = |kind: &str, name: &str| json!({ "kind": [kind], "name": name });
    let package = |name: &str, folder: &str, library: &str| {
        json!({
            "name": name, "manifest_path": format!("/house/{folder}/Cargo.toml"),
            "targets": [target("test", "it"), target("lib", library)],
        })
    };
    let packages = [
        package("koord-what-if", "scheduler/what_if", "koord_what_if"),
        package("koord-api", "types", "koord_api"),
        package("koord-core", "core", "core"),
    ];
    let differ = ["koord_api: its folder is called types", "koord_core: its library is called core"];
    assert_eq!(names_that_differ(&json!({ "packages": packages })), differ);
}

#[test]
fn every_dependency_has_a_door_and_every_door_is_used() {
    let wrong = wrong_doors(&page(), &workspace());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_package_reaches_what_it_must_not_however_long_the_way() {
    let page = page();
    assert!(page.forbidden.len() > 10, "the page forbids little: {:?}", page.forbidden);
    let wrong = forbidden_ways(&page, &workspace());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The check itself, on a small house with one mistake of each kind.
#[test]
fn each_mistake_is_found() {
    let page = Page::read(
        "
## Rooms
| folder | package | what it knows |
|---|---|---|
| `core` | `koord-core` | decisions |
| `client` | `koord-client` | requests |
| `attic` | `koord-attic` | nothing |
| `bins/*` | one per program | wiring |

## Doors
```
koord-core    ──►
koord-client  ──► koord-core, koord-listen
koord-gone    ──► koord-core
```
```
koord-core    ──✕ tokio: decisions do not wait
```
",
    );
    let package = |folder: &str, uses: &[&str]| {
        let uses: BTreeSet<String> = uses.iter().map(ToString::to_string).collect();
        Package { folder: folder.to_owned(), always_uses: uses.clone(), uses }
    };
    let workspace = BTreeMap::from([
        ("koord-core".to_owned(), package("core", &["koord-timer"])),
        ("koord-client".to_owned(), package("client", &["koord-core"])),
        ("koord-timer".to_owned(), package("timer", &["tokio"])),
        ("program".to_owned(), package("bins/program", &[])),
        ("suite".to_owned(), package("tests/suite", &["koord-core"])),
    ]);
    let found =
        [misplaced(&page, &workspace), wrong_doors(&page, &workspace), forbidden_ways(&page, &workspace)].concat();
    assert_eq!(
        found,
        [
            "koord-timer (timer) has 0 rooms",
            "suite (tests/suite) has 0 rooms",
            "no package is in the room attic",
            "koord-client does not use its door to koord-listen",
            "koord-core may not depend on koord-timer",
            "koord-timer (timer) has no line of doors",
            "program (bins/program) has no line of doors",
            "koord-gone has doors and is no package",
            "koord-core → koord-timer → tokio: decisions do not wait",
        ]
    );
}
