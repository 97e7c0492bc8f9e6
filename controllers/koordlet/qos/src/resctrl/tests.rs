use koord_koordlet_system::{
    RecordedTree,
    resctrl::{CacheMask, Vendor},
};
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    outcome::NoteKind,
    testing::{Fixture, class, container, notes},
};

fn fixture(vendor: Vendor, mask: &str, qos: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::RdtResctrl);
    fixture.slo(&json!({"resourceQOSStrategy": qos}));
    let cache = CacheMask::parse(mask.as_bytes()).ok();
    fixture.resctrl = Some(Resctrl { vendor, cache });
    fixture
}

type Shares = Vec<(String, Option<u64>, Option<u64>)>;

fn shares(outcome: &Outcome) -> Shares {
    let groups = outcome.groups.iter().flatten();
    groups.map(|group| (group.name.to_string(), group.l3, group.bandwidth)).collect()
}

fn enabled(config: &Json) -> Json {
    let mut config = config.clone();
    config["enable"] = json!(true);
    json!({"resctrlQOS": config})
}

fn row(name: &str, l3: u64, bandwidth: u64) -> (String, Option<u64>, Option<u64>) {
    (name.to_owned(), Some(l3), Some(bandwidth))
}

#[test]
fn classes_share_the_cache_and_the_bandwidth() {
    let on = enabled(&json!({}));
    let all = json!({"lsrClass": on, "lsClass": on, "beClass": on});
    let amd = json!({
        "lsrClass": enabled(&json!({"mbaPercent": 100})), "lsClass": enabled(&json!({"mbaPercent": 50})), "beClass": enabled(&json!({"mbaPercent": 30}))
    });
    let ranges = json!({
        "lsClass": enabled(&json!({"catRangeStartPercent": 15, "catRangeEndPercent": 95})),
        "beClass": enabled(&json!({"catRangeStartPercent": 0, "catRangeEndPercent": 33})),
    });
    let disabled = json!({"beClass": {"resctrlQOS": {"enable": false, "catRangeEndPercent": 20}}});
    for (name, vendor, mask, qos, expected) in [
        ("defaults", Vendor::Intel, "7ff", all, [row("LSR", 0x7ff, 100), row("LS", 0x7ff, 100), row("BE", 0xf, 100)]),
        ("AMD", Vendor::Amd, "7ff", amd, [row("LSR", 0x7ff, 2048), row("LS", 0x7ff, 80), row("BE", 0xf, 48)]),
        (
            "ranges",
            Vendor::Intel,
            "fffff",
            ranges,
            [row("LSR", 0xf_ffff, 100), row("LS", 0x7_fff8, 100), row("BE", 0x7f, 100)],
        ),
        (
            "disabled",
            Vendor::Intel,
            "7ff",
            disabled,
            [row("LSR", 0x7ff, 100), row("LS", 0x7ff, 100), row("BE", 0x7ff, 100)],
        ),
        (
            "no section",
            Vendor::Intel,
            "7ff",
            json!({}),
            [row("LSR", 0x7ff, 100), row("LS", 0x7ff, 100), row("BE", 0x7ff, 100)],
        ),
    ] {
        let fixture = fixture(vendor, mask, &qos);
        let outcome = ResctrlReconcile::default().run(&fixture.input());
        assert_eq!(shares(&outcome), expected, "{name}");
        assert!(notes(&outcome).is_empty());
    }
}

#[test]
fn a_share_that_makes_no_sense_is_left_out_with_a_note() {
    let fixture = fixture(
        Vendor::Intel,
        "7ff",
        &json!({
            "lsClass": enabled(&json!({"catRangeStartPercent": 50, "catRangeEndPercent": 50, "mbaPercent": 50})),
            "beClass": enabled(&json!({"catRangeStartPercent": 60, "catRangeEndPercent": 30, "mbaPercent": 0})),
        }),
    );
    let outcome = ResctrlReconcile::default().run(&fixture.input());
    assert_eq!(shares(&outcome), [row("LSR", 0x7ff, 100), ("LS".into(), None, Some(50)), ("BE".into(), None, None)]);
    assert_eq!(notes(&outcome).len(), 3);
}

