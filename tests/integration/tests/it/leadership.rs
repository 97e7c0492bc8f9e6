//! Replicas of koord-manager and their Lease, on both servers; among them the elector of the original, which is client-go's.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use integration::{installed::repository, skipped};
use koord_manager::run;
use koord_manager_assembly::Options;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::suite::{Scene, on_every_server_at_once};

/// A replica with threads of its own, so that it can die.
struct Replica {
    threads: Runtime,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Replica {
    fn start(scene: &Scene<'_>) -> Self {
        let (kubeconfig, namespace) = (scene.kubeconfig().display().to_string(), &scene.namespace);
        let arguments = [
            "koord-manager".to_owned(),
            format!("--kubeconfig={kubeconfig}"),
            format!("--leader-election-namespace={namespace}"),
            "--controllers=none".to_owned(),
            "--feature-gates=WebhookFramework=false".to_owned(),
            "--metrics-addr=0".to_owned(),
            "--health-probe-addr=0".to_owned(),
        ];
        let checked = Options::from_arguments(arguments).and_then(Options::check).unwrap();
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let stop = CancellationToken::new();
        let ends = stop.clone();
        let running = threads.spawn(async move { run(checked, ends).await.unwrap() });
        Self { threads, stop, running }
    }

    /// As a Deployment stops it.
    fn stop(self) {
        self.stop.cancel();
        self.threads.block_on(self.running).unwrap();
    }

    /// As a machine stops it.
    fn die(self) {
        self.threads.shutdown_background();
    }
}

fn lease(scene: &Scene<'_>) -> Value {
    let printed = scene.run(&["get", "lease", "koordinator-manager", "-o", "json"], None);
    serde_json::from_str::<Value>(&printed.stdout).map_or(Value::Null, |lease| lease["spec"].clone())
}

/// Waits until somebody else than `before` holds the lease; gives who, and how long it took.
fn successor(scene: &Scene<'_>, before: &str, at_most: Duration) -> (String, Duration) {
    let begin = Instant::now();
    loop {
        let found = lease(scene);
        match found["holderIdentity"].as_str() {
            Some(holder) if !holder.is_empty() && holder != before => return (holder.to_owned(), begin.elapsed()),
            _ => assert!(begin.elapsed() < at_most, "nobody takes the lease within {at_most:?}: {found}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn leadership_passes_at_once_from_a_replica_that_stops_and_after_the_lease_from_one_that_dies() {
    on_every_server_at_once(|scene| {
        let a = Replica::start(scene);
        let (first, _) = successor(scene, "", Duration::from_secs(30));
        let (_, unique) = first.rsplit_once('_').unwrap();
        assert_eq!(unique.len(), 36, "host name, underscore, UUID: {first}");
        assert_eq!(lease(scene)["leaseTransitions"], 0);

        let b = Replica::start(scene);
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(lease(scene)["holderIdentity"], first, "there is one leader");
        a.stop();
        let (second, took) = successor(scene, &first, Duration::from_secs(30));
        assert!(took < Duration::from_secs(10), "the lease was given back, but it took {took:?}");
        assert_eq!(lease(scene)["leaseTransitions"], 1);

        b.die();
        let c = Replica::start(scene);
        let (_, took) = successor(scene, &second, Duration::from_mins(1));
        assert!(took > Duration::from_secs(10), "a lease of 15 s was taken after {took:?}");
        assert_eq!(lease(scene)["leaseTransitions"], 2);
        c.stop();
        assert_eq!(lease(scene)["holderIdentity"], "", "given back");
    });
}

/// The elector of the original as a process; see tests/elector.
struct Elector {
    process: Child,
    lines: Receiver<String>,
    /// The name under which it stands.
    name: String,
}

impl Elector {
    /// None without Go, or where its modules cannot be had.
    fn build() -> Option<PathBuf> {
        let sources = repository("tests/elector");
        let go = |arguments: &[&str]| Command::new("go").args(arguments).current_dir(&sources).output();
        let why = match go(&["mod", "download"]) {
            Err(error) => Some(format!("go does not start: {error}")),
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(format!("its modules cannot be had: {}", String::from_utf8_lossy(&output.stderr))),
        };
        if let Some(why) = why {
            skipped("the elector of client-go", &why);
            return None;
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("elector");
        let built = go(&["build", "-trimpath", "-o", &program.display().to_string(), "."]).unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    }

    fn start(program: &Path, scene: &Scene<'_>, release: bool) -> Self {
        let mut process = Command::new(program)
            .arg(format!("--kubeconfig={}", scene.kubeconfig().display()))
            .arg(format!("--namespace={}", scene.namespace))
            .arg(format!("--release={release}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut elector = Self { process, lines, name: String::new() };
        elector.name = elector.comes_to_say("standing", Duration::from_secs(30));
        elector
    }

    /// Waits for a line that begins with this word; gives what follows.
    fn comes_to_say(&self, word: &str, at_most: Duration) -> String {
        let deadline = Instant::now() + at_most;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no {word:?} within {at_most:?}"));
            if let Some((_, rest)) = line.split_once(' ').filter(|(first, _)| *first == word) {
                return rest.to_owned();
            }
        }
    }

    /// As it ends by itself, with or without giving the Lease back.
    fn stop(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Elector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn leadership_passes_between_us_and_the_elector_of_the_original_in_both_directions() {
    let Some(program) = Elector::build() else { return };
    let (soon, after_the_lease) = (Duration::from_secs(10), Duration::from_mins(1));
    on_every_server_at_once(|scene| {
        let transitions = |expected: u64| assert_eq!(lease(scene)["leaseTransitions"], expected);
        // The original leads and ours waits, longer than a lease lasts.
        let original = Elector::start(&program, scene, false);
        assert_eq!(original.comes_to_say("leading", soon), original.name);
        let ours = Replica::start(scene);
        std::thread::sleep(Duration::from_secs(17));
        assert_eq!(lease(scene)["holderIdentity"], original.name.as_str(), "ours waits while it is renewed");
        transitions(0);

        // The original keeps its Lease at its end; ours comes when it has run out, and not earlier.
        let before = original.name.clone();
        original.stop();
        assert_eq!(lease(scene)["holderIdentity"], before.as_str(), "not given back");
        let (first, took) = successor(scene, &before, after_the_lease);
        assert!(took > Duration::from_secs(10), "a lease of 15 s was taken after {took:?}");
        transitions(1);

        // The original sees who leads, waits, and comes at once when ours gives the Lease back.
        let original = Elector::start(&program, scene, true);
        assert_eq!(original.comes_to_say("sees", soon), first);
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(lease(scene)["holderIdentity"], first.as_str(), "it waits for ours");
        ours.stop();
        assert_eq!(original.comes_to_say("leading", soon), original.name);
        transitions(2);

        // One that gives back is followed at once, and comes back when ours dies without a word.
        let ours = Replica::start(scene);
        std::thread::sleep(Duration::from_secs(3));
        let before = original.name.clone();
        original.stop();
        let (second, took) = successor(scene, &before, soon);
        assert_ne!(second, first, "a replica has a name of its own");
        transitions(3);
        let original = Elector::start(&program, scene, true);
        assert_eq!(original.comes_to_say("sees", soon), second);
        ours.die();
        let died = Instant::now();
        assert_eq!(original.comes_to_say("leading", after_the_lease), original.name);
        assert!(died.elapsed() > Duration::from_secs(10), "a lease of 15 s was taken after {:?}", died.elapsed());
        transitions(4);
        original.stop();
        println!("{}: ours came {took:?} after the original gave its lease back", scene.namespace);
    });
}
