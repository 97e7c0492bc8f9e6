//! Agents that go wrong, and what the virtual time does for all agents.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use koord_koordlet_testing::{Agent, Case, Corpus, Fixtures, Input, Outcome, Output, Setup, check, play};
use serde_json::json;

use super::idle::Idle;

fn own_case(name: &str) -> (Case, Fixtures) {
    let corpus = Corpus::own();
    let case = corpus.cases().into_iter().find(|case| case.name == name).unwrap();
    (case, Fixtures::in_folder(corpus.fixtures()))
}

struct Panics;

impl Agent for Panics {
    fn due(&self) -> Option<Duration> {
        None
    }

    fn handle(&mut self, _: Duration, _: Input) {
        panic!("no such member");
    }

    fn advance_to(&mut self, _: Duration) -> Vec<Output> {
        Vec::new()
    }
}

struct Endless;

impl Agent for Endless {
    fn due(&self) -> Option<Duration> {
        None
    }

    fn handle(&mut self, _: Duration, _: Input) {}

    fn advance_to(&mut self, _: Duration) -> Vec<Output> {
        vec![Output::Kubelet { path: "/pods/".to_owned(), has_credentials: false }]
    }
}

#[test]
fn a_panic_and_an_agent_without_end_are_outcomes_of_their_case() {
    let (case, fixtures) = own_case("nothing");
    let outcome = check(&case, &fixtures, &|_| Ok(Box::new(Panics)));
    assert!(matches!(outcome, Outcome::Panicked(message) if message == "no such member"));
    let outcome = check(&case, &fixtures, &|_| Ok(Box::new(Endless)));
    assert!(matches!(outcome, Outcome::Panicked(message) if message.contains("does not come to an end")));
}

#[test]
fn an_agent_that_does_not_start_is_not_alive() {
    let (case, fixtures) = own_case("nothing");
    let seen = play(&case, &fixtures, &|_| Err(3));
    assert_eq!((&seen["alive"], &seen["exit"]), (&json!(false), &json!(3)));
    assert!(matches!(check(&case, &fixtures, &|_| Ok(Box::new(Idle::default()))), Outcome::Passed));
}

/// What an agent finds each second: the time, and a counter.
type Samples = Arc<Mutex<Vec<(Duration, String)>>>;

/// Reads a counter every 700 ms.
struct Sampler {
    next: Duration,
    file: PathBuf,
    samples: Samples,
}

impl Agent for Sampler {
    fn due(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn handle(&mut self, at: Duration, input: Input) {
        if let Input::Changed(object) = input {
            self.samples.lock().unwrap().push((at, object["kind"].to_string()));
        }
    }

    fn advance_to(&mut self, at: Duration) -> Vec<Output> {
        if at < self.next {
            return Vec::new();
        }
        self.next = at + Duration::from_millis(700);
        self.samples.lock().unwrap().push((at, fs::read_to_string(&self.file).unwrap()));
        vec![Output::Kubelet { path: "/pods/".to_owned(), has_credentials: false }]
    }
}

#[test]
fn counters_and_steps_stand_at_the_time_at_which_the_agent_looks() {
    let (mut case, fixtures) = own_case("evict-memory");
    case.seconds = 2.0;
    let slo = json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": case.node_name}, "spec": {}});
    case.steps = vec![serde_json::from_value(json!({"at": 1.0, "objects": [slo], "cpu": {"pod/large": 1.0}})).unwrap()];
    let samples = Samples::default();
    let start = |setup: Setup| {
        let file = setup.root.join("cgroup/cpuacct/kubepods.slice/kubepods-besteffort.slice/cpuacct.usage");
        Ok(Box::new(Sampler { next: Duration::ZERO, file, samples: samples.clone() }) as Box<dyn Agent>)
    };
    play(&case, &fixtures, &start);
    // 0.4 cores of two pods, then 1 core of the only one that is named.
    let millis = Duration::from_millis;
    let wanted = [
        (millis(0), "1000000000000\n"),
        (millis(700), "1000280000000\n"),
        (millis(1000), "\"NodeSLO\""),
        (millis(1400), "1000800000000\n"),
    ];
    assert_eq!(*samples.lock().unwrap(), wanted.map(|(at, text)| (at, text.to_owned())));
}
