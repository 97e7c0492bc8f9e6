use koord_config::scheduler::VolumeBindingArgs;
use koord_scheduler_testing::node;
use serde_json::{Value, json};

use crate::{
    VolumeBinding,
    volumes::testing::{answers, cluster, merged, with_claims},
};

const OUT_OF_REACH: &str = "UU node(s) didn't match PersistentVolume's node affinity";
const NOTHING: &str = "UU node(s) didn't find available persistent volumes to bind";
const NO_VOLUME: &str = "UU node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const NO_SPACE: &str = "UU node(s) did not have enough free storage";
const UNBOUND: &str = "Unresolvable: pod has unbound immediate PersistentVolumeClaims";

type Objects<'a> = Vec<(&'a str, &'a str, Value)>;

fn filter_answers(objects: &Objects<'_>, spec: &Value) -> Vec<String> {
    let plugin = VolumeBinding::new(&VolumeBindingArgs { bind_timeout_seconds: 60 });
    let nodes = ["a", "b"].map(|name| node(name, &json!({"metadata": {"labels": {"host": name}}})));
    answers(&plugin, &mut cluster(&plugin, &nodes, objects), spec)
}

/// A volume of such a size that the nodes with this label reach.
fn volume(size: &str, host: &str) -> Value {
    let test = json!({"key": "host", "operator": "In", "values": [host]});
    json!({
        "spec": {
            "storageClassName": "later", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}},
        },
        "status": {"phase": "Available"},
    })
}

/// A volume that is bound to a claim.
fn taken(claim: &str, class: &str, host: &str) -> Value {
    let spec = json!({"storageClassName": class, "claimRef": {"namespace": "ns", "name": claim}});
    merged(volume("9Gi", host), &json!({"spec": spec, "status": {"phase": "Bound"}}))
}

/// A claim of a class that wants so much.
fn claim(class: &str, size: &str) -> Value {
    let resources = json!({"requests": {"storage": size}});
    json!({"spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": resources}})
}

/// A claim that is bound to a volume.
fn bound(class: &str, volume: &str) -> Value {
    let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
    merged(claim(class, "1Gi"), &json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}))
}

fn class(provisioner: &str, mode: &str) -> Value {
    json!({"provisioner": provisioner, "volumeBindingMode": mode})
}

/// Claims that wait (`small`, `large`), are bound (`bound-a`, `bound-b`, `lost`), name a volume that is not bound to them
/// (`named`), or should be bound by now (`now`); two classes of which a driver makes volumes.
fn claims() -> Objects<'static> {
    let places = json!([{"matchLabelExpressions": [{"key": "host", "values": ["b"]}]}]);
    let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}});
    vec![
        ("class", "later", class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")),
        ("class", "made", class("csi", "WaitForFirstConsumer")),
        ("class", "in-b", merged(class("csi", "WaitForFirstConsumer"), &json!({"allowedTopologies": places}))),
        ("class", "now", class("csi", "Immediate")),
        ("claim", "small", claim("later", "1Gi")),
        ("claim", "large", claim("later", "5Gi")),
        ("claim", "bound-a", bound("later", "va")),
        ("volume", "va", taken("bound-a", "later", "a")),
        ("claim", "bound-b", bound("now", "vb")),
        ("volume", "vb", taken("bound-b", "now", "b")),
        ("claim", "lost", bound("later", "gone")),
        ("claim", "named", merged(claim("later", "1Gi"), &json!({"spec": {"volumeName": "va"}}))),
        ("claim", "now", claim("now", "1Gi")),
        ("claim", "made", claim("made", "1Gi")),
        ("claim", "made-for-a", merged(claim("made", "1Gi"), &selected)),
        ("claim", "made-in-b", claim("in-b", "1Gi")),
    ]
}

