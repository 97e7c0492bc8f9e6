//! Each row of docs/reference/divergences.md names a test that exists and can show the difference.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use integration::installed::repository;

const PAGE: &str = "docs/reference/divergences.md";
/// Which test holds which case of others' tests.
const CASES: &str = "docs/reference/scheduler-cases.md";

/// What a row may say about the direction.
const DIRECTIONS: [&str; 3] = ["stricter", "laxer", "different"];

/// Tests that only compare recordings: they show where we agree, not where we differ.
const REPLAYS: [&str; 1] = ["replay::"];

struct Row {
    line: usize,
    what: String,
    direction: String,
    /// Commands of the last column, as `cargo test` takes them.
    tests: Vec<String>,
}

fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some(cells) = line.strip_prefix("| ").and_then(|rest| rest.strip_suffix(" |")) else { continue };
        // `\|` is no border.
        let cells: Vec<String> =
            cells.replace("\\|", "\u{0}").split(" | ").map(|cell| cell.replace('\u{0}', "|")).collect();
        let [what, _, _, direction, _, test] = &cells[..] else {
            panic!("{PAGE}:{}: {} columns instead of six", index + 1, cells.len())
        };
        if what == "what" {
            continue;
        }
        rows.push(Row { line: index + 1, what: what.clone(), direction: direction.clone(), tests: commands(test) });
    }
    rows
}

/// The commands of a cell.
fn commands(cell: &str) -> Vec<String> {
    let mut tests: Vec<String> = Vec::new();
    for command in cell.split('`').filter(|part| part.starts_with("-p ") || part.starts_with("…::")) {
        // `…` stands for the module of the test before.
        let command = match (command.strip_prefix("…::"), tests.last().and_then(|last| last.rsplit_once("::"))) {
            (Some(name), Some((before, _))) => format!("{before}::{name}"),
            _ => command.to_owned(),
        };
        tests.push(command);
    }
    tests
}

/// The folder of each package, by its name.
fn packages() -> BTreeMap<String, PathBuf> {
    let manifest = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let folders = members.split('"').skip(1).step_by(2).map(repository);
    let named = |folder: PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest.split_once("name = \"").unwrap().1.split_once('"').unwrap().0.to_owned();
        (name, folder)
    };
    folders.map(named).collect()
}

/// Where a command finds its test: the roots of the program, and the path of the test in it.
fn place(command: &str, packages: &BTreeMap<String, PathBuf>) -> Result<(Vec<PathBuf>, Vec<String>), String> {
    let words: Vec<&str> = command.split(' ').collect();
    let (package, target, test) = match words[..] {
        ["-p", package, test] | ["-p", package, "--lib", test] => (package, None, test),
        ["-p", package, "--test", target, test] => (package, Some(target), test),
        _ => return Err(format!("{command:?} is none of `-p PACKAGE [--lib|--test NAME] PATH`")),
    };
    let folder = packages.get(package).ok_or_else(|| format!("there is no package {package}"))?;
    let roots = match target {
        None => vec![folder.join("src")],
        Some(target) => vec![
            folder.join(format!("tests/{target}")),
            folder.join(format!("tests/{target}.rs")),
            // the one of this package, whose target has a name of its own
            folder.join("tests/it"),
        ],
    };
    Ok((roots, test.split("::").map(str::to_owned).collect()))
}

/// Every Rust file below a root, with the path of its module.
fn modules(root: &Path, at: &[String], found: &mut Vec<(Vec<String>, PathBuf)>) {
    if root.is_file() {
        found.push((at.to_vec(), root.to_owned()));
    }
    for entry in fs::read_dir(root).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let below: Vec<String> = at.iter().cloned().chain([name.clone()]).collect();
        if path.is_dir() {
            modules(&path, &below, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = matches!(name.as_str(), "lib" | "main" | "mod");
            found.push((if is_root { at.to_vec() } else { below }, path));
        }
    }
}

/// Whether a test of this path is in one of the roots.
fn exists(roots: &[PathBuf], path: &[String]) -> bool {
    let (name, within) = path.split_last().unwrap();
    let mut files = Vec::new();
    for root in roots {
        modules(root, &[], &mut files);
    }
    files.iter().any(|(module, file)| {
        let Some(inline) = within.strip_prefix(&module[..]) else { return false };
        let text = fs::read_to_string(file).unwrap();
        inline.iter().all(|inner| text.contains(&format!("mod {inner} {{"))) && is_test(&text, name)
    })
}

/// Whether the function is marked as a test, by whatever runtime or macro.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let starts = [format!("fn {name}("), format!("async fn {name}(")];
    let declared = |line: &&str| starts.iter().any(|start| line.starts_with(start.as_str()));
    lines.iter().enumerate().filter(|(_, line)| declared(line)).any(|(index, _)| {
        let above = lines[..index].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[") && line.contains("test"))
    })
}

