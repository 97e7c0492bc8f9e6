//! docs/koordctl.md shows every command as it is, and koordctl as a plugin of kubectl.

use std::{fs, path::Path, process::Command};

use clap::Parser as _;
use koordctl::{Cli, reference};

use crate::program::{PROGRAM, folder, koordctl};

/// What follows is generated.
const MARKER: &str = "<!-- From here on made by `WRITE=1 cargo test -p koordctl --test it reference`. -->\n\n";

#[test]
fn the_reference_shows_every_command_as_it_is() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/koordctl.md");
    let text = fs::read_to_string(&file).unwrap();
    let (written, generated) = text.split_once(MARKER).unwrap();
    let wanted = reference::page().trim_end().to_owned() + "\n";
    if std::env::var_os("WRITE").is_some() {
        fs::write(&file, format!("{written}{MARKER}{wanted}")).unwrap();
    } else {
        assert!(generated == wanted, "docs/koordctl.md is behind: WRITE=1 cargo test -p koordctl --test it reference");
    }
}

#[test]
fn every_command_has_an_example_that_is_understood() {
    let text = reference::page();
    let mut examples = 0;
    for line in text.lines().map(str::trim) {
        let is_example =
            ["Example:", "koordctl "].iter().any(|start| line.starts_with(start)) || line.contains("| koordctl");
        let Some(at) = line.find("koordctl ").filter(|_| is_example) else { continue };
        let words = line[at..]
            .split(" #")
            .next()
            .unwrap_or_default()
            .split(" > ")
            .next()
            .unwrap_or_default()
            .trim_end()
            .trim_end_matches(')');
        Cli::try_parse_from(words.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"));
        examples += 1;
    }
    assert!(examples >= 20, "{examples}");
    for section in text.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        // A command that only leads to others is explained by them.
        assert!(section.contains("\nCommands:\n") || section.contains("Example"), "{name} has no example");
    }
}

#[test]
fn as_a_plugin_of_kubectl_it_speaks_of_kubectl() {
    let folder = folder("plugin");
    let plugin = folder.join("kubectl-koord");
    std::os::unix::fs::symlink(PROGRAM, &plugin).unwrap();
    let says = |command: &mut Command| String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
    let help = says(Command::new(&plugin).args(["explain", "quota", "--help"]));
    assert!(help.contains("Usage: kubectl koord explain quota [OPTIONS] <NAME>"), "{help}");
    let help = says(koordctl().args(["explain", "quota", "--help"]));
    assert!(help.contains("Usage: koordctl explain quota [OPTIONS] <NAME>"), "{help}");

    let Some(kubectl) = std::env::var_os("KUBECTL") else { return };
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let version = says(Command::new(kubectl).args(["koord", "version", "--client"]).env("PATH", path));
    assert_eq!(version, format!("koordctl {}\n", env!("CARGO_PKG_VERSION")));
}
