use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event};
use koord_scheduler_testing::{node, pod};
use serde_json::{Value, json};

use crate::{
    NodeVolumeLimits,
    volumes::testing::{answers, change, cluster, merged, place},
};

const REFUSED: &str = "U node(s) exceed max volume count";
const EBS: &str = "ebs.csi.aws.com";

/// Claims by their names: `x-1` is bound to the volume `x-1` of the driver `x`, `aws-1` to a disk of AWS, and `px-1` to one of
/// Portworx. `wait-1` waits for a volume of the driver `x`, `wait-aws-1` for one of AWS, `lost-1` names a volume that does not exist,
/// `classless-1` neither volume nor class.
fn stage(csi_node: &Value, attached: &[&str]) -> Cluster {
    let mut objects = vec![
        ("csinode", "n", csi_node.clone()),
        ("class", "wait", json!({"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"})),
        (
            "class",
            "wait-aws",
            json!({"provisioner": "kubernetes.io/aws-ebs", "volumeBindingMode": "WaitForFirstConsumer"}),
        ),
    ];
    let csi = |driver: &str, handle: &str| json!({"spec": {"csi": {"driver": driver, "volumeHandle": handle}}});
    for name in ["x-1", "x-2", "x-3", "y-1", "y-2"] {
        objects.push(("claim", name, json!({"spec": {"volumeName": name}})));
        objects.push(("volume", name, csi(&name[..1], name)));
    }
    for name in ["aws-1", "aws-2"] {
        objects.push(("claim", name, json!({"spec": {"volumeName": name}})));
        objects.push(("volume", name, json!({"spec": {"awsElasticBlockStore": {"volumeID": name}}})));
    }
    objects.push(("claim", "ebs-1", json!({"spec": {"volumeName": "ebs-1"}})));
    objects.push(("volume", "ebs-1", csi(EBS, "ebs-1")));
    objects.push(("claim", "px-1", json!({"spec": {"volumeName": "px-1"}})));
    objects.push(("volume", "px-1", json!({"spec": {"portworxVolume": {"volumeID": "px-1"}}})));
    for name in ["wait-1", "wait-2", "wait-3", "wait-aws-1", "wait-aws-2"] {
        objects.push(("claim", name, json!({"spec": {"storageClassName": name.rsplit_once('-').unwrap().0}})));
    }
    objects.push(("claim", "lost-1", json!({"spec": {"volumeName": "nowhere", "storageClassName": "wait"}})));
    objects.push(("claim", "unknown-1", json!({"spec": {"storageClassName": "unknown"}})));
    objects.push(("claim", "classless-1", json!({"spec": {}})));
    objects.push(("claim", "tried-own", json!({"spec": {"storageClassName": "wait"}})));
    let mut cluster = cluster(&NodeVolumeLimits, &[node("n", &json!({}))], &objects);
    for volume in attached {
        let source = json!({"persistentVolumeName": volume});
        let spec = json!({"attacher": &volume[..1], "nodeName": "n", "source": source});
        change(&mut cluster, "attachment", volume, [None, Some(&json!({"spec": spec}))]);
    }
    cluster
}

/// How many volumes the node attaches, by driver.
fn limits(limits: &[(&str, u32)]) -> Value {
    let driver = |(name, count): &(&str, u32)| json!({"name": name, "nodeID": "n", "allocatable": {"count": count}});
    json!({"spec": {"drivers": limits.iter().map(driver).collect::<Vec<_>>()}})
}

/// A pod with volumes: claims by their names, `inline aws-9` for a disk of its own, `ephemeral own` for one that is made for it.
fn spec(volumes: &[&str]) -> Value {
    let volume = |name: &&str| match name.split_once(' ') {
        Some(("inline", id)) => json!({"name": "v", "awsElasticBlockStore": {"volumeID": id}}),
        Some(("ephemeral", name)) => json!({"name": name, "ephemeral": {}}),
        Some(("secret", name)) => json!({"name": "v", "secret": {"secretName": name}}),
        _ => json!({"name": "v", "persistentVolumeClaim": {"claimName": name}}),
    };
    json!({"volumes": volumes.iter().map(volume).collect::<Vec<_>>()})
}

