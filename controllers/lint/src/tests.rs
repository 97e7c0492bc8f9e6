//! What is found in files, and what is not.

use std::{
    fs,
    path::{Path, PathBuf},
};

use koord_manager_assembly::reviewer::Reviewer;
use koord_program::{files::File, output::OutputFormat};

use crate::{Options, lint, run};

fn found(text: &str) -> Vec<String> {
    let file = File { name: "f.yaml".to_owned(), text: text.to_owned(), is_named: true };
    lint(&[file], &Reviewer::default()).iter().map(ToString::to_string).collect()
}

#[test]
fn configurations_of_components_are_checked_with_file_and_line() {
    let text = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  plugins:
    filter:
      enabled:
      - name: LoadAwareSheduling
  pluginConfig:
  - name: Reservation
    args:
      gcDurationSecond: 5
---
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10
";
    let mut found = found(text);
    found.sort();
    assert_eq!(
        found,
        [
            "f.yaml:12: KubeSchedulerConfiguration: profiles[0].pluginConfig[0].args.gcDurationSecond: unknown field\n    did you mean gcDurationSeconds?",
            "f.yaml:14: document: more than one document, where one is expected",
            "f.yaml:16: DeschedulerConfiguration: deschedulingInterval: must be a text, not a whole number",
            "f.yaml:8: KubeSchedulerConfiguration: profiles[0].plugins.filter.enabled[0].name: there is no plugin \"LoadAwareSheduling\"\n    did you mean LoadAwareScheduling?",
        ]
    );
}

#[test]
fn policies_of_kubernetes_sigs_descheduler_are_checked_in_both_versions() {
    let v1alpha1 = "\
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  RemoveDuplicates:
    enabled: true
    weight: 2
    params:
      nodeFits: true
  PodLifetime:
    enabled: true
";
    assert_eq!(
        found(v1alpha1),
        [
            "f.yaml:8: DeschedulerPolicy: strategies.RemoveDuplicates.params.nodeFits: unknown field\n    did you mean nodeFit?"
        ],
        "what is in the strategies is looked at when all of it can be read"
    );
    let mut found_later = found(&v1alpha1.replace("nodeFits", "nodeFit"));
    found_later.sort();
    assert_eq!(
        found_later,
        [
            "f.yaml:9: DeschedulerPolicy: strategies.PodLifetime: there is no strategy \"PodLifetime\"\n    did you mean PodLifeTime?"
        ]
    );
    let v1alpha2 = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
gracePeriodSeconds: 5
profiles:
- name: p
  pluginConfig:
  - name: PodLifeTime
    args:
      maxPodLifeTimeSeconds: 60
  plugins:
    balance:
      enabled:
      - PodLifeTime
";
    assert_eq!(
        found(v1alpha2),
        [
            "f.yaml:13: DeschedulerPolicy: profiles[0].plugins.balance.enabled[0]: PodLifeTime is no plugin of this set\n    enable it in deschedule"
        ]
    );
    assert_eq!(
        found(&v1alpha2.replace("balance", "deschedule")),
        [
            "f.yaml:3: DeschedulerPolicy: warning: gracePeriodSeconds: DefaultEvictor leaves pods their own grace period\n    evict by MigrationController, whose defaultDeleteOptions have gracePeriodSeconds"
        ]
    );
}

#[test]
fn a_version_that_no_component_reads_is_an_error() {
    for (kind, version, known) in [
        ("DeschedulerPolicy", "descheduler/v1beta1", "descheduler/v1alpha1 or descheduler/v1alpha2"),
        ("KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta3", "kubescheduler.config.k8s.io/v1"),
    ] {
        let text = format!("kind: {kind}\napiVersion: {version}\n");
        let wrong = format!("f.yaml:2: {kind}: no component reads a {kind} of {version}\n    write it in {known}");
        assert_eq!(found(&text), [wrong]);
    }
}

#[test]
fn a_configuration_stands_alone_in_its_file() {
    let configuration = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    let surplus = |line: usize| vec![format!("f.yaml:{line}: document: more than one document, where one is expected")];
    assert_eq!(found(&format!("{configuration}---\n{node}")), surplus(4));
    assert_eq!(found(&format!("{node}---\n{configuration}")), surplus(5));
    assert_eq!(found(&format!("---\n{configuration}---\n# the end\n")), [""; 0], "documents without content are none");
    assert_eq!(found(&format!("{node}---\n{node}")), [""; 0]);
}

#[test]
fn a_configuration_that_koord_scheduler_would_not_read_to_its_end_is_too_long() {
    let configuration = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let of_length = |bytes: usize| found(&format!("{configuration}{}", "#".repeat(bytes - configuration.len())));
    assert_eq!(of_length(1 << 20), [""; 0]);
    assert_eq!(of_length((1 << 20) + 1), ["f.yaml:1: document: it is longer than 1 MiB"]);
}

