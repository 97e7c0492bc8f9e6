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
    assert_eq!(bash_offers("koordctl up --no-"), "--no-manager --no-scheduler --no-descheduler");
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
    assert!(text.contains("a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1"), "{text}");
}

const SLO: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data:
  colocation-config: '{"enable":true,"cpuReclaimThresholdPercent":70}'
  resource-threshold-config: >-
    {"clusterStrategy":{"enable":true},
     "nodeStrategies":[{"name":"gold","nodeSelector":{"matchLabels":{"pool":"gold"}},"cpuSuppressThresholdPercent":50}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {pool: gold, node.koordinator.sh/cpu-reclaim-ratio: "0.4"}}
"#;

/// `koordctl config effective` with a file and further arguments: standard output, standard error and the exit code.
fn slo(name: &str, text: &str, more: &[&str]) -> (String, String, Option<i32>) {
    let file = folder(name).join("configuration.yaml");
    std::fs::write(&file, text).unwrap();
    let output = koordctl().args(["config", "effective", "-f"]).arg(&file).args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The row of a field, without it.
#[track_caller]
fn row<'t>(text: &'t str, field: &str) -> Vec<&'t str> {
    let mut rows = text.lines().map(|line| line.split_whitespace());
    let row = rows.find_map(|mut words| (words.next() == Some(field)).then(|| words.collect()));
    row.unwrap_or_else(|| panic!("{field} is not in\n{text}"))
}

#[test]
fn values_of_the_slo_configuration_name_the_strategy_that_sets_them() {
    let (text, _, code) = slo("effective-slo", SLO, &[]);
    assert_eq!(code, Some(0));
    assert_eq!(row(&text, "colocation-config.cpuReclaimThresholdPercent"), ["70", "cluster", "strategy"]);
    assert_eq!(row(&text, "colocation-config.degradeTimeMinutes"), ["15", "default"]);
    let suppress: Vec<&str> = text.lines().filter(|line| line.contains("cpuSuppressThresholdPercent")).collect();
    assert_eq!(suppress.len(), 2, "that of all nodes, then that of some: {text}");
    let words = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    assert_eq!(words(suppress[0]), "65 default");
    assert_eq!(words(suppress[1]), "50 node strategy gold (pool=gold)");
    for key in koord_types::slo_config::KEYS.iter().filter(|key| **key != "resource-qos-config") {
        assert!(text.lines().any(|line| line.starts_with(&format!("{key}."))), "{key} is not in\n{text}");
    }
}

#[test]
fn the_slo_configuration_is_merged_for_a_node() {
    let (text, _, _) = slo("effective-node", SLO, &["--node=node-1"]);
    assert_eq!(
        row(&text, "colocation-config.cpuReclaimThresholdPercent"),
        ["40", "label", "node.koordinator.sh/cpu-reclaim-ratio", "of", "node", "node-1"]
    );
    let suppress = "resource-threshold-config.cpuSuppressThresholdPercent";
    assert_eq!(row(&text, suppress), ["50", "node", "strategy", "gold", "(pool=gold)"]);
    assert_eq!(text.matches("cpuSuppressThresholdPercent").count(), 1);
    let (json, _, _) = slo("effective-node-json", SLO, &["--node=node-1", "-o=json"]);
    let (yaml, _, _) = slo("effective-node-yaml", SLO, &["--node=node-1", "-o=yaml"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap());
    let values = json["keys"]["resource-threshold-config"]["values"].as_array().unwrap();
    let value = values.iter().find(|value| value["field"] == "cpuSuppressThresholdPercent").unwrap();
    assert_eq!(
        *value,
        serde_json::json!({"field": "cpuSuppressThresholdPercent", "value": 50, "origin": "nodeStrategy", "index": 0})
    );
}

#[test]
fn a_node_that_is_not_in_the_file_and_a_key_that_cannot_be_decoded_are_reported() {
    let (_, error, code) = slo("effective-no-node", SLO, &["--node=node-2"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("there is no node node-2") && error.contains("node-1"), "{error}");
    let broken = SLO.replace(r#"'{"enable":true,"#, r#"'{"enable":3,"#);
    let (text, _, code) = slo("effective-broken", &broken, &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("configuration.yaml:6: ") && text.contains("enable"), "{text}");
    let (_, error, code) = slo("effective-component-node", SCHEDULER, &["--node=a"]);
    assert!(code == Some(2) && error.contains("is the same on all nodes"), "{error}");
}

#[test]
fn without_a_file_the_slo_configuration_of_the_cluster_is_shown() {
    let cluster = crate::cluster::Cluster::installed("effective-cluster");
    let path = "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config";
    let system = r#"{"clusterStrategy":{"totalNetworkBandwidth":"10M"}}"#;
    cluster.patch(path, &serde_json::json!({"data": {"system-config": system, "systen-config": "{}"}}));
    let effective = |more: &[&str]| cluster.koordctl(&[&["config", "effective"], more].concat());
    let text = effective(&[]).unwrap().text;
    assert_eq!(row(&text, "system-config.totalNetworkBandwidth"), ["10M", "cluster", "strategy"]);
    assert!(text.contains("warning: key systen-config: unknown key"), "{text}");
    let annotations = serde_json::json!({"node.koordinator.sh/network-bandwidth": "1M"});
    let node = serde_json::json!({"metadata": {"name": "n1", "annotations": annotations}});
    cluster.create("/api/v1/nodes", &node);
    let text = effective(&["--node=n1"]).unwrap().text;
    assert_eq!(row(&text, "system-config.totalNetworkBandwidth")[..2], ["1M", "annotation"]);
    assert!(effective(&["--node=n2"]).unwrap_err().contains("there is no node n2"));

    cluster.patch(path, &serde_json::json!({"data": {"system-config": "{"}}));
    let broken = effective(&[]).unwrap();
    assert_eq!(broken.code, 1);
    assert!(broken.text.contains("key system-config: ") && broken.text.contains("last good value"), "{}", broken.text);
    cluster.delete(path);
    let text = effective(&[]).unwrap().text;
    assert!(text.contains("there is no ConfigMap koordinator-system/slo-controller-config"), "{text}");
}
