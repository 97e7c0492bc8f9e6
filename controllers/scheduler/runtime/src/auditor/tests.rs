use std::time::Duration;

use koord_runtime::random::Random;

use super::*;

fn at(second: u64) -> Moment {
    Moment::at(Duration::from_secs(second))
}

fn pod(name: &str) -> (ObjectKey, Uid) {
    (ObjectKey::new("ns", name), Uid::from(name))
}

fn gang(name: &str, has_enough_pods: bool) -> koord_scheduler_framework::Workload {
    koord_scheduler_framework::Workload { name: name.into(), has_enough_pods }
}

/// An auditor, and what it has found out, as text.
#[derive(Default)]
struct Audit(Auditor);

impl Audit {
    fn create(
        &mut self,
        name: &str,
        is_gated: bool,
        together: Option<&koord_scheduler_framework::Workload>,
        second: u64,
    ) -> &mut Self {
        let (key, uid) = pod(name);
        let subject = Subject { key: &key, uid: &uid, is_gated, together };
        self.0.created(&subject, || Arc::from([name.to_owned()]), at(second));
        self
    }

    fn change(
        &mut self,
        name: &str,
        is_gated: bool,
        together: Option<&koord_scheduler_framework::Workload>,
        second: u64,
    ) -> &mut Self {
        let (key, uid) = pod(name);
        self.0.changed(&Subject { key: &key, uid: &uid, is_gated, together }, at(second));
        self
    }

    fn refuse(&mut self, name: &str, event: Event, second: u64) -> &mut Self {
        self.0.refused(&Uid::from(name), event, &[], at(second));
        self
    }

    fn evict(&mut self, name: &str, victims: &[&str], second: u64) -> &mut Self {
        let victims: Vec<Uid> = victims.iter().map(|victim| Uid::from(*victim)).collect();
        self.0.refused(&Uid::from(name), Event::PreemptNominated, &victims, at(second));
        self
    }

    fn schedule(&mut self, name: &str, second: u64) -> &mut Self {
        self.0.scheduled(&Uid::from(name), at(second));
        self
    }

    fn gone(&mut self, name: &str, second: u64) -> &mut Self {
        self.0.gone(&Uid::from(name), at(second));
        self.0.left(&Uid::from(name), at(second));
        self
    }

    /// What was found since this was asked last, but intervals.
    fn found(&mut self) -> Vec<String> {
        self.all_found().into_iter().filter(|finding| !finding.starts_with("after")).collect()
    }

    fn all_found(&mut self) -> Vec<String> {
        self.0.take_reports().into_iter().map(|report| text(&report.finding)).collect()
    }

    /// Whether it remembers nobody.
    fn is_empty(&self) -> bool {
        self.0.audited.is_empty() && self.0.pods.is_empty() && self.0.victims.is_empty()
    }
}

fn text(finding: &Finding) -> String {
    match *finding {
        Finding::PreemptedAgain(times) => format!("preempted {times} times"),
        Finding::PreemptionInvalidated(by) => format!("invalidated by {}", by.name()),
        Finding::Rescheduled { after, by } => format!("tried {}s after victims: {}", after.as_secs(), by.name()),
        Finding::PreemptionEnded { lasted, retries, is_complete, by } => {
            let end = if is_complete { "complete" } else { by.map_or("end", Event::name) };
            format!("preemption {}s, {retries} retries: {end}", lasted.as_secs())
        }
        Finding::Interval { lasted, until } => format!("after {}s {}", lasted.as_secs(), until.name()),
        Finding::Ended { outcome, event, times } => format!("{}: {times} {}", outcome.name(), event.name()),
    }
}

#[test]
fn a_preemption_that_helps_lasts_until_its_victims_are_gone() {
    let mut audit = Audit::default();
    audit.create("p", false, None, 0).evict("p", &["v", "w"], 2);
    assert_eq!(audit.found(), [""; 0]);
    audit.refuse("p", Event::PreemptVictimDeleting, 3).refuse("p", Event::PreemptVictimDeleting, 4).gone("v", 5);
    assert_eq!(audit.found(), [""; 0], "w is still there");
    assert_eq!(audit.gone("w", 9).found(), ["preemption 7s, 2 retries: complete"]);
    assert_eq!(
        audit.schedule("p", 10).found(),
        [
            "tried 1s after victims: scheduled",
            "scheduled: 1 create",
            "scheduled: 1 preemptNominated",
            "scheduled: 2 preemptVictimDeleting",
            "scheduled: 1 scheduled",
            "scheduled: 1 victimAllDeleted",
        ]
    );
    assert!(audit.is_empty());
}

