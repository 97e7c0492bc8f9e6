//! The clusters that the suite runs on, and words to say what is expected of them.
//!
//! Each server runs once per test process, on a thread of its own, with everything that `koordctl up` brings. Every test has a namespace of its
//! own, and names of its own for objects without one.

use std::{
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Parser as _;
use integration::{Kubectl, RealServer, kubectl::Printed};
use koordctl::{
    Cli,
    cli::{Command, UpArgs},
    up::{Cluster, Components, progress::Progress},
};

/// A running cluster with a kubectl.
pub(crate) struct Server {
    /// `embedded` or `real`.
    pub(crate) name: &'static str,
    kubectl: Kubectl,
}

static EMBEDDED: OnceLock<Option<Server>> = OnceLock::new();
static REAL: OnceLock<Option<Server>> = OnceLock::new();

/// Plays a scene on the embedded server, and on a real kube-apiserver when there is one.
pub(crate) fn on_every_server(scene: impl Fn(&Scene)) {
    servers().for_each(|server| scene(&Scene::open(server)));
}

/// The same, on both at a time: for scenes that mostly wait.
pub(crate) fn on_every_server_at_once(scene: impl Fn(&Scene) + Sync) {
    std::thread::scope(|threads| {
        let scene = &scene;
        servers().for_each(|server| drop(threads.spawn(move || scene(&Scene::open(server)))));
    });
}

/// Plays a scene on servers of its own, with what `koordctl up` brings when it gets these arguments too, on both at a time.
pub(crate) fn on_servers_of_its_own(more: &[&str], scene: impl Fn(&Scene) + Sync) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let embedded =
        server(&format!("embedded-{number}"), "embedded", |folder| for_ever_embedded(more, &folder.join("kubeconfig")));
    let real = RealServer::assets()
        .and_then(|assets| server(&format!("real-{number}"), "real", |folder| start_real(&assets, folder, more)));
    std::thread::scope(|threads| {
        let scene = &scene;
        for server in [&embedded, &real].into_iter().flatten() {
            threads.spawn(move || scene(&Scene::open(server)));
        }
    });
}

/// On the embedded server alone: for scenes about programs of ours that another server would change nothing about.
pub(crate) fn on_the_embedded_server(scene: impl Fn(&Scene)) {
    if let Some(server) = embedded() {
        scene(&Scene::open(server));
    }
}

fn embedded() -> Option<&'static Server> {
    EMBEDDED.get_or_init(|| server("embedded", "embedded", start_embedded)).as_ref()
}

fn servers() -> impl Iterator<Item = &'static Server> {
    let embedded = embedded();
    let real = REAL.get_or_init(|| {
        RealServer::assets().and_then(|assets| server("real", "real", |folder| start_real(&assets, folder, NODES)))
    });
    embedded.into_iter().chain(real)
}

fn server(folder: &str, name: &'static str, start: impl FnOnce(&Path) -> PathBuf) -> Option<Server> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{folder}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Before the server: without kubectl there is nothing to play.
    Kubectl::find(&folder, &folder).unwrap()?;
    let kubeconfig = start(&folder);
    let kubectl = Kubectl::find(&kubeconfig, &folder.join("cache")).unwrap()?;
    Some(Server { name, kubectl })
}

/// The arguments of `koordctl up` without fixed ports.
fn up_args(more: &[&str], kubeconfig: &Path) -> UpArgs {
    let arguments = ["koordctl", "up", "--port=0", "--force"].iter().chain(more).chain(&["--kubeconfig"]);
    let cli = Cli::try_parse_from(arguments.map(AsRef::as_ref).chain([kubeconfig.as_os_str()])).unwrap();
    match cli.command {
        Command::Up(args) => args,
        _ => unreachable!("the arguments say up"),
    }
}

/// A few nodes are enough for the suite.
const NODES: &[&str] = &["--nodes=3"];

fn start_embedded(folder: &Path) -> PathBuf {
    for_ever_embedded(NODES, &folder.join("kubeconfig"))
}

/// Runs `koordctl up` until the process ends; gives the kubeconfig.
pub(crate) fn for_ever_embedded(more: &[&str], kubeconfig: &Path) -> PathBuf {
    let args = up_args(more, kubeconfig);
    for_ever(move || async move {
        let cluster = Cluster::start(&args, &mut Progress::hidden()).await?;
        let kubeconfig = cluster.kubeconfig.clone();
        Ok((kubeconfig, cluster))
    })
}

fn start_real(assets: &Path, folder: &Path, more: &[&str]) -> PathBuf {
    let args = up_args(more, &folder.join("unused"));
    let assets = assets.to_owned();
    for_ever(move || async move {
        let server = RealServer::start(&assets).await?;
        let config = koord_program::kubeconfig::from_file(&server.kubeconfig, None).await?;
        let client = kube::Client::try_from(config)?;
        let clock = koord_runtime::clock::SystemClock::shared();
        let components = Components::start(&client, &args, &clock, &mut Progress::hidden()).await?;
        Ok((server.kubeconfig.clone(), (server, components)))
    })
}

