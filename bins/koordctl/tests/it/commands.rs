//! The commands beside `up`.

use std::process::Command;

use crate::program::{PROGRAM, folder, koordctl};

#[test]
fn completion_is_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let output = koordctl().args(["completion", shell]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("koordctl"), "{shell}");
    }
}

/// What bash offers after these words, with the script loaded.
fn bash_offers(words: &str) -> String {
    let script = format!(
        "source <({PROGRAM} completion bash)\nCOMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _koordctl koordctl \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\necho \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    assert_eq!(bash_offers("koordctl u"), "up");
    assert_eq!(bash_offers("koordctl up --no"), "--nodes --no-manager");
    assert_eq!(bash_offers("koordctl up --profile h"), "hardened");
    assert_eq!(bash_offers("koordctl crd a"), "apply");
}

/// `koordctl config effective` with a file.
fn effective(name: &str, text: &str, output: &str) -> std::process::Output {
    let file = folder(name).join("configuration.yaml");
    std::fs::write(&file, text).unwrap();
    koordctl().args(["config", "effective", "-o", output, "-f"]).arg(&file).output().unwrap()
}

const SCHEDULER: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: Reservation
    args:
      gcDurationSeconds: 5
";

#[test]
fn the_configuration_in_force_shows_where_each_value_comes_from() {
    let printed = effective("effective-table", SCHEDULER, "table");
    let text = String::from_utf8(printed.stdout).unwrap();
    let from = |field: &str| {
        let row = text.lines().find(|line| line.split_whitespace().next().is_some_and(|name| name.ends_with(field)));
        let row = row.unwrap_or_else(|| panic!("{field} is not in\n{text}"));
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(from("args.gcDurationSeconds"), "5 line 8");
    assert_eq!(from("schedulerName"), "koord-scheduler line 4");
    assert_eq!(from("parallelism"), "16 default");
    assert_eq!(printed.status.code(), Some(0));
}

#[test]
fn the_configuration_in_force_is_a_configuration_that_changes_nothing_more() {
    let descheduler = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\ndryRun: true\n";
    for (name, text) in [("effective-scheduler", SCHEDULER), ("effective-descheduler", descheduler)] {
        let first = effective(name, text, "yaml");
        assert_eq!(first.status.code(), Some(0), "{}", String::from_utf8_lossy(&first.stdout));
        let complete = String::from_utf8(first.stdout).unwrap();
        assert!(complete.lines().count() > text.lines().count());
        assert_eq!(String::from_utf8(effective(name, &complete, "yaml").stdout).unwrap(), complete);
    }
}

#[test]
fn a_configuration_with_mistakes_has_none_in_force() {
    let wrong = effective("effective-wrong", &SCHEDULER.replace("gcDurationSeconds", "gcDurationSecond"), "table");
    let text = String::from_utf8(wrong.stdout).unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text.contains(":8: ") && text.contains("did you mean gcDurationSeconds?"), "{text}");
    let other = effective("effective-other", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "table");
    let text = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(text.contains("one is a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1"), "{text}");
}