#[test]
fn a_preemption_ends_once_whatever_comes_first() {
    for (event, is_invalidated) in [(Event::PreemptFailure, true), (Event::ScheduleFailure, true)] {
        let mut audit = Audit::default();
        let name = event.name();
        audit.create("p", false, None, 0).evict("p", &["v"], 1).refuse("p", event, 4).refuse("p", event, 5);
        let invalidated = is_invalidated.then(|| format!("invalidated by {name}"));
        let expected: Vec<String> =
            invalidated.into_iter().chain([format!("preemption 3s, 0 retries: {name}")]).collect();
        assert_eq!(audit.found(), expected, "the second one says nothing new");
        assert_eq!(audit.gone("v", 6).found(), [""; 0]);
        assert_eq!(audit.refuse("p", event, 8).found(), [format!("tried 2s after victims: {name}")]);
    }
    let mut audit = Audit::default();
    audit.create("p", false, None, 0).evict("p", &["v"], 1).schedule("p", 3);
    assert_eq!(audit.found()[0], "preemption 2s, 0 retries: scheduled", "it has found another place");
    assert!(audit.is_empty(), "the victim is not waited for any more");
}

#[test]
fn a_workload_for_which_others_are_evicted_again_is_counted() {
    let mut audit = Audit::default();
    audit.create("p", false, None, 0).evict("p", &["v"], 1).evict("p", &["w"], 5);
    let again = ["preemption 4s, 0 retries: preemptNominated", "preempted 2 times", "invalidated by preemptNominated"];
    assert_eq!(audit.found(), again);
    assert_eq!(audit.gone("v", 6).found(), [""; 0], "w counts");
    assert_eq!(audit.gone("w", 7).found(), ["preemption 2s, 0 retries: complete"]);
    audit.refuse("p", Event::PreemptFailure, 8);
    assert_eq!(audit.found(), ["invalidated by preemptFailure", "tried 1s after victims: preemptFailure"]);
    // What was invalidated already is not invalidated by the next one.
    assert_eq!(audit.evict("p", &["x"], 9).found(), ["preempted 3 times"]);
}

#[test]
fn victims_that_hold_no_node_yet_are_gone_at_once_and_those_that_stay_are_not_waited_for() {
    let mut audit = Audit::default();
    assert_eq!(audit.create("p", false, None, 0).evict("p", &[], 1).found(), ["preemption 0s, 0 retries: complete"]);
    let mut audit = Audit::default();
    audit.create("p", false, None, 0).evict("p", &["v"], 1);
    audit.0.stays(&Uid::from("v"));
    assert_eq!(audit.gone("v", 2).found(), [""; 0]);
    assert_eq!(audit.schedule("p", 4).found()[0], "preemption 3s, 0 retries: scheduled");
}

#[test]
fn a_gate_ends_intervals_and_the_wait_for_the_next_result() {
    let mut audit = Audit::default();
    audit.create("p", true, None, 0);
    assert_eq!(audit.change("p", true, None, 3).all_found(), [""; 0]);
    audit.change("p", false, None, 60).refuse("p", Event::ScheduleFailure, 61).refuse("p", Event::ScheduleFailure, 64);
    assert_eq!(audit.all_found(), ["after 1s scheduleFailure", "after 3s scheduleFailure"]);
    audit.evict("p", &["v"], 70).gone("v", 75).all_found();
    audit.change("p", true, None, 80).change("p", false, None, 90).schedule("p", 95);
    let found = audit.all_found();
    assert_eq!(found[0], "after 5s scheduled", "neither the gate nor the deletion counts");
    assert!(found.contains(&"scheduled: 2 gatedByQueueAdmission".to_owned()));
    assert!(found.contains(&"scheduled: 2 admissionPassed".to_owned()));
    assert!(!found.iter().any(|finding| finding.contains("after victims")));
}

