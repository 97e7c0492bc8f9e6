//! Plays a case: its objects, the program, its steps.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use http::Method;
use koord_configuration::Source;
use koord_descheduler::{Settings, run_with};
use koord_descheduler_assembly::Configuration;
use koord_program::{Dependencies, gates::Gates};
use koord_runtime::random::Random;
use kube::Client;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    observe::observe,
    world::{World, text},
};

/// The program, while it runs.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

/// Plays a case, and gives what became of everything, in the form of a recording.
pub(crate) async fn play(case: &Value) -> Result<Value> {
    let mut world = World::new().await?;
    for given in case["given"].as_array().into_iter().flatten() {
        if let Some(seconds) = given["wait"].as_f64() {
            wait(&world, seconds).await;
        } else if given["delete"].is_object() {
            world.delete(&given["delete"]).await?;
        } else {
            world.create(given).await?;
        }
    }
    let mut starts = 0;
    let mut running = None;
    if case["startStopped"] != true {
        running = match start(case, &world, &mut starts) {
            Ok(running) => Some(running),
            Err(error) => {
                let mut seen = observe(case, &world).await?;
                seen["exit"] = json!({"code": 1, "message": format!("{error:#}")});
                return Ok(seen);
            }
        };
        wait(&world, 0.3).await;
    }
    let quiet = case["quiet"].as_f64().unwrap_or(2.5);
    for step in case["steps"].as_array().into_iter().flatten() {
        if let Some(objects) = step.get("create") {
            for object in items(objects) {
                world.create(object).await?;
            }
            wait(&world, 0.1).await;
        } else if let Some(objects) = step.get("patch") {
            for object in items(objects) {
                world.patch(object).await?;
            }
            wait(&world, 0.1).await;
        } else if let Some(objects) = step.get("delete") {
            for object in items(objects) {
                world.delete(object).await?;
            }
            wait(&world, 0.1).await;
        } else if let Some(seconds) = step["wait"].as_f64() {
            wait(&world, seconds).await;
        } else if let Some(wanted) = step["until"].as_object() {
            until(&world, wanted).await?;
        } else if let Some(settle) = step.get("settle") {
            world.settle(settle.as_f64().unwrap_or(quiet), 40.0).await;
        } else {
            match text(step, "/descheduler") {
                "stop" => stop(running.take()).await?,
                "start" => running = Some(start(case, &world, &mut starts)?),
                "restart" => {
                    stop(running.take()).await?;
                    running = Some(start(case, &world, &mut starts)?);
                }
                _ => bail!("unknown step {step}"),
            }
            wait(&world, 0.3).await;
        }
    }
    world.settle(quiet, case["limit"].as_f64().unwrap_or(40.0)).await;
    let seen = observe(case, &world).await?;
    stop(running.take()).await?;
    Ok(seen)
}

pub(crate) fn items(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

async fn wait(world: &World, seconds: f64) {
    world.clock.sleep(Duration::from_secs_f64(seconds)).await;
}

/// Starts the program.
pub(crate) fn start(case: &Value, world: &World, starts: &mut u64) -> Result<Running> {
    *starts += 1;
    let mut document = json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "leaderElection": {"leaderElect": false},
        "healthzBindAddress": "127.0.0.1:0", "metricsBindAddress": "127.0.0.1:0",
        "clientConnection": {"qps": 5000, "burst": 5000},
    });
    for (key, value) in case["config"].as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    let configuration = Configuration::of_document(&document, &Source::new("config", ""))?;
    let mut settings = Settings::within(configuration).unwrap();
    let gates: Vec<String> =
        case["featureGates"].as_object().into_iter().flatten().map(|(gate, on)| format!("{gate}={on}")).collect();
    settings.gates = gates_of(&gates)?;
    // What cannot be built ends the program before it runs.
    koord_descheduler_assembly::build(&settings.configuration.values)?;
    let dependencies = Dependencies {
        client: Client::new(world.server.router(), "default"),
        api_host: "cluster".to_owned(),
        clock: Arc::clone(&world.clock),
        random: Random::seeded(100 + *starts),
    };
    let stop = CancellationToken::new();
    let task = tokio::spawn(run_with(settings, dependencies, Some(Arc::clone(&world.clock)), stop.clone()));
    Ok(Running { stop, task })
}

fn gates_of(gates: &[String]) -> Result<Gates> {
    let line = ["koord-descheduler".to_owned(), format!("--feature-gates={}", gates.join(","))];
    Ok(koord_descheduler::Options::from_arguments(line)?.check()?.gates)
}

pub(crate) async fn stop(running: Option<Running>) -> Result<()> {
    match running {
        Some(Running { stop, task }) => {
            stop.cancel();
            task.await?
        }
        None => Ok(()),
    }
}

/// Waits until an object has these values; not for ever.
async fn until(world: &World, wanted: &Map<String, Value>) -> Result<()> {
    let seconds = wanted.get("seconds").and_then(Value::as_f64).unwrap_or(15.0);
    let end = world.clock.moment() + Duration::from_secs_f64(seconds);
    while world.clock.moment() < end {
        let object = meant(world, wanted).await?;
        let is_there = match (&object, wanted.get("absent")) {
            (None, Some(_)) => return Ok(()),
            (Some(object), None) => wanted
                .iter()
                .filter(|(path, _)| !matches!(path.as_str(), "job" | "pod" | "reservation" | "seconds"))
                .all(|(path, value)| at(object, path) == value),
            _ => false,
        };
        if is_there {
            return Ok(());
        }
        wait(world, 0.1).await;
    }
    Ok(())
}

async fn meant(world: &World, wanted: &Map<String, Value>) -> Result<Option<Value>> {
    let named = |kind: &str| wanted.get(kind).and_then(Value::as_str);
    if let Some(key) = named("job") {
        return Ok(world.job(key, Duration::ZERO).await.ok());
    }
    let path = if let Some(key) = named("pod") {
        let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
        World::path("Pod", namespace, name)?
    } else if let Some(name) = named("reservation") {
        let name = match name.strip_prefix("of ") {
            Some(key) => match world.job(key, Duration::ZERO).await {
                Ok(job) => text(&job, "/spec/reservationOptions/reservationRef/name").to_owned(),
                Err(_) => return Ok(None),
            },
            None => name.to_owned(),
        };
        if name.is_empty() {
            return Ok(None);
        }
        World::path("Reservation", "", &name)?
    } else {
        bail!("until what? {wanted:?}");
    };
    let (code, object) = world.server.send(Method::GET, &path, &Value::Null).await;
    Ok((code == 200).then_some(object))
}

/// The value at a path such as `status.conditions.Ready.status`, where an item of a list is named by its type.
fn at<'v>(object: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(object, |value, part| match value {
        Value::Array(items) => items.iter().find(|item| item["type"] == part).unwrap_or(&Value::Null),
        _ => &value[part],
    })
}
