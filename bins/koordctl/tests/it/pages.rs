//! docs/quickstart.md, docs/manager.md and docs/install.md are true: each of their commands is run, and prints what the page says. So is
//! docs/scheduler.md, in a file of its own.
//!
//! A block ```` ```sh ```` is run by bash in the cluster of the page; a block ```` ```sh empty ```` in one where nothing is installed yet. A block
//! ```` ```text ```` right after it is what it prints, errors included. In such a block `…` stands for anything within a line, and a line of `…` alone
//! for any number of lines. Other blocks are for the eye. kubectl and koordctl are in the path.

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    time::{Duration, Instant},
};

use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
};
use integration::{
    Helm, Installed, Kubectl,
    installed::{Process, Reach},
};
use kube::Client;
use programs::free;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::program::{PROGRAM, Up, folder};

/// The repository, in which the commands are typed.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs").join(name)).unwrap()
}

/// Commands and what they print.
#[derive(Debug)]
pub(crate) struct Step {
    /// Line of the page on which the commands begin.
    pub(crate) line: usize,
    /// Whether they belong into a cluster where nothing is installed.
    empty: bool,
    pub(crate) commands: String,
    printed: Option<String>,
}

pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<(&str, usize, String)> = None;
    // Whether nothing but blank lines lies between the last commands and here.
    let mut right_after = false;
    for (index, line) in page.lines().enumerate() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language, index + 2, String::new())),
            (Some(_), Some(_)) => {
                let (language, line, text) = block.take().unwrap();
                let empty = language == "sh empty";
                match language {
                    "sh" | "sh empty" => steps.push(Step { line, empty, commands: text, printed: None }),
                    "text" if right_after => steps.last_mut().unwrap().printed = Some(text),
                    _ => {}
                }
                right_after = empty || language == "sh";
            }
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => right_after &= line.trim().is_empty(),
        }
    }
    steps
}

/// Whether a text is what the page shows.
fn shows(expected: &str, printed: &str) -> bool {
    fn lines(expected: &[&str], printed: &[&str]) -> bool {
        match expected.split_first() {
            None => printed.is_empty(),
            Some((&"…", rest)) => (0..=printed.len()).any(|skipped| lines(rest, &printed[skipped..])),
            Some((first, rest)) => {
                printed.split_first().is_some_and(|(line, others)| one_line(first, line) && lines(rest, others))
            }
        }
    }
    fn one_line(expected: &str, printed: &str) -> bool {
        match expected.split_once('…') {
            None => expected.trim_end() == printed.trim_end(),
            Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
                rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| one_line(after, &rest[at..]))
            }),
        }
    }
    lines(&expected.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
}

/// How long the page's words may take to come true: controllers work while the reader reads.
const COMES_TRUE_MAX: Duration = Duration::from_secs(30);

/// A server with nothing in it, and what would be a kubelet and the controllers of workloads: koord-manager runs as long as there is a Deployment
/// of it, and is reported ready.
struct Empty {
    _stop: watch::Sender<bool>,
}

impl Empty {
    fn start(kubeconfig: &Path) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (sender, ready) = mpsc::channel();
        let file = kubeconfig.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let port = free().port();
                let alias = format!("{NAMESPACE}/koordinator-webhook-service:443=127.0.0.1:{port}");
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let service_aliases = vec![alias.parse().unwrap()];
                let cluster = Cluster::bind(Options { address, service_aliases, ..Options::default() }).await.unwrap();
                cluster.kubeconfig(Owner::named("empty")).write(&file, true).unwrap();
                sender.send(()).unwrap();
                tokio::select! { biased; () = cluster.run(stopped) => {}, () = run_what_is_deployed(&file, port) => {} }
            });
        });
        ready.recv_timeout(Duration::from_secs(30)).unwrap();
        Self { _stop: stop }
    }
}

const NAMESPACE: &str = "koordinator-system";

