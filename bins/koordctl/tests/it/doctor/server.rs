//! What is found of the API server, its definitions and its clock.

use super::*;

#[test]
fn a_server_that_does_not_answer_is_the_only_finding() {
    let kubeconfig = kubeconfig("doctor-down", "http://127.0.0.1:1");
    let folder = kubeconfig.parent().unwrap().to_owned();
    let run = |kubeconfig: &std::path::Path| {
        koordctl().args(["doctor", "--kubeconfig"]).arg(kubeconfig).env("HOME", &folder).output().unwrap()
    };
    let output = run(&kubeconfig);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text.starts_with("error    server         API server\n") && text.contains("kubectl cluster-info"),
        "{text}"
    );
    assert!(text.ends_with("1 error, 0 warnings; nothing else was looked at\n"), "{text}");
    let text = String::from_utf8_lossy(&run(&folder.join("none")).stdout).into_owned();
    assert!(text.contains("the kubeconfig") && text.contains("cannot be read"), "{text}");
}

#[test]
fn a_server_that_is_old_or_strange_is_found() {
    let look = |code: u16, version: Value| {
        let kubeconfig = kubeconfig("doctor-strange", &format!("http://{}", answers(code, version.to_string())));
        let output = koordctl().args(["doctor", "--only=server", "--kubeconfig"]).arg(kubeconfig).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    };
    let version = |minor: &str| json!({"major": "1", "minor": minor, "gitVersion": format!("v1.{minor}")});
    assert_eq!(look(200, version("25")), ("nothing is wrong with: server\n".to_owned(), 0));
    for (code, answer, says, ends) in [
        (200, version("24+"), "v1.24+ is older than 1.25", 1),
        (200, version("?"), "says no minor version", 0),
        (200, json!({}), "is no Kubernetes API server", 2),
        (500, version("30"), "answers 500 Internal Server Error to /version", 2),
        (401, json!({}), "does not know who asks (401)", 2),
        // Who may not ask for the version may ask for the rest.
        (403, json!({}), "may not read its version", 0),
    ] {
        let (text, code) = look(code, answer);
        assert!(text.contains(says) && code == ends, "{says}: {code}\n{text}");
    }
}

#[test]
fn clocks_that_differ_are_found() {
    let cluster = Cluster::bare("doctor-clock");
    let at = |seconds: i64| format!("--at={}", Timestamp::now() + SignedDuration::from_secs(seconds));
    let problem = |seconds: i64| findings(&cluster, &["--only=server", &at(seconds)]).0;
    assert_eq!(problem(0), []);
    assert!(problem(60)[0].2.contains("s behind this machine's"), "{:?}", problem(60));
    assert!(problem(-60)[0].2.contains("s ahead of this machine's"), "{:?}", problem(-60));
}

#[test]
fn definitions_that_are_missing_or_different_are_found() {
    let cluster = Cluster::installed("doctor-definitions");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(findings(&cluster, &["--only=definitions"]), (vec![], 0));

    let nodeslos = format!("{crds}/nodeslos.slo.koordinator.sh");
    let kept = cluster.get(&nodeslos);
    let mut versions = kept["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] = json!({"type": "string"});
    cluster.patch(&nodeslos, &json!({"spec": {"versions": versions}}));
    finds(&cluster, "definitions", "warning", "nodeslos", "its structure is neither of this program's profiles");
    cluster.patch(&nodeslos, &json!({"spec": {"versions": kept["spec"]["versions"]}}));

    let mut versions = kept["spec"]["versions"].clone();
    let mut other = versions[0].clone();
    other["name"] = "v2".into();
    versions[0]["served"] = false.into();
    versions[0]["storage"] = false.into();
    versions.as_array_mut().unwrap().push(other);
    cluster.patch(&nodeslos, &json!({"spec": {"versions": versions}}));
    finds(&cluster, "definitions", "error", "nodeslos", "version v1alpha1 is not served, only v2");

    cluster.delete(&nodeslos);
    finds(&cluster, "definitions", "error", "nodeslos", "the cluster lacks it");

    // Another definition has taken the kind's name.
    let mut spec = kept["spec"].clone();
    spec["names"] = json!({"plural": "others", "singular": "other", "kind": "NodeSLO", "listKind": "NodeSLOList"});
    let other = json!({"metadata": {"name": "others.slo.koordinator.sh"}, "spec": spec});
    cluster.create(crds, &other);
    cluster.create(crds, &json!({"metadata": {"name": "nodeslos.slo.koordinator.sh"}, "spec": kept["spec"]}));
    finds(&cluster, "definitions", "error", "nodeslos", "its names are taken: ");
}
