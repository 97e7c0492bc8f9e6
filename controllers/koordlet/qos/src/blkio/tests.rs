use koord_koordlet_system::{CommandOutput, Disks, Layout, Version};
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    outcome::NoteKind,
    testing::{Fixture, FixtureDisks, LAYOUT, constraints, container, notes},
};

fn disks() -> Disks {
    Disks::of_commands(CommandOutput {
        lsblk: "NAME=\"vda\" TYPE=\"disk\" MAJ:MIN=\"253:0\"\nNAME=\"vda1\" TYPE=\"part\" MAJ:MIN=\"253:1\"\nNAME=\"vdb\" TYPE=\"disk\" MAJ:MIN=\"253:16\"\n",
        vgs: "  yoda-pool0   1 /dev/vdb\n",
        findmnt: "TARGET=\"/kubelet/pods/uid-ls-1/volumes/kubernetes.io~csi/pv-1/mount\" SOURCE=\"/dev/vdb\"\n",
        ..CommandOutput::default()
    })
}

fn fixture(qos: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::BlkIoReconcile);
    fixture.slo(&json!({"resourceQOSStrategy": qos}));
    fixture.disks = Some(FixtureDisks(disks()));
    fixture
}

fn be(blocks: &Json) -> Json {
    json!({"beClass": {"blkioQOS": {"enable": true, "blocks": blocks}}})
}

fn run(fixture: &Fixture) -> Outcome {
    BlkIo::default().run(&fixture.input())
}

/// File and line of everything that is wanted.
fn lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let line = |constraint: &Constraint| match &constraint.target {
        Target::Disk { resource, .. } => (resource.name(), constraint.value.to_string()),
        target => panic!("{target}"),
    };
    constraints(outcome).iter().map(line).collect()
}

fn rows(rows: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    rows.iter().map(|(file, line)| (*file, (*line).to_owned())).collect()
}

#[test]
fn limits_of_be_pods_are_those_of_the_disk_behind_the_name() {
    let everything =
        json!({"ioWeightPercent": 60, "readBPS": 1_048_576, "readIOPS": 100, "writeBPS": 2_097_152, "writeIOPS": 200});
    for (block, expected) in [
        (
            json!({"type": "device", "name": "/dev/vda", "ioCfg": everything}),
            vec![
                ("blkio.throttle.read_iops_device", "253:0 100"),
                ("blkio.throttle.write_iops_device", "253:0 200"),
                ("blkio.throttle.read_bps_device", "253:0 1048576"),
                ("blkio.throttle.write_bps_device", "253:0 2097152"),
                ("blkio.cost.weight", "253:0 60"),
            ],
        ),
        (
            json!({"type": "device", "name": "/dev/vda1", "ioCfg": {"readIOPS": 50}}),
            vec![("blkio.throttle.read_iops_device", "253:0 50"), ("blkio.cost.weight", "253:0 100")],
        ),
        (
            json!({"type": "volumegroup", "name": "yoda-pool0", "ioCfg": {"writeBPS": 1_048_576}}),
            vec![("blkio.throttle.write_bps_device", "253:16 1048576"), ("blkio.cost.weight", "253:16 100")],
        ),
        (json!({"type": "device", "name": "/dev/vdz", "ioCfg": {"readIOPS": 50}}), vec![]),
    ] {
        let fixture = fixture(&be(&json!([block])));
        let outcome = run(&fixture);
        assert_eq!(lines(&outcome), rows(&expected), "{block}");
        assert_eq!(notes(&outcome).len(), usize::from(expected.is_empty()));
    }
}

#[test]
fn limits_of_disks_that_are_not_configured_are_removed() {
    let mut fixture = fixture(&be(&json!([{"type": "device", "name": "/dev/vda", "ioCfg": {"readIOPS": 100}}])));
    let root = LAYOUT.qos(QosFolder::BestEffort);
    fixture.kernel.set_text(&root, Resource::BlkioReadIops, "253:16 500\n");
    fixture.kernel.set_text(&root, Resource::BlkioWeight, "default 100\n253:16 50\n");
    let expected = [
        ("blkio.throttle.read_iops_device", "253:0 100"),
        ("blkio.cost.weight", "253:0 100"),
        ("blkio.throttle.read_iops_device", "253:16 0"),
        ("blkio.cost.weight", "253:16 100"),
    ];
    assert_eq!(lines(&run(&fixture)), rows(&expected));
    fixture.slo(&json!({}));
    assert_eq!(lines(&run(&fixture)), rows(&expected[2..]), "a disabled class removes all");
}

