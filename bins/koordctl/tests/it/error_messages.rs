//! What a command that cannot do what it was asked says: one line with the remedy, for programs too, and exit code 2.

use std::{
    fs::File,
    path::Path,
    process::{Command, Output, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::Timestamp;
use koord_webhook_server::certificates::{CertificateSet, decide};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    peer::{answers, kubeconfig, presented, written},
    program::{folder, koordctl},
};

fn certificates(now: Timestamp) -> CertificateSet {
    decide(None, "127.0.0.1", false, now).unwrap().set
}

/// What a run says on standard error, after whose name it is.
#[track_caller]
fn error_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = text.strip_prefix("koordctl: ").and_then(|text| text.strip_suffix('\n'));
    error.unwrap_or_else(|| panic!("not a line of an error: {text:?}")).to_owned()
}

/// That a command fails with one line with these words, for people and for programs.
#[track_caller]
fn fails(line: &[&str], environment: &[(&str, &Path)], says: &[&str]) {
    let run = |more: &[&str]| {
        let mut command = koordctl();
        command.args(line).args(more).env("HOME", "/nonexistent").env_remove("KUBERNETES_SERVICE_HOST");
        command.envs(environment.iter().copied()).output().unwrap()
    };
    let output = run(&[]);
    let text = error_line(&output);
    for words in says {
        assert!(text.contains(words), "{line:?} does not say {words:?}, but:\n{text}");
    }
    assert!(!text.contains('\n') && output.stdout.is_empty(), "{line:?}: {output:?}");
    let layers = ["ServiceError", "ApiError", "client error", "Status {", "incluster", "<input>"];
    assert!(!layers.iter().any(|layer| text.contains(layer)), "{line:?} speaks of the client's layers: {text}");
    if !["crd", "version"].contains(&line[0]) {
        let output = run(&["-o", "json"]);
        assert_eq!(error_line(&output), text);
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({ "error": text }), "{line:?}");
    }
}

#[test]
fn a_cluster_that_cannot_be_asked() {
    let folder = folder("errors-cluster");
    let at = |name: &str| folder.join(name);
    std::fs::write(at("broken"), "{bad: [").unwrap();
    std::fs::write(at("empty"), "").unwrap();
    let dead = kubeconfig("errors-dead", "https://127.0.0.1:1");
    let server = |set: &CertificateSet, authorities: &CertificateSet, name: &str| {
        let server = format!("https://{}", presented(set));
        let authorities = BASE64.encode(&authorities.ca_certs);
        written(name, &json!({"server": server, "certificate-authority-data": authorities}), &json!({}))
    };
    let now = certificates(Timestamp::now());
    let foreign = server(&now, &certificates(Timestamp::now()), "errors-foreign");
    let old = certificates("2001-01-01T00:00:00Z".parse().unwrap());
    let ended = server(&old, &old, "errors-ended");
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}});
    let plugin = written("errors-plugin", &json!({"server": "https://127.0.0.1:1"}), &exec);

    for command in [
        &["explain", "batch", "n1"][..],
        &["explain", "quota", "q"],
        &["plan"],
        &["profile", "test", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/manager/manager.yaml")],
        &["crd", "diff"],
    ] {
        let cases: [(Option<&Path>, &[&str]); 8] = [
            (None, &["no cluster is known: /nonexistent/.kube/config cannot be read: No such file", "`koordctl up`"]),
            (Some(&at("none")), &["no cluster is known: ", "none cannot be read: No such file"]),
            (
                Some(&at("broken")),
                &["is no YAML of a kubeconfig: unclosed bracket '[' at line 1, column 7", "--kubeconfig"],
            ),
            (Some(&at("empty")), &["names no cluster: it has no context", "--kubeconfig"]),
            (Some(&dead), &["https://127.0.0.1:1 does not answer: Connection refused", "kubectl cluster-info"]),
            (Some(&foreign), &["presents a certificate that the kubeconfig does not trust: ", "get a kubeconfig anew"]),
            (
                Some(&ended),
                &[
                    "does not trust: certificate expired: it was valid until 2010-12-30T00:00:00Z",
                    "get a kubeconfig anew",
                ],
            ),
            (Some(&plugin), &["credentials", "no-such-plugin", "--context"]),
        ];
        for (kubeconfig, says) in cases {
            let environment: Vec<(&str, &Path)> = kubeconfig.map(|file| ("KUBECONFIG", file)).into_iter().collect();
            fails(command, &environment, says);
        }
    }
    let file = format!("--kubeconfig={}", dead.display());
    fails(&["plan", &file, "--context=stagin"], &[], &["has no context \"stagin\"; did you mean \"staging\"?"]);
    fails(&["plan", &file, "--context=x"], &[], &["has no context \"x\"; it has: staging"]);
    let output = koordctl().args(["version", &file]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("server unknown: https://127.0.0.1:1 does not answer: Connection refused"), "{text}");
}

