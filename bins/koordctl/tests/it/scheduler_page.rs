//! docs/scheduler.md is true: every command on it is run by a test, and the configurations that it shows are what the program accepts.
//!
//! Commands of koord-scheduler itself are run by the tests of that program (`bins/koord-scheduler/tests/it/page.rs`).

use std::{collections::BTreeSet, path::Path};

use koord_config::Kind;
use serde_json::{Value, json};

use crate::{
    pages::{Desk, ROOT, Step, page, steps},
    program::Up,
};

const PAGE: &str = "scheduler.md";

/// Sections whose commands need no cluster, each with a test of its own: they take longer than others.
const ALONE: [&str; 3] =
    ["Before it happens: simulate", "What a saved cluster would get: replay", "How fast it is: bench"];

/// The programs whose commands the page shows.
const PROGRAMS: [&str; 5] = ["koordctl", "kubectl", "koord-scheduler", "helm", "curl"];

/// Commands in the text that are run elsewhere, with the reason.
const ELSEWHERE: [(&str, &str); 7] = [
    ("koordctl up", "the cluster of this page"),
    ("koordctl up --scenario scheduling", "scheduling_scenario.rs"),
    ("koordctl explain quota --what-if", "explain.rs"),
    ("koordctl profile test", "profile.rs"),
    ("koordctl coexist check", "coexist.rs"),
    ("kubectl drain", "a comparison"),
    ("kubectl port-forward", "the embedded server has no pods to forward to"),
];

/// The title of the section around a line.
fn section_of(page: &str, line: usize) -> &str {
    page.lines().take(line).filter_map(|line| line.strip_prefix("## ")).last().unwrap_or_default()
}

/// Who runs the commands of a step.
#[derive(Debug, PartialEq, Eq)]
enum By<'p> {
    /// The test of this section.
    Section(&'p str),
    /// The tests of koord-scheduler.
    Program,
    /// The test with a cluster.
    Cluster,
}

fn by<'p>(page: &'p str, step: &Step) -> By<'p> {
    let section = section_of(page, step.line);
    if ALONE.contains(&section) {
        By::Section(section)
    } else if step.commands.starts_with("koord-scheduler ") {
        By::Program
    } else {
        By::Cluster
    }
}

