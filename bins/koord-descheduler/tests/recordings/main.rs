//! What became of pods, jobs and nodes under the original's descheduler: the recordings in `../shared` beside the repository, where it has them, are
//! played against the whole program, on the embedded API server and in virtual time.
//!
//! `GROUP=name` plays one group of cases, `CASE=group/name` one case.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compare;
mod differences;
mod left;
mod observe;
mod play;
mod taken_over;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::runtime;

use self::{compare::compare, differences::DIFFERENT, play::play};

/// The cases of a folder by `group/name`, without those that are about the start of a process: these are played by the tests of `koord-config`, and by the
/// driver.
fn cases(folder: &Path) -> BTreeMap<String, Value> {
    let mut cases = BTreeMap::new();
    for group in fs::read_dir(folder).unwrap() {
        for file in fs::read_dir(group.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let part = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            let name = format!("{}/{}", part(path.parent().unwrap()), part(&path));
            if case["startup"] != true && case["recorded"].is_object() {
                cases.insert(name, case);
            }
        }
    }
    cases
}

/// How a case differs: in outcomes, and in everything.
fn differences(case: &Value) -> [Vec<String>; 2] {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    match runtime.block_on(play(case)) {
        Ok(seen) => compare(case, &seen),
        Err(error) => [vec![format!("error: {error:#}")], Vec::new()],
    }
}

/// The folder of the recordings; none where there are none.
fn recordings(what: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("KOORD_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let folder = shared.join("corpus/descheduler/cases");
    if !folder.exists() {
        programs::skipped(what, "there are no recordings of the original beside the repository");
        return None;
    }
    Some(folder)
}

#[test]
fn pods_jobs_and_nodes_end_as_under_the_original() {
    let Some(folder) = recordings("recordings of the descheduler") else { return };
    let (group, one) = (std::env::var("GROUP").ok(), std::env::var("CASE").ok());
    let is_chosen = |name: &str| {
        group.as_ref().is_none_or(|group| name.starts_with(&format!("{group}/")))
            && one.as_ref().is_none_or(|one| name == one)
    };
    let known: BTreeMap<&str, &str> = DIFFERENT.iter().copied().collect();
    let (mut outcomes, mut whole, mut wrong, mut gone) = (0, 0, BTreeMap::new(), BTreeSet::new());
    let chosen: BTreeMap<String, Value> = cases(&folder).into_iter().filter(|(name, _)| is_chosen(name)).collect();
    for (name, case) in &chosen {
        let [outcome, everything] = differences(case);
        outcomes += usize::from(outcome.is_empty());
        whole += usize::from(outcome.is_empty() && everything.is_empty());
        if one.is_some() || (!outcome.is_empty() && group.is_some()) {
            println!("--- {name}: {}\n{outcome:#?}\n{everything:#?}", case["about"]);
        }
        match (outcome.is_empty(), known.contains_key(name.as_str())) {
            (false, false) => _ = wrong.insert(name.as_str(), outcome),
            (true, true) => _ = gone.insert(name.as_str()),
            _ => {}
        }
    }
    println!("{} recordings, {outcomes} agree in outcomes, {whole} in everything", chosen.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(gone.is_empty(), "known differences that are gone: {gone:?}");
}
