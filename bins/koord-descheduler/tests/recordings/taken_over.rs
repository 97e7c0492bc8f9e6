//! Jobs change hands: those that the original has left in any phase are finished by the program, and those of the program by its next process.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::runtime;

use crate::{
    cases, differences,
    differences::DIFFERENT,
    left::{Moment, cluster_goes_on, left},
    play::{start, stop},
    recordings,
    world::text,
};

/// Recordings of the same form in the repository, for machines that do not have the others.
const OWN: &str = include_str!("own_recordings.json");
/// The jobs of recordings live for five minutes at most. One that never passes arbitration is deleted five minutes later.
const ENDS_WITHIN: Duration = Duration::from_mins(11);

/// The moments of a recording: its end, and all that the history of a job has before. `every_entry` leaves the others out.
fn moments(case: &Value, every_entry: bool) -> Vec<Moment<'_>> {
    let mut moments = vec![Moment::End];
    for (name, job) in case["recorded"]["jobs"].as_object().into_iter().flatten().filter(|_| every_entry) {
        let length = job["history"].as_array().map_or(0, Vec::len);
        moments.extend((0..length.saturating_sub(1)).map(|entry| Moment::Entry(name, entry)));
    }
    moments
}

/// The case with no strategy, so that only jobs move pods.
fn without_strategies(case: &Value) -> Value {
    let mut case = case.clone();
    for profile in case["config"]["profiles"].as_array_mut().into_iter().flatten() {
        if let Some(plugins) = profile["plugins"].as_object_mut() {
            plugins.retain(|set, _| set == "evict" || set == "filter");
        }
    }
    case
}

/// What is wrong after the program has taken a cluster over: jobs that have not ended, that ended otherwise than the original's, or that were
/// written although they had ended.
async fn wrong_after_takeover(case: &Value, moment: Moment<'_>) -> Result<Vec<String>> {
    let mut world = left(case, moment).await?;
    let before = world.list("PodMigrationJob").await?;
    let (case, mut starts) = (without_strategies(case), 0);
    let running = start(&case, &world, &mut starts)?;
    let end = world.clock.moment() + ENDS_WITHIN;
    let mut jobs = before.clone();
    while world.clock.moment() < end && !jobs.iter().all(|job| has_ended(job) || job["spec"]["paused"] == true) {
        world.clock.sleep(Duration::from_secs(4)).await;
        cluster_goes_on(&mut world).await?;
        jobs = world.list("PodMigrationJob").await?;
    }
    // What had ended before is looked at after the program has seen it.
    world.clock.sleep(Duration::from_secs(2)).await;
    jobs = world.list("PodMigrationJob").await?;
    stop(Some(running)).await?;
    let mut wrong = Vec::new();
    for job in &jobs {
        let (name, status) = (text(job, "/metadata/name"), &job["status"]);
        let was = before.iter().find(|was| text(was, "/metadata/name") == name).context("a new job")?;
        if has_ended(was) && was["status"] != *status {
            wrong.push(format!("{name} had ended as {}, and is {status}", was["status"]));
        }
        if !has_ended(job) && job["spec"]["paused"] != true {
            wrong.push(format!("{name} has not ended: {status}"));
        }
        if has_succeeded(&case, name) && status["phase"] != "Succeeded" {
            wrong.push(format!("{name} has not succeeded: {status}"));
        }
    }
    Ok(wrong)
}

fn has_ended(job: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(job, "/status/phase"))
}

/// Whether the original has brought a job to its end, without a step that took the pod away.
fn has_succeeded(case: &Value, name: &str) -> bool {
    let job = &case["recorded"]["jobs"][name];
    let pod = format!("{}/{}", text(job, "/spec/podRef/namespace"), text(job, "/spec/podRef/name"));
    let is_moved = ["eviction", "delete"].contains(&text(&case["recorded"]["pods"][pod], "/by"));
    is_moved && job["status"]["phase"] == "Succeeded"
}

/// Plays the end of a case after each of its moments, and gives how many there were.
fn take_over(name: &str, case: &Value, every_entry: bool, wrong: &mut BTreeMap<String, Vec<String>>) -> usize {
    let moments = moments(case, every_entry);
    for moment in &moments {
        let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let found = runtime.block_on(wrong_after_takeover(case, *moment));
        let found = found.unwrap_or_else(|error| vec![format!("error: {error:#}")]);
        if !found.is_empty() {
            wrong.insert(format!("{name} at {moment:?}"), found);
        }
    }
    moments.len()
}

#[test]
fn jobs_that_the_original_has_left_in_any_phase_are_finished() {
    let mut wrong = BTreeMap::new();
    let own: BTreeMap<String, Value> = serde_json::from_str(OWN).unwrap();
    let mut count: usize = own.iter().map(|(name, case)| take_over(name, case, true, &mut wrong)).sum();
    assert!(count > 10, "{count}");
    if let Some(folder) = recordings("jobs of the original, taken over") {
        let chosen = std::env::var("CASE").ok();
        for (name, case) in cases(&folder).iter().filter(|(name, _)| chosen.as_ref().is_none_or(|one| one == *name)) {
            if case["recorded"]["jobs"].as_object().is_some_and(|jobs| !jobs.is_empty()) {
                count += take_over(name, case, name.starts_with("migration/"), &mut wrong);
            }
        }
    }
    println!("{count} clusters of the original are taken over");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The case with a new process after every step.
fn handed_over(case: &Value) -> Value {
    let mut case = case.clone();
    let mut runs = case["startStopped"] != true;
    let mut steps = Vec::new();
    for step in case["steps"].as_array().into_iter().flatten() {
        if runs && !steps.is_empty() && step["descheduler"].is_null() {
            steps.push(json!({"descheduler": "restart"}));
        }
        runs = match text(step, "/descheduler") {
            "stop" => false,
            "start" | "restart" => true,
            _ => runs,
        };
        steps.push(step.clone());
    }
    case["steps"] = steps.into();
    case
}

#[test]
fn jobs_end_alike_when_a_new_process_continues_them_after_every_step() {
    let own: BTreeMap<String, Value> = serde_json::from_str(OWN).unwrap();
    let mut all = own;
    if let Some(folder) = recordings("jobs of one process, continued by the next") {
        all.extend(cases(&folder).into_iter().filter(|(name, _)| name.starts_with("migration/")));
    }
    let chosen = std::env::var("CASE").ok();
    all.retain(|name, _| chosen.as_ref().is_none_or(|one| one == name));
    let mut wrong = BTreeMap::new();
    for (name, case) in &all {
        let [outcome, _] = differences(&handed_over(case));
        if !outcome.is_empty() && !DIFFERENT.iter().any(|(known, _)| known == name) {
            wrong.insert(name.as_str(), outcome);
        }
    }
    println!("{} recordings have a new process after every step", all.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
