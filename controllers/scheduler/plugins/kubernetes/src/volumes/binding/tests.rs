use koord_core::{uid::Uid, write::Action};
use koord_scheduler_framework::AttemptState;
use koord_scheduler_testing::{node, pod};
use serde_json::{Value, json};

use super::*;
use crate::volumes::testing::{admitted, answers, change, cluster, merged, object, with_claims};

const OUT_OF_REACH: &str = "UU node(s) didn't match PersistentVolume's node affinity";
const NOTHING_TO_BIND: &str = "UU node(s) didn't find available persistent volumes to bind";

fn plugin() -> VolumeBinding {
    VolumeBinding::new(&VolumeBindingArgs { bind_timeout_seconds: 600 })
}

fn nodes() -> Vec<Arc<Node>> {
    let labels = |host: &str, zone: &str| {
        node(host, &json!({"metadata": {"labels": {"kubernetes.io/hostname": host, "zone": zone}}}))
    };
    vec![labels("a", "z1"), labels("b", "z2")]
}

fn local(host: &str) -> Value {
    let test = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [host]});
    json!({
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "storageClassName": "by-hand", "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}},
        },
        "status": {"phase": "Available"},
    })
}

fn claim(class: &str, size: &str) -> Value {
    let resources = json!({"requests": {"storage": size}});
    let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": resources});
    json!({"metadata": {"resourceVersion": "5"}, "spec": spec})
}

fn bound(volume: &str) -> Value {
    let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
    json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}, "status": {"phase": "Bound"}})
}

fn class(provisioner: &str, members: &Value) -> Value {
    merged(json!({"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}), members)
}

fn stage(objects: &[(&str, &str, Value)]) -> Cluster {
    let mut cluster = cluster(&plugin(), &nodes(), objects);
    for (name, members) in [
        ("by-hand", class("kubernetes.io/no-provisioner", &json!({}))),
        ("made", class("csi", &json!({}))),
        ("now", class("csi", &json!({"volumeBindingMode": "Immediate"}))),
    ] {
        cluster.set_object(object("class", name, &members).1);
    }
    cluster
}

fn filter_answers(cluster: &mut Cluster, claims: &[&str]) -> Vec<String> {
    answers(&plugin(), cluster, &with_claims(claims))
}

/// Reserves what a pod with these claims needs on a node, and places it there.
fn reserve(cluster: &mut Cluster, name: &str, node: &str, claims: &[&str]) -> Result<Patch, Rejection> {
    let pod = pod(name, &with_claims(claims));
    let class = cluster.class(&pod.template);
    let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let mut holds = Holds::default();
    plugin().reserve(&request, cluster, cluster.row(node).unwrap(), &mut holds)?;
    cluster.place(Arc::clone(&pod), &node.into(), holds);
    let mut patch = Patch::default();
    plugin().pre_bind(&request, cluster.pod(&pod.uid).unwrap(), cluster, &mut patch);
    Ok(patch)
}

fn prepared(cluster: &Cluster, name: &str) -> PreBindProgress {
    plugin().pre_bind_progress(cluster.pod(&Uid::from(name)).unwrap(), cluster)
}

#[test]
fn bound_volumes_are_reached_from_their_nodes_alone() {
    let mut cluster = stage(&[
        ("claim", "here", bound("v")),
        ("volume", "v", local("a")),
        ("claim", "anywhere", bound("w")),
        ("volume", "w", json!({"spec": {}})),
        ("claim", "lost", bound("gone")),
        ("claim", "waits", claim("by-hand", "20Gi")),
    ]);
    assert_eq!(filter_answers(&mut cluster, &["here"]), ["", OUT_OF_REACH]);
    assert_eq!(filter_answers(&mut cluster, &["anywhere"]), ["", ""]);
    let missing = "UU node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    assert_eq!(filter_answers(&mut cluster, &["lost"]), [missing, missing]);
    let both = format!("{OUT_OF_REACH}, {}", &NOTHING_TO_BIND[3..]);
    assert_eq!(filter_answers(&mut cluster, &["here", "waits"]), [NOTHING_TO_BIND, &*both]);
    assert_eq!(filter_answers(&mut cluster, &[]), ["", ""]);
}

#[test]
fn the_affinity_of_a_providers_disk_is_taken_as_it_is_written() {
    let test = json!({"key": "zone", "operator": "In", "values": ["z1"]});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}});
    let disk = json!({"spec": {"gcePersistentDisk": {"pdName": "d"}, "nodeAffinity": affinity}});
    let mut cluster = stage(&[("claim", "c", bound("v")), ("volume", "v", disk)]);
    let migrated = json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"});
    let node = json!({"metadata": {"annotations": migrated}, "spec": {"drivers": []}});
    cluster.set_object(object("csinode", "a", &node).1);
    assert_eq!(filter_answers(&mut cluster, &["c"]), ["", OUT_OF_REACH]);
}