/// Runs the steps of the page that these tests run.
#[track_caller]
fn is_true(desk: &Desk, who: &By<'_>) {
    let page = page(PAGE);
    let mine: Vec<Step> = steps(&page).into_iter().filter(|step| by(&page, step) == *who).collect();
    assert!(!mine.is_empty(), "{who:?}");
    let wrong: Vec<String> = mine.iter().filter_map(|step| desk.check(PAGE, step)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn section_is_true(title: &str) {
    // Part of a path, in which a colon ends a folder.
    let Some(desk) = Desk::set_up(&title.replace(|letter: char| !letter.is_alphanumeric(), "-")) else { return };
    is_true(&desk, &By::Section(title));
}

#[test]
fn the_section_about_simulations_is_true() {
    section_is_true(ALONE[0]);
}

#[test]
fn the_section_about_replays_is_true() {
    section_is_true(ALONE[1]);
}

#[test]
fn the_section_about_benchmarks_is_true() {
    section_is_true(ALONE[2]);
}

#[test]
fn the_commands_in_a_cluster_are_true() {
    let Some(desk) = Desk::set_up(PAGE) else { return };
    let _up = Up::start(&desk.kubeconfig, &["--nodes=10", &format!("--scheduler-addr={}", desk.scheduler)]);
    is_true(&desk, &By::Cluster);
}

/// The words of a command by which it is known: subcommands and flags, not names and values.
fn words(command: &str) -> BTreeSet<&str> {
    let is_name =
        |word: &str| word.contains(['.', '/', '=', '$', '"']) || word.contains(|one: char| one.is_ascii_uppercase());
    command
        .split_whitespace()
        .filter(|word| word.starts_with("--") || word.starts_with("-A") || !is_name(word))
        .collect()
}

fn is_command(text: &str) -> bool {
    PROGRAMS.iter().any(|program| text.strip_prefix(program).is_some_and(|rest| rest.starts_with(' ')))
}

/// What stands between backticks in a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The commands of the page that no test runs, each with its line.
fn not_run(page: &str) -> Vec<String> {
    let lines_that_run = steps(page);
    let lines_that_run: Vec<BTreeSet<&str>> =
        lines_that_run.iter().flat_map(|step| step.commands.lines()).map(words).collect();
    let is_run = |command: &str| {
        ELSEWHERE.iter().any(|(known, _)| *known == command)
            || lines_that_run.iter().any(|line| words(command).is_subset(line))
    };
    let (mut missing, mut block) = (Vec::new(), None);
    for (index, line) in page.lines().enumerate() {
        let mut miss = |command: &str| missing.push(format!("docs/{PAGE}:{}: {command}", index + 1));
        match (block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (Some("sh"), None) => {}
            // The cluster in which the page is read.
            (Some("console"), None) if line.starts_with("$ koordctl up ") => {}
            (Some(_), None) if is_command(line.trim_start_matches("$ ")) => miss(line),
            (Some(_), None) => {}
            (None, None) => spans(line).filter(|span| is_command(span) && !is_run(span)).for_each(miss),
        }
    }
    missing
}

#[test]
fn every_command_on_the_page_is_run_by_a_test() {
    let missing = not_run(&page(PAGE));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_command_that_no_test_runs_is_found() {
    let run = "```sh\nkoordctl why web-0 -n shop --node hollow-1\n```\n";
    for (text, found) in [
        ("`koordctl why --node NODE`", None),
        ("`koordctl why --history`", Some("koordctl why --history")),
        ("```\nkoordctl queue list\n```", Some("koordctl queue list")),
        ("```yaml\nkey: koordctl queue\n```", None),
        ("`koordctl`, and `kubectl-koord why`", None),
        ("`kubectl apply -k config/scheduler`", Some("kubectl apply -k config/scheduler")),
    ] {
        let missing = not_run(&format!("{run}{text}\n"));
        assert_eq!(missing.len(), usize::from(found.is_some()), "{text}: {missing:?}");
        assert!(found.is_none_or(|command| missing[0].ends_with(command)), "{text}: {missing:?}");
    }
}

/// The blocks of YAML on the page that are part of a configuration, each with the heading above it.
fn configurations(page: &str) -> Vec<(&str, Value)> {
    let mut found = Vec::new();
    let (mut heading, mut block): (&str, Option<String>) = ("", None);
    for line in page.lines() {
        match &mut block {
            Some(text) if line == "```" => {
                let text = std::mem::take(text);
                let is_one = ["pluginConfig:", "profiles:", "extenders:"].iter().any(|key| text.starts_with(key));
                found.extend(is_one.then(|| (heading, serde_saphyr::from_str(&text).unwrap())));
                block = None;
            }
            Some(text) => text.extend([line, "\n"]),
            None if line == "```yaml" => block = Some(String::new()),
            None => heading = line.strip_prefix("### ").unwrap_or(heading),
        }
    }
    found
}

/// The example whose arguments the page shows.
fn example() -> Value {
    let text = std::fs::read_to_string(Path::new(ROOT).join("examples/plugins/configuration.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_configurations_on_the_page_are_valid() {
    let page = page(PAGE);
    let found = configurations(&page);
    assert!(found.len() > 9, "{found:?}");
    for (heading, part) in found {
        let mut document = json!({"apiVersion": Kind::Scheduler.api_version(), "kind": Kind::Scheduler.name()});
        if part.get("pluginConfig").is_some() {
            document["profiles"] = json!([{"schedulerName": "koord-scheduler", "pluginConfig": part["pluginConfig"]}]);
        } else {
            document.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        }
        assert_eq!(Kind::Scheduler.check(&document), [], "{heading}");
    }
    assert_eq!(Kind::Scheduler.check(&example()), []);
}

/// From the configuration of each plugin to `why`.
#[test]
fn every_plugin_has_its_arguments_and_what_why_says_of_it() {
    let (page, example) = (page(PAGE), example());
    let profile = &example["profiles"][0];
    let plugins = profile["plugins"]["multiPoint"]["enabled"].as_array().unwrap();
    assert_eq!(plugins.len(), 9);
    let shown = configurations(&page);
    for plugin in plugins.iter().map(|plugin| plugin["name"].as_str().unwrap()) {
        let of = |list: &Value| list.as_array().unwrap().iter().find(|one| one["name"] == plugin).cloned();
        let arguments =
            shown.iter().filter(|(heading, _)| *heading == plugin).find_map(|(_, part)| of(&part["pluginConfig"]));
        assert!(arguments.is_some(), "no arguments of {plugin}");
        assert_eq!(arguments, of(&profile["pluginConfig"]), "examples/plugins/configuration.yaml, {plugin}");
        let section = page.split(&format!("\n### {plugin}\n")).nth(1).unwrap().split("\n### ").next().unwrap();
        assert!(steps(section).iter().any(|step| step.commands.contains("koordctl why ")), "{plugin}");
        let names = Kind::Scheduler.plugins().iter().find(|args| args.plugin == plugin).unwrap().schema();
        // Every argument in the left column is one.
        for row in section.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 3) {
            for name in spans(row.split('|').nth(1).unwrap()) {
                assert!(names["properties"].get(name).is_some(), "{plugin} has no argument {name}");
            }
        }
    }
}
