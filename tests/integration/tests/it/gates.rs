//! What a gate needs to be one: a test that cannot run here is counted as skipped, and what is measured exists.

use std::{fs, path::Path, process::Command};

use integration::installed::repository;

/// The Rust files of the repository, each with its text.
fn sources() -> Vec<(String, String)> {
    let listed = ["ls-files", "-co", "--exclude-standard", "*.rs"];
    let output = Command::new("git").args(listed).current_dir(repository(".")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    let read = |name: &str| fs::read_to_string(repository(name)).ok().map(|text| (name.to_owned(), text));
    names.lines().filter_map(read).collect()
}

/// The first words of each text that a print macro is called with.
fn printed(source: &str) -> impl Iterator<Item = &str> {
    let calls = ["print!(", "println!("]
        .into_iter()
        .flat_map(|call| source.match_indices(call).map(move |found| (call, found)));
    calls.filter_map(|(call, (at, _))| source[at + call.len()..].trim_start().strip_prefix('"'))
}

fn reports_a_skip(text: &str) -> bool {
    text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("skipped"))
}

#[test]
fn a_skip_is_not_reported_through_a_macro_whose_output_the_test_harness_captures() {
    let sources = sources();
    assert!(sources.len() > 1_000, "{} files", sources.len());
    let hidden: Vec<&str> = sources
        .iter()
        .filter(|(_, source)| printed(source).any(reports_a_skip))
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(hidden.is_empty(), "`.ci/run` counts these skips as passed; call programs::skipped: {hidden:?}");
}

#[test]
fn a_macro_that_reports_a_skip_is_found() {
    let found = |source: &str| printed(source).any(reports_a_skip);
    assert!(found("println!(\"SKIPPED x: none\");") && found("eprintln!(\n    \"skipped: none\")"));
    assert!(!found("println!(\"{skipped} of them\"); writeln!(std::io::stderr(), \"SKIPPED x\")"));
}

#[test]
fn a_count_of_instructions_fails_where_its_test_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, script: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    // What valgrind prints of a test program in which no test, or one, has run.
    tool("cargo", "echo '{\"executable\":\"/x/allocations-1\"}'");
    let counted = |tests: usize, instructions: u64| {
        tool(
            "valgrind",
            &format!(
                "echo 'test result: ok. {tests} passed; 0 failed;'; echo \"==1== Collected : $(({instructions} * TIMES))\" >&2"
            ),
        );
        run(folder.path())
    };
    assert!(counted(1, 90_000).0);
    let (is_ok, printed) = counted(0, 90_000);
    assert!(!is_ok && printed.contains("no such test"), "{printed}");
    let (is_ok, printed) = counted(1, 0);
    assert!(!is_ok && printed.contains("0 thousand"), "{printed}");
    assert!(!counted(1, 900_000).0, "more than is allowed");
}

#[test]
fn what_is_played_again_in_two_runs_after_another_fails() {
    let folder = tempfile::tempdir().unwrap();
    let run = |names: &[&str]| {
        let mut script = Command::new(repository("tests/played-again"));
        let output = script.arg("suite").args(names).env("KOORD_PLAYED_AGAIN", folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["a/b", "a c"]), (true, "suite: 2 had to be played again\n".to_owned()));
    assert_eq!(run(&[]), (true, String::new()));
    assert!(run(&["a c", "d"]).0, "the run in between needed none");
    let (is_ok, printed) = run(&["a", "a c"]);
    assert!(!is_ok && printed.ends_with("machine:\n  a c\n"), "{printed}");
}

#[test]
fn goals_that_are_missed_stand_in_one_table() {
    let page = fs::read_to_string(repository("docs/performance.md")).unwrap();
    let table = goals::Goals::load().table();
    assert!(page.contains(&table), "tests/data/missed-goals.json, as docs/performance.md must show it:\n{table}");
}

/// Runs the count with the tools of a folder: whether it has passed, and what it printed.
fn run(tools: &Path) -> (bool, String) {
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let output = Command::new(repository("tests/scheduler-instructions")).env("PATH", path).output().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), printed)
}