/// As the original describes it; it does not have the interval before the first attempt (docs/reference/divergences.md).
#[test]
fn the_first_interval_begins_when_the_pod_is_created() {
    let mut audit = Audit::default();
    assert_eq!(audit.create("p", false, None, 0).schedule("p", 400).all_found()[0], "after 400s scheduled");
}

#[test]
fn a_pod_that_waits_no_longer_is_forgotten() {
    let mut audit = Audit::default();
    audit.create("p", false, None, 0).evict("p", &["v"], 1).gone("p", 3);
    let ended = ["preemption 2s, 0 retries: end", "deleted: 1 create", "deleted: 1 preemptNominated"];
    assert_eq!(audit.found(), ended);
    assert!(audit.is_empty());
    assert_eq!(audit.schedule("p", 4).refuse("p", Event::ScheduleFailure, 4).gone("p", 5).all_found(), [""; 0]);
}

#[test]
fn a_gang_group_is_one_workload() {
    let (some, all) = (gang("ns/g", false), gang("ns/g", true));
    let mut audit = Audit::default();
    audit.create("a", false, Some(&some), 0).create("b", false, Some(&all), 5).change("a", false, Some(&all), 6);
    audit.0.tried("ns/g");
    audit.evict("a", &["v"], 7).refuse("b", Event::PreemptVictimDeleting, 7);
    audit.0.tried_no_more("ns/g", Some(Event::GangAllPodsAlreadyAttempted), at(8));
    audit.refuse("b", Event::PreemptFailure, 8);
    let found = ["after 2s preemptNominated", "after 1s gangAllPodsAlreadyAttempted"];
    assert_eq!(audit.all_found(), found, "the first refusal counts, and those after the last attempt say nothing");
    audit.gone("v", 9).0.tried("ns/g");
    audit.0.tried_no_more("ns/g", Some(Event::Scheduled), at(12));
    assert_eq!(
        audit.found(),
        [
            "preemption 2s, 0 retries: complete",
            "tried 3s after victims: scheduled",
            "gangScheduled: 1 create",
            "gangScheduled: 1 gangMinMemberSatisfied",
            "gangScheduled: 1 preemptNominated",
            "gangScheduled: 1 scheduled",
            "gangScheduled: 1 victimAllDeleted",
            "gangScheduled: 1 gangAllPodsAlreadyAttempted",
        ]
    );
    assert!(audit.is_empty());
    assert_eq!(audit.schedule("a", 13).gone("b", 14).all_found(), [""; 0]);
}

/// The original keeps what it knows of a gang group until its PodGroups are gone (docs/reference/divergences.md).
#[test]
fn a_gang_group_ends_with_the_last_of_its_pods_that_wait() {
    let group = gang("ns/g", false);
    let mut audit = Audit::default();
    audit.create("a", false, Some(&group), 0).create("b", false, Some(&group), 1).gone("a", 2);
    assert_eq!(audit.found(), [""; 0]);
    assert_eq!(audit.0.incomplete(), [Uid::from("b")]);
    assert_eq!(audit.schedule("b", 3).found(), ["gangDeleted: 1 create"], "it was bound without its gang");
    assert!(audit.is_empty());
}

#[test]
fn a_gang_that_joins_another_group_takes_along_what_is_known_of_it() {
    let (alone, together) = (gang("ns/g", false), gang("ns/g,ns/h", true));
    let mut audit = Audit::default();
    audit.create("a", false, Some(&alone), 0).create("b", false, Some(&alone), 0);
    audit.0.tried("ns/g");
    audit.evict("a", &["v"], 1);
    audit.change("a", false, Some(&together), 2).change("b", false, Some(&together), 2);
    assert_eq!(audit.gone("v", 4).found(), ["preemption 3s, 0 retries: complete"]);
    audit.gone("a", 5).gone("b", 5);
    assert!(audit.found().contains(&"gangDeleted: 1 gangMinMemberSatisfied".to_owned()));
    assert!(audit.is_empty());
    // One pod changes to a group that is known.
    audit.create("a", false, Some(&alone), 6).create("b", false, Some(&together), 6);
    audit.change("a", false, Some(&together), 7).gone("b", 8);
    assert_eq!(audit.found(), [""; 0]);
    assert_eq!(audit.0.audited.len(), 1);
}

