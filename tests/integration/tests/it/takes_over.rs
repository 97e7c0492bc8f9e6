//! Each program with two replicas on one Lease, on both servers, where most collections are empty: one starts, leads and works, it dies and the
//! other works, which loses the Lease and works again.

use std::time::{Duration, Instant};

use koord_program::error_text::in_words;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::suite::{Scene, on_servers_of_its_own};

/// How soon a new leader has done something.
const WORKS_WITHIN: Duration = Duration::from_secs(5);
/// How soon the Lease of a leader that has died is taken: it lasts 15 s.
const TAKEN_WITHIN: Duration = Duration::from_secs(40);

/// A program, and how it shows that it works.
struct Program {
    lease: &'static str,
    start: fn(&Scene<'_>) -> Replica,
    /// Creates something of this name that the leader has to do something about.
    create: fn(&Scene<'_>, &str),
    /// Asks for what the leader makes of it; it has printed something when that is there.
    ask: fn(&str) -> Vec<String>,
}

const SCHEDULER: Program = Program {
    lease: "koord-scheduler",
    start: |scene| {
        const SHIPPED: &str = include_str!("../../../../config/koord-scheduler.config.yaml");
        let configuration = SHIPPED.replace("koordinator-system", &scene.namespace);
        let arguments = [
            "koord-scheduler".to_owned(),
            format!("--kubeconfig={}", scene.kubeconfig().display()),
            format!("--config={}", scene.file(&configuration)),
            "--port=0".to_owned(),
        ];
        let checked = koord_scheduler::Options::from_arguments(arguments).and_then(koord_scheduler::Options::check);
        Replica::run(|stop| koord_scheduler::run(checked.unwrap(), stop))
    },
    create: |scene, name| {
        scene.accepts(&format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  schedulerName: koord-scheduler\n  \
             containers: [{{name: main, image: none, resources: {{requests: {{cpu: 10m}}}}}}]\n"
        ));
    },
    ask: |name| ["get", "pod", name, "-o", "jsonpath={.spec.nodeName}"].map(str::to_owned).to_vec(),
};

const MANAGER: Program = Program {
    lease: "koordinator-manager",
    start: |scene| {
        let arguments = [
            "koord-manager".to_owned(),
            format!("--kubeconfig={}", scene.kubeconfig().display()),
            format!("--leader-election-namespace={}", scene.namespace),
            "--feature-gates=WebhookFramework=false".to_owned(),
            "--metrics-addr=0".to_owned(),
            "--health-probe-addr=0".to_owned(),
        ];
        let checked =
            koord_manager_assembly::Options::from_arguments(arguments).and_then(koord_manager_assembly::Options::check);
        Replica::run(|stop| koord_manager::run(checked.unwrap(), stop))
    },
    create: |scene, name| {
        scene.accepts(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"));
    },
    ask: |name| ["get", "nodeslo", name, "-o", "name", "--ignore-not-found"].map(str::to_owned).to_vec(),
};

const DESCHEDULER: Program = Program {
    lease: "koord-descheduler",
    start: |scene| {
        let arguments = [
            "koord-descheduler".to_owned(),
            format!("--kubeconfig={}", scene.kubeconfig().display()),
            format!("--leader-elect-resource-namespace={}", scene.namespace),
            "--port=0".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let checked = koord_descheduler::Options::from_arguments(arguments).and_then(koord_descheduler::Options::check);
        Replica::run(|stop| koord_descheduler::run(checked.unwrap(), stop))
    },
    create: |scene, name| {
        scene.accepts(&format!(
            "apiVersion: scheduling.koordinator.sh/v1alpha1\nkind: PodMigrationJob\nmetadata: {{name: {name}}}\nspec:\n  \
             podRef: {{namespace: default, name: none}}\n"
        ));
    },
    ask: |name| ["get", "podmigrationjob", name, "-o", "jsonpath={.status.reason}"].map(str::to_owned).to_vec(),
};

/// A replica with threads of its own, so that it can die.
struct Replica {
    threads: Runtime,
    stop: CancellationToken,
}

impl Replica {
    fn run<F>(run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let stop = CancellationToken::new();
        let running = run(stop.clone());
        threads.spawn(async move {
            if let Err(error) = running.await {
                eprintln!("a replica has ended: {}", in_words(&error));
            }
        });
        Self { threads, stop }
    }

    /// As a machine stops it: the Lease is not given back.
    fn die(self) {
        self.threads.shutdown_background();
    }

    fn stop(self) {
        self.stop.cancel();
        self.threads.shutdown_timeout(Duration::from_secs(10));
    }
}

fn holder(scene: &Scene<'_>, lease: &str) -> String {
    scene.run(&["get", "lease", lease, "-o", "jsonpath={.spec.holderIdentity}"], None).stdout
}

/// Waits until somebody else than `before` holds the Lease.
fn leader_after(scene: &Scene<'_>, lease: &str, before: &str) -> String {
    let begin = Instant::now();
    loop {
        let holder = holder(scene, lease);
        if !holder.is_empty() && holder != before {
            return holder;
        }
        assert!(begin.elapsed() < TAKEN_WITHIN, "nobody takes {lease} after {before:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn takes_over(program: &Program) {
    on_servers_of_its_own(&["--nodes=1", "--no-manager", "--no-scheduler"], |scene| {
        let works = |name: &str| {
            let begin = Instant::now();
            let ask = (program.ask)(name);
            let ask: Vec<&str> = ask.iter().map(String::as_str).collect();
            while scene.run(&ask, None).stdout.is_empty() {
                let took = begin.elapsed();
                assert!(took < WORKS_WITHIN, "{}: nothing is done about {name} {took:?} after leading", program.lease);
                std::thread::sleep(Duration::from_millis(20));
            }
            println!("{} {}: {name} after {:?}", scene.namespace, program.lease, begin.elapsed());
        };
        (program.create)(scene, "first");
        let one = (program.start)(scene);
        let first = leader_after(scene, program.lease, "");
        works("first");
        let two = (program.start)(scene);
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(holder(scene, program.lease), first, "there is one leader");
        one.die();
        (program.create)(scene, "second");
        let second = leader_after(scene, program.lease, &first);
        works("second");

        // Another that never renews takes the Lease away for a second.
        let taken = r#"{"spec": {"holderIdentity": "another", "leaseDurationSeconds": 1}}"#;
        scene.says(&["patch", "lease", program.lease, "--type=merge", "-p", taken]);
        (program.create)(scene, "third");
        assert_eq!(leader_after(scene, program.lease, "another"), second);
        works("third");
        let told = scene.says(&[
            "get",
            "events",
            "--field-selector=reason=LeaderElection",
            "-o",
            "jsonpath={.items[*].message}",
        ]);
        for expected in
            [format!("{first} became leader"), format!("{second} became leader"), format!("{second} stopped leading")]
        {
            assert!(told.contains(&expected), "{expected:?} is not in {told:?}");
        }
        two.stop();
    });
}

#[test]
fn a_scheduler_leads_loses_and_takes_over_and_places_a_pod_within_five_seconds_each_time() {
    takes_over(&SCHEDULER);
}

#[test]
fn a_manager_leads_loses_and_takes_over_and_works_within_five_seconds_each_time() {
    takes_over(&MANAGER);
}

#[test]
fn a_descheduler_leads_loses_and_takes_over_and_ends_a_job_within_five_seconds_each_time() {
    takes_over(&DESCHEDULER);
}
