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

/// `docs/program.md` names a file before every block of Rust, and the block stands in that file.
#[test]
fn the_page_about_programs_shows_what_runs() {
    let page = std::fs::read_to_string(format!("{ROOT}/docs/program.md")).unwrap();
    let blocks: Vec<&str> = page.split("\n```rust\n").collect();
    assert!(blocks.len() > 4, "the page has its blocks");
    for (before, block) in blocks.iter().zip(&blocks[1..]) {
        let file = before.lines().last().unwrap().trim_matches('`');
        let (block, _) = block.split_once("\n```").unwrap();
        let source = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
        assert!(source.contains(block), "{file} does not have\n{block}");
    }
}

/// Every relative link of the pages that a newcomer reads.
#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/quickstart.md",
        "docs/manager.md",
        "docs/scheduler.md",
        "docs/webhooks.md",
        "docs/program.md",
        "docs/architecture.md",
        "docs/development.md",
    ] {
        let path = Path::new(ROOT).join(page);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http") && !link.starts_with('#') && !link.contains(' ')) {
            let file = link.split('#').next().unwrap();
            if !path.with_file_name(file).exists() {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