/// Runs what `start` gives on a thread of its own until the process ends.
fn for_ever<F, T>(start: impl FnOnce() -> F + Send + 'static) -> PathBuf
where
    F: Future<Output = Result<(PathBuf, T)>>,
    T: 'static,
{
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            match start().await {
                Ok((kubeconfig, running)) => {
                    sender.send(Ok(kubeconfig)).unwrap();
                    std::future::pending::<()>().await;
                    drop(running);
                }
                Err(error) => sender.send(Err(error)).unwrap(),
            }
        });
    });
    receiver.recv().unwrap().unwrap_or_else(|error| panic!("the server does not start: {error:#}"))
}

/// One test on one server: a namespace, and kubectl in it.
pub(crate) struct Scene<'a> {
    server: &'a Server,
    /// The namespace of the test; also a name that no other test uses.
    pub(crate) namespace: String,
}

/// How long something may take that happens by itself.
const EVENTUALLY_MAX: Duration = Duration::from_secs(20);

impl<'a> Scene<'a> {
    fn open(server: &'a Server) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("scene-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let scene = Scene { server, namespace };
        scene.accepts(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", scene.namespace));
        scene
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        self.server.kubectl.kubeconfig()
    }

    /// Whether this is kube-apiserver itself.
    pub(crate) fn is_real(&self) -> bool {
        self.server.name == "real"
    }

    /// Whether the server is of this minor version of Kubernetes or newer; otherwise says what is not looked at.
    pub(crate) fn is_since(&self, minor: u32, feature: &str) -> bool {
        let version: serde_json::Value = serde_json::from_str(&self.says(&["version", "-o", "json"])).unwrap();
        // Some providers write `28+`.
        let known = version["serverVersion"]["minor"].as_str().unwrap().trim_end_matches('+');
        let is_since = known.parse::<u32>().unwrap() >= minor;
        if !is_since {
            integration::skipped(feature, &format!("Kubernetes 1.{known} does not have it"));
        }
        is_since
    }

    /// Runs a command and gives all that it printed.
    pub(crate) fn run(&self, arguments: &[&str], input: Option<&str>) -> Printed {
        self.run_in(arguments, input, &[])
    }

    /// Runs a command with further environment variables.
    pub(crate) fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Printed {
        self.run_in(arguments, None, environment)
    }

    fn run_in(&self, arguments: &[&str], input: Option<&str>, environment: &[(&str, &str)]) -> Printed {
        // A namespace that the command names itself comes later and therefore counts.
        let namespace = format!("--namespace={}", self.namespace);
        let arguments: Vec<&str> = [namespace.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        self.server.kubectl.run(&arguments, input, environment).unwrap()
    }

    /// Runs a command that must succeed and gives its output.
    #[track_caller]
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let printed = self.run(arguments, None);
        assert_eq!(
            printed.code, 0,
            "{}: kubectl {arguments:?}\n{}{}",
            self.server.name, printed.stdout, printed.stderr
        );
        printed.stdout
    }

    /// Runs a command that must fail and gives its error.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let printed = self.run(arguments, None);
        assert_ne!(printed.code, 0, "{}: kubectl {arguments:?} succeeded:\n{}", self.server.name, printed.stdout);
        printed.stderr
    }

    /// Expects that a manifest can be created.
    #[track_caller]
    pub(crate) fn accepts(&self, manifest: &str) -> String {
        let printed = self.run(&["create", "-f", "-"], Some(manifest));
        assert_eq!(printed.code, 0, "{} rejects:\n{manifest}\n{}", self.server.name, printed.stderr);
        printed.stdout
    }

    /// Expects that a manifest cannot be created, and that the message says this.
    #[track_caller]
    pub(crate) fn rejects(&self, manifest: &str, message: &str) {
        let printed = self.run(&["create", "-f", "-"], Some(manifest));
        assert_ne!(printed.code, 0, "{} accepts:\n{manifest}", self.server.name);
        assert!(printed.stderr.contains(message), "{}: expected {message:?} in:\n{}", self.server.name, printed.stderr);
    }

    /// Writes a manifest into a file of the scene, for commands that take no input; gives its path.
    pub(crate) fn file(&self, manifest: &str) -> String {
        let file =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}.yaml", self.namespace, std::process::id()));
        std::fs::write(&file, manifest).unwrap();
        file.display().to_string()
    }

    /// Expects that something comes true by itself.
    #[track_caller]
    pub(crate) fn comes_true(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + EVENTUALLY_MAX;
        while !holds() {
            assert!(Instant::now() < deadline, "{}: it does not come true that {what}", self.server.name);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Expects that a command comes to print this by itself.
    #[track_caller]
    pub(crate) fn comes_to_say(&self, arguments: &[&str], expected: &str) {
        let deadline = Instant::now() + EVENTUALLY_MAX;
        loop {
            let printed = self.run(arguments, None);
            if printed.stdout.contains(expected) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{}: kubectl {arguments:?} does not come to say {expected:?}, but:\n{}{}",
                self.server.name,
                printed.stdout,
                printed.stderr
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