#[test]
fn claims_are_bound_to_volumes_that_exist_or_are_made() {
    let free = |names: &[(&'static str, &str, &str)]| -> Objects<'static> {
        names.iter().map(|(name, size, host)| ("volume", *name, volume(size, host))).collect()
    };
    let none: &[(&str, &str, &str)] = &[];
    for (what, volumes, requested, expected) in [
        ("no claim", none, &[][..], &["", ""][..]),
        ("a claim that does not exist", none, &["none"], &[r#"Unresolvable: persistentvolumeclaim "none" not found"#]),
        (
            "one of two does not exist",
            none,
            &["bound-a", "none"],
            &[r#"Unresolvable: persistentvolumeclaim "none" not found"#],
        ),
        ("bound", none, &["bound-a"], &["", OUT_OF_REACH]),
        ("bound at once, elsewhere", none, &["bound-b"], &[OUT_OF_REACH, ""]),
        ("bound here and there", none, &["bound-a", "bound-b"], &[OUT_OF_REACH, OUT_OF_REACH]),
        ("bound to what does not exist", none, &["lost"], &[NO_VOLUME, NO_VOLUME]),
        ("a volume is named but not bound", none, &["named"], &[UNBOUND]),
        ("a volume here", &[("v1", "9Gi", "b"), ("v2", "9Gi", "a")], &["small"], &["", ""]),
        ("a volume there", &[("v1", "9Gi", "b")], &["small"], &[NOTHING, ""]),
        ("too small a volume", &[("v1", "1Gi", "a")], &["large"], &[NOTHING, NOTHING]),
        ("two volumes for two claims", &[("v1", "9Gi", "a"), ("v2", "9Gi", "a")], &["small", "large"], &["", NOTHING]),
        // The smaller claim takes the smaller volume, whichever comes first.
        (
            "two claims, the larger one first",
            &[("v1", "1Gi", "a"), ("v2", "9Gi", "a")],
            &["large", "small"],
            &["", NOTHING],
        ),
        (
            "two volumes, the larger one first",
            &[("v1", "9Gi", "a"), ("v2", "1Gi", "a")],
            &["small", "large"],
            &["", NOTHING],
        ),
        ("one volume for two claims", &[("v1", "9Gi", "a")], &["small", "large"], &[NOTHING, NOTHING]),
        (
            "one bound, one that waits",
            &[("v1", "9Gi", "a")],
            &["small", "bound-a"],
            &[
                "",
                "UU node(s) didn't match PersistentVolume's node affinity, node(s) didn't find available persistent volumes to bind",
            ],
        ),
        (
            "one bound, and no volume for the other",
            &[("v1", "9Gi", "b")],
            &["small", "bound-a"],
            &[NOTHING, OUT_OF_REACH],
        ),
        ("one names its volume, one waits", &[("v1", "9Gi", "a")], &["small", "named"], &[UNBOUND]),
        ("should be bound by now", none, &["now"], &[UNBOUND]),
        ("one should be, one is", none, &["now", "bound-a"], &[UNBOUND]),
        ("one should be, one waits", &[("v1", "9Gi", "a")], &["now", "small"], &[UNBOUND]),
        // Made by a driver.
        ("made", none, &["made"], &["", ""]),
        ("one that exists, one that is made", &[("v1", "9Gi", "a")], &["small", "made"], &["", NOTHING]),
        ("one bound, one that is made", none, &["bound-a", "made"], &["", OUT_OF_REACH]),
        ("one bound at once, one that is made", none, &["bound-b", "made"], &[OUT_OF_REACH, ""]),
        ("made for a node already", none, &["made-for-a"], &["", NOTHING]),
        (
            "one bound, one made for a node already",
            none,
            &["bound-a", "made-for-a"],
            &[
                "",
                "UU node(s) didn't match PersistentVolume's node affinity, node(s) didn't find available persistent volumes to bind",
            ],
        ),
        ("made by nobody", none, &["small"], &[NOTHING, NOTHING]),
        ("made elsewhere", none, &["made-in-b"], &[NOTHING, ""]),
    ] {
        let mut objects = claims();
        objects.extend(free(volumes));
        assert_eq!(filter_answers(&objects, &with_claims(requested)), expected, "{what}");
    }
}

#[test]
fn claims_of_the_pods_own_belong_to_it() {
    let owned = |uid: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "tried", "uid": uid, "controller": true});
        merged(bound("later", "va"), &json!({"metadata": {"ownerReferences": [owner]}}))
    };
    let own = json!({"volumes": [{"name": "own", "ephemeral": {}}]});
    let missing =
        r#"Unresolvable: waiting for ephemeral volume controller to create the persistentvolumeclaim "tried-own""#;
    let foreign = "Unresolvable: PVC ns/tried-own was not created for pod ns/tried (pod is not owner)";
    for (what, claim, expected) in [
        ("not made yet", None, &[missing][..]),
        ("made", Some(owned("tried")), &["", OUT_OF_REACH]),
        ("made for an earlier pod of the name", Some(owned("another")), &[foreign]),
        ("made by hand", Some(bound("later", "va")), &[foreign]),
    ] {
        let mut objects = claims();
        objects.extend(claim.map(|claim| ("claim", "tried-own", claim)));
        assert_eq!(filter_answers(&objects, &own), expected, "{what}");
    }
}

#[test]
fn a_driver_makes_volumes_where_it_has_space() {
    let space = |class: &str, topology: Option<Value>, members: &Value| {
        merged(json!({"storageClassName": class, "nodeTopology": topology}), members)
    };
    let host = |name: &str| Some(json!({"matchLabels": {"host": name}}));
    let gib = |size: &str| json!({ "capacity": size });
    for (what, spaces, on_a, on_b) in [
        ("everywhere", vec![space("made", Some(json!({})), &gib("1Gi"))], "", ""),
        ("here", vec![space("made", host("a"), &gib("1Gi"))], "", NO_SPACE),
        (
            "enough in one of two reports",
            vec![space("made", host("a"), &gib("1Mi")), space("made", host("a"), &gib("2Gi"))],
            "",
            NO_SPACE,
        ),
        ("nowhere", vec![], NO_SPACE, NO_SPACE),
        ("there", vec![space("made", host("b"), &gib("1Gi"))], NO_SPACE, ""),
        ("of another class", vec![space("in-b", host("a"), &gib("1Gi"))], NO_SPACE, NO_SPACE),
        ("too little", vec![space("made", host("a"), &gib("1Mi"))], NO_SPACE, NO_SPACE),
        (
            "enough, but no such large volume",
            vec![space("made", host("a"), &json!({"capacity": "9Gi", "maximumVolumeSize": "1Mi"}))],
            NO_SPACE,
            NO_SPACE,
        ),
        (
            "a volume so large, of which little is left",
            vec![space("made", host("a"), &json!({"capacity": "1Mi", "maximumVolumeSize": "1Gi"}))],
            "",
            NO_SPACE,
        ),
        ("nothing", vec![space("made", host("a"), &gib("0"))], NO_SPACE, NO_SPACE),
        ("no volume at all", vec![space("made", host("a"), &json!({"maximumVolumeSize": "0"}))], NO_SPACE, NO_SPACE),
        ("not said how much", vec![space("made", host("a"), &json!({}))], NO_SPACE, NO_SPACE),
        ("not said where", vec![space("made", None, &gib("9Gi"))], NO_SPACE, NO_SPACE),
    ] {
        let names = ["s0", "s1"];
        let mut objects = claims();
        objects.extend(names.into_iter().zip(spaces).map(|(name, space)| ("capacity", name, space)));
        assert_eq!(
            filter_answers(&objects, &with_claims(&["made"])),
            ["", ""],
            "{what}, of a driver that does not say"
        );
        objects.push(("driver", "csi", json!({"spec": {"storageCapacity": true}})));
        assert_eq!(filter_answers(&objects, &with_claims(&["made"])), [on_a, on_b], "{what}");
    }
}