async fn run_what_is_deployed(kubeconfig: &Path, port: u16) {
    let config = koord_program::kubeconfig::from_file(kubeconfig, None).await.unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    let mut running: Option<Installed> = None;
    loop {
        match (Process::described(&client, NAMESPACE, "koord-manager").await, running.take()) {
            (Ok(process), None) => {
                // Its ServiceAccount may be on its way.
                if let Ok(mut manager) = process.start(&client, &config, Reach::Service(port)).await {
                    manager.until_ready().await.unwrap();
                    running = Some(manager);
                }
            }
            (Ok(_), manager) => {
                tell_ready(&client).await;
                running = manager;
            }
            (Err(_), Some(manager)) => Installed::stop(manager).await.unwrap(),
            (Err(_), None) => {}
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Writes what a cluster's controllers write about a Deployment whose pods are ready, and about the Service before them.
async fn tell_ready(client: &Client) {
    let ask = async |method: http::Method, path: &str, body: Value| {
        let media = if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, media);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        client.request::<Value>(request.body(body).unwrap()).await
    };
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/koord-manager");
    // It may have gone just now.
    let Ok(deployment) = ask(http::Method::GET, &path, Value::Null).await else { return };
    let (generation, replicas) = (&deployment["metadata"]["generation"], &deployment["spec"]["replicas"]);
    if deployment["status"]["observedGeneration"] == *generation {
        return;
    }
    let status = json!({"status": {
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
        "availableReplicas": replicas,
    }});
    let _ = ask(http::Method::PATCH, &format!("{path}/status"), status).await;
    let slice = json!({
        "metadata": {"name": "webhook", "labels": {"kubernetes.io/service-name": "koordinator-webhook-service"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": 9876, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
    });
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices");
    // The second time it is there already.
    let _ = ask(http::Method::POST, &slices, slice).await;
}

/// Where the commands of a page are run.
pub(crate) struct Desk {
    pub(crate) kubeconfig: PathBuf,
    empty_kubeconfig: PathBuf,
    metrics: SocketAddr,
    /// Where the scheduler of the page is asked.
    pub(crate) scheduler: SocketAddr,
    home: PathBuf,
    path: String,
}

impl Desk {
    /// None where there is no kubectl.
    pub(crate) fn set_up(page: &str) -> Option<Self> {
        let home = folder(page);
        let kubeconfig = home.join("koord.kubeconfig");
        let kubectl = Kubectl::find(&kubeconfig, &home).unwrap()?;
        let bin = home.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        symlink(kubectl.program(), bin.join("kubectl")).unwrap();
        symlink(PROGRAM, bin.join("koordctl")).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        Some(Self {
            kubeconfig,
            empty_kubeconfig: home.join("empty.kubeconfig"),
            metrics: free(),
            scheduler: free(),
            home,
            path,
        })
    }

    /// What a step prints, and whether it succeeds.
    fn run(&self, step: &Step) -> (String, bool) {
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{}", step.commands)])
            .current_dir(ROOT)
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("KUBECONFIG", if step.empty { &self.empty_kubeconfig } else { &self.kubeconfig })
            .env("METRICS", self.metrics.to_string())
            .env("SCHEDULER", self.scheduler.to_string())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
    }

    /// What is wrong with a step, if anything is.
    pub(crate) fn check(&self, page: &str, step: &Step) -> Option<String> {
        const WRITES: [&str; 12] = [
            "create",
            "apply",
            "patch",
            "delete",
            "run",
            "edit",
            "drain",
            "replace",
            "install",
            "upgrade",
            "rollback",
            "uninstall",
        ];
        let reads_only = !WRITES.iter().any(|word| step.commands.contains(&format!(" {word} ")));
        let deadline = Instant::now() + COMES_TRUE_MAX;
        loop {
            let (printed, succeeded) = self.run(step);
            match &step.printed {
                Some(expected) if shows(expected, &printed) => return None,
                None if succeeded => return None,
                // What only reads may be asked again.
                _ if reads_only && Instant::now() < deadline => std::thread::sleep(Duration::from_millis(200)),
                expected => {
                    let (line, commands) = (step.line, &step.commands);
                    let expected = expected.as_deref().unwrap_or("success\n");
                    return Some(format!(
                        "docs/{page}:{line}\n{commands}--- the page says\n{expected}--- it prints\n{printed}"
                    ));
                }
            }
        }
    }
}

/// Runs every command of a page, in a cluster of `up` with these arguments.
#[track_caller]
fn every_command_prints_what_the_page_says(name: &str, up: &[&str]) {
    let Some(desk) = Desk::set_up(name) else { return };
    let steps = steps(&page(name));
    assert!(!steps.is_empty());
    let _empty = steps.iter().any(|step| step.empty).then(|| Empty::start(&desk.empty_kubeconfig));
    let metrics = format!("--metrics-addr={}", desk.metrics);
    let _up = Up::start(&desk.kubeconfig, &[&["--nodes=10", metrics.as_str()], up].concat());
    let wrong: Vec<String> = steps.iter().filter_map(|step| desk.check(name, step)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Both clusters of the page are empty ones: helm installs into one, kustomize into the other.
#[test]
fn the_page_about_installing_is_true() {
    let Some(desk) = Desk::set_up("install.md") else { return };
    let Some(helm) = Helm::find(&desk.kubeconfig, &desk.home).unwrap() else { return };
    symlink(helm.program(), desk.home.join("bin/helm")).unwrap();
    let steps = steps(&page("install.md"));
    for command in ["helm install ", "helm upgrade ", "helm rollback ", "helm uninstall ", "kubectl apply -k "] {
        assert!(steps.iter().any(|step| step.commands.contains(command)), "no {command}");
    }
    let _clusters = [Empty::start(&desk.kubeconfig), Empty::start(&desk.empty_kubeconfig)];
    let wrong: Vec<String> = steps.iter().filter_map(|step| desk.check("install.md", step)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_quickstart_is_true() {
    every_command_prints_what_the_page_says("quickstart.md", &[]);
}

/// The flags with which the guide starts its cluster, as it says them.
fn flags_of_the_guide() -> Vec<String> {
    let page = page("manager.md");
    let commands = page.split("```console\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    let words = commands.replace("\\\n", " ");
    let flags = words.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
    flags
        .filter(|flag| !["--release", "--bin"].contains(flag) && !flag.starts_with("--metrics-addr"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_operators_guide_is_true() {
    let flags = flags_of_the_guide();
    assert!(flags.iter().any(|flag| flag.starts_with("--feature-gates=")), "{flags:?}");
    every_command_prints_what_the_page_says("manager.md", &flags.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn the_quickstart_shows_all_that_it_promises() {
    let all: String = steps(&page("quickstart.md")).iter().map(|step| step.commands.as_str()).collect();
    for kind in
        ["ElasticQuota", "Reservation", "NodeSLO", "PodMigrationJob", "Device", "ClusterColocationProfile", "Pod"]
    {
        assert!(all.contains(&format!("kind: {kind}\n")), "no {kind} is created");
    }
    for command in ["kubectl explain", "kubectl get reservations", "slo-controller-config"] {
        assert!(all.contains(command), "no {command}");
    }
}

/// Every webhook and every controller has a command of its own in the guide.
#[test]
fn the_guide_leads_through_everything_that_there_is() {
    let page = page("manager.md");
    for handler in koord_webhook_handlers::HANDLERS {
        assert!(page.contains(&format!("`{}`", handler.path)), "nothing about {}", handler.path);
    }
    for controller in ["nodemetric", "nodeslo", "noderesource", "quotaprofile", "colocationprofile"] {
        assert!(page.contains(&format!("### {controller}\n")), "nothing about {controller}");
    }
    let all: String = steps(&page).iter().map(|step| step.commands.as_str()).collect();
    for command in [
        "koordctl explain batch",
        "koordctl explain slo",
        "koordctl explain quota",
        "koordctl doctor",
        "koordctl plan",
        "koordctl lint",
        "/metrics",
    ] {
        assert!(all.contains(command), "no {command}");
    }
}

#[test]
fn an_ellipsis_stands_for_anything_in_a_line_or_for_lines() {
    for (expected, printed) in [
        ("a\n", "a\n"),
        ("a …\n", "a 5s\n"),
        ("a … b\n", "a x b b\n"),
        ("…\nb\n", "a\na\nb\n"),
        ("a\n…\n", "a\n"),
        ("", ""),
    ] {
        assert!(shows(expected, printed), "{expected:?} {printed:?}");
    }
    for (expected, printed) in [("a\n", "b\n"), ("a …\n", "b 5s\n"), ("a\n", "a\nb\n"), ("…\nb\n", "a\n")] {
        assert!(!shows(expected, printed), "{expected:?} {printed:?}");
    }
}

#[test]
fn a_text_block_belongs_to_the_commands_right_before_it() {
    let page = "```sh\none\n```\n\n```text\nprinted\n```\nwords\n```text\nnot this\n```\n```sh\ntwo\n```\nwords\n```text\nnor this\n```\n";
    let found = steps(page);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].printed.as_deref()), (2, Some("printed\n")));
    assert_eq!((found[1].commands.as_str(), found[1].printed.as_deref()), ("two\n", None));
}
