//! What the program says when it cannot start, and what it says of what it leaves out.

use std::{
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
};

use programs::{Running, ends};

use crate::program::{program, write};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// A kubeconfig of a server that does not answer.
const KUBECONFIG: &str = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n\
    clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {token: t}}]\n";

#[test]
fn a_wrong_command_line_names_what_is_meant() {
    for (argument, says) in [
        ("--leader-elect-resource-nam=x", "'--leader-elect-resource-name'"),
        ("-leader_elect_resource_nam=x", "'--leader-elect-resource-name'"),
        ("--feature-gates=MultiQuotaTre=true", "did you mean MultiQuotaTree?"),
        ("--leader-elect=yes", "neither true nor false"),
        ("--port=high", "invalid value 'high' for '--port <PORT>'"),
    ] {
        ends(program().arg(argument), 2, &[says]);
    }
}

#[test]
fn a_wrong_configuration_is_reported_before_anything_is_contacted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml").display().to_string();
    let configured = |text: &str, says: &[&str]| {
        write(folder.path(), "config.yaml", text);
        ends(program().arg("--config").arg(&file), 1, says);
    };
    let profile = "profiles:\n- pluginConfig:\n  - name: Reservation\n    args:\n      gcDurationSecond: 5\n";
    let at = format!(
        "koord-scheduler: {file}:7: profiles[0].pluginConfig[0].args.gcDurationSecond: unknown field; did you mean"
    );
    configured(&format!("{HEAD}{profile}"), &[&at]);
    configured(
        &format!("{HEAD}podMaxBackoffSecond: 5\nparallelism: 0\n"),
        &[":3: podMaxBackoffSecond", ":4: parallelism: must"],
    );
    configured(
        "kind: Pod\n",
        &["must be a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1, but has no apiVersion"],
    );
    configured("profiles: [\n", &["config.yaml:"]);
    configured("", &["config.yaml:1: there is nothing in it; write a KubeSchedulerConfiguration of kubescheduler"]);
    let wrong = "{requiredDuringSchedulingIgnoredDuringExecution: x}";
    let added = format!("profiles:\n- pluginConfig:\n  - {{name: NodeAffinity, args: {{addedAffinity: {wrong}}}}}\n");
    let says = "profile default-scheduler: the arguments of plugin NodeAffinity cannot be used: ";
    configured(&format!("{HEAD}{added}"), &[says]);
    ends(
        program().arg("--config=/nonexistent/file"),
        1,
        &["--config /nonexistent/file cannot be read", "No such file"],
    );
}

#[test]
fn without_an_api_server_it_says_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let remedy = "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account";
    ends(&mut program(), 1, &["koord-scheduler: no cluster is known: ", remedy]);
    ends(program().arg("--master="), 1, &["koord-scheduler: no cluster is known: ", remedy]);
    let absent = folder.path().join("absent").display().to_string();
    ends(program().arg(format!("--kubeconfig={absent}")), 1, &[&absent, "cannot be read: No such file"]);
    let config = format!("{HEAD}clientConnection: {{kubeconfig: {absent}}}\n");
    let file = write(folder.path(), "config.yaml", &config);
    ends(program().arg("--config").arg(file), 1, &[&absent, "cannot be read: No such file"]);
    let (head, flag) = (write(folder.path(), "head.yaml", HEAD), format!("--kubeconfig={absent}"));
    ends(program().arg("--config").arg(head).arg(flag), 1, &[&absent, "cannot be read: No such file"]);
    for master in ["not a url", "not-a-url", "10.0.0.1:6443", "http://:6443", "/api"] {
        let problem =
            format!("koord-scheduler: --master {master:?} is no URL of an API server; write one with http:// or");
        ends(program().arg(format!("--master={master}")), 1, &[&problem, "such as https://10.0.0.1:6443"]);
    }
}

#[test]
fn an_api_server_that_does_not_answer_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = write(folder.path(), "kubeconfig", KUBECONFIG);
    let mut program = program();
    program.arg("--kubeconfig").arg(kubeconfig).args(["--port=0", "--secure-port=0"]);
    let mut running = Running(program.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.find(|line| line.contains("API server") || line.contains("kube_client")).unwrap();
    for words in ["the API server does not answer", "server=\"127.0.0.1:1\"", "Connection refused"] {
        assert!(first.contains(words), "{words:?} is not in {first:?}");
    }
    assert_eq!(running.terminate(), Some(0));
    let others: Vec<String> = lines.filter(|line| line.contains("answer") || line.contains("kube_client")).collect();
    assert_eq!(others, [""; 0], "each request fails, and it is said once");
}

#[test]
fn a_port_in_use_is_named_with_what_chooses_another_and_so_is_all_that_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = write(folder.path(), "kubeconfig", KUBECONFIG);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let mut program = program();
    program
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--address=127.0.0.1", "--feature-gates=LazyReservationRestore=true"]);
    program.arg(format!("--port={}", address.port()));
    let says = [
        &*address.to_string(),
        "(metrics and health); choose another address with --port",
        "gate=\"LazyReservationRestore\"",
    ];
    ends(&mut program, 1, &says);
}

#[test]
fn the_configuration_can_be_written_with_all_that_is_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let complete = folder.path().join("complete.yaml");
    let file = write(folder.path(), "config.yaml", HEAD);
    let write_to = |config: &std::path::Path| {
        ends(program().arg("--config").arg(config).arg("--write-config-to").arg(&complete), 0, &[]);
        std::fs::read_to_string(&complete).unwrap()
    };
    let first = write_to(&file);
    assert!(
        first.contains("schedulerName: default-scheduler") && first.contains("podMaxBackoffSeconds: 10"),
        "{first}"
    );
    assert_eq!(write_to(&complete.clone()), first);
    ends(program().arg("--preset=gpu").arg("--write-config-to").arg(&complete), 0, &[]);
    let preset = std::fs::read_to_string(&complete).unwrap();
    let nowhere = folder.path().join("none/complete.yaml");
    let says = format!("--write-config-to {} cannot be written: No such file", nowhere.display());
    ends(program().arg("--preset=gpu").arg("--write-config-to").arg(nowhere), 1, &[&says]);
    assert!(preset.contains("name: DeviceShare") && !preset.contains("name: Reservation"), "{preset}");
}
