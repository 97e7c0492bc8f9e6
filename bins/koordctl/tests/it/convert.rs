//! `koordctl convert`: the configuration, the report beside it, the comparison of plans, and what cannot be converted.

use std::{fs, path::PathBuf, process::Output};

use serde_json::{Value, json};

use crate::program::{fails, folder, koordctl};

fn example(name: &str) -> String {
    format!("{}/../../examples/descheduler/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn convert(arguments: &[&str]) -> Output {
    koordctl().arg("convert").args(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn written(name: &str, text: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let file = folder.join("policy.yaml");
    fs::write(&file, text).unwrap();
    (folder, file.display().to_string())
}

#[test]
fn both_versions_are_converted_and_the_result_is_a_configuration() {
    for version in ["v1alpha1", "v1alpha2"] {
        let output = convert(&["-f", &example(&format!("policy-{version}.yaml")), "--descheduling-interval=5m"]);
        let (configuration, report) = texts(&output);
        assert_eq!(code(&output), 0, "{report}");
        assert_eq!(report.lines().count(), 2, "only that leader election is on, and what to do: {report}");
        let (_folder, file) = written(&format!("convert-{version}"), &configuration);
        let lint = koordctl().args(["lint", "-f", &file]).output().unwrap();
        assert_eq!((code(&lint), texts(&lint).0), (0, String::new()));
        let document = koord_resource::yaml::parse(&configuration).unwrap();
        assert_eq!(
            (&document["kind"], &document["deschedulingInterval"]),
            (&json!("DeschedulerConfiguration"), &json!("5m0s"))
        );
    }
}

#[test]
fn what_is_lost_is_reported_beside_the_configuration_with_its_line() {
    let policy = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
gracePeriodSeconds: 60
profiles:
- name: default
";
    let (_folder, file) = written("convert-lost", policy);
    let output = convert(&["-f", &file]);
    let (configuration, report) = texts(&output);
    assert_eq!(code(&output), 1);
    assert!(
        configuration.starts_with("apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n"),
        "{configuration}"
    );
    let line = format!(
        "{file}:3: lost: gracePeriodSeconds: DefaultEvictor leaves pods their own grace period\n    evict by MigrationController"
    );
    assert!(report.starts_with(&line), "{report}");
    assert!(report.contains(&format!("{file}: changed: a policy has no deschedulingInterval")), "{report}");

    let output = convert(&["-f", &file, "-o", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), texts(&output).1), (1, String::new()));
    assert_eq!(answer["configuration"]["kind"], "DeschedulerConfiguration");
    let note = &answer["notes"][0];
    assert_eq!(
        (&note["consequence"], &note["path"], &note["line"]),
        (&json!("lost"), &json!("gracePeriodSeconds"), &json!(3))
    );
    assert_eq!(answer["notes"][1]["line"], Value::Null);

    let output = convert(&["-f", &file, "--evictor=MigrationController", "--dry-run"]);
    assert_eq!(code(&output), 0, "{output:?}");
    let document = koord_resource::yaml::parse(&texts(&output).0).unwrap();
    assert_eq!(document["dryRun"], true);
    assert_eq!(
        document["profiles"][0]["pluginConfig"][0]["args"]["defaultDeleteOptions"],
        json!({"gracePeriodSeconds": 60})
    );
}

#[test]
fn the_plans_of_policy_and_configuration_are_compared_on_a_snapshot() {
    let (policy, objects) = (example("policy-v1alpha2.yaml"), example("objects.yaml"));
    let output = convert(&["-f", &policy, "--check", "--snapshot", &objects]);
    assert_eq!((code(&output), texts(&output).0.as_str()), (0, "both evict the same pods: 3\n"));
    let output = convert(&["-f", &policy, "--check", "--snapshot", &objects, "--evictor=MigrationController"]);
    let (table, _) = texts(&output);
    assert_eq!(code(&output), 1, "{table}");
    assert!(table.contains("shop/cache-0  RemovePodsViolatingNodeTaints  stays"), "{table}");
    let configuration = example("descheduler.yaml");
    let output = convert(&["-f", &policy, "--check", "--snapshot", &objects, "--config", &configuration, "-o", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), &answer["same"]), (1, &json!(false)));
    assert_eq!(
        answer["differences"],
        json!([{"pod": "shop/cache-0", "policy": "RemovePodsViolatingNodeTaints", "configuration": null}])
    );
}

#[test]
fn a_policy_in_a_config_map_is_found() {
    let policy = fs::read_to_string(example("policy-v1alpha1.yaml")).unwrap();
    let map = |data: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": data}).to_string()
    };
    let (_folder, file) = written("convert-map", &map(&json!({"policy.yaml": policy, "other": "x"})));
    assert_eq!(code(&convert(&["-f", &file])), 0);
    let (_folder, file) =
        written("convert-map-wrong", &map(&json!({"policy.yaml": policy.replace("nodeFit", "nodeFits")})));
    let message = fails(&convert(&["-f", &file]));
    assert!(
        message.contains("policy.yaml, data[policy.yaml]:") && message.contains("did you mean nodeFit?"),
        "{message}"
    );
    let (_folder, file) = written("convert-map-none", &map(&json!({"other": "x"})));
    assert!(fails(&convert(&["-f", &file])).contains("without a DeschedulerPolicy"));
}