#[test]
fn limits_of_a_pod_are_in_its_annotation() {
    let annotated =
        |text: &str, label: Json| json!({"labels": label, "annotations": {"koordinator.sh/blkioQOS": text}});
    let ls = json!({"koordinator.sh/qosClass": "LS"});
    let spec = json!({
        "containers": container(&json!({}), &json!({})),
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "other", "persistentVolumeClaim": {"claimName": "unknown"}}],
    });
    let device = r#"{"blocks":[{"name":"/dev/vda","type":"device","ioCfg":{"readBPS":1048576}}]}"#;
    let volume = r#"{"blocks":[{"name":"data","type":"podvolume","ioCfg":{"writeIOPS":10}}]}"#;
    let unknown = r#"{"blocks":[{"name":"other","type":"podvolume","ioCfg":{"writeIOPS":10}}]}"#;
    for (name, meta, phase, existing, expected) in [
        (
            "a disk",
            annotated(device, ls.clone()),
            "Running",
            "",
            vec![("blkio.throttle.read_bps_device", "253:0 1048576"), ("blkio.cost.weight", "253:0 100")],
        ),
        (
            "a volume",
            annotated(volume, ls.clone()),
            "Running",
            "",
            vec![("blkio.throttle.write_iops_device", "253:16 10"), ("blkio.cost.weight", "253:16 100")],
        ),
        ("an unknown volume", annotated(unknown, ls.clone()), "Running", "", vec![]),
        ("without a label", annotated(device, json!({})), "Running", "", vec![]),
        ("not running", annotated(device, ls.clone()), "Pending", "", vec![]),
        ("malformed", annotated("{", ls.clone()), "Running", "253:0 1000", vec![]),
        (
            "an empty annotation removes",
            annotated("", ls.clone()),
            "Running",
            "253:0 1000",
            vec![("blkio.throttle.read_bps_device", "253:0 0"), ("blkio.cost.weight", "253:0 100")],
        ),
    ] {
        let mut fixture = fixture(&json!({}));
        fixture.any_pod("ls-1", "Burstable", &meta, &spec, phase);
        let cgroup = fixture.cgroup("ls-1");
        fixture.kernel.set_text(&cgroup, Resource::BlkioReadBps, existing);
        let outcome = run(&fixture);
        assert_eq!(lines(&outcome), rows(&expected), "{name}");
        let is_noted = matches!(name, "an unknown volume" | "malformed");
        assert_eq!(notes(&outcome).len(), usize::from(is_noted), "{name}");
    }
}

#[test]
fn the_cost_model_of_the_root_is_written_where_it_differs() {
    let model = json!({
        "enableUserModel": true, "modelReadBPS": 1, "modelReadRandIOPS": 5, "modelReadSeqIOPS": 3,
        "modelWriteBPS": 2, "modelWriteRandIOPS": 6, "modelWriteSeqIOPS": 4
    });
    let root = |blocks: Json| json!({"cgroupRoot": {"blkioQOS": {"enable": true, "blocks": blocks}}});
    let mut fixture = fixture(&root(json!([{"type": "device", "name": "/dev/vda", "ioCfg": model}])));
    let expected = [
        ("blkio.cost.qos", "253:0 enable=1 ctrl=user rpct=95 rlat=3000 wpct=95 wlat=3000"),
        ("blkio.cost.model", "253:0 ctrl=user rbps=1 rseqiops=3 rrandiops=5 wbps=2 wseqiops=4 wrandiops=6"),
    ];
    assert_eq!(lines(&run(&fixture)), rows(&expected));
    let shown = "253:0 enable=1 ctrl=user rpct=95.00 rlat=3000 wpct=95.00 wlat=3000 min=1.00 max=10000.00\n";
    fixture.kernel.set_text(&CgroupPath::root(), Resource::BlkioCostQos, shown);
    assert_eq!(lines(&run(&fixture)), rows(&expected[1..]), "what the kernel shows is what is meant");
    fixture.slo(&json!({"resourceQOSStrategy": {"cgroupRoot": {"blkioQOS": {"enable": false}}}}));
    assert_eq!(lines(&run(&fixture)), rows(&[("blkio.cost.qos", "253:0 enable=0")]));
}

#[test]
fn other_classes_and_other_kernels_are_noted() {
    let block = json!([{"type": "device", "name": "/dev/vda", "ioCfg": {"readIOPS": 1}}]);
    let class = json!({"blkioQOS": {"enable": true, "blocks": block}});
    let ls = fixture(&json!({"lsClass": class, "lsrClass": class}));
    let outcome = run(&ls);
    assert!(lines(&outcome).is_empty() && notes(&outcome).len() == 2);
    let mut v2 = Fixture::with_layout(Feature::BlkIoReconcile, Layout { version: Version::V2, ..LAYOUT });
    v2.disks = Some(FixtureDisks(disks()));
    v2.slo(&json!({"resourceQOSStrategy": {"beClass": class}}));
    let outcome = run(&v2);
    assert!(lines(&outcome).is_empty());
    assert_eq!(notes(&outcome)[0].kind, NoteKind::Degraded);
}

#[test]
fn a_file_that_the_kernel_lacks_is_left_out_with_a_note() {
    let block = json!([{"type": "device", "name": "/dev/vda", "ioCfg": {"readIOPS": 7, "ioWeightPercent": 60}}]);
    let mut fixture = fixture(&be(&block));
    fixture.kernel.lack(Resource::BlkioWeight);
    let outcome = run(&fixture);
    assert_eq!(lines(&outcome), rows(&[("blkio.throttle.read_iops_device", "253:0 7")]));
    assert!(notes(&outcome)[0].reason.contains("this kernel has no blkio.cost.weight"));
}

#[test]
fn files_are_looked_at_when_objects_change_and_once_a_minute() {
    let mut fixture = fixture(&json!({}));
    let mut strategy = BlkIo::default();
    let mut looks = Vec::new();
    for second in 0..130 {
        if strategy.run(&fixture.input()).constraints.is_some() {
            looks.push(second);
        }
        fixture.advance(1);
    }
    assert_eq!(looks, [0, 60, 120]);
}