#[test]
fn a_scheduler_that_cannot_be_asked() {
    let standby = answers(503, r#"{"message":"the instance is not leader"}"#.to_owned());
    let standby = format!("--scheduler=http://{standby}");
    let does_not_schedule = "does not schedule now (the instance is not leader); ask the replica that holds the Lease";
    let foreign = ["", "ok", "{}", "[]", r#"{"pods": "5"}"#].map(|body| answers(200, body.to_owned()));
    let commands: [&[&str]; 3] = [&["queue", "list"], &["queue", "show", "web-0"], &["why", "web-0", "--history"]];
    for command in commands {
        let says = |scheduler: &str, says: &str| fails(&[command, &[scheduler]].concat(), &[], &[says]);
        says(&standby, does_not_schedule);
        for server in foreign {
            let words = format!("what answers at {server} knows no queue; name a port of koord-scheduler");
            says(&format!("--scheduler={server}"), &words);
        }
        says("--scheduler=127.0.0.1:1", "127.0.0.1:1 does not answer: ");
        for no_host in ["http://", ":10251", "http://:10251", "a b", "::1"] {
            let words = format!(
                "--scheduler {no_host:?} is no address of a scheduler; write HOST:PORT, http://HOST:PORT or https://HOST"
            );
            says(&format!("--scheduler={no_host}"), &words);
        }
    }
}

#[test]
fn names_that_are_not_there() {
    let cluster = Cluster::installed("errors-names");
    for name in ["hollow-0", "hollow-1"] {
        cluster.create("/api/v1/nodes", &json!({"metadata": {"name": name}}));
    }
    let quotas = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "team-a"},
        "spec": {"max": {"cpu": "1"}},
    });
    cluster.create(quotas, &quota);
    let asked = [("KUBECONFIG", cluster.kubeconfig.as_path())];
    let says = |line: &[&str], says: &str| fails(line, &asked, &[says]);
    for what in ["batch", "mid", "zone", "slo"] {
        says(&["explain", what, "hollow-00"], "there is no node hollow-00; did you mean \"hollow-0\"?");
        says(&["explain", what, "gpu-7"], "there is no node gpu-7; `kubectl get nodes` shows those that are");
    }
    says(&["explain", "quota", "team-b"], "there is no quota team-b; did you mean \"team-a\"?");
    says(&["explain", "quota", "sales"], "`kubectl get elasticquotas -A` shows those that are");
    says(&["explain", "quota", "team-a", "-n", "kube-system"], "in namespace kube-system; there is one in default");
    says(&["plan", "--controllers=nodeslos"], "there is no controller \"nodeslos\"; did you mean \"nodeslo\"?");
    says(&["plan", "--controllers=*,-x"], "there is no controller \"x\"; there are: ");
    says(&["doctor", "--only=lease", "--skip=lease"], "--skip leaves nothing of --only to look at");
    says(&["doctor", "--feature-gates=Nope=true"], "--feature-gates: unrecognized feature gate: Nope");

    // An invalid name is reported before any request.
    for (line, says) in [
        (&["explain", "slo", "a/b"][..], "'a/b' for '<NODE>': a name: lower-case letters"),
        (&["explain", "slo", ""], "<NODE>"),
        (&["explain", "quota", "Team A"], "'Team A' for '<NAME>': a name"),
        (&["doctor", "-n", "a.b"], "'a.b' for '--namespace <NAMESPACE>': a namespace"),
        (&["plan", "--at=yesterday"], "'yesterday' for '--at <TIME>': a time such as 2026-01-02T03:04:05Z"),
        (&["doctor", "--webhook-at=here"], "'here' for '--webhook-at <HOST:PORT>': a place such as 127.0.0.1:9443"),
    ] {
        let output = koordctl().args(line).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(says) && output.status.code() == Some(2), "{line:?}: {text}");
    }
}