#[test]
fn a_node_attaches_no_more_than_its_limits() {
    let none = json!({"spec": {"drivers": [{"name": "x", "nodeID": "n"}]}});
    let portworx = |migrated: &str| {
        let annotations = json!({"storage.alpha.kubernetes.io/migrated-plugins": migrated});
        merged(limits(&[("pxd.portworx.com", 0)]), &json!({"metadata": {"annotations": annotations}}))
    };
    for (what, csi_node, attached, there, requested, fits) in [
        ("attachments alone", limits(&[("x", 2)]), &["x-1", "x-2"][..], &[][..], &["x-3"][..], false),
        ("attachments that leave room", limits(&[("x", 3)]), &["x-1", "x-2"], &[], &["x-3"], true),
        ("attachments of pods that are there", limits(&[("x", 3)]), &["x-1", "x-2"], &["x-1", "x-2"], &["x-3"], true),
        ("attachments of another driver", limits(&[("x", 1)]), &["y-1"], &[], &["x-3"], true),
        ("fewer than the limit", limits(&[("x", 3)]), &[], &["x-1", "x-2"], &["x-3"], true),
        ("more than the limit", limits(&[("x", 2)]), &[], &["x-1", "x-2"], &["x-3"], false),
        ("a driver without a limit", none, &[], &["x-1", "x-2"], &["x-3"], true),
        ("a driver that the node does not name", limits(&[("y", 0)]), &[], &["x-1"], &["x-2"], true),
        ("the same volume again", limits(&[("x", 1)]), &[], &["x-1"], &["x-1"], true),
        ("several of two drivers", limits(&[("x", 2), ("y", 1)]), &[], &["x-1", "y-1"], &["x-2"], true),
        (
            "several of two drivers, one too many",
            limits(&[("x", 2), ("y", 1)]),
            &[],
            &["x-1", "y-1"],
            &["x-2", "y-2"],
            false,
        ),
        // Volumes that are still to be made.
        ("a volume to be made", limits(&[("x", 2)]), &[], &["wait-1", "x-1"], &["x-2"], false),
        ("several to be made", limits(&[("x", 4)]), &[], &["wait-1", "wait-2"], &["wait-3", "x-1"], true),
        ("several to be made, too many", limits(&[("x", 3)]), &[], &["wait-1", "wait-2"], &["wait-3", "x-1"], false),
        ("a volume that does not exist, by its class", limits(&[("x", 1)]), &[], &["lost-1"], &["x-1"], false),
        ("a class that does not exist", limits(&[("x", 1)]), &[], &["unknown-1"], &["x-1"], true),
        ("neither volume nor class", limits(&[("x", 1)]), &[], &["classless-1"], &["x-1"], true),
        ("of its own", limits(&[("x", 1)]), &[], &["x-1"], &["ephemeral own"], false),
        ("of its own, with room", limits(&[("x", 2)]), &[], &["x-1"], &["ephemeral own"], true),
        ("no volume to be attached", limits(&[("x", 0)]), &[], &[], &["secret s"], true),
        // Disks of providers belong to the drivers that have taken them over.
        ("of AWS", limits(&[(EBS, 1)]), &[], &["aws-1"], &["aws-2"], false),
        ("of AWS, with room", limits(&[(EBS, 2)]), &[], &["aws-1"], &["aws-2"], true),
        ("of AWS, to be made", limits(&[(EBS, 1)]), &[], &["wait-aws-1"], &["wait-aws-2"], false),
        ("of AWS, without a limit", limits(&[("x", 0)]), &[], &["aws-1"], &["aws-2"], true),
        ("of AWS, in the pod itself", limits(&[(EBS, 1)]), &[], &["inline aws-8"], &["inline aws-9"], false),
        ("of AWS, the same in the pod itself", limits(&[(EBS, 1)]), &[], &["aws-1"], &["inline aws-1"], true),
        ("of AWS and of its driver", limits(&[(EBS, 2)]), &[], &["ebs-1", "inline aws-9"], &["aws-1"], false),
        ("of its driver beside those of AWS", limits(&[(EBS, 2)]), &[], &["aws-1", "inline aws-9"], &["ebs-1"], false),
        ("of both, with room", limits(&[(EBS, 3)]), &[], &["aws-1", "inline aws-9"], &["ebs-1"], true),
        (
            "of Portworx, which the node has handed over",
            portworx("kubernetes.io/portworx-volume"),
            &[],
            &[],
            &["px-1"],
            false,
        ),
        ("of Portworx, which it has not", portworx("kubernetes.io/gce-pd"), &[], &[], &["px-1"], true),
    ] {
        let mut cluster = stage(&csi_node, attached);
        place(&mut cluster, "there", "n", &spec(there));
        let expected = if fits { "" } else { REFUSED };
        assert_eq!(answers(&NodeVolumeLimits, &mut cluster, &spec(requested)), [expected], "{what}");
    }
    let mut cluster = stage(&json!({}), &[]);
    cluster.set_node(node("bare", &json!({})));
    assert_eq!(answers(&NodeVolumeLimits, &mut cluster, &spec(&["x-1"])), ["", ""], "a node without a CSINode");
}

#[test]
fn what_frees_a_place_or_makes_the_claim_helps() {
    let mut cluster = stage(&limits(&[("x", 1)]), &[]);
    let gone = |volumes: &[&str]| Event::PodRemoved(pod("gone", &spec(volumes)));
    let claim = json!({"spec": {}});
    let attachment = json!({"spec": {"attacher": "x", "nodeName": "n", "source": {"persistentVolumeName": "x-1"}}});
    let (two, three) = (limits(&[("x", 2)]), limits(&[("x", 3)]));
    for (what, event, helps) in [
        ("a pod with a claim goes", gone(&["y-1"]), true),
        ("a pod with a disk of a provider goes", gone(&["inline aws-9"]), true),
        ("a pod without volumes goes", gone(&["secret s"]), false),
        ("its claim is there", change(&mut cluster, "claim", "x-1", [None, Some(&claim)]), false),
        ("its claim is made", change(&mut cluster, "claim", "new", [None, Some(&claim)]), true),
        ("the claim of its own is made", change(&mut cluster, "claim", "waiting-own", [None, Some(&claim)]), true),
        ("another claim is made", change(&mut cluster, "claim", "other", [None, Some(&claim)]), false),
        ("a volume is detached", change(&mut cluster, "attachment", "z", [Some(&attachment), None]), true),
        ("a volume is attached", change(&mut cluster, "attachment", "z", [None, Some(&attachment)]), false),
        ("a higher limit", change(&mut cluster, "csinode", "n", [Some(&two), Some(&three)]), true),
        ("a lower limit", change(&mut cluster, "csinode", "n", [Some(&three), Some(&two)]), false),
        ("the same limit", change(&mut cluster, "csinode", "n", [Some(&two), Some(&two)]), false),
    ] {
        let waiting = pod("waiting", &spec(&["new", "ephemeral own"]));
        assert_eq!(NodeVolumeLimits.is_helped_by(&waiting, &event, &cluster), helps, "{what}");
    }
}
