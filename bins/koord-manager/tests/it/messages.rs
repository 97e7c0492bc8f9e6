//! What the program says when it cannot start, and how it ends.

use std::{
    ffi::{OsStr, OsString},
    fs,
    net::{Ipv4Addr, TcpListener},
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use programs::{Running, alone, answer, ends, free};
use tempfile::TempDir;

/// The program with nothing around it: no kubeconfig, no home, no pod.
fn program(folder: &TempDir) -> Command {
    let mut program = alone(env!("CARGO_BIN_EXE_koord-manager"));
    program.env("WEBHOOK_HOST", "127.0.0.1").env("WEBHOOK_PORT", "0");
    program.env("WEBHOOK_CERT_DIR", folder.path().join("certificates"));
    program
}

/// A kubeconfig of a server that does not answer.
fn kubeconfig(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("kubeconfig");
    let text = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n\
                clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {token: t}}]\n";
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_wrong_command_line_names_what_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let not_text = OsString::from_vec(b"--namespace=\xff".to_vec());
    let cases: [(&OsStr, &[&str]); 6] = [
        (OsStr::new("--slo-config-nam=x"), &["unexpected argument '--slo-config-nam'", "'--slo-config-name'"]),
        (OsStr::new("-slo_config_nam=x"), &["'--slo-config-name'"]),
        (
            OsStr::new("--feature-gates=MultiQuotaTre=true"),
            &["--feature-gates: unrecognized", "did you mean MultiQuotaTree?"],
        ),
        (OsStr::new("--feature-gates=MultiQuotaTree=yes"), &["is not of the form Name=true or Name=false"]),
        (
            OsStr::new("--metrics-addr=8080"),
            &["--metrics-addr: \"8080\" is no address to listen on; write HOST:PORT or :PORT"],
        ),
        (&not_text, &["is not UTF-8"]),
    ];
    for (argument, says) in cases {
        ends(program(&folder).arg(argument), 2, says);
    }
}

#[test]
fn without_an_api_server_it_says_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let remedy = "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account";
    ends(&mut program(&folder), 1, &["koord-manager: no cluster is known: ", remedy]);
    let absent = folder.path().join("absent");
    let absent = absent.display();
    ends(
        program(&folder).arg(format!("--kubeconfig={absent}")),
        1,
        &[&format!("the kubeconfig {absent} cannot be read: No such file"), "name another with --kubeconfig"],
    );
    let not_a_file = folder.path().display().to_string();
    ends(program(&folder).env("KUBECONFIG", &not_a_file), 1, &["the kubeconfig cannot be read: Is a directory"]);
    let broken = folder.path().join("broken");
    fs::write(&broken, "clusters: {").unwrap();
    let problem = "cannot be used: it is no YAML of a kubeconfig: ";
    ends(program(&folder).arg("--kubeconfig").arg(&broken), 1, &[problem, "line 1", "name another with --kubeconfig"]);
}

#[test]
fn a_port_in_use_is_named_with_what_chooses_another() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(&folder);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let program = |metrics: &str, health: &str| {
        let mut program = program(&folder);
        program.arg("--kubeconfig").arg(&kubeconfig);
        program.arg(format!("--metrics-addr={metrics}")).arg(format!("--health-probe-addr={health}"));
        program
    };
    let (at, taken) = (address.to_string(), address.port().to_string());
    ends(&mut program(&at, "0"), 1, &["koord-manager: ", &at, "(metrics); choose another address with --metrics-addr"]);
    ends(&mut program("0", &at), 1, &[&at, "(health); choose another address with --health-probe-addr"]);
    ends(program("0", "0").env("WEBHOOK_PORT", &taken), 1, &[&taken, "set WEBHOOK_PORT to a free port"]);
}

#[test]
fn sigterm_ends_it_with_success_even_when_no_server_answers() {
    let folder = tempfile::tempdir().unwrap();
    let health = free();
    let mut program = program(&folder);
    program.arg("--kubeconfig").arg(kubeconfig(&folder)).arg("--metrics-addr=0");
    let mut running = Running(program.arg(format!("--health-probe-addr={health}")).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(30);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    while runtime.block_on(answer(health, "/livez")).is_none() {
        assert!(Instant::now() < deadline, "it does not serve its health");
        assert_eq!(running.0.try_wait().unwrap(), None, "it has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(running.terminate(), Some(0));
}