#[test]
fn files_that_hold_nothing_or_nonsense() {
    let folder = folder("errors-files");
    let at = |name: &str| folder.join(name).display().to_string();
    std::fs::create_dir_all(at("empty")).unwrap();
    std::fs::create_dir_all(at("comments")).unwrap();
    for (name, text) in [
        ("broken.yaml", "a: [".as_bytes()),
        ("text.yaml", b"hello"),
        ("bytes.yaml", b"\xff\xfe\xfd"),
        ("comments/none.yaml", b"# nothing\n---\n"),
        ("node.yaml", b"{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4}}}"),
        ("quota.yaml", b"{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q}}"),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    let commands: [&[&str]; 5] = [
        &["plan", "-f"],
        &["explain", "slo", "n1", "-f"],
        &["explain", "quota", "q", "-f", &at("quota.yaml"), "--what-if"],
        &["profile", "test", "-f"],
        &["lint", "-f"],
    ];
    for command in commands {
        let says = |file: &str, says: &str| fails(&[command, &[&*at(file)]].concat(), &[], &[says]);
        says("none.yaml", "none.yaml cannot be read: No such file");
        says("bytes.yaml", "bytes.yaml cannot be read: ");
        says("node.yaml/x", "node.yaml/x cannot be read: Not a directory");
        says("empty", "empty holds nothing to read: no folder, and no file that ends in .yaml, .yml or .json");
        if command[0] == "lint" {
            says("comments", "there is no object in ");
        } else {
            says("broken.yaml", "broken.yaml is no YAML: unclosed bracket '[' at line 1, column 4");
            says("text.yaml", "text.yaml holds something that is no object: an object needs apiVersion and kind");
        }
    }
    fails(&["lint", "-f", "-"], &[], &["there is no object in -"]);
    let node = at("node.yaml");
    fails(&["explain", "batch", "n2", "-f", &node], &[], &["there is no node n2; the files hold: n1"]);
    fails(&["explain", "batch", "other", "-f", &node], &[], &["there is no node other; the files hold: n1"]);
    fails(
        &["explain", "quota", "q", "-f", &at("quota.yaml"), "--what-if", &node],
        &[],
        &["--what-if takes ElasticQuotas, not Node"],
    );
}

/// Rules that an error names, as roles write them.
fn rules(error: &str) -> Value {
    let (_, rest) = error.split_once("a role that grants it needs ").unwrap_or_else(|| panic!("{error}"));
    let (rules, _) = rest.split_once("; or ask as another user").unwrap();
    serde_saphyr::from_str(&format!("[{}]", rules.replace(" in namespace koordinator-system", ""))).unwrap()
}

#[test]
fn who_may_not_ask_is_told_exactly_the_rules_that_are_missing() {
    let cluster = Cluster::installed("errors-forbidden");
    let amounts = json!({"cpu": "4", "memory": "8Gi"});
    cluster.create(
        "/api/v1/nodes",
        &json!({"metadata": {"name": "n1"}, "status": {"capacity": amounts, "allocatable": amounts}}),
    );
    let quotas = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "team-a"},
        "spec": {"max": {"cpu": "1"}},
    });
    cluster.create(quotas, &quota);
    let pod = folder("errors-forbidden-pod").join("pod.yaml");
    std::fs::write(&pod, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}")
        .unwrap();
    let pod = pod.display().to_string();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (name, line) in [
        ("batch", &["explain", "batch", "n1"][..]),
        ("slo", &["explain", "slo", "n1"]),
        ("quota", &["explain", "quota", "team-a"]),
        ("plan", &["plan"]),
        ("profile", &["profile", "test", "-f", &pod]),
    ] {
        let stranger = cluster.seen_by_a_stranger(name);
        let error = stranger.koordctl(line).unwrap_err();
        let user = format!("system:serviceaccount:koordinator-system:{name}");
        assert!(error.contains(&user), "{error}");
        cluster.create(
            &format!("{rbac}/clusterroles"),
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules(&error)}),
        );
        cluster.create(
            &format!("{rbac}/clusterrolebindings"),
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "koordinator-system"}],
            }),
        );
        let answer = stranger.koordctl(line).unwrap_or_else(|error| panic!("{line:?} lacks more: {error}"));
        assert_eq!(answer, cluster.koordctl(line).unwrap(), "{line:?}");
    }
    let error = cluster.seen_by_a_stranger("crd").koordctl(&["crd", "diff"]).unwrap_err();
    let expected =
        json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]}]);
    assert_eq!(rules(&error), expected);
}

#[test]
fn an_answer_that_nobody_reads_is_no_failure_and_one_that_cannot_be_written_is() {
    let script = Command::new("bash")
        .args(["-c", "set -o pipefail; \"$0\" completion bash | head -1", crate::program::PROGRAM])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(script.status.success() && script.stderr.is_empty(), "{script:?}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = koordctl().args(["completion", "bash"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert!(error_line(&output).starts_with("the answer cannot be written: No space left"), "{output:?}");
}
