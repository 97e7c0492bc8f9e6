//! What `tests/data/scheduler-recordings.json` says of the recordings of the original scheduler adds up. `tests/parity/drive-scheduler` and
//! `tests/parity/take-over-original` play them by it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recordings {
    /// Those that agree in everything, and those that agree in where pods are placed.
    everything: BTreeSet<String>,
    placement: BTreeSet<String>,
    /// Those that are meant to differ, each with the begin of its row in docs/reference/divergences.md.
    known: BTreeMap<String, String>,
    /// How these differ: the lines of the driver, one for each path.
    differs: BTreeMap<String, Vec<String>>,
    /// Those of which the driver cannot count where pods are.
    uncounted: BTreeMap<String, String>,
    /// Those in whose last state ours writes something when it starts there, with the reason.
    taken_over: BTreeMap<String, String>,
    agreement: Agreement,
}

/// How many recordings agree in where pods are placed, of those that can be counted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Agreement {
    countable: usize,
    agree: usize,
    percent_min: usize,
}

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

fn recordings() -> Recordings {
    serde_json::from_str(&file("tests/data/scheduler-recordings.json")).unwrap()
}

impl Recordings {
    fn agrees(&self, name: &str) -> bool {
        self.everything.contains(name) || self.placement.contains(name)
    }

    /// Those that are known to place pods elsewhere.
    fn elsewhere(&self) -> Vec<&String> {
        self.known.keys().filter(|name| !self.agrees(name)).collect()
    }
}

#[test]
fn placements_agree_in_as_many_recordings_as_is_claimed() {
    let recordings = recordings();
    let Recordings { everything, placement, uncounted, agreement, .. } = &recordings;
    assert!(everything.is_disjoint(placement), "{:?}", everything.intersection(placement));
    assert_eq!(agreement.agree, everything.len() + placement.len());
    assert_eq!(agreement.countable, agreement.agree + recordings.elsewhere().len(), "every other one is named");
    assert!(uncounted.keys().all(|name| !recordings.agrees(name) && !recordings.known.contains_key(name)));
    assert!(100 * agreement.agree >= agreement.percent_min * agreement.countable);
}

#[test]
fn what_is_meant_to_differ_is_compared_too() {
    let Recordings { known, differs, .. } = recordings();
    assert!(known.keys().eq(differs.keys()), "each known one, and no other: {:?}", differs.keys());
    assert!(differs.values().all(|lines| !lines.is_empty()));
}

#[test]
fn every_recording_that_places_pods_elsewhere_is_explained() {
    let (recordings, divergences, page) =
        (recordings(), file("docs/reference/divergences.md"), file("docs/development.md"));
    for (name, row) in &recordings.known {
        assert!(divergences.contains(&format!("\n| {row}")), "{name}: docs/reference/divergences.md has no row {row}");
    }
    let named = recordings.elsewhere().into_iter().chain(recordings.uncounted.keys());
    let missing: Vec<_> = named.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "docs/development.md does not name {missing:?}");
    let Agreement { agree, countable, .. } = recordings.agreement;
    assert!(page.contains(&format!("{agree} of {countable}")), "docs/development.md has another figure");
    let twice: Vec<_> = recordings.taken_over.keys().filter(|name| recordings.known.contains_key(*name)).collect();
    assert!(twice.is_empty() && recordings.taken_over.values().all(|reason| !reason.is_empty()), "{twice:?}");
}