#[test]
fn labels_are_those_of_the_first_pod() {
    let group = gang("ns/g", true);
    let mut audit = Audit::default();
    audit.create("a", false, Some(&group), 0).create("b", false, Some(&group), 1).gone("a", 2).gone("b", 3);
    let reports = audit.0.take_reports();
    assert!(reports.iter().all(|report| *report.labels == ["a".to_owned()]));
    assert_eq!(reports[0].workload.to_string(), "gang group ns/g");
}

#[test]
fn what_is_above_a_limit_is_worth_a_warning() {
    let (limits, seconds) = (Limits::default(), Duration::from_secs);
    let ended = |lasted, retries, is_complete, by| Finding::PreemptionEnded {
        lasted: seconds(lasted),
        retries,
        is_complete,
        by,
    };
    let interval = |lasted| Finding::Interval { lasted: seconds(lasted), until: Event::Scheduled };
    let tried = |after| Finding::Rescheduled { after: seconds(after), by: Event::Scheduled };
    for (finding, warnings) in [
        (Finding::PreemptedAgain(2), vec!["pods were evicted for it 2 times"]),
        (Finding::PreemptionInvalidated(Event::PreemptFailure), vec!["could not use that: preemptFailure"]),
        (tried(10), vec![]),
        (tried(11), vec!["it was tried 11s after its victims were gone, more than 10s: scheduled"]),
        (ended(30, 3, true, Some(Event::VictimAllDeleted)), vec![]),
        (ended(31, 3, true, Some(Event::VictimAllDeleted)), vec!["its victims were gone after 31s, more than 30s"]),
        (
            ended(31, 4, false, Some(Event::Scheduled)),
            vec!["it was tried 4 times while its victims left, more than 3", "its victims were not gone after 31s"],
        ),
        (ended(31, 4, false, None), vec![]),
        (interval(300), vec![]),
        (interval(301), vec!["nothing happened for 301s, more than 300s, until scheduled"]),
    ] {
        let found = limits.warnings(&finding);
        let is_said = found.iter().zip(&warnings).all(|(found, warning)| found.contains(warning));
        assert!(found.len() == warnings.len() && is_said, "{finding:?}: {found:?}");
    }
}

#[test]
fn workloads_that_are_gone_are_forgotten_whatever_happens() {
    const PODS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let groups = [None, Some(("g", true)), Some(("g", false)), Some(("g,h", true))];
    for seed in 0..500 {
        let (random, mut audit) = (Random::seeded(seed), Audit::default());
        for second in 0..60 {
            let name = PODS[random.below(5) as usize];
            let group = groups[random.below(4) as usize].map(|(name, has_enough_pods)| gang(name, has_enough_pods));
            let (is_gated, other) = (random.below(2) == 0, PODS[random.below(5) as usize]);
            match random.below(8) {
                0 | 1 if !audit.0.knows(&Uid::from(name)) => {
                    audit.create(name, is_gated, group.as_ref(), second);
                }
                0..=2 => _ = audit.change(name, is_gated, group.as_ref(), second),
                3 => _ = audit.evict(name, &[other], second),
                4 => {
                    let group = if is_gated { "g" } else { "g,h" };
                    audit.0.tried(group);
                    audit.refuse(name, Event::PreemptFailure, second);
                    let end = [None, Some(Event::Scheduled), Some(Event::GangAllPodsAlreadyAttempted)];
                    audit.0.tried_no_more(group, end[random.below(3) as usize], at(second));
                }
                5 => _ = audit.schedule(name, second),
                6 => audit.0.stays(&Uid::from(other)),
                _ => _ = audit.gone(name, second),
            }
            assert!(audit.0.audited.values().all(|audited| !audited.pods.is_empty()), "seed {seed}");
        }
        for name in PODS {
            audit.gone(name, 60);
        }
        assert!(audit.is_empty(), "seed {seed}: {:?}", audit.0);
        let reports = audit.0.take_reports();
        let mut creations = reports.iter().filter_map(|report| match report.finding {
            Finding::Ended { event: Event::Create, times, .. } => Some(times),
            _ => None,
        });
        assert!(creations.all(|times| times == 1), "seed {seed}: a workload is created once");
    }
}
