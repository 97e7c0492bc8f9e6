use koord_koordlet_system::RecordedTree;
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    outcome::NoteKind,
    testing::{Fixture, constraints, notes},
};

const FEATURES: &str = "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY NO_ID_ABSOLUTE_EXPEL\n";
const FEATURES_FILE: &str = "/sys/kernel/debug/sched_features";

fn files(features: &str) -> RecordedTree {
    let numbers = [
        "/proc/sys/vm/min_free_kbytes",
        "/proc/sys/vm/watermark_scale_factor",
        "/sys/kernel/mm/memcg_reaper/reap_background",
        "/sys/kernel/mm/pagecache_limit/enabled",
        "/proc/sys/kernel/sched_group_identity_enabled",
        "/proc/sys/kernel/sched_idle_saver_wmark",
    ];
    numbers.map(|path| (path, "0\n")).into_iter().chain([(FEATURES_FILE, features)]).collect()
}

fn fixture(strategy: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::SystemConfig);
    fixture.files = files(FEATURES);
    fixture.slo(&json!({"systemStrategy": strategy}));
    fixture
}

fn named_files(outcome: &Outcome) -> Vec<(String, i64)> {
    let amount = |constraint: &Constraint| (constraint.target.to_string(), constraint.value.amount().unwrap());
    constraints(outcome).iter().map(amount).collect()
}

#[test]
fn parameters_are_written_within_their_ranges() {
    for (strategy, expected) in [
        // 16 GiB are 16777216 kB.
        (json!({"minFreeKbytesFactor": 100}), Some(("/proc/sys/vm/min_free_kbytes", 167_772))),
        (json!({"minFreeKbytesFactor": 9000}), None),
        (json!({"minFreeKbytesFactor": 1}), None),
        (json!({"watermarkScaleFactor": 400}), Some(("/proc/sys/vm/watermark_scale_factor", 400))),
        (json!({"watermarkScaleFactor": 5}), None),
        (json!({"memcgReapBackGround": 1}), Some(("/sys/kernel/mm/memcg_reaper/reap_background", 1))),
        (json!({"pageCacheLimitEnabled": 1}), Some(("/sys/kernel/mm/pagecache_limit/enabled", 1))),
        (json!({"pageCacheLimitEnabled": 2}), None),
        (json!({"schedGroupIdentityEnabled": 0}), Some(("/proc/sys/kernel/sched_group_identity_enabled", 0))),
        (json!({"schedIdleSaverWmark": 100}), Some(("/proc/sys/kernel/sched_idle_saver_wmark", 100))),
    ] {
        let outcome = SystemConfig::default().run(&fixture(&strategy).input());
        let expected: Vec<(String, i64)> = expected.iter().map(|(path, value)| ((*path).to_owned(), *value)).collect();
        assert_eq!(named_files(&outcome), expected, "{strategy}");
        assert_eq!(notes(&outcome).iter().filter(|note| note.kind == NoteKind::Invalid).count(), 1 - expected.len());
    }
}

#[test]
fn files_that_a_kernel_lacks_are_noted() {
    let mut fixture =
        fixture(&json!({"memcgReapBackGround": 1, "minFreeKbytesFactor": 100, "schedFeatures": {"LAST_BUDDY": false}}));
    fixture.files = [("/proc/sys/vm/min_free_kbytes", "0\n")].into_iter().collect();
    let outcome = SystemConfig::default().run(&fixture.input());
    assert_eq!(named_files(&outcome).len(), 1);
    assert!(notes(&outcome).iter().all(|note| note.kind == NoteKind::Degraded) && notes(&outcome).len() == 2);
    assert!(outcome.writes.is_empty());
}

#[test]
fn settings_take_effect_when_they_change() {
    let mut fixture = fixture(&json!({"watermarkScaleFactor": 20}));
    let mut strategy = SystemConfig::default();
    assert_eq!(named_files(&strategy.run(&fixture.input()))[0].1, 20);
    assert!(strategy.run(&fixture.input()).constraints.is_none());
    fixture.slo(&json!({"systemStrategy": {"watermarkScaleFactor": 30}}));
    assert_eq!(named_files(&strategy.run(&fixture.input()))[0].1, 30);
}

#[test]
fn features_of_the_scheduler_are_switched_when_their_state_is_another_one() {
    let rounds = |features: Json| {
        let mut fixture = fixture(&json!({"schedFeatures": features}));
        let mut strategy = SystemConfig::default();
        let mut written = Vec::new();
        for _ in 0..4 {
            for write in strategy.run(&fixture.input()).writes {
                assert_eq!(write.path.to_str(), Some(FEATURES_FILE));
                // A plain file holds the last text.
                fixture.files = files(&write.text);
                written.push(write.text);
            }
        }
        written
    };
    assert_eq!(rounds(json!({"LAST_BUDDY": true, "NEXT_BUDDY": false})), [""; 0]);
    // A feature that the file does not list is tried once.
    assert_eq!(rounds(json!({"LAST_BUDDY": false, "NEXT_BUDDY": false})), ["NO_LAST_BUDDY", "NO_NEXT_BUDDY"]);
    assert_eq!(rounds(json!({"ID_ABSOLUTE_EXPEL": true, "START_DEBIT": true})), ["ID_ABSOLUTE_EXPEL", "START_DEBIT"]);
}
