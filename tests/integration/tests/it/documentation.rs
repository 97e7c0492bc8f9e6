//! The pages of `cargo doc` are one book: each link leads to a page, and every crate is near the first one.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use integration::{installed::repository, skipped};
use serde_json::Value;

use crate::{
    doors::metadata,
    packaging::{published, resolved},
    words::rust_files,
};

/// The crate whose page a newcomer opens first.
const FRONT: &str = "koord";

/// How far any other may be from there.
const CLICKS_MAX: usize = 2;

/// The links of the first page where it stands on docs.rs, as far as they are no paths of crates.
const DOCS_RS: &str = "api/koord/src/links/docs-rs.md";

/// The folder that `cargo doc` has written; without one the test is skipped.
pub(crate) fn written(what: &str) -> Option<PathBuf> {
    let Some(docs) = env::var_os("KOORD_DOCS").filter(|folder| !folder.is_empty()) else {
        skipped(what, "KOORD_DOCS names no folder that `cargo doc --workspace --no-deps --all-features` has written");
        return None;
    };
    // As whoever calls names it: from the repository.
    Some(repository(".").join(docs))
}

/// The crates of a package that `cargo doc` documents. A program with the name of its library has no page of its own.
fn documented(package: &Value) -> impl Iterator<Item = String> {
    let targets = package["targets"].as_array().unwrap().iter().filter(|target| target["doc"] == true);
    targets.map(|target| target["name"].as_str().unwrap().replace('-', "_"))
}

fn crates(metadata: &Value) -> BTreeSet<String> {
    metadata["packages"].as_array().unwrap().iter().flat_map(documented).collect()
}

fn first_page(name: &str) -> PathBuf {
    Path::new(name).join("index.html")
}

fn read(docs: &Path, page: &Path) -> String {
    let file = docs.join(page);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Whether a link begins with a scheme, such as `https:`, or with a host.
fn is_elsewhere(link: &str) -> bool {
    link.starts_with("//") || link.split(['/', '.']).next().is_some_and(|start| start.contains(':'))
}

/// The files that a page links, by paths from its own folder. Its last section holds texts of other packages, with links of theirs.
fn links(page: &str) -> BTreeSet<&str> {
    let own = page.split(" id=\"blanket-implementations\"").next().unwrap_or_default();
    let links = own.split(" href=\"").skip(1).filter_map(|rest| rest.split(['"', '#', '?']).next());
    links.filter(|link| !link.is_empty() && !is_elsewhere(link)).collect()
}

/// Whether a link leads to the list of all items on the page of a crate that another one shows as a module: rustdoc writes none.
fn is_list_of_a_module(folder: &Path, link: &str) -> bool {
    link == "all.html" && folder.components().count() > 1
}

/// Whether a file is a page of one of these crates, not a source, a script or a style.
fn is_page(file: &Path, crates: &BTreeSet<String>) -> bool {
    let name = file.iter().next().and_then(OsStr::to_str);
    name.is_some_and(|name| crates.contains(name)) && file.extension().is_some_and(|it| it == "html")
}

/// The pages that are reached from the first pages of crates, and their links that lead to no file.
fn followed(docs: &Path, crates: &BTreeSet<String>) -> (BTreeSet<PathBuf>, Vec<String>) {
    let mut open: Vec<PathBuf> = crates.iter().map(|name| first_page(name)).collect();
    let (mut pages, mut dead) = (BTreeSet::new(), Vec::new());
    while let Some(page) = open.pop() {
        if !pages.insert(page.clone()) {
            continue;
        }
        let (text, folder) = (read(docs, &page), page.parent().unwrap());
        for link in links(&text) {
            match resolved(folder, link).filter(|file| docs.join(file).exists()) {
                Some(file) if is_page(&file, crates) && !pages.contains(&file) => open.push(file),
                None if !is_list_of_a_module(folder, link) => dead.push(format!("{}: {link}", page.display())),
                _ => {}
            }
        }
    }
    dead.sort();
    (pages, dead)
}

/// How many clicks lead from the first page of a crate to those of others, by links on such pages.
fn clicks(docs: &Path, crates: &BTreeSet<String>, from: &str) -> BTreeMap<String, usize> {
    let mut clicks = BTreeMap::from([(from.to_owned(), 0)]);
    let mut open = VecDeque::from([from.to_owned()]);
    while let Some(name) = open.pop_front() {
        let next = clicks[&name] + 1;
        let page = read(docs, &first_page(&name));
        for file in links(&page).into_iter().filter_map(|link| resolved(Path::new(&name), link)) {
            let Some(other) = crates.iter().find(|other| file == first_page(other)) else { continue };
            if let Entry::Vacant(entry) = clicks.entry(other.clone()) {
                entry.insert(next);
                open.push_back(other.clone());
            }
        }
    }
    clicks
}

/// The crates that take more clicks than they should.
fn far(docs: &Path, crates: &BTreeSet<String>) -> Vec<String> {
    let clicks = clicks(docs, crates, FRONT);
    let is_far = |clicks: Option<&usize>| clicks.is_none_or(|clicks| *clicks > CLICKS_MAX);
    crates.iter().filter(|name| is_far(clicks.get(*name))).cloned().collect()
}

#[test]
fn each_link_leads_to_a_page() {
    let Some(docs) = written("links of the documentation") else { return };
    let (pages, dead) = followed(&docs, &crates(&metadata()));
    assert!(pages.len() > 1_000, "{} has only {} pages", docs.display(), pages.len());
    assert!(
        dead.is_empty(),
        "links that lead to no file (links between crates: api/koord/src/lib.rs and api/types/src/lib.rs):\n{}",
        dead.join("\n")
    );
}

#[test]
fn every_crate_is_two_clicks_from_the_first_page() {
    let Some(docs) = written("first page of the documentation") else { return };
    let far = far(&docs, &crates(&metadata()));
    assert!(
        far.is_empty(),
        "crates that the page of koord, and those that it links, lack. What is published is listed in api/koord/src/lib.rs, \
         with a line in src/links/checkout.md; all else in api/types/src/lib.rs: {far:?}"
    );
}

/// The page of the package whose name is the first in the alphabet.
#[test]
fn the_page_that_cargo_opens_links_the_first_page() {
    let Some(docs) = written("page that cargo opens") else { return };
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().min_by_key(|package| package["name"].as_str()).unwrap();
    let opened = documented(package).next().unwrap();
    let clicks = clicks(&docs, &crates(&metadata), &opened);
    assert_eq!(clicks.get(FRONT), Some(&1), "`cargo doc --open` opens the page of {opened}, which must link {FRONT}");
}

#[test]
fn the_links_of_docs_rs_name_packages_that_are_published() {
    let metadata = metadata();
    let names = published(&metadata).into_iter().map(|package| package["name"].as_str().unwrap());
    let right: BTreeSet<String> =
        names.map(|name| format!("[`{}`]: https://docs.rs/{name}", name.replace('-', "_"))).collect();
    let links = fs::read_to_string(repository(DOCS_RS)).unwrap();
    let wrong: Vec<&str> = links.lines().filter(|line| !right.contains(*line)).collect();
    assert!(wrong.is_empty(), "{DOCS_RS}:\n{}", wrong.join("\n"));
    assert!(links.lines().count() > 3, "{links}");
}

/// Words of this repository that a reader of the library's pages does not know, outside of code.
const UNKNOWN_WORDS: [&str; 5] = ["the original", "The original", "hardened", "shell", "shells"];

/// The lines of documentation of a source that have such a word.
fn with_unknown_words(source: &str) -> impl Iterator<Item = &str> {
    let is_word = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next())
        })
    };
    source.lines().filter(move |line| {
        let text = line.trim_start();
        let is_documentation = text.starts_with("///") || text.starts_with("//!");
        // Every second part stands between backticks.
        let words: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        is_documentation && UNKNOWN_WORDS.iter().any(|word| is_word(&words, word))
    })
}

