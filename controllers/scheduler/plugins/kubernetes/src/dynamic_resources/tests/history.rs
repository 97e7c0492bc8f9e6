//! The ledger after any history, beside a look at everything that has happened.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A step of a history of claims and pods.
#[derive(Clone, Debug)]
enum Step {
    /// A claim is as it was made.
    Free(usize),
    /// A claim is seen to have what a pod has written, or devices that another scheduler gave it.
    Has(usize, usize),
    /// A claim is deleted.
    Delete(usize),
    /// A pod gets a place, if the plugin gives it devices.
    Place(usize),
    /// A pod is gone.
    Remove(usize),
    /// A pod is tried elsewhere, and all is as it was.
    Try(usize),
}

const CLAIMS: [&str; 3] = ["c0", "c1", "c2"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let claim = 0..CLAIMS.len();
    let step = prop_oneof![
        claim.clone().prop_map(Step::Free),
        (claim.clone(), 0..3_usize).prop_map(|(claim, device)| Step::Has(claim, device)),
        claim.clone().prop_map(Step::Delete),
        (0..6_usize).prop_map(Step::Place),
        (0..6_usize).prop_map(Step::Place),
        (0..6_usize).prop_map(Step::Remove),
        (0..6_usize).prop_map(Step::Try),
    ];
    prop::collection::vec(step, 1..40)
}

/// A claim at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    Gone,
    Without,
    With(String),
}

/// What is given, found by looking through everything that has happened.
#[derive(Default)]
struct Oracle {
    /// By claim: each version, with the device that it has.
    versions: [Vec<Version>; 3],
    /// By pod: the claim, how many versions of it there were, and the device.
    places: BTreeMap<usize, (usize, usize, String)>,
}

impl Oracle {
    fn used(&self) -> BTreeSet<String> {
        let said = self.versions.iter().filter_map(|versions| match versions.last()? {
            Version::With(device) => Some(device.clone()),
            Version::Gone | Version::Without => None,
        });
        let held = self.places.values().filter(|(claim, seen, _)| {
            // Since the decision the claim has neither had devices nor been away.
            self.versions[*claim][*seen - 1..].iter().all(|version| *version == Version::Without)
        });
        said.chain(held.map(|(.., device)| device.clone())).collect()
    }
}

proptest! {
    #[test]
    fn the_ledger_knows_what_a_look_at_everything_finds(steps in steps()) {
        let mut world = World::of(&["a"]);
        world.plain("a", &["0", "1", "2"]);
        let mut oracle = Oracle::default();
        for step in steps {
            match step {
                Step::Free(claim) => {
                    world.claim(CLAIMS[claim], &one());
                    oracle.versions[claim].push(Version::Without);
                }
                Step::Has(claim, device) => {
                    // A pod that has its place has written what it was given.
                    let written = oracle.places.values().find(|(of, ..)| *of == claim).map(|(.., device)| device.clone());
                    let device = written.unwrap_or_else(|| format!("a/{device}"));
                    let mut object = allocated("a", &[]);
                    object["status"]["allocation"]["devices"]["results"][0]["device"] = json!(device.trim_start_matches("a/"));
                    world.claim(CLAIMS[claim], &object);
                    oracle.versions[claim].push(Version::With(device));
                }
                Step::Delete(claim) => {
                    if oracle.versions[claim].last().is_some_and(|last| *last != Version::Gone) {
                        world.remove::<ResourceClaim>(CLAIMS[claim]);
                        oracle.versions[claim].push(Version::Gone);
                    }
                }
                Step::Place(number) => {
                    let (claim, pod) = (number % 3, pod(&format!("p{number}"), &[CLAIMS[number % 3]]));
                    if oracle.places.contains_key(&number) || world.answers(&pod) != [""] {
                        continue;
                    }
                    world.reserve(&pod, "a").unwrap();
                    let placed = world.cluster.pod(&pod.uid).unwrap();
                    if let Some(held) = placed.holds.get::<ClaimsHeld>() {
                        let device = format!("a/{}", held.0[0].given.results[0].device.device);
                        prop_assert!(!oracle.used().contains(&device), "{device} is given twice");
                        oracle.places.insert(number, (claim, oracle.versions[claim].len(), device));
                    }
                }
                Step::Remove(number) => {
                    world.cluster.remove_pod(&Uid::from(&*format!("p{number}")));
                    oracle.places.remove(&number);
                }
                Step::Try(number) => {
                    let mut trial = world.cluster.trial();
                    trial.remove(&Uid::from(&*format!("p{number}")));
                }
            }
            prop_assert_eq!(world.used(), oracle.used().into_iter().collect::<Vec<_>>());
        }
    }
}
