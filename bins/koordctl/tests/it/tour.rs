//! `koordctl up --scenario`: the tour does what it says, on a cluster that a test can ask as well.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use koord_resource::Quantity;
use serde_json::Value;

use crate::program::{Api, PROGRAM, fails, folder, koordctl};

/// A tour that goes on when it is released.
pub(crate) struct Tour {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    steps: usize,
}

const PROMPT: &str = "enter: the next step";

impl Tour {
    fn begin(kubeconfig: &Path, more: &[&str]) -> Self {
        Self::of(("tour", 13), kubeconfig, &[more, &["--speed=600"]].concat())
    }

    /// A scenario of so many steps.
    pub(crate) fn of((scenario, steps): (&str, usize), kubeconfig: &Path, more: &[&str]) -> Self {
        let mut command = koordctl();
        let scenario = format!("--scenario={scenario}");
        // Two nodes are enough where a scenario needs no more.
        let nodes = if more.iter().any(|flag| flag.starts_with("--nodes")) { None } else { Some("--nodes=2") };
        command.args(["up", "--port=0", &scenario]).args(nodes).arg("--kubeconfig").arg(kubeconfig);
        let mut child =
            command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, steps }
    }

    /// What it prints before it waits, or ends.
    pub(crate) fn prints(&mut self) -> String {
        let mut text = String::new();
        while !text.contains(PROMPT) && self.output.read_line(&mut text).unwrap() > 0 {}
        text
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.input.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// The next step, from its heading to its end.
    #[track_caller]
    pub(crate) fn step(&mut self, title: &str) -> String {
        self.press("\n");
        let text = self.prints();
        assert!(
            text.contains(title) && text.contains(&format!(" of {}  ", self.steps)),
            "{title}:\n{text}\n{}",
            self.stderr_if_over()
        );
        text
    }

    fn stderr_if_over(&mut self) -> String {
        let mut errors = String::new();
        if self.child.try_wait().unwrap().is_some() {
            self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        }
        errors
    }

    /// Whether it ends by itself, and with success.
    pub(crate) fn ends(mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Tour {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn batch_cpu(api: &Api) -> Option<i64> {
    let node = api.get("/api/v1/nodes/hollow-0");
    let text = node["status"]["allocatable"]["kubernetes.io/batch-cpu"].as_str()?;
    Some(text.parse::<Quantity>().unwrap().value())
}

fn suppress_threshold(api: &Api) -> Value {
    let slo = api.get("/apis/slo.koordinator.sh/v1alpha1/nodeslos/hollow-0");
    slo["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"].clone()
}

#[test]
fn every_step_of_the_tour_has_the_outcome_that_it_tells() {
    let kubeconfig = folder("tour").join("koord.kubeconfig");
    let mut tour = Tour::begin(&kubeconfig, &["--step"]);
    let opening = tour.prints();
    assert!(opening.contains("600 times as fast") && opening.contains(PROMPT), "{opening}");
    let api = Api::of(&kubeconfig);

    let text = tour.step("What production leaves over");
    assert!(text.contains("$ koordctl explain batch hollow-0") && text.contains("safety margin"), "{text}");
    assert!(!text.contains("because"), "the report is new: {text}");
    let at_first = batch_cpu(&api).unwrap();

    tour.step("Rush hour takes it back");
    let busy = batch_cpu(&api).unwrap();
    assert!(busy < at_first, "{at_first} to {busy}");

    let text = tour.step("Night gives it again");
    let quiet = batch_cpu(&api).unwrap();
    assert!(quiet > busy, "{busy} to {quiet}");
    assert!(text.contains("rises from"), "{text}");

    tour.step("A profile makes batch pods");
    let pod = api.get("/api/v1/namespaces/default/pods/count-words");
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["kubernetes.io/batch-cpu"], "2k");
    assert_eq!((&pod["spec"]["priority"], &pod["status"]["phase"]), (&5000.into(), &"Running".into()));

    let text = tour.step("What contradicts itself is refused");
    assert!(text.contains("Error from server: admission webhook \"vpod.koordinator.sh\" denied"), "{text}");
    let names = |path: &str| -> Vec<String> {
        let list = api.get(path);
        list["items"].as_array().unwrap().iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/api/v1/namespaces/default/pods"), ["count-words"]);

    let text = tour.step("A quota promises no more than its parent");
    assert!(text.contains("Error from server: admission webhook \"velasticquota.koordinator.sh\" denied"), "{text}");
    let quotas = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
    for (team, min) in [("first-team", "12"), ("second-team", "8")] {
        let quota = api.get(&format!("{quotas}/{team}"));
        assert_eq!(quota["spec"]["min"]["cpu"], min);
        assert_eq!(quota["metadata"]["labels"]["quota.scheduling.koordinator.sh/parent"], "department");
    }

    let text = tour.step("Nodes follow the configuration");
    assert_eq!(suppress_threshold(&api), 55);
    assert!(text.contains("cpuSuppressThresholdPercent") && text.contains("clusterStrategy"), "{text}");

    let text = tour.step("A mistake is refused");
    assert!(text.contains("Error from server: ") && text.contains("vconfigmap.koordinator.sh"), "{text}");
    assert_eq!(suppress_threshold(&api), 55);

    let text = tour.step("A mistake that gets past the webhook does no harm");
    assert!(text.contains("Warning  SLOCfgUnmarshalFailed  "), "{text}");
    assert_eq!(suppress_threshold(&api), 55);

    tour.step("Mended, it counts again");
    assert_eq!(suppress_threshold(&api), 60);

    let text = tour.step("koordlet dies");
    assert_eq!(batch_cpu(&api), None);
    assert!(text.contains("batch-cpu on hollow-0: none, because"), "{text}");

    tour.step("koordlet is back");
    assert!(batch_cpu(&api).is_some());

    tour.press("\n");
    let text = tour.prints();
    assert!(text.contains("A node is drained") && text.contains("That was the tour."), "{text}");
    assert!(text.contains("pod/hollow-0-0 evicted") && text.contains("node/hollow-0 drained"), "{text}");
    assert!(tour.ends(), "it ends by itself where nobody watches");
    assert!(!kubeconfig.exists());
}

#[test]
fn without_a_terminal_it_plays_until_it_is_told_to_end() {
    let kubeconfig = folder("tour-quit").join("koord.kubeconfig");
    let mut tour = Tour::begin(&kubeconfig, &["--step"]);
    tour.prints();
    tour.press("q");
    assert!(tour.ends());

    let mut tour = Tour::begin(&kubeconfig, &["--step"]);
    tour.prints();
    tour.input = None;
    assert!(tour.ends(), "nobody will ever press enter");
}

/// `script` gives the tour a terminal of its own, and types there what the test writes.
#[test]
fn on_a_terminal_each_key_counts_as_it_is_pressed() {
    let kubeconfig = folder("tour-keys").join("koord.kubeconfig");
    let line = format!(
        "{PROGRAM} up --port=0 --nodes=2 --scenario=tour --speed=60 --kubeconfig={}; echo \"ends with $?\"; stty -a",
        kubeconfig.display()
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("NO_COLOR", "1").env_remove("KUBECONFIG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Not every machine has one.
    let Ok(mut child) = command.spawn() else { return };
    let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
    let mut tour = Tour { child, input, output, steps: 13 };
    let mut until = |end: &str| {
        let mut text = String::new();
        while !text.contains(end) && tour.output.read_line(&mut text).unwrap() > 0 {}
        assert!(text.contains(end), "it ends without {end:?}:\n{text}");
        text
    };

    // It begins by itself, stops for reading when asked, and stays stopped.
    until("batch-memory on hollow-0: ");
    tour.input.as_mut().unwrap().write_all(b"p").unwrap();
    let text = until(PROMPT);
    assert!(!text.contains("3 of 13"), "{text}");
    // One key is one step.
    tour.input.as_mut().unwrap().write_all(b" ").unwrap();
    let text = until(PROMPT);
    assert_eq!(text.matches(" of 13  ").count(), 1, "{text}");
    tour.input.as_mut().unwrap().write_all(b"p").unwrap();
    until("goes on");
    tour.input.as_mut().unwrap().write_all(b"q").unwrap();
    let text = until("ends with ");
    assert!(text.contains("ends with 0"), "{text}");
    // The terminal is as it was.
    let mut modes = String::new();
    while !modes.contains(" icanon") && tour.output.read_line(&mut modes).unwrap() > 0 {}
    assert!(modes.contains(" icanon") && modes.contains(" echo ") && !modes.contains("-icanon"), "{modes}");
    assert!(!kubeconfig.exists());
}

#[test]
fn scenarios_are_listed_and_unknown_ones_are_answered_with_those() {
    let listed = koordctl().args(["up", "--scenario=list"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.status.success() && text.starts_with("tour  "), "{text}");
    let text = fails(&koordctl().args(["up", "--scenario=tuor"]).output().unwrap());
    assert!(text.contains("no scenario \"tuor\", but: tour, scheduling"), "{text}");
    let text = fails(&koordctl().args(["up", "--step"]).output().unwrap());
    assert!(text.contains("--scenario"), "{text}");
}
