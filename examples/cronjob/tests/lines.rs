//! How many lines the operator has, beside kubebuilder's and those on kube-rs, and which tests the README names. A line counts that is neither
//! blank nor a comment.
#![allow(clippy::unwrap_used)]

const README: &str = include_str!("../README.md");
const SOURCE: &str = "kubebuilder v4.16.0, docs/book/src/cronjob-tutorial/testdata/project";

/// Our files and kubebuilder's, part by part; of theirs, [`SOURCE`] is counted.
struct Part {
    title: &'static str,
    ours: &'static [&'static str],
    kube_rs: &'static [&'static str],
    /// `api/v1/cronjob_types.go` 44, `groupversion_info.go` 15, `cronjob_webhook.go` 99; `cronjob_controller.go` 430; `cmd/main.go` 136.
    theirs: usize,
}

macro_rules! sources {
    ($($path:literal),*) => { &[$(include_str!(concat!("../", $path))),*] };
}

static PARTS: [Part; 3] = [
    Part {
        title: "kind and webhooks",
        ours: sources!["src/api.rs"],
        kube_rs: sources!["kube-rs/src/api.rs", "kube-rs/src/webhooks.rs"],
        theirs: 44 + 15 + 99,
    },
    Part {
        title: "controller",
        ours: sources!["src/controller.rs", "src/runs.rs", "src/schedule.rs"],
        kube_rs: sources!["kube-rs/src/controller.rs", "kube-rs/src/jobs.rs", "kube-rs/src/schedule.rs"],
        theirs: 430,
    },
    Part {
        title: "program",
        ours: sources!["src/lib.rs", "src/main.rs", "src/operator.rs"],
        kube_rs: sources!["kube-rs/src/main.rs"],
        theirs: 136,
    },
];

fn lines(sources: &[&str]) -> usize {
    let lines = sources.iter().flat_map(|source| source.lines()).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn sum(parts: &[Part], of: fn(&Part) -> usize) -> usize {
    parts.iter().map(of).sum()
}

#[test]
fn the_operator_has_at_most_two_thirds_of_kubebuilders_lines() {
    for parts in [&PARTS[..], &PARTS[..2]] {
        let (ours, theirs) = (sum(parts, |part| lines(part.ours)), sum(parts, |part| part.theirs));
        assert!(ours * 3 <= theirs * 2, "{ours} lines of {theirs} ({SOURCE})");
    }
}

#[test]
fn the_readme_has_the_numbers() {
    let row = |title: &str, parts: &[Part]| {
        let (ours, kube_rs) = (sum(parts, |part| lines(part.ours)), sum(parts, |part| lines(part.kube_rs)));
        format!("| {title} | {ours} | {} | {kube_rs} |", sum(parts, |part| part.theirs))
    };
    let mut rows: Vec<String> = PARTS.iter().map(|part| row(part.title, std::slice::from_ref(part))).collect();
    rows.push(row("together", &PARTS));
    for row in rows {
        assert!(README.contains(&row), "README.md lacks the row\n{row}");
    }
    assert!(README.contains(SOURCE), "README.md does not name {SOURCE}");
    let [ours, kube_rs] = [sources!["src/schedule.rs"], sources!["kube-rs/src/schedule.rs"]].map(|file| lines(file));
    let schedules = format!("({ours} lines of koord's, {kube_rs} of kube-rs')");
    assert!(README.contains(&schedules), "README.md lacks\n{schedules}");
}

#[test]
fn each_difference_from_the_tutorial_names_its_tests() {
    let tests = [include_str!("operator.rs"), include_str!("schedule.rs")];
    let (_, table) = README.split_once("\n## What differs from the tutorial\n").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() >= 7, "{rows:?}");
    for row in rows {
        let named = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in named.split(", ").map(|name| name.trim_matches('`')) {
            let begin = format!("fn {name}()");
            assert!(tests.iter().any(|source| source.contains(&begin)), "no test is called {name}");
        }
    }
}