#[test]
fn leader_election_is_checked_as_the_components_check_it() {
    let configuration = |members: &str| {
        let mut found = found(&format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection:\n{members}"
        ));
        found.sort();
        found
    };
    let unset = "  leaseDuration: 0s\n  retryPeriod: \"0\"\n  resourceLock: \"\"\n  resourceName: \"\"\n";
    assert_eq!(configuration(unset), [""; 0]);
    assert_eq!(
        configuration("  resourceLock: endpoints\n  renewDeadline: 12s\n  retryPeriod: 10s\n"),
        [
            "f.yaml:4: KubeSchedulerConfiguration: leaderElection.resourceLock: must be leases",
            "f.yaml:5: KubeSchedulerConfiguration: leaderElection.renewDeadline: must be longer than 1.2 times retryPeriod",
        ]
    );
}

#[test]
fn right_objects_need_no_words() {
    let text = "\
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: team
  namespace: default
spec:
  min: {cpu: 1}
  max: {cpu: 2}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: slo-controller-config
  namespace: koordinator-system
data:
  colocation-config: |
    {\"enable\": true, \"cpuReclaimThresholdPercent\": 60}
";
    assert_eq!(found(text), [""; 0]);
    assert_eq!(found(""), [""; 0]);
}

#[test]
fn mistakes_in_objects_are_found_at_their_lines() {
    let text = "\
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeSLO
metadata:
  name: n1
spec:
  resourceUsedThresholdWithBE:
    cpuSuppressThresholdPercent: 150
    memoryEvictThresholdPercnt: 70
---
apiVersion: slo.koordinator.sh/v1
kind: NodeSLO
metadata:
  name: n2
";
    let found = found(text);
    assert_eq!(
        found[0],
        "f.yaml:8: NodeSLO n1: unknown field \"spec.resourceUsedThresholdWithBE.memoryEvictThresholdPercnt\"\n    did you mean \"memoryEvictThresholdPercent\"?"
    );
    assert!(
        found[1].starts_with(
            "f.yaml:7: NodeSLO n1: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: Invalid value: 150"
        ),
        "{found:?}"
    );
    assert_eq!(
        found[2],
        "f.yaml:10: NodeSLO n2: there is no NodeSLO of slo.koordinator.sh/v1\n    did you mean \"NodeSLO of slo.koordinator.sh/v1alpha1\"?"
    );
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn every_key_of_the_configuration_is_looked_at_by_itself() {
    let text = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: slo-controller-config
  namespace: koordinator-system
data:
  colocation-confg: |
    {}
  resource-threshold-config: |
    {\"clusterStrategy\": {\"cpuSuppressThresholdPercent\": \"x\"}}
  cpu-normalization-config: \"[]\"
";
    let found = found(text);
    assert_eq!(
        found[0],
        "f.yaml:7: ConfigMap slo-controller-config: unknown key \"colocation-confg\"\n    did you mean \"colocation-config\"?"
    );
    assert!(
        found
            .iter()
            .any(|text| text.starts_with("f.yaml:9: ") && text.contains("cpuSuppressThresholdPercent of type int64")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|text| text.starts_with("f.yaml:11: ") && text.contains("cannot unmarshal array")),
        "{found:?}"
    );
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn labels_annotations_and_flags_are_looked_at() {
    let text = "\
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations:
    node.koordinator.sh/cpu-normalization-ratio: fast
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: koord-manager
spec:
  template:
    spec:
      containers:
      - name: manager
        command: [/koord-manager]
        args:
        - --feature-gates=MultiQuotasTree=true
";
    let found = found(text);
    assert!(
        found[0].starts_with("f.yaml:6: Node n1: node.koordinator.sh/cpu-normalization-ratio: \"fast\" is wrong"),
        "{found:?}"
    );
    assert!(found[0].ends_with("expected a number above 0 such as 1.20"), "{found:?}");
    assert!(
        found[1].starts_with("f.yaml:19: Deployment koord-manager: ") && found[1].contains("MultiQuotaTree"),
        "{found:?}"
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn values_that_can_be_read_and_hardly_do_what_was_meant_are_warnings() {
    let text = "\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    gang.scheduling.koordinator.sh/name: g
    gang.scheduling.koordinator.sh/min-available: \"2\"
    gang.scheduling.koordinator.sh/mode: nonstrict
    scheduling.koordinator.sh/device-allocate-hint: '{\"rdma\":{\"allocateStrategi\":\"ApplyForAll\"}}'
spec:
  containers:
  - {name: c, image: i}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: team
  namespace: default
  annotations:
    quota.scheduling.koordinator.sh/shared-weight: '{\"cpu\":\"-1\"}'
spec:
  min: {cpu: 1}
  max: {cpu: 2}
";
    let found = found(text);
    assert_eq!(
        found[0],
        "f.yaml:8: Pod web: warning: gang.scheduling.koordinator.sh/mode: \"nonstrict\" is not known\n    did you mean NonStrict?"
    );
    assert_eq!(
        found[1],
        "f.yaml:9: Pod web: warning: scheduling.koordinator.sh/device-allocate-hint: rdma.allocateStrategi: there is no such field\n    did you mean allocateStrategy?"
    );
    assert_eq!(
        found[2],
        "f.yaml:20: ElasticQuota team: warning: quota.scheduling.koordinator.sh/shared-weight: cpu: \"-1\" is negative\n    expected an amount of at least 0"
    );
}

fn options(files: &[PathBuf]) -> Options<'_> {
    Options { files, feature_gates: "", output: OutputFormat::Table }
}

#[test]
fn files_are_one_cluster() {
    let quota = |name: &str, parent: &str, cpu: u32| {
        format!(
            "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata:\n  name: {name}\n  labels:\n    \
             quota.scheduling.koordinator.sh/parent: \"{parent}\"\n    quota.scheduling.koordinator.sh/is-parent: \"true\"\n\
             spec:\n  max: {{cpu: 100}}\n  min: {{cpu: {cpu}}}\n"
        )
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels:\n    \
               quota.scheduling.koordinator.sh/name: teem\nspec:\n  containers:\n  - {name: c, image: i}\n";
    let files =
        [("low.yaml", quota("team", "top", 7)), ("top.yaml", quota("top", "", 5)), ("pod.yaml", pod.to_owned())];
    let files = files.map(|(name, text)| File { name: name.to_owned(), text, is_named: true });
    let findings = lint(&files, &Reviewer::default());
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        found[0].starts_with("low.yaml:11: ElasticQuota team: checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: top\n    lower"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("pod.yaml:6: Pod web: warning: metadata.labels[quota.scheduling.koordinator.sh/name]: there is no ElasticQuota"),
        "{found:?}"
    );
    assert_eq!((found.len(), findings[1].is_error), (2, false), "{found:?}");
    assert_eq!(lint(&files[2..], &Reviewer::default()), [], "the quota may be in the cluster");
}

#[test]
fn programs_read_json() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), "apiVersion: slo.koordinator.sh/v2\nkind: NodeSLO\nmetadata: {name: n}\n")
        .unwrap();
    let answer = run(&Options { output: OutputFormat::Json, ..options(&[folder.path().to_owned()]) }).unwrap();
    let json: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 1, "values of a chart are no objects: {json}");
    assert_eq!((json["findings"][0]["line"].as_u64(), answer.code), (Some(1), 1));
    assert_eq!(json["findings"][0]["severity"], "error");
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    assert!(!files.is_empty());
    files.into_iter().filter(|path| !path.ends_with("kustomization.yaml")).collect()
}

#[test]
fn valid_samples_and_the_default_installation_are_right() {
    for folder in ["samples/valid", "manager"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder);
        let answer = run(&options(&[folder])).unwrap();
        assert_eq!((answer.text.as_str(), answer.code), ("", 0));
    }
}

#[test]
fn invalid_samples_are_not() {
    for file in files_in("samples/invalid") {
        let answer = run(&options(std::slice::from_ref(&file))).unwrap();
        assert!(answer.code == 1 && answer.text.starts_with(&file.display().to_string()), "{}", file.display());
    }
    let error = run(&options(&["no/such/file".into()])).unwrap_err();
    assert_eq!(error.to_string(), "no/such/file cannot be read");
}

#[test]
fn broken_text_is_a_finding() {
    assert_eq!(found("a: [1").len(), 1);
    assert_eq!(found("5"), ["f.yaml:1: document: an object needs apiVersion and kind"]);
}

#[test]
fn one_page_of_a_list_is_a_part_only_and_its_objects_are_looked_at() {
    let page = |kind: &str, token: &str| {
        let odd = "- {apiVersion: slo.koordinator.sh/v2, kind: NodeSLO, metadata: {name: n1}}";
        found(&format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  continue: {token}\nitems:\n{odd}\n"))
    };
    let part = "f.yaml:4: document: it holds a part of a list only: metadata.continue names the next\n    save the whole list: kubectl get -o yaml";
    let of_list = page("List", "abc");
    assert_eq!((of_list[0].as_str(), of_list.len()), (part, 2), "{of_list:?}");
    assert!(of_list[1].contains("NodeSLO n1: there is no NodeSLO of slo.koordinator.sh/v2"), "{of_list:?}");
    assert_eq!(page("PodList", "abc"), [part]);
    assert_eq!(page("PodList", "''"), [""; 0], "the last page, or all");
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, continue: abc}\n";
    assert_eq!(found(object), [""; 0], "no list");
}
