//! Scenarios: what can be watched in a cluster of `up`, step by step.
//!
//! A scenario is a file: each step says what is done, does it, waits until its consequences have come about, and shows them. What a reader is
//! shown as a command and what is sent to the API server come from the same words: see [`action`].

pub mod action;
pub mod condition;
pub mod keys;
pub mod object;
pub mod pacing;
pub mod play;
pub mod show;

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

pub use self::play::{Player, play};
use self::{action::Act, condition::Condition, show::Show};
use crate::cli::UpArgs;

/// The word that asks for the names of all scenarios.
pub const LIST: &str = "list";

const FILES: [(&str, &str); 3] = [
    ("tour", include_str!("../../scenarios/tour.yaml")),
    ("scheduling", include_str!("../../scenarios/scheduling.yaml")),
    ("descheduling", include_str!("../../scenarios/descheduling.yaml")),
];

/// Something to watch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, in one line.
    pub title: String,
    /// How fast the cluster's time runs, unless a flag sets another.
    pub speed: f64,
    /// How long a step stays on the screen at that speed, in seconds of the reader.
    pub reading_s: u32,
    /// Whether koord-scheduler places pods in it.
    #[serde(default)]
    pub places_pods: bool,
    /// Whether koord-descheduler moves pods in it.
    #[serde(default)]
    pub moves_pods: bool,
    pub steps: Vec<Step>,
    /// What is said at the end.
    pub end: String,
}

/// One step of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What it shows, in a few words.
    pub title: String,
    /// What is done and why it has the consequences that follow.
    pub says: String,
    #[serde(default, rename = "do")]
    pub acts: Vec<Act>,
    #[serde(default)]
    pub until: Vec<Condition>,
    /// What is shown then.
    #[serde(default)]
    pub show: Vec<Show>,
}

impl Scenario {
    fn read(name: &str, text: &str) -> Result<Self> {
        let named = || format!("the scenario {name}");
        let document: Value = serde_saphyr::from_str(text).with_context(named)?;
        serde_json::from_value(document).with_context(named)
    }

    /// The arguments of `up` with what the scenario wants where they leave it open.
    pub fn arguments(&self, args: &UpArgs) -> Result<UpArgs> {
        if args.no_manager {
            bail!("a scenario shows what koord-manager does; leave --no-manager out");
        }
        if self.places_pods && args.no_scheduler {
            bail!("this scenario shows what koord-scheduler does; leave --no-scheduler out");
        }
        if self.moves_pods && (args.no_descheduler || args.descheduler_config.is_some()) {
            bail!(
                "this scenario shows what koord-descheduler does; leave --no-descheduler and --descheduler-config out"
            );
        }
        if self.moves_pods && args.seed != 1 {
            bail!("this scenario is about the sizes of the nodes of seed 1; leave --seed out");
        }
        if args.nodes == 0 || args.pods_per_node() == 0 {
            bail!("a scenario needs a node with a production pod; leave --nodes and --pods-per-node out");
        }
        Ok(UpArgs { speed: Some(args.speed.unwrap_or(self.speed)), ..args.clone() })
    }
}

/// Finds a scenario.
pub fn find(name: &str) -> Result<Scenario> {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        bail!("there is no scenario {name:?}, but: {}; `--scenario {LIST}` says what they show", names.join(", "))
    };
    Scenario::read(name, text)
}

/// All scenarios, one a line.
pub fn list() -> Result<String> {
    let mut text = String::new();
    for (name, content) in FILES {
        let scenario = Scenario::read(name, content)?;
        let _ = writeln!(text, "{name:<12}  {} ({} steps)", scenario.title, scenario.steps.len());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(more: &[&str]) -> UpArgs {
        let Command::Up(args) = Cli::try_parse_from(["koordctl", "up"].iter().chain(more)).unwrap().command else {
            panic!("not up")
        };
        args
    }

    #[test]
    fn every_scenario_can_be_read_and_is_listed() {
        let listed = list().unwrap();
        for (name, _) in FILES {
            assert!(find(name).unwrap().steps.len() > 1);
            assert!(listed.contains(name), "{listed}");
        }
    }

    #[test]
    fn an_unknown_scenario_is_answered_with_the_known_ones() {
        let error = find("tuor").unwrap_err().to_string();
        assert!(error.contains("no scenario \"tuor\", but: tour") && error.contains("--scenario list"), "{error}");
    }

    #[test]
    fn a_scenario_brings_its_own_speed_unless_another_is_asked_for() {
        let tour = find("tour").unwrap();
        let speed = |more: &[&str]| tour.arguments(&args(more)).unwrap().speed();
        assert!((speed(&[]) - tour.speed).abs() < f64::EPSILON);
        assert!((speed(&["--speed=7"]) - 7.0).abs() < f64::EPSILON);
        for more in [&["--no-manager"][..], &["--nodes=0"], &["--pods-per-node=0"], &["--nodes=500"]] {
            assert!(tour.arguments(&args(more)).unwrap_err().to_string().contains("leave --"), "{more:?}");
        }
        let alone = args(&["--no-scheduler"]);
        assert!(tour.arguments(&alone).is_ok());
        let error =
            |scenario: &str, more: &[&str]| find(scenario).unwrap().arguments(&args(more)).unwrap_err().to_string();
        assert!(error("scheduling", &["--no-scheduler"]).ends_with("leave --no-scheduler out"));
        assert!(error("descheduling", &["--no-descheduler"]).contains("leave --no-descheduler"));
        assert!(error("descheduling", &["--seed=2"]).ends_with("leave --seed out"));
    }

    /// At the scenario's own speed; waiting for consequences takes a minute.
    #[test]
    fn every_scenario_takes_as_long_as_its_title_says() {
        for (name, _) in FILES {
            let scenario = find(name).unwrap();
            let reading_s = scenario.reading_s as usize * scenario.steps.len();
            let expected = if scenario.title.ends_with("three minutes") { 100..=140 } else { 200..=280 };
            assert!(expected.contains(&reading_s), "{name}: {reading_s}");
        }
    }
}
