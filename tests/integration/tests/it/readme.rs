//! The README is true: its operator is the one that is built, and its links lead somewhere.

use std::path::Path;

const README: &str = include_str!("../../../../README.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_operator_is_the_one_that_is_built_and_fits_in_eighty_lines() {
    let operator = include_str!("../../../../examples/greeter/src/greeting.rs");
    assert!(
        README.contains(&format!("```rust\n{operator}```\n")),
        "copy examples/greeter/src/greeting.rs into README.md"
    );
    assert!(operator.lines().count() <= 80);
}

#[test]
fn it_has_exactly_two_commands() {
    let commands: Vec<&str> = README.split("```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect();
    assert_eq!(commands, ["cargo run --bin koordctl -- up", "cargo test --workspace"]);
}

/// The blocks of Rust of a page, each with the file that the line before it names.
pub(crate) fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = page.split("\n```rust\n").collect();
    let named = parts.iter().zip(&parts[1..]).map(|(before, rest)| {
        let file = before.lines().last().unwrap().trim_matches('`');
        (file, rest.split_once("\n```").unwrap().0)
    });
    named.collect()
}

/// `docs/program.md` names a file before every block of Rust, and the block stands in that file.
#[test]
fn the_page_about_programs_shows_what_runs() {
    let page = std::fs::read_to_string(format!("{ROOT}/docs/program.md")).unwrap();
    let blocks = blocks(&page);
    assert!(blocks.len() > 3, "the page has its blocks");
    for (file, block) in blocks {
        let source = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
        assert!(source.contains(block), "{file} does not have\n{block}");
    }
}

/// The relative links of a page that lead to no file.
pub(crate) fn broken_links(page: &str) -> Vec<String> {
    let path = Path::new(ROOT).join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let relative = links.filter(|link| !link.starts_with("http") && !link.starts_with('#') && !link.contains(' '));
    let is_broken = |link: &&str| !path.with_file_name(link.split('#').next().unwrap()).exists();
    relative.filter(is_broken).map(|link| format!("{page}: {link}")).collect()
}

/// Every relative link of the pages that a newcomer reads.
#[test]
fn links_lead_to_files() {
    let pages = [
        "README.md",
        "CONTRIBUTING.md",
        "docs/quickstart.md",
        "docs/library.md",
        "docs/manager.md",
        "docs/scheduler.md",
        "docs/descheduler.md",
        "docs/koordlet.md",
        "docs/webhooks.md",
        "docs/program.md",
        "docs/migrating.md",
        "docs/architecture.md",
        "docs/development.md",
    ];
    let broken = pages.map(broken_links).concat();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