#[test]
fn the_library_is_documented_in_words_of_the_field() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in published(&metadata) {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        for path in rust_files(&manifest.with_file_name("src")) {
            let source = fs::read_to_string(&path).unwrap();
            let lines = with_unknown_words(&source).map(|line| format!("{}: {}", path.display(), line.trim()));
            wrong.extend(lines);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known = "    /// What `hardened` adds, and a nutshell.\n// the original\n";
    assert_eq!(with_unknown_words(known).count(), 0);
    assert_eq!(with_unknown_words("    //! as the shells of the original do\n/// a hardened one").count(), 2);
}

/// The checks themselves, on pages with one mistake of each kind.
#[test]
fn each_mistake_is_found() {
    let docs = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = docs.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "koord/index.html",
        r##"<a href="#modules"></a><a href="https://docs.rs/koord"></a><a href="../core/index.html#cache"></a>
        <a href="struct.Gone.html"></a><a href="../../out.html"></a><a href="all.html"></a>
        <h2 id="blanket-implementations"></h2><a href="Context"></a>"##,
    );
    write("core/index.html", r#"<a href="cache/index.html"></a><a href="../second/index.html"></a>"#);
    write(
        "core/cache/index.html",
        r#"<a href="all.html"></a><a href="../none.html"></a><a href="../../inner/index.html"></a>"#,
    );
    write("second/index.html", r#"<a href="../third/index.html"></a>"#);
    for name in ["third", "inner", "lost"] {
        write(&format!("{name}/index.html"), "");
    }
    let crates = BTreeSet::from(["koord", "core", "second", "third", "inner", "lost"].map(str::to_owned));
    let (pages, dead) = followed(docs.path(), &crates);
    assert_eq!(pages.len(), 7, "{pages:?}");
    assert_eq!(
        dead,
        [
            "core/cache/index.html: ../none.html",
            "koord/index.html: ../../out.html",
            "koord/index.html: all.html",
            "koord/index.html: struct.Gone.html",
        ]
    );
    assert_eq!(far(docs.path(), &crates), ["inner", "lost", "third"]);
}
