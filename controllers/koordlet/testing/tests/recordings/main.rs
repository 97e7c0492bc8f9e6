//! The player of recorded cases, with agents whose outcome is known: one that writes nothing, one that does what was recorded, and ones that go wrong.
//!
//! The small corpus of the package is always played; the recordings of the original too, where they are beside the repository or where `KOORD_SHARED` is.
#![allow(clippy::unwrap_used, clippy::panic)]

mod idle;
mod recorded;
mod wrong;

use std::{collections::BTreeMap, time::Instant};

use koord_koordlet_testing::{
    Agent, Case, Corpus, Fixtures, KNOWN_DIFFERENCES, Outcome, PROCESS_CASES, Setup, Tree, check_all, lines,
    names_the_same_cpus, scratch_folder,
};
use serde_json::Value;

use self::{idle::Idle, recorded::Recorded};

/// The corpora that are at hand, by name.
fn corpora() -> Vec<(&'static str, Corpus)> {
    let mut corpora = vec![("own", Corpus::own())];
    match Corpus::recorded() {
        Some(corpus) => corpora.push(("recorded", corpus)),
        None => programs::skipped("recordings of the original", "they are not beside the repository"),
    }
    corpora
}

/// Whether an agent that only asks the kubelet does what was recorded.
fn is_nothing_recorded(case: &Case, tree: &Tree) -> bool {
    let recorded = &case.recorded;
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    // What meant the same before was written without need.
    let is_rewritten = |(path, text): (&String, &Value)| {
        let before = tree.files.get(path);
        text.as_str().zip(before).is_some_and(|(text, before)| names_the_same_cpus(path, text, before))
    };
    let has_no_files = |files: &Value| files.as_object().into_iter().flatten().all(is_rewritten);
    let snapshots = recorded["snapshots"].as_object().into_iter().flatten().map(|(_, snapshot)| snapshot);
    let states: Vec<&Value> = snapshots.chain([recorded]).collect();
    if case.reference_crash || case.defect.is_some() {
        return true;
    }
    let members = ["nri", "metrics", "http", "criCalls", "order", "counts", "exit", "workFiles", "workNames"];
    let has_asked = match recorded["kubeletRequests"].as_array() {
        Some(requests) => requests.iter().eq(["/configz", "/pods/"].iter()),
        None => true,
    };
    // An agent that hangs up on each call answers none.
    let hooks_fail = recorded["hooks"].as_array().into_iter().flatten().all(|hook| hook["error"] == "UNAVAILABLE");
    let hookserver_is_empty =
        !case.record_dirs || recorded["emptyDirs"].as_array().unwrap().contains(&"hookserver".into());
    states.iter().all(|state| {
        let objects = state["objects"].as_object();
        has_no_files(&state["files"])
            && members.iter().all(|member| is_empty(&state[member]))
            && objects.into_iter().flatten().all(|(kind, object)| is_empty(object) || has_no_status(kind, object))
    }) && hooks_fail
        && hookserver_is_empty
        && has_asked
}

/// A NodeMetric that no agent has reported into.
fn has_no_status(kind: &str, object: &Value) -> bool {
    kind == "NodeMetric" && object["status"].is_null()
}

#[test]
fn an_agent_that_does_what_was_recorded_passes_everywhere() {
    for (name, corpus) in corpora() {
        let cases = corpus.cases();
        let by_node: BTreeMap<String, Case> = cases.iter().map(|case| (case.node_name.clone(), case.clone())).collect();
        let start = |setup: Setup| {
            let case = &by_node[&setup.node_name];
            let tree = Tree::of(case, &Fixtures::in_folder(corpus.fixtures()));
            Ok(Box::new(Recorded::new(case.clone(), tree, setup)) as Box<dyn Agent>)
        };
        let began = Instant::now();
        let report = check_all(&corpus, &cases, &[], &start);
        println!("{name}: {} cases in {:.1?}", cases.len(), began.elapsed());
        assert!(!cases.is_empty());
        report.judge("").unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn an_agent_that_writes_nothing_passes_only_where_nothing_was_recorded() {
    for (name, corpus) in corpora() {
        let (cases, fixtures, began) = (corpus.cases(), Fixtures::in_folder(corpus.fixtures()), Instant::now());
        let report = check_all(&corpus, &cases, &[], &|_| Ok(Box::new(Idle::default())));
        let (passed, ..) = report.counts();
        println!("{name}: {passed} of {} cases want nothing, {:.1?}", cases.len(), began.elapsed());
        for case in &cases {
            let found = match &report.outcomes[&case.id()] {
                Outcome::Passed => Vec::new(),
                Outcome::Differs(differences) => lines(differences),
                other => panic!("{}: {other:?}", case.id()),
            };
            assert_eq!(
                found.is_empty(),
                is_nothing_recorded(case, &Tree::of(case, &fixtures)),
                "{}: {found:#?}",
                case.id()
            );
        }
        assert!(passed > 0 && passed < cases.len());
    }
}

#[test]
fn all_trees_are_written_in_seconds() {
    for (name, corpus) in corpora() {
        let (cases, fixtures) = (corpus.cases(), Fixtures::in_folder(corpus.fixtures()));
        let (began, mut files) = (Instant::now(), 0);
        for case in &cases {
            let (folder, tree) = (scratch_folder(), Tree::of(case, &fixtures));
            files += tree.files.len();
            tree.write(folder.path());
        }
        println!("{name}: {files} files of {} trees in {:.1?}", cases.len(), began.elapsed());
    }
}

#[test]
fn lists_name_cases_that_exist() {
    let Some(corpus) = Corpus::recorded() else { return };
    let names: Vec<String> = corpus.cases().iter().map(Case::id).collect();
    let known = KNOWN_DIFFERENCES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split([' ', ':']).next());
    for name in PROCESS_CASES.iter().map(|(name, _)| *name).chain(known) {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}
