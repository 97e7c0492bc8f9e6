//! The descheduler beside the scheduler: users and a strategy have pods migrated, the scheduler places their Reservations, and in the end every job has
//! ended, nothing of it is left, and every workload has its pods.
//!
//! Jobs look up and evict by effects, so it runs on the real tasks alone.

mod cluster;

use std::sync::Arc;

use envtest::shell::Server;
use futures::future::BoxFuture;
use http::Method;
use koord_configuration::Source;
use koord_descheduler_assembly::{Built, Configuration, LiveScheduler, build};
use koord_descheduler_runtime::{
    Behaviour, Feed, LateRequester, Measures, Migration, OwnEvents, Passes, Worker, install_jobs,
};
use koord_program::gates::Gates;
use koord_runtime::{Core, clock::SharedClock, events::EventSink, key::ObjectKey, random::Random};
use koord_scheduler_assembly::{Configuration as SchedulerConfiguration, GATES};
use koord_scheduler_runtime::Scheduler;
use koord_simulator::{Scenario, people};
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Stage,
    people::{define, name_of},
    scenario::Install,
    scheduling::{NODES, PODS, add_node, now},
    workloads::shipped,
};

pub(crate) const JOBS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs";
const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
pub(crate) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Shows that nothing goes wrong any more.
const CALM: &str = "calm";
/// What was wrong that must never be.
const VIOLATIONS: &str = "violations";
/// How many pods of a workload may migrate at a time.
const MIGRATING_MAX: usize = 2;
/// Few names, so that things that happen to one name meet.
const NODE_NAMES: u64 = 4;
const JOB_NAMES: u64 = 6;

/// The scenario of the descheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descheduling;

impl crate::Scenario for Descheduling {
    fn scheduler(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        shipped(core, events)
    }

