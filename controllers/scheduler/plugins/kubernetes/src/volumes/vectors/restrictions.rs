use koord_scheduler_testing::node;
use serde_json::{Value, json};

use crate::{
    VolumeRestrictions,
    volumes::testing::{answers, cluster, merged, place, with_claims},
};

const NO_DISK: &str = "U node(s) had no available disk";
const IN_USE: &str = "U node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

fn of(source: &Value) -> Value {
    json!({"volumes": [merged(json!({"name": "v"}), source)]})
}

#[test]
fn a_disk_that_cannot_be_shared() {
    let gce = |name: &str, read_only: bool| json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
    let aws = |name: &str, read_only: bool| json!({"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}});
    let rbd = |monitors: &[&str], pool: &str, image: &str, read_only: bool| json!({"rbd": {"monitors": monitors, "pool": pool, "image": image, "readOnly": read_only}});
    let iscsi = |iqn: &str, lun: i32, read_only: bool| json!({"iscsi": {"targetPortal": "10.1.0.9", "iqn": iqn, "lun": lun, "readOnly": read_only}});
    let empty = json!({"emptyDir": {}});
    for (what, there, requested, fits) in [
        ("nothing is there", &empty, gce("d", false), true),
        ("nothing is wanted", &gce("d", false), empty.clone(), true),
        ("the same of GCE", &gce("d", false), gce("d", false), false),
        ("another of GCE", &gce("d", false), gce("e", false), true),
        ("the same of GCE, one reads", &gce("d", true), gce("d", false), false),
        ("the same of GCE, both read", &gce("d", true), gce("d", true), true),
        ("the same of AWS", &aws("d", false), aws("d", false), false),
        ("another of AWS", &aws("d", false), aws("e", false), true),
        ("the same of AWS, both read", &aws("d", true), aws("d", true), false),
        ("the same of RBD", &rbd(&["m1", "m2"], "p", "i", false), rbd(&["m2", "m3"], "p", "i", false), false),
        ("the same of RBD, both read", &rbd(&["m1"], "p", "i", true), rbd(&["m1"], "p", "i", true), true),
        ("the same of RBD, one reads", &rbd(&["m1"], "p", "i", true), rbd(&["m1"], "p", "i", false), false),
        ("another monitor", &rbd(&["m1"], "p", "i", false), rbd(&["m2"], "p", "i", false), true),
        ("another pool", &rbd(&["m1"], "p", "i", false), rbd(&["m1"], "q", "i", false), true),
        ("another image", &rbd(&["m1"], "p", "i", false), rbd(&["m1"], "p", "j", false), true),
        ("the same of iSCSI", &iscsi("iqn.d", 0, false), iscsi("iqn.d", 0, false), false),
        ("another number of the same of iSCSI", &iscsi("iqn.d", 0, false), iscsi("iqn.d", 1, false), false),
        ("the same of iSCSI, both read", &iscsi("iqn.d", 0, true), iscsi("iqn.d", 0, true), true),
        ("another of iSCSI", &iscsi("iqn.d", 0, false), iscsi("iqn.e", 0, false), true),
    ] {
        let mut cluster = cluster(&VolumeRestrictions, &[node("n", &json!({}))], &[]);
        place(&mut cluster, "there", "n", &of(there));
        let expected = if fits { "" } else { NO_DISK };
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &of(&requested)), [expected], "{what}");
    }
}

#[test]
fn a_claim_of_one_pod() {
    let modes = |mode: &str| json!({"spec": {"accessModes": [mode]}});
    for (what, there, requested, expected) in [
        ("nobody has it", vec![], vec!["once"], ["", ""]),
        ("several may have it", vec!["many"], vec!["many"], ["", ""]),
        ("one may have it", vec!["once"], vec!["once"], [IN_USE, IN_USE]),
        ("one of two", vec!["once", "many"], vec!["many", "once"], [IN_USE, IN_USE]),
        ("two of two", vec!["once", "twice"], vec!["twice", "once"], [IN_USE, IN_USE]),
        ("another one", vec!["once"], vec!["twice"], ["", ""]),
    ] {
        let claims = [
            ("claim", "once", modes("ReadWriteOncePod")),
            ("claim", "twice", modes("ReadWriteOncePod")),
            ("claim", "many", modes("ReadWriteOnce")),
        ];
        let nodes = ["a", "b"].map(|name| node(name, &json!({})));
        let mut cluster = cluster(&VolumeRestrictions, &nodes, &claims);
        place(&mut cluster, "there", "a", &with_claims(&there));
        assert_eq!(answers(&VolumeRestrictions, &mut cluster, &with_claims(&requested)), expected, "{what}");
    }
    let mut cluster = cluster(&VolumeRestrictions, &[node("a", &json!({}))], &[]);
    let missing = r#"Unresolvable: persistentvolumeclaim "once" not found"#;
    assert_eq!(answers(&VolumeRestrictions, &mut cluster, &with_claims(&["once"])), [missing]);
}
