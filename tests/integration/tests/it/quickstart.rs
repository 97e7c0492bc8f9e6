//! docs/quickstart.md is true: each of its commands is run, and prints what the page says.
//!
//! A block ```` ```sh ```` is run by bash; a block ```` ```text ```` right after it is what it prints, errors included. In such a block `…` stands
//! for anything within a line, and a line of `…` alone for any number of lines. Other blocks are for the eye.

use std::{
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::suite::for_ever_embedded;

const PAGE: &str = include_str!("../../../../docs/quickstart.md");

/// Commands and what they print.
#[derive(Debug)]
struct Step {
    /// Line of the page on which the commands begin.
    line: usize,
    commands: String,
    printed: Option<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<(&str, usize, String)> = None;
    // Whether nothing but blank lines lies between the last commands and here.
    let mut right_after = false;
    for (index, line) in page.lines().enumerate() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language, index + 2, String::new())),
            (Some(_), Some(_)) => {
                let (language, line, text) = block.take().unwrap();
                match language {
                    "sh" => steps.push(Step { line, commands: text, printed: None }),
                    "text" if right_after => steps.last_mut().unwrap().printed = Some(text),
                    _ => {}
                }
                right_after = language == "sh";
            }
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => right_after &= line.trim().is_empty(),
        }
    }
    steps
}

/// Whether a text is what the page shows.
fn shows(expected: &str, printed: &str) -> bool {
    fn lines(expected: &[&str], printed: &[&str]) -> bool {
        match expected.split_first() {
            None => printed.is_empty(),
            Some((&"…", rest)) => (0..=printed.len()).any(|skipped| lines(rest, &printed[skipped..])),
            Some((first, rest)) => {
                printed.split_first().is_some_and(|(line, others)| one_line(first, line) && lines(rest, others))
            }
        }
    }
    fn one_line(expected: &str, printed: &str) -> bool {
        match expected.split_once('…') {
            None => expected.trim_end() == printed.trim_end(),
            Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
                rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| one_line(after, &rest[at..]))
            }),
        }
    }
    lines(&expected.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
}

/// How long the page's words may take to come true: controllers work while the reader reads.
const COMES_TRUE_MAX: Duration = Duration::from_secs(15);

#[test]
fn every_command_prints_what_the_page_says() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("quickstart-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("koord.kubeconfig");
    let Some(kubectl) = integration::Kubectl::find(&kubeconfig, &folder).unwrap() else { return };
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let _ = std::fs::remove_file(bin.join("kubectl"));
    symlink(kubectl.program(), bin.join("kubectl")).unwrap();
    for_ever_embedded(&["--nodes=10"], &kubeconfig);

    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut wrong = Vec::new();
    for step in steps(PAGE) {
        let deadline = Instant::now() + COMES_TRUE_MAX;
        loop {
            let output = Command::new("bash")
                .args(["-c", &format!("exec 2>&1\n{}", step.commands)])
                .current_dir(&folder)
                .env("PATH", &path)
                .env("HOME", &folder)
                .env("KUBECONFIG", &kubeconfig)
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let reads_only =
                !["create", "apply", "patch", "delete", "run", "edit"].iter().any(|word| step.commands.contains(word));
            match &step.printed {
                Some(expected) if shows(expected, &printed) => break,
                None if output.status.success() => break,
                // What only reads may be asked again.
                _ if reads_only && Instant::now() < deadline => std::thread::sleep(Duration::from_millis(100)),
                expected => {
                    let expected = expected.as_deref().unwrap_or("success\n");
                    wrong.push(format!(
                        "docs/quickstart.md:{}\n{}--- the page says\n{expected}--- it prints\n{printed}",
                        step.line, step.commands
                    ));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_shows_all_that_it_promises() {
    let all: String = steps(PAGE).iter().map(|step| step.commands.as_str()).collect();
    for kind in
        ["ElasticQuota", "Reservation", "NodeSLO", "PodMigrationJob", "Device", "ClusterColocationProfile", "Pod"]
    {
        assert!(all.contains(&format!("kind: {kind}\n")), "no {kind} is created");
    }
    for command in ["kubectl explain", "kubectl get reservations", "slo-controller-config"] {
        assert!(all.contains(command), "no {command}");
    }
}

#[test]
fn an_ellipsis_stands_for_anything_in_a_line_or_for_lines() {
    for (expected, printed) in [
        ("a\n", "a\n"),
        ("a …\n", "a 5s\n"),
        ("a … b\n", "a x b b\n"),
        ("…\nb\n", "a\na\nb\n"),
        ("a\n…\n", "a\n"),
        ("", ""),
    ] {
        assert!(shows(expected, printed), "{expected:?} {printed:?}");
    }
    for (expected, printed) in [("a\n", "b\n"), ("a …\n", "b 5s\n"), ("a\n", "a\nb\n"), ("…\nb\n", "a\n")] {
        assert!(!shows(expected, printed), "{expected:?} {printed:?}");
    }
}

#[test]
fn a_text_block_belongs_to_the_commands_right_before_it() {
    let page = "```sh\none\n```\n\n```text\nprinted\n```\nwords\n```text\nnot this\n```\n```sh\ntwo\n```\nwords\n```text\nnor this\n```\n";
    let found = steps(page);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].printed.as_deref()), (2, Some("printed\n")));
    assert_eq!((found[1].commands.as_str(), found[1].printed.as_deref()), ("two\n", None));
}