/// What is wrong with a row.
fn mistakes(row: &Row, packages: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let mut mistakes = Vec::new();
    if row.tests.is_empty() {
        mistakes.push("no test shows it".to_owned());
    }
    if !DIRECTIONS.contains(&row.direction.as_str()) {
        mistakes.push(format!("{:?} is no direction", row.direction));
    }
    for test in &row.tests {
        match place(test, packages) {
            Err(error) => mistakes.push(error),
            Ok((roots, path)) if !exists(&roots, &path) => mistakes.push(format!("there is no test {test}")),
            Ok(_) if REPLAYS.iter().any(|replay| test.contains(replay)) => {
                mistakes.push(format!("{test} compares recordings, which show where we agree"));
            }
            Ok(_) => {}
        }
    }
    mistakes.into_iter().map(|mistake| format!("{PAGE}:{}: {}: {mistake}", row.line, row.what)).collect()
}

#[test]
fn every_row_names_a_test_that_exists_and_can_show_it() {
    let page = fs::read_to_string(repository(PAGE)).unwrap();
    let (rows, packages) = (rows(&page), packages());
    assert!(rows.len() > 50, "{} rows were found", rows.len());
    let mistakes: Vec<String> = rows.iter().flat_map(|row| mistakes(row, &packages)).collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_case_of_the_scheduler_names_tests_that_exist() {
    let (page, packages) = (fs::read_to_string(repository(CASES)).unwrap(), packages());
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| 6.") || line.starts_with("| 7.")).collect();
    assert!(rows.len() > 40, "{} rows were found", rows.len());
    let numbers = rows.iter().filter_map(|row| row.split(" | ").next()).flat_map(|cell| cell[2..].split(", "));
    let numbers: BTreeSet<&str> = numbers.collect();
    let vectors = (1..=6).map(|number| format!("6.{number}"));
    for number in vectors.chain((1..=103).map(|number| format!("7.{number}"))) {
        assert!(numbers.contains(&*number), "{CASES}: no row is about {number}");
    }
    for row in rows {
        let tests = commands(row);
        assert!(!tests.is_empty(), "{CASES}: no test holds {row}");
        for test in tests {
            let (roots, path) = place(&test, &packages).unwrap();
            assert!(exists(&roots, &path), "{CASES}: there is no test {test}");
        }
    }
}

/// The packages of kube-scheduler whose table tests are restated.
const IN_TREE: [&str; 16] = [
    "defaultpreemption",
    "dynamicresources",
    "imagelocality",
    "interpodaffinity",
    "nodeaffinity",
    "nodename",
    "nodeports",
    "noderesources",
    "nodeunschedulable",
    "nodevolumelimits",
    "podtopologyspread",
    "schedulinggates",
    "tainttoleration",
    "volumebinding",
    "volumerestrictions",
    "volumezone",
];

#[test]
fn every_table_of_kube_scheduler_names_tests_that_exist_and_every_restated_case_is_named() {
    let (page, packages) = (fs::read_to_string(repository(CASES)).unwrap(), packages());
    let mut named = BTreeSet::new();
    let mut of_packages = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [package, tables, _, tests] = cells[..] else {
            panic!("{CASES}: {} columns instead of four: {row}", cells.len())
        };
        assert!(tables.contains("Test"), "{CASES}: no table is named: {row}");
        of_packages.insert(package.trim().trim_matches('`').to_owned());
        let tests = commands(tests);
        assert!(!tests.is_empty(), "{CASES}: no test holds {row}");
        for test in tests {
            let (roots, path) = place(&test, &packages).unwrap();
            assert!(exists(&roots, &path), "{CASES}: there is no test {test}");
            named.insert(path.join("::"));
        }
    }
    assert_eq!(of_packages, IN_TREE.map(str::to_owned).into());
    let mut files = Vec::new();
    modules(&packages["koord-scheduler-plugins-kubernetes"].join("src"), &[], &mut files);
    for (module, file) in files.iter().filter(|(module, _)| module.iter().any(|part| part == "vectors")) {
        let text = fs::read_to_string(file).unwrap();
        let functions = text.lines().filter_map(|line| line.strip_prefix("fn ")?.strip_suffix("() {"));
        for function in functions.filter(|function| is_test(&text, function)) {
            let path = [module.join("::"), function.to_owned()].join("::");
            assert!(named.contains(&path), "{CASES}: no row names {path}");
        }
    }
}

#[test]
fn a_row_that_shows_nothing_is_found() {
    let packages = packages();
    let row = |test: &str| {
        let page = format!(
            "| what | original | ours | direction | why | test |\n|---|---|---|---|---|---|\n| a | b | c | laxer | d | {test} |"
        );
        rows(&page).iter().flat_map(|row| mistakes(row, &packages)).collect::<Vec<_>>()
    };
    let this = "`-p integration --test integration divergences::a_row_that_shows_nothing_is_found`";
    assert_eq!(row(this), Vec::<String>::new());
    for (test, expected) in [
        ("none", "no test shows it"),
        ("`-p integration --test integration divergences::rows`", "there is no test"),
        ("`-p integration --test integration divergence::a_row_that_shows_nothing_is_found`", "there is no test"),
        ("`-p nowhere a::b`", "there is no package nowhere"),
        ("`-p koord-webhook-handlers --test it replay::our_selection_agrees`", "compares recordings"),
    ] {
        let found = row(test);
        assert!(found.len() == 1 && found[0].contains(expected), "{test}: {found:?}");
    }
}
