//! The program as its users run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use programs::Running;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koord-envtest"));
    command.args(["--port=0", "--quiet", "--kubeconfig"]).arg(kubeconfig(folder)).args(arguments).current_dir(folder);
    command
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Starts the server and waits until its kubeconfig is another than `before`.
fn start(folder: &Path, arguments: &[&str], before: &str) -> (Running, String) {
    let mut running = Running(command(folder, arguments).stdin(Stdio::null()).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match fs::read_to_string(kubeconfig(folder)) {
            Ok(text) if text != before => return (running, text),
            _ => {}
        }
        assert!(running.0.try_wait().unwrap().is_none(), "the server ended");
        assert!(Instant::now() < deadline, "no kubeconfig");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_kubeconfig_of_a_killed_run_is_replaced_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (first, text) = start(folder.path(), &["--data-dir=data"], "");
    // While it lives, its file is its own; also the data directory is.
    let error = refused(&command(folder.path(), &["--data-dir=data"]).output().unwrap());
    assert!(error.contains("exists already"), "{error}");
    drop(first);
    let error = refused(&command(folder.path(), &["--data-dir=other"]).output().unwrap());
    assert!(error.contains("--force"), "{error}");
    assert_eq!(fs::read_to_string(kubeconfig(folder.path())).unwrap(), text);
    let (_second, next) = start(folder.path(), &["--data-dir=data"], &text);
    assert!(next.contains("https://127.0.0.1:"));
}

#[test]
fn a_data_directory_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    start(folder.path(), &["--data-dir=data"], "");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty() && files.iter().all(|file| mode(file) == 0o600), "{files:?}");
}

#[test]
fn what_keeps_it_from_starting_is_said_once_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "x").unwrap();
    fs::create_dir(at("broken")).unwrap();
    fs::write(at("broken/objects.redb"), "this was never a store of objects").unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    let table = [
        (port.as_str(), "is in use by another program; choose another with --port"),
        ("--data-dir=file", "cannot make the data directory"),
        ("--data-dir=broken", "or name another folder with --data-dir"),
        ("--token-file=absent", "cannot read the token file"),
        ("--crds=absent", "cannot read the folder"),
    ];
    for (argument, expected) in table {
        let mut command = Command::new(env!("CARGO_BIN_EXE_koord-envtest"));
        command.args(["--quiet", "--kubeconfig=kubeconfig", argument]).current_dir(folder.path());
        if argument != port {
            command.arg("--port=0");
        }
        let error = refused(&command.output().unwrap());
        assert!(error.contains(expected), "{argument}: {error}");
        assert!(error.matches("os error").count() <= 1 && error.lines().count() == 1, "{argument}: {error}");
        assert!(!kubeconfig(folder.path()).exists(), "{argument}");
    }
    assert_eq!(fs::read_to_string(at("broken/objects.redb")).unwrap(), "this was never a store of objects");
}

#[test]
fn definitions_as_controller_gen_writes_them_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let definition = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.11.1
  creationTimestamp: null
  name: widgets.example.com
spec:
  group: example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: 'Widget is what this definition is about: its text goes on
        below its key'
        type: object
    served: true
    storage: true
";
    let crds = folder.path().join("crds");
    fs::create_dir(&crds).unwrap();
    fs::write(crds.join("widgets.yaml"), definition).unwrap();
    start(folder.path(), &["--crds=crds"], "");
}