    fn install(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Result<Vec<Install>, String> {
        let document = json!({
            "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "deschedulingInterval": "30s",
            "profiles": [{
                "name": "p",
                "plugins": {"deschedule": {"enabled": [{"name": "RemovePodsViolatingNodeTaints"}]}},
                "pluginConfig": [{"name": "MigrationController", "args": {
                    "defaultJobTTL": "2m", "maxMigratingPerWorkload": MIGRATING_MAX, "maxUnavailablePerWorkload": MIGRATING_MAX,
                    "objectLimiters": {"workload": {"duration": "0s"}},
                }}],
            }],
        });
        let configuration = Configuration::of_document(&document, &Source::new("simulated", ""));
        let values = configuration.map_err(|error| format!("{error:#}"))?.values;
        let Built { descheduler, migration } = build(&values).map_err(|error| error.to_string())?;
        let feed = Feed::of(core, &descheduler.reads());
        let scheduler = SchedulerConfiguration::shipped_for_all_pods().map_err(|error| format!("{error:#}"))?;
        let planner = LiveScheduler::new(core, &scheduler, &Gates::new(GATES)).map_err(|error| format!("{error:#}"))?;
        let interval = values.descheduling_interval.to_std().unwrap_or_default();
        let passes = Passes::new(descheduler, interval, Some(Box::new(planner)));
        let measures = Measures::new(core.metrics()).map_err(|error| error.to_string())?;
        let (plugin, args) = migration.ok_or("MigrationController is enabled")?;
        let migration = Migration::new(plugin, args.arbitration_args.interval.to_std().unwrap_or_default());
        let requester = LateRequester::default();
        install_jobs(core, (&args, false), (&migration, &passes), &requester, &measures)
            .map_err(|error| error.to_string())?;
        let own = OwnEvents::new(Arc::clone(events), None, ObjectKey::new("default", "simulated"));
        let worker = Worker::new(passes, Some(migration), feed, core, measures, own, Behaviour::default());
        Ok(vec![Box::new(move |manager| {
            requester.connect(manager.leader_api());
            koord_descheduler_runtime::install(worker, manager);
        })])
    }

    fn surroundings(&self, server: &Server, clock: &SharedClock) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(cluster::run(server.clone(), Arc::clone(clock))))
    }

    /// How many pods were evicted before the last fault.
    fn judged(&self, stage: &mut Stage) -> u64 {
        let calm = stage.object(&format!("{CONFIG_MAPS}/{CALM}")).unwrap_or_default();
        calm["data"]["evicted"].as_str().and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

impl Scenario for Descheduling {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        define(stage, koord_types::KINDS);
        for number in 0..NODE_NAMES {
            add_node(stage, &format!("n{number}"), 4, "a");
        }
        for (name, replicas) in [("rs0", 3), ("rs1", 2)] {
            let labels = json!({"app": name});
            let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "200m"}}});
            let template = json!({"metadata": {"labels": labels}, "spec": {"schedulerName": "koord-scheduler", "containers": [container]}});
            let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
            stage.person(&Method::POST, REPLICA_SETS, &json!({"metadata": {"name": name}, "spec": spec}));
        }
        let spec = json!({"minAvailable": 2, "selector": {"matchLabels": {"app": "rs0"}}});
        stage.person(&Method::POST, BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec}));
    }

    fn wire(&self, _: &mut Core) -> Result<(), String> {
        Ok(())
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        let node = format!("{NODES}/n{}", random.below(NODE_NAMES));
        let job = format!("j{}", random.below(JOB_NAMES));
        let job_path = format!("{JOBS}/{job}");
        let pods = stage.objects(PODS);
        let pod = pods.get(usize::try_from(random.below(pods.len().max(1) as u64)).unwrap_or(0)).map(name_of);
        let pod = pod.unwrap_or_else(|| "none".to_owned());
        let reservations = stage.objects(RESERVATIONS);
        let (what, code, fault) = match random.below(20) {
            0..=6 => ("has a pod migrated", stage.person(&Method::POST, JOBS, &job_of(&job, &pod, random)), None),
            7 | 8 => {
                let taint = json!({"key": "maintenance", "value": "true", "effect": "NoSchedule"});
                ("taints a node", stage.person(&Method::PATCH, &node, &json!({"spec": {"taints": [taint]}})), None)
            }
            9..=11 => {
                ("takes taints away", stage.person(&Method::PATCH, &node, &json!({"spec": {"taints": null}})), None)
            }
            12 => ("deletes a job", stage.person(&Method::DELETE, &job_path, &Value::Null), None),
            13 => ("deletes a pod", stage.person(&Method::DELETE, &format!("{PODS}/{pod}"), &now()), None),
            14 => match reservations.first().map(name_of) {
                Some(name) => {
                    let path = format!("{RESERVATIONS}/{name}");
                    ("deletes a Reservation", stage.person(&Method::DELETE, &path, &Value::Null), None)
                }
                None => ("finds no Reservation", 404, None),
            },
            15 => {
                let body = job_of(&job, &pod, random);
                ("replaces a job", people::replace(stage, (&job_path, JOBS), &body), Some(Fault::Recreated))
            }
            16 => ("holds a job", people::delete_held(stage, &job_path), Some(Fault::Stuck)),
            17 => ("lets a job go", people::let_go(stage, &job_path), None),
            18 => {
                let paused = json!({"spec": {"paused": random.below(2) == 0}});
                ("pauses or resumes a job", stage.person(&Method::PATCH, &job_path, &paused), None)
            }
            _ => {
                let mut body = job_of(&job, "nobody", random);
                body["spec"]["reservationOptions"] = json!({"template": {"spec": {"containers": "none"}}});
                ("writes nonsense", stage.person(&Method::POST, JOBS, &body), Some(Fault::Malformed))
            }
        };
        let fault = fault.filter(|_| code < 300);
        Disturbance { what: format!("{what} {node} {job} {pod} -> {code}"), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, PODS, JOBS, RESERVATIONS]
    }

    fn conclude(&self, stage: &mut Stage) {
        for number in 0..NODE_NAMES {
            let taints = json!({"spec": {"taints": null}});
            stage.person(&Method::PATCH, &format!("{NODES}/n{number}"), &taints);
        }
        for job in stage.objects(JOBS) {
            let path = format!("{JOBS}/{}", name_of(&job));
            people::let_go(stage, &path);
            stage.person(&Method::PATCH, &path, &json!({"spec": {"paused": false}}));
        }
        stage.person(&Method::POST, CONFIG_MAPS, &json!({"metadata": {"name": CALM}}));
    }

    fn always(&self, stage: &mut Stage) -> Result<(), String> {
        let violations = stage.object(&format!("{CONFIG_MAPS}/{VIOLATIONS}"));
        violations.map_or(Ok(()), |violations| Err(violations["data"].to_string()))
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        self.always(stage)?;
        let left: Vec<String> = [JOBS, RESERVATIONS]
            .into_iter()
            .flat_map(|path| stage.objects(path))
            .map(|object| object.to_string())
            .collect();
        if !left.is_empty() {
            return Err(format!("jobs and Reservations are left: {left:?}"));
        }
        for set in stage.objects(REPLICA_SETS) {
            let has_node = |pod: &&Value| {
                pod["metadata"]["labels"]["app"] == set["metadata"]["name"] && pod["spec"]["nodeName"].is_string()
            };
            let pods = stage.objects(PODS);
            let placed = pods.iter().filter(has_node).count();
            if set["spec"]["replicas"] != placed {
                return Err(format!("{} has {placed} pods on nodes: {pods:?}", name_of(&set)));
            }
        }
        Ok(())
    }
}

/// A job of a user for a pod.
fn job_of(name: &str, pod: &str, random: &Random) -> Value {
    let mode = if random.below(3) == 0 { "EvictDirectly" } else { "ReservationFirst" };
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob", "metadata": {"name": name},
        "spec": {"podRef": {"namespace": "default", "name": pod}, "mode": mode, "ttl": "2m"},
    })
}
