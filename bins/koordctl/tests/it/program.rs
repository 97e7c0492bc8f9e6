//! The program, started as users start it, and a client of the clusters that it runs.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::Value;
use tokio::runtime::Runtime;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_koordctl");

pub(crate) fn koordctl() -> Command {
    quiet(Command::new(PROGRAM))
}

/// koordctl under which no file grows beyond this: what a full disk is, for one process.
pub(crate) fn koordctl_with_little_room(kilobytes: u32) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\""), PROGRAM]);
    quiet(command)
}

fn quiet(mut command: Command) -> Command {
    command.env_remove("KUBECONFIG").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// An empty folder of a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What a run that must fail fails about.
#[track_caller]
pub(crate) fn fails(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running `koordctl up`; killed when dropped.
pub(crate) struct Up {
    child: Child,
    pub(crate) greeting: String,
}

impl Up {
    pub(crate) fn start(kubeconfig: &Path, more: &[&str]) -> Self {
        Self::spawn(koordctl(), kubeconfig, more)
    }

    pub(crate) fn spawn(mut command: Command, kubeconfig: &Path, more: &[&str]) -> Self {
        // Two nodes are enough where nobody asks for more.
        let nodes = if more.iter().any(|flag| flag.starts_with("--nodes")) { None } else { Some("--nodes=2") };
        let mut child = command
            .args(["up", "--port=0"])
            .args(nodes)
            .arg("--kubeconfig")
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
    pub(crate) fn end(&mut self) -> bool {
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

    /// Ends it as a power failure does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of a running cluster.
pub(crate) struct Api {
    runtime: Runtime,
    client: Client,
}

impl Api {
    pub(crate) fn of(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let config = koord_program::kubeconfig::from_file(kubeconfig, None).await.unwrap();
            Client::try_from(config).unwrap()
        });
        Self { runtime, client }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.request(http::Method::GET, path, None).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Creates an object, or gives why not.
    pub(crate) fn create(&self, path: &str, object: &Value) -> kube::Result<Value> {
        self.request(http::Method::POST, path, Some(object))
    }

    /// Changes an object by a merge patch, or gives why not.
    pub(crate) fn merge(&self, path: &str, patch: &Value) -> kube::Result<Value> {
        self.request(http::Method::PATCH, path, Some(patch))
    }

    fn request(&self, method: http::Method, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let content = if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, content).body(body).unwrap();
        self.runtime.block_on(self.client.request(request))
    }
}
