use koord_scheduler_testing::{labels, node};
use serde_json::json;

use crate::{
    VolumeZone,
    volumes::testing::{answers, cluster, with_claims},
};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";

#[test]
fn a_node_is_where_the_volume_is() {
    let of = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    };
    for (what, volume, of_node, fits) in [
        ("a volume without a place", &[][..], &[(ZONE, "a")][..], true),
        ("a node without a place", &[(ZONE, "a")], &[("rack", "7")], true),
        ("the zone", &[(ZONE, "a")], &[(ZONE, "a")], true),
        ("another zone", &[(ZONE, "a")], &[(ZONE, "b")], false),
        ("the region", &[(REGION, "r")], &[(REGION, "r")], true),
        ("another region", &[(REGION, "r")], &[(REGION, "s")], false),
        ("the zone by its old name", &[(OLD_ZONE, "a")], &[(OLD_ZONE, "a")], true),
        ("another zone by its old name", &[(OLD_ZONE, "a")], &[(OLD_ZONE, "b")], false),
        ("the region by its old name", &[(OLD_REGION, "r")], &[(OLD_REGION, "r")], true),
        ("another region by its old name", &[(OLD_REGION, "r")], &[(OLD_REGION, "s")], false),
        ("zone and region, and a node with a zone alone", &[(ZONE, "a"), (REGION, "r")], &[(ZONE, "a")], false),
        ("zone and region", &[(ZONE, "a"), (REGION, "r")], &[(ZONE, "a"), (REGION, "r")], true),
        ("the node has the old name alone", &[(ZONE, "a")], &[(OLD_ZONE, "a")], false),
        ("the volume has the old name alone", &[(OLD_ZONE, "a")], &[(ZONE, "a")], true),
        ("the volume has the old name alone, of another zone", &[(OLD_ZONE, "a")], &[(ZONE, "b")], false),
        // Volumes of several zones.
        ("one of several zones", &[(ZONE, "a__b__c")], &[(ZONE, "b")], true),
        ("none of several zones", &[(ZONE, "a__b__c")], &[(ZONE, "d")], false),
        ("one of several zones by the old name", &[(OLD_ZONE, "a__b")], &[(OLD_ZONE, "b")], true),
        ("none of several zones by the old name", &[(OLD_ZONE, "a__b")], &[(OLD_ZONE, "c")], false),
        ("a node without a place, of several", &[(ZONE, "a__b")], &[], true),
    ] {
        let nodes = [node("n", &json!({"metadata": {"labels": labels(&of(of_node))}}))];
        let volume = json!({"metadata": {"labels": labels(&of(volume))}});
        let claim = json!({"spec": {"volumeName": "v"}});
        let mut cluster = cluster(&VolumeZone, &nodes, &[("claim", "c", claim), ("volume", "v", volume)]);
        let expected = if fits { "" } else { "UU node(s) had no available volume zone" };
        assert_eq!(answers(&VolumeZone, &mut cluster, &with_claims(&["c"])), [expected], "{what}");
        assert_eq!(answers(&VolumeZone, &mut cluster, &json!({})), [""], "{what}: without volumes");
    }
}

#[test]
fn a_claim_without_a_volume_waits_for_one_or_for_its_pod() {
    let unbound = |class: serde_json::Value| json!({"spec": {"storageClassName": class}});
    let classless = "Unresolvable: PersistentVolumeClaim had no pv name and storageClass name";
    for (what, claim, expected) in [
        ("no class", unbound(json!(null)), classless),
        ("an empty class", unbound(json!("")), classless),
        (
            "a class that does not exist",
            unbound(json!("none")),
            r#"Unresolvable: storageclass.storage.k8s.io "none" not found"#,
        ),
        ("a class that binds at once", unbound(json!("now")), "Unresolvable: PersistentVolume had no name"),
        ("a class that waits", unbound(json!("later")), ""),
    ] {
        let class = |mode: &str| json!({"provisioner": "p", "volumeBindingMode": mode});
        let objects = [
            ("claim", "c", claim),
            ("class", "now", class("Immediate")),
            ("class", "later", class("WaitForFirstConsumer")),
        ];
        let nodes = [node("n", &json!({"metadata": {"labels": {ZONE: "a"}}}))];
        let mut cluster = cluster(&VolumeZone, &nodes, &objects);
        assert_eq!(answers(&VolumeZone, &mut cluster, &with_claims(&["c"])), [expected], "{what}");
    }
}
