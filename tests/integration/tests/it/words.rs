//! Names that the scheduler had before it was written in the words of the scheduling framework. They must not come back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use integration::installed::repository;

/// A name, and what is said instead.
const RETIRED: [(&str, &str); 77] = [
    ("add_among", "add_scores"),
    ("answer_lost", "extender_call_lost"),
    ("ask_all", "evaluate_all"),
    ("ask_no_more", "cancel_extender_call"),
    ("asked_last", "last_preemptor"),
    ("asked_of", "pre_filter_state_of"),
    ("asks_single_rows", "depends_on_single_rows"),
    ("bearers", "classes_with_pod_affinity"),
    ("check_own", "check_runtime"),
    ("choose_among", "choose_one"),
    ("ChosenNumaNodes", "ReservedNumaAffinity"),
    ("consults", "ExtenderCalls::may_call"),
    ("DeviceAsk", "DeviceRequestSpec"),
    ("Excess", "Overallocation"),
    ("expect_nobody", "expect_no_victims"),
    ("forget_answers", "clear_extender_results"),
    ("given_twice", "double_allocations"),
    ("has_no_room", "none_fits, has_no_candidate"),
    ("has_room", "fits_in"),
    ("have_room", "any_fits"),
    ("Hidden", "ExcludedPods"),
    ("hide_all", "exclude_all"),
    ("hides", "ReservationRestore::restore"),
    ("in_the_way", "idle_claims"),
    ("is_asked_as", "is_evaluated_like"),
    ("is_nothing_kept", "has_no_reservations"),
    ("is_unsettled", "has_changed"),
    ("is_untold", "is_unreported"),
    ("Judge", "QueueingHints"),
    ("Judged", "PluginHints"),
    ("keeps_nothing", "is_unreserved"),
    ("kept_for", "retention"),
    ("kept_max", "candidates_max"),
    ("kept_residents", "cached_residents"),
    ("Lap", "PartLatency"),
    ("Laps", "Latencies"),
    ("last_room", "last_capacity"),
    ("look_for_room", "run_post_filters"),
    ("looked_for_room", "ran_post_filters"),
    ("looks_at_nodes", "handles_nodes"),
    ("Lot", "ReservedResources"),
    ("lot", "ReservedResources"),
    ("make_room", "widen, preempt"),
    ("makes_room", "preempts, nominates"),
    ("MatchAsks", "ReservationQuery"),
    ("needs_nobody", "is_scheduled_alone"),
    ("NoAnswer", "ServiceError"),
    ("NodeRoom", "UnreservedResources"),
    ("NoRoom", "NoCandidate"),
    ("not_there", "next_pod_unavailable"),
    ("OfferedDevices", "NodeNumaHints"),
    ("own_pod", "scheduler_pod"),
    ("own_spec", "resource_spec_of"),
    ("place_of_job", "topology_of_job"),
    ("PluginLap", "PluginLatency"),
    ("say_ignored", "report_all"),
    ("say_once", "report_once"),
    ("shares_room", "shares_nomination"),
    ("stand_in", "reserve_pod"),
    ("stand_ins", "reserve_pods"),
    ("StandIn", "ReservePodState"),
    ("tell_ignored", "report_ignored"),
    ("tell_ignored_of", "report_ignored_of"),
    ("Told", "Reported"),
    ("TOLD_MAX", "REPORTED_MAX"),
    ("tried_instead", "representative"),
    ("UNASKED", "NOT_REQUESTED"),
    ("under_way", "current_attempt"),
    ("UnderWay", "CurrentAttempt"),
    ("Upkeep", "StatusUpdates"),
    ("upkeep", "status_updates"),
    ("Wanted", "ResourceOptions, PreFilterState"),
    ("wanted_node", "required_node"),
    ("WantedDevices", "NumaHintProvider"),
    ("was_not_asked", "is_unfiltered, skipped_pre_filter"),
    ("Wish", "ReservationSelector, CpuPolicies"),
    ("wish", "ReservationSelector"),
];

/// Every Rust file below a folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The identifiers of Rust code, with the line of each: those of comments too, and no texts.
fn identifiers(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().zip(1..).flat_map(|(line, number)| {
        let outside_of_texts = line.split('"').step_by(2);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        outside_of_texts.flat_map(move |part| part.split(move |c| !is_part(c))).map(move |name| (number, name))
    })
}

#[test]
fn retired_names_of_the_scheduler_do_not_come_back() {
    let (retired, mut found) = (BTreeMap::from(RETIRED), Vec::new());
    let folders = [
        "controllers/scheduler",
        "controllers/doctor",
        "controllers/explain",
        "controllers/lint",
        "bins/koord-scheduler",
        "bins/koordctl/src",
        "examples",
    ];
    for file in folders.iter().flat_map(|folder| rust_files(&repository(folder))) {
        let code = fs::read_to_string(&file).unwrap();
        let names = identifiers(&code).filter_map(|(line, name)| Some((line, name, retired.get(name)?)));
        found.extend(names.map(|(line, name, say)| format!("{}:{line}: {name}, say {say}", file.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn names_are_found_in_code_and_comments_and_not_in_texts() {
    let code = "/// The [`Judge`] of it.\nlet judged = judge(\"Laps\", Lap::default());";
    let names: Vec<_> =
        identifiers(code).filter(|(_, name)| RETIRED.iter().any(|(retired, _)| retired == name)).collect();
    assert_eq!(names, [(1, "Judge"), (2, "Lap")]);
}

#[test]
fn a_public_type_of_a_crate_of_the_scheduler_has_a_name_of_its_own() {
    let crates =
        ["framework", "allocation", "engine", "plugins/kubernetes", "plugins/koordinator", "assembly", "what_if"];
    let mut found = Vec::new();
    for crate_ in crates {
        let mut declared = BTreeMap::<String, Vec<String>>::new();
        for file in rust_files(&repository("controllers/scheduler").join(crate_).join("src")) {
            for name in public_types(&fs::read_to_string(&file).unwrap()) {
                declared.entry(name.to_owned()).or_default().push(file.display().to_string());
            }
        }
        assert!(declared.len() > 2, "{crate_}: {declared:?}");
        found.extend(declared.into_iter().filter(|(_, files)| files.len() > 1));
    }
    assert!(found.is_empty(), "types of one name: {found:#?}");
}

/// The names of the types that everybody sees, those of tests left out, which stand at the end of a file.
fn public_types(code: &str) -> impl Iterator<Item = &str> {
    let product = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    product.lines().filter_map(|line| {
        let declared = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
        let rest = declared.iter().find_map(|start| line.strip_prefix(start))?;
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
    })
}
