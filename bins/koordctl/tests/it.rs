//! koordctl as a program: what its users see when all is well, and when something is in the way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

fn koordctl() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koordctl"));
    command.env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn fails(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running `koordctl up`; killed when dropped.
struct Up {
    child: Child,
    greeting: String,
}

impl Up {
    fn start(kubeconfig: &Path, more: &[&str]) -> Self {
        let mut child = koordctl()
            .args(["up", "--port=0", "--nodes=2", "--kubeconfig"])
            .arg(kubeconfig)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !greeting.contains("ctrl-C ends it") {
            if lines.read_line(&mut greeting).unwrap() == 0 {
                let mut errors = String::new();
                child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                panic!("it ends early:\n{greeting}{errors}");
            }
        }
        Self { child, greeting }
    }

    /// Ends it as a process manager does.
    fn end(&mut self) -> bool {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_cluster_comes_up_tells_what_to_try_and_leaves_nothing_behind() {
    let kubeconfig = folder("up").join("koord.kubeconfig");
    let mut up = Up::start(&kubeconfig, &[]);
    assert!(up.greeting.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{}", up.greeting);
    assert_eq!(up.greeting.lines().filter(|line| line.starts_with("  kubectl ")).count(), 5);
    let version = koordctl().args(["version", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(text.contains("server v1.34"), "{text}");
    let equal =
        koordctl().args(["crd", "diff", "--profile=hardened", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(equal.status.success() && equal.stdout.is_empty(), "{equal:?}");
    let different = koordctl().args(["crd", "diff", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(!different.status.success() && !different.stdout.is_empty(), "{different:?}");
    assert!(up.end());
    assert!(!kubeconfig.exists());
}

#[test]
fn time_runs_as_fast_as_it_is_told_to() {
    let kubeconfig = folder("speed").join("koord.kubeconfig");
    let up = Up::start(&kubeconfig, &["--speed=100", "--no-manager"]);
    assert!(up.greeting.contains("100 times as fast"), "{}", up.greeting);
}

#[test]
fn a_kubeconfig_that_exists_is_kept_unless_forced() {
    let kubeconfig = folder("exists").join("mine");
    std::fs::write(&kubeconfig, "precious").unwrap();
    let arguments = ["up", "--port=0", "--nodes=0", "--no-manager", "--kubeconfig"];
    let text = fails(&koordctl().args(arguments).arg(&kubeconfig).output().unwrap());
    assert!(text.contains("exists already") && text.contains("--force"), "{text}");
    assert_eq!(std::fs::read_to_string(&kubeconfig).unwrap(), "precious");
    let mut up = Up::start(&kubeconfig, &["--force", "--no-manager"]);
    assert!(std::fs::read_to_string(&kubeconfig).unwrap().contains("https://127.0.0.1:"));
    assert!(up.end());
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let kubeconfig = folder("port").join("koord.kubeconfig");
    let text = fails(&koordctl().args(["up", "--port", &port, "--kubeconfig"]).arg(&kubeconfig).output().unwrap());
    assert!(text.contains(&format!("port {port}")) && text.contains("--port"), "{text}");
    assert!(!kubeconfig.exists());
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let text = fails(
        &koordctl().args(["up", "--port=0", "--nodes=0", "--no-manager", "--kubeconfig=/proc/koord"]).output().unwrap(),
    );
    assert!(text.contains("/proc/koord"), "{text}");
}

#[test]
fn a_gate_that_does_not_exist_is_named() {
    let kubeconfig = folder("gate").join("koord.kubeconfig");
    let arguments = ["up", "--port=0", "--nodes=0", "--feature-gates=DeclaredWebhook=true", "--kubeconfig"];
    let text = fails(&koordctl().args(arguments).arg(&kubeconfig).output().unwrap());
    assert!(text.contains("DeclaredWebhook"), "{text}");
    assert!(!kubeconfig.exists());
}

#[test]
fn no_cluster_is_an_error_that_says_what_to_do() {
    let text = fails(&koordctl().args(["crd", "diff", "--kubeconfig=/nonexistent"]).output().unwrap());
    assert!(text.contains("the kubeconfig /nonexistent cannot be read"), "{text}");
}

#[test]
fn completion_is_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let output = koordctl().args(["completion", shell]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("koordctl"), "{shell}");
    }
}