#[test]
fn a_pod_waits_for_claims_that_are_missing_or_not_usable() {
    let owned = |uid: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "tried", "uid": uid, "controller": true});
        merged(bound("v"), &json!({"metadata": {"ownerReferences": [owner]}}))
    };
    let mut cluster = stage(&[
        ("volume", "v", json!({"spec": {}})),
        ("claim", "lost", merged(bound("v"), &json!({"status": {"phase": "Lost"}}))),
        ("claim", "going", merged(bound("v"), &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))),
        ("claim", "now", claim("now", "1Gi")),
        ("claim", "chosen", merged(claim("made", "1Gi"), &json!({"spec": {"volumeName": "v"}}))),
        ("claim", "strange", claim("no-such-class", "1Gi")),
        ("claim", "tried-own", owned("tried")),
        ("claim", "tried-foreign", owned("another")),
    ]);
    let unbound = "Unresolvable: pod has unbound immediate PersistentVolumeClaims";
    for (claim, answer) in [
        ("none", r#"Unresolvable: persistentvolumeclaim "none" not found"#),
        ("lost", r#"Unresolvable: persistentvolumeclaim "lost" bound to non-existent persistentvolume "v""#),
        ("going", r#"Unresolvable: persistentvolumeclaim "going" is being deleted"#),
        ("now", unbound),
        ("chosen", unbound),
        ("strange", unbound),
    ] {
        assert_eq!(filter_answers(&mut cluster, &[claim]), [answer], "{claim}");
    }
    let mut of_volume =
        |name: &str| answers(&plugin(), &mut cluster, &json!({"volumes": [{"name": name, "ephemeral": {}}]})).remove(0);
    assert_eq!(of_volume("own"), "");
    assert_eq!(
        of_volume("foreign"),
        "Unresolvable: PVC ns/tried-foreign was not created for pod ns/tried (pod is not owner)"
    );
    assert_eq!(
        of_volume("later"),
        r#"Unresolvable: waiting for ephemeral volume controller to create the persistentvolumeclaim "tried-later""#
    );
    let modeless = json!({"provisioner": "csi"});
    cluster.set_object(object("class", "now", &modeless).1);
    assert_eq!(filter_answers(&mut cluster, &["now"]), [r#"Error: VolumeBindingMode not set for StorageClass "now""#]);
    assert!(admitted(&plugin(), &mut cluster, &pod("p", &json!({}))).is_ok());
}

#[test]
fn a_claim_that_waits_takes_a_volume_or_has_one_made() {
    let topology = json!({"matchLabelExpressions": [{"key": "zone", "values": ["z2", "z3"]}]});
    let mut cluster = stage(&[
        ("volume", "v", local("a")),
        ("claim", "static", claim("by-hand", "1Gi")),
        ("claim", "large", claim("by-hand", "20Gi")),
        ("claim", "dynamic", claim("made", "1Gi")),
        ("class", "zoned", class("csi", &json!({"allowedTopologies": [topology]}))),
        ("claim", "zonal", claim("zoned", "1Gi")),
        ("claim", "chosen", merged(claim("made", "1Gi"), &json!({"metadata": {"annotations": {SELECTED: "b"}}}))),
    ]);
    for (claims, answers) in [
        (vec!["static"], ["", NOTHING_TO_BIND]),
        (vec!["large"], [NOTHING_TO_BIND; 2]),
        (vec!["dynamic"], ["", ""]),
        (vec!["zonal"], [NOTHING_TO_BIND, ""]),
        (vec!["chosen"], [NOTHING_TO_BIND, ""]),
        (vec!["static", "dynamic"], ["", NOTHING_TO_BIND]),
        (vec!["static", "static"], ["", NOTHING_TO_BIND]),
        (vec!["static", "zonal"], [NOTHING_TO_BIND; 2]),
    ] {
        assert_eq!(filter_answers(&mut cluster, &claims), answers, "{claims:?}");
    }
}

const SELECTED: &str = "volume.kubernetes.io/selected-node";

#[test]
fn volumes_are_made_where_the_driver_has_space() {
    let space = |zone: &str, sizes: Value| {
        merged(json!({"storageClassName": "made", "nodeTopology": {"matchLabels": {"zone": zone}}}), &sizes)
    };
    let mut cluster = stage(&[
        ("claim", "small", claim("made", "1Gi")),
        ("claim", "large", claim("made", "10Gi")),
        ("capacity", "one", space("z1", json!({"capacity": "100Gi", "maximumVolumeSize": "5Gi"}))),
        ("capacity", "two", space("z2", json!({"capacity": "10Gi"}))),
        ("capacity", "other", merged(space("z1", json!({"capacity": "1Ti"})), &json!({"storageClassName": "other"}))),
    ]);
    assert_eq!(filter_answers(&mut cluster, &["large"]), ["", ""], "a driver that does not say how much it has");
    cluster.set_object(object("driver", "csi", &json!({"spec": {"storageCapacity": true}})).1);
    let refused = "UU node(s) did not have enough free storage";
    assert_eq!(filter_answers(&mut cluster, &["large"]), [refused, ""]);
    assert_eq!(filter_answers(&mut cluster, &["small"]), ["", ""]);
}

#[test]
fn a_volume_is_given_to_one_claim_and_given_back_with_its_pod() {
    let mut cluster = stage(&[
        ("volume", "v", local("a")),
        ("claim", "c", claim("by-hand", "1Gi")),
        ("claim", "d", claim("by-hand", "1Gi")),
    ]);
    let before = cluster.state::<Assumed>().cloned();
    let patch = reserve(&mut cluster, "first", "a", &["c"]).unwrap();
    assert_eq!(patch.wait, Some(Duration::from_mins(10)));
    let [(name, write)] = &*patch.writes else { panic!("{patch:?}") };
    assert_eq!((*name, write.key.as_str()), ("VolumeBinding", "v"));
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c", "uid": "c",
        "resourceVersion": "5",
    });
    let annotations = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    let metadata = json!({"uid": "v", "resourceVersion": "7", "annotations": annotations});
    let expected = json!({"metadata": metadata, "spec": {"claimRef": reference}});
    assert_eq!(write.action, Action::Patch { subresource: "", patch: expected });

    assert_eq!(filter_answers(&mut cluster, &["d"]), [NOTHING_TO_BIND; 2]);
    assert_eq!(filter_answers(&mut cluster, &["c"]), ["", NOTHING_TO_BIND], "who shares the claim shares its volume");
    assert!(reserve(&mut cluster, "other", "a", &["d"]).is_err());
    reserve(&mut cluster, "second", "a", &["c"]).unwrap();
    cluster.remove_pod(&"first".into());
    assert_eq!(filter_answers(&mut cluster, &["d"]), [NOTHING_TO_BIND; 2]);
    cluster.remove_pod(&"second".into());
    assert_eq!(filter_answers(&mut cluster, &["d"]), ["", NOTHING_TO_BIND]);
    assert_eq!(cluster.state::<Assumed>().cloned(), before);
}

#[test]
fn the_binding_of_a_volume_is_done_when_a_controller_has_finished_it() {
    let mut cluster = stage(&[("volume", "v", local("a")), ("claim", "c", claim("by-hand", "1Gi"))]);
    reserve(&mut cluster, "p", "a", &["c"]).unwrap();
    let pending = PreBindProgress::Pending("binding volumes: context deadline exceeded".to_owned());
    assert_eq!(prepared(&cluster, "p"), pending, "the write is not seen yet");
    let written = |members: Value| merged(merged(local("a"), &json!({"metadata": {"resourceVersion": "8"}})), &members);
    let taken = written(json!({"spec": {"claimRef": {"namespace": "ns", "name": "c", "uid": "c"}}}));
    cluster.set_object(object("volume", "v", &taken).1);
    assert_eq!(prepared(&cluster, "p"), pending);
    cluster.set_object(object("claim", "c", &bound("v")).1);
    assert_eq!(prepared(&cluster, "p"), PreBindProgress::Done);
    cluster.set_object(object("volume", "v", &written(json!({}))).1);
    let reset = PreBindProgress::Failed(r#"binding volumes: ClaimRef got reset for pv "v""#.to_owned());
    assert_eq!(prepared(&cluster, "p"), reset);
    let moved = merged(local("b"), &json!({"metadata": {"resourceVersion": "9"}}));
    cluster.set_object(object("volume", "v", &moved).1);
    let moved = r#"binding volumes: pv "v" node affinity doesn't match node "a": no matching NodeSelectorTerms"#;
    assert_eq!(prepared(&cluster, "p"), PreBindProgress::Failed(moved.to_owned()));
    change(&mut cluster, "volume", "v", [Some(&json!({})), None]);
    let gone = r#"binding volumes: failed to check binding: could not find v1.PersistentVolume "v""#;
    assert_eq!(prepared(&cluster, "p"), PreBindProgress::Failed(gone.to_owned()));
}

#[test]
fn a_volume_is_made_for_the_node_that_the_claim_names() {
    let mut cluster = stage(&[("claim", "c", claim("made", "1Gi"))]);
    let patch = reserve(&mut cluster, "p", "b", &["c"]).unwrap();
    let [(_, write)] = &*patch.writes else { panic!("{patch:?}") };
    let expected = json!({"metadata": {"uid": "c", "resourceVersion": "5", "annotations": {SELECTED: "b"}}});
    assert_eq!((write.key.as_str(), &write.action), ("ns/c", &Action::Patch { subresource: "", patch: expected }));
    assert_eq!(filter_answers(&mut cluster, &["c"]), [NOTHING_TO_BIND, ""], "who shares the claim comes to its node");

    let pending = PreBindProgress::Pending("binding volumes: context deadline exceeded".to_owned());
    assert_eq!(prepared(&cluster, "p"), pending);
    let selected =
        merged(claim("made", "1Gi"), &json!({"metadata": {"resourceVersion": "6", "annotations": {SELECTED: "b"}}}));
    cluster.set_object(object("claim", "c", &selected).1);
    assert_eq!(prepared(&cluster, "p"), pending);
    cluster.set_object(object("claim", "c", &merged(selected.clone(), &bound("v"))).1);
    assert_eq!(prepared(&cluster, "p"), pending, "the volume is not seen yet");
    cluster.set_object(object("volume", "v", &local("b")).1);
    assert_eq!(prepared(&cluster, "p"), PreBindProgress::Done);
    let refused = merged(claim("made", "1Gi"), &json!({"metadata": {"resourceVersion": "9"}}));
    cluster.set_object(object("claim", "c", &refused).1);
    let failed = r#"binding volumes: provisioning failed for PVC "c""#;
    assert_eq!(prepared(&cluster, "p"), PreBindProgress::Failed(failed.to_owned()));
}

#[test]
fn what_is_written_already_is_not_written_again() {
    let owner = json!({"spec": {"claimRef": {"namespace": "ns", "name": "c", "uid": "c"}}});
    let mut cluster = stage(&[
        ("volume", "v", merged(local("a"), &owner)),
        ("claim", "c", claim("by-hand", "1Gi")),
        ("claim", "d", merged(claim("made", "1Gi"), &json!({"metadata": {"annotations": {SELECTED: "a"}}}))),
        ("claim", "e", bound("v")),
    ]);
    let patch = reserve(&mut cluster, "p", "a", &["c", "d"]).unwrap();
    assert_eq!((patch.writes, patch.wait), (Vec::new(), Some(Duration::from_mins(10))));
    assert_eq!(reserve(&mut cluster, "q", "a", &["e"]), Ok(Patch::default()));
}

#[test]
fn a_volume_that_its_user_gave_to_the_claim_is_not_marked_as_chosen() {
    let named = json!({"spec": {"claimRef": {"namespace": "ns", "name": "c"}}});
    let mut cluster = stage(&[("volume", "v", merged(local("a"), &named)), ("claim", "c", claim("by-hand", "1Gi"))]);
    let patch = reserve(&mut cluster, "p", "a", &["c"]).unwrap();
    let [(_, write)] = &*patch.writes else { panic!("{patch:?}") };
    let Action::Patch { patch, .. } = &write.action else { panic!("{write:?}") };
    assert_eq!((&patch["metadata"]["annotations"], &patch["spec"]["claimRef"]["uid"]), (&Value::Null, &json!("c")));
}

#[test]
fn changes_of_what_the_claims_depend_on_help() {
    let mut cluster = stage(&[]);
    let waiting = pod("p", &with_claims(&["c"]));
    let mut helps = |kind: &str, name: &str, versions: [Option<&Value>; 2]| {
        let event = change(&mut cluster, kind, name, versions);
        plugin().is_helped_by(&waiting, &event, &Cluster::default())
    };
    let (any, made) = (json!({}), class("csi", &json!({})));
    assert!(helps("claim", "c", [None, Some(&any)]) && !helps("claim", "d", [None, Some(&any)]));
    assert!(helps("volume", "v", [Some(&any), Some(&any)]) && !helps("volume", "v", [Some(&any), None]));
    let zoned = class("csi", &json!({"allowedTopologies": []}));
    assert!(helps("class", "new", [None, Some(&made)]) && helps("class", "new", [Some(&made), Some(&zoned)]));
    assert!(!helps("class", "new", [Some(&made), Some(&made)]));
    let driver = |limited: bool| json!({"spec": {"storageCapacity": limited}});
    assert!(helps("driver", "csi", [Some(&driver(true)), Some(&driver(false))]));
    assert!(!helps("driver", "csi", [Some(&driver(false)), Some(&driver(true))]));
    let space = |size: &str| json!({"storageClassName": "made", "capacity": size});
    assert!(helps("capacity", "x", [None, Some(&space("1Gi"))]));
    assert!(helps("capacity", "x", [Some(&space("1Gi")), Some(&space("2Gi"))]));
    assert!(!helps("capacity", "x", [Some(&space("2Gi")), Some(&space("1Gi"))]));
    assert!(plugin().is_helped_by(
        &waiting,
        &Event::PodRemoved(pod("gone", &with_claims(&["d"]))),
        &Cluster::default()
    ));
    assert!(!plugin().is_helped_by(&waiting, &Event::PodRemoved(pod("gone", &json!({}))), &Cluster::default()));
}