#[test]
fn a_mask_with_a_gap_leaves_the_cache_alone() {
    let fixture = fixture(Vendor::Intel, "7fd", &json!({}));
    let outcome = ResctrlReconcile::default().run(&fixture.input());
    assert!(shares(&outcome).iter().all(|(_, l3, bandwidth)| l3.is_none() && *bandwidth == Some(100)));
    assert!(notes(&outcome).iter().all(|note| note.kind == NoteKind::Degraded));
}

#[test]
fn a_machine_without_resctrl_is_noted_where_a_class_is_enabled() {
    let mut fixture = fixture(Vendor::Intel, "7ff", &json!({"beClass": enabled(&json!({}))}));
    fixture.resctrl = None;
    let outcome = ResctrlReconcile::default().run(&fixture.input());
    assert!(shares(&outcome).is_empty() && notes(&outcome).len() == 1);
    fixture.slo(&json!({}));
    assert!(notes(&ResctrlReconcile::default().run(&fixture.input())).is_empty());
}

/// In the original, the files are written every second although they are right.
#[test]
fn nothing_is_named_again_until_something_changes() {
    let mut fixture = fixture(Vendor::Intel, "7ff", &json!({}));
    let mut strategy = ResctrlReconcile::default();
    assert!(strategy.run(&fixture.input()).groups.is_some());
    assert!(strategy.run(&fixture.input()).groups.is_none());
    fixture.slo(&json!({"resourceQOSStrategy": {"beClass": enabled(&json!({}))}}));
    assert!(strategy.run(&fixture.input()).groups.is_some());
}

#[test]
fn tasks_of_containers_and_the_sandbox_that_a_group_lacks_are_added() {
    let on = enabled(&json!({}));
    let mut fixture = fixture(Vendor::Intel, "7ff", &json!({"lsClass": on, "beClass": on}));
    let none = container(&json!({}), &json!({}));
    for (name, class_name) in [("be-1", "BE"), ("ls-1", "LS"), ("lse-1", "LSE"), ("sys-1", "SYSTEM")] {
        fixture.pod(name, "Burstable", &class(class_name), None, &none);
    }
    let own =
        json!({"labels": {"koordinator.sh/qosClass": "BE"}, "annotations": {"node.koordinator.sh/resctrl": "{}"}});
    fixture.pod("be-own", "BestEffort", &own, None, &none);
    for (pod, tasks) in
        [("be-1", "301\n302\n"), ("ls-1", "201\n"), ("lse-1", "101\n"), ("sys-1", "501\n"), ("be-own", "401\n")]
    {
        let cgroup = fixture.container(pod, "main");
        fixture.kernel.set_text(&cgroup, Resource::Threads, tasks);
    }
    let sandbox = fixture.cgroup("be-1").child("sandbox");
    fixture.kernel.set_text(&sandbox, Resource::Threads, "309\n");
    fixture.files = [("/sys/fs/resctrl/BE/tasks", "301\n")].into_iter().collect::<RecordedTree>();
    let mut strategy = ResctrlReconcile::default();
    let tasks =
        |outcome: Outcome| -> Vec<Vec<u32>> { outcome.groups.unwrap().into_iter().map(|group| group.tasks).collect() };
    let outcome = strategy.run(&fixture.input());
    assert_eq!(tasks(outcome), [vec![], vec![201], vec![302, 309]], "class LSR is disabled");

    fixture.files = [("/sys/fs/resctrl/BE/tasks", "301\n302\n309\n"), ("/sys/fs/resctrl/LS/tasks", "201\n")]
        .into_iter()
        .collect::<RecordedTree>();
    assert!(strategy.run(&fixture.input()).groups.is_none(), "all tasks are in their groups");
    fixture.kernel.set_text(&sandbox, Resource::Threads, "309\n310\n");
    let outcome = strategy.run(&fixture.input());
    assert_eq!(tasks(outcome), [vec![], vec![], vec![310]], "tasks begin without a change of any object");
}
