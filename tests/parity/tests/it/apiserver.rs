use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{StreamExt, stream};
use parity::{Case, Outcome, PlayError, Tokens, play};

use crate::servers;

/// How many conversations are held at once; most of their time is waiting for watches.
const CONVERSATIONS: usize = 16;
/// The groups that `tests/parity/drive` plays with real programs beside the server; CI runs it.
const DRIVEN: [&str; 2] = ["admission/", "kubectl/"];
/// They need a compacted history, which takes minutes to come about; `store::tests::a_compacted_revision_cannot_be_resumed` of the server has one at once.
const LONG: [&str; 2] = ["list/continue-expired", "list/rv-exact-compacted"];
/// No conversation takes longer, its polls included.
const PATIENCE: Duration = Duration::from_mins(1);

fn tokens() -> Tokens {
    Tokens { admin: "admin-token".to_owned(), dev: "dev-token".to_owned() }
}

fn selection() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/apiserver")
}

fn all_recordings() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = env::var_os("KOORD_SHARED").map_or(beside, PathBuf::from);
    Some(shared.join("corpus/apiserver/cases")).filter(|folder| folder.is_dir())
}

#[derive(Default)]
struct Tally {
    same: usize,
    different: Vec<String>,
    /// What only a driver with a webhook or kubectl beside the server can play.
    not_playable: Vec<String>,
}

impl Tally {
    fn played(&self) -> usize {
        self.same + self.different.len()
    }

    fn percent(&self) -> usize {
        100 * self.same / self.played().max(1)
    }
}

/// Whether a recording is played; `PARITY` chooses a group or one of it.
fn is_chosen(case: &Case) -> bool {
    let wanted = env::var("PARITY").unwrap_or_default();
    case.title() == wanted || case.title().starts_with(&format!("{wanted}/")) || wanted.is_empty()
}

async fn play_all(cases: Vec<Case>) -> BTreeMap<String, Tally> {
    let server = servers::embedded(&tokens()).await;
    let (playable, long): (Vec<_>, Vec<_>) =
        cases.into_iter().filter(is_chosen).partition(|case| !case.body.contains_key("needs"));
    let outcomes: Vec<_> = stream::iter(playable.into_iter().enumerate())
        .map(|(index, case)| {
            let server = &server;
            async move {
                let played = tokio::time::timeout(PATIENCE, play(server, &tokens(), &case, index as u64)).await;
                (case, played.unwrap_or_else(|_| Err(PlayError::Setup("the conversation did not end".to_owned()))))
            }
        })
        .buffer_unordered(CONVERSATIONS)
        .collect()
        .await;
    let mut groups: BTreeMap<String, Tally> = BTreeMap::new();
    for case in long {
        let title = case.title();
        groups.entry(case.group).or_default().not_playable.push(title);
    }
    for (case, played) in outcomes {
        let difference = match played {
            Ok(Outcome::Same) => {
                groups.entry(case.group).or_default().same += 1;
                continue;
            }
            Err(PlayError::NotPlayable(_)) => {
                let title = case.title();
                groups.entry(case.group).or_default().not_playable.push(title);
                continue;
            }
            Ok(Outcome::Different(difference)) => difference,
            Err(error) => error.to_string(),
        };
        println!("=== {}\n{difference}", case.title());
        let title = case.title();
        groups.entry(case.group).or_default().different.push(title);
    }
    groups
}

/// The recordings that are known to be answered differently, each with its reason.
fn known_differences() -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/known-differences.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Fails on every difference that has no reason, and on every reason whose difference is gone.
fn assert_only_known(groups: &BTreeMap<String, Tally>, played: &BTreeSet<String>) {
    let (text, known) = (report(groups), known_differences());
    println!("{text}");
    let different: BTreeSet<&String> = groups.values().flat_map(|tally| &tally.different).collect();
    let unknown: Vec<_> = different.iter().filter(|title| !known.contains_key(**title)).collect();
    assert!(unknown.is_empty(), "answered otherwise than recorded, and not for a known reason: {unknown:?}\n{text}");
    let left_to_drive = |title: &str| DRIVEN.iter().any(|group| title.starts_with(group)) || LONG.contains(&title);
    let vanished: Vec<_> =
        groups.values().flat_map(|tally| &tally.not_playable).filter(|title| !left_to_drive(title)).collect();
    assert!(vanished.is_empty(), "neither played here nor by tests/parity/drive: {vanished:?}");
    let gone: Vec<_> = known.keys().filter(|title| played.contains(*title) && !different.contains(title)).collect();
    assert!(gone.is_empty(), "answered as recorded by now: {gone:?}; tests/data/known-differences.json names them");
}

fn report(groups: &BTreeMap<String, Tally>) -> String {
    let mut text = String::new();
    let (mut same, mut played) = (0, 0);
    for (group, tally) in groups {
        writeln!(text, "{group:>14}: {:>3} of {:>3} ({} %)", tally.same, tally.played(), tally.percent()).unwrap();
        if !tally.not_playable.is_empty() {
            writeln!(text, "{:>14}  not played here: {}", "", tally.not_playable.join(" ")).unwrap();
        }
        (same, played) = (same + tally.same, played + tally.played());
    }
    let failing: Vec<&str> = groups.values().flat_map(|tally| &tally.different).map(String::as_str).collect();
    writeln!(text, "{:>14}: {same:>3} of {played:>3}\nother than recorded: {}", "together", failing.join(" ")).unwrap();
    text
}

fn titles(cases: &[Case]) -> BTreeSet<String> {
    cases.iter().filter(|case| is_chosen(case)).map(Case::title).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_selection_is_answered_as_recorded() {
    let cases = Case::load_bundles(&selection()).unwrap();
    let played = titles(&cases);
    assert_only_known(&play_all(cases).await, &played);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_recordings_at_hand_are_answered_as_recorded() {
    let Some(folder) = all_recordings() else {
        return programs::skipped("all recordings of the API server", "KOORD_SHARED names no folder with them");
    };
    let cases = Case::load_tree(&folder).unwrap();
    let played = titles(&cases);
    assert_only_known(&play_all(cases).await, &played);
}