#[test]
fn what_cannot_be_converted_is_refused_with_its_place_and_a_remedy() {
    let head = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n";
    let deep = format!("{head}profiles: {}1{}\n", "[".repeat(5000), "]".repeat(5000));
    for (name, text, says) in [
        (
            "plugin",
            format!("{head}profiles:\n- plugins:\n    balance:\n      enabled: [RemoveDuplicate]\n"),
            vec!["policy.yaml:6: ", "did you mean RemoveDuplicates?"],
        ),
        (
            "mixed",
            format!("{head}strategies: {{}}\nprofiles: [{{}}]\n"),
            vec!["policy.yaml:3: strategies", "descheduler/v1alpha1"],
        ),
        (
            "type",
            format!("{head}maxNoOfPodsToEvictPerNode: many\n"),
            vec!["policy.yaml:3: ", "must be a whole number, not a text"],
        ),
        ("none", format!("{head}profiles: []\n"), vec!["policy.yaml:3: ", "has no profile", "write profiles"]),
        ("empty", String::new(), vec!["there is nothing in it", "DeschedulerPolicy"]),
        ("yaml", "a: [".to_owned(), vec!["policy.yaml:"]),
        ("list", "- a\n".to_owned(), vec!["must be a DeschedulerPolicy", "not a list"]),
        ("kind", "apiVersion: v1\nkind: Pod\n".to_owned(), vec!["must be a DeschedulerPolicy", "not Pod of v1"]),
        (
            "already",
            "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n".to_owned(),
            vec!["already", "config effective"],
        ),
        ("deep", deep, vec!["policy.yaml:"]),
        ("large", format!("{head}# {}\n", "x".repeat(1 << 20)), vec!["cannot be read", "longer than"]),
    ] {
        let (_folder, file) = written(&format!("convert-{name}"), &text);
        let output = convert(&["-f", &file]);
        let message = fails(&output);
        assert_eq!((code(&output), texts(&output).0), (2, String::new()), "{name}: {message}");
        assert!(says.iter().all(|part| message.contains(part)), "{name}: {message}");
    }
    let output = convert(&["-f", "/nonexistent", "-o", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["error"].as_str().unwrap().contains("/nonexistent cannot be read"), "{answer}");
    assert!(fails(&convert(&["-f", "x", "--snapshot", "y"])).contains("--check"));
}

#[test]
fn lint_and_effective_read_policies_too() {
    let policy = example("policy-v1alpha1.yaml");
    let lint = koordctl().args(["lint", "-f", &policy]).output().unwrap();
    assert_eq!((code(&lint), texts(&lint).0), (0, String::new()));
    let effective = koordctl().args(["config", "effective", "-f", &policy]).output().unwrap();
    let (table, _) = texts(&effective);
    let row = table.lines().find(|line| line.starts_with("profiles[0].pluginConfig[0].args.nodeFit")).unwrap();
    assert!(row.contains("true") && row.contains("line "), "{row}");
}
