use koord_descheduler_testing::with;
use serde_json::json;

use super::*;
use crate::plugin::fixtures::{cluster_of, owned, ready, replica_set, replica_set_of, workload};

#[test]
fn a_deployment_has_the_pods_of_all_its_replica_sets() {
    let of = |name: &str, set: &str| with(&ready(name, "n1"), &owned("apps/v1", "ReplicaSet", set));
    let mut cluster = cluster_of(&[
        workload("apps/v1", "Deployment", "dep", 10),
        replica_set_of("dep", "rs1", 5),
        replica_set_of("dep", "rs2", 1),
        replica_set("rs3", 4),
        of("a", "rs1"),
        with(&of("b", "rs2"), &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})),
        of("c", "rs3"),
    ]);
    let workload = |cluster: &Cluster, pod: &str| {
        let id = cluster.pod_id(pod).unwrap();
        (*Workloads::new(cluster).of(id, cluster.pod(id).unwrap()).unwrap()).clone()
    };
    let known = |uid: &str, replicas, unavailable| Ok(KnownWorkload { uid: Uid::from(uid), replicas, unavailable });
    assert_eq!(workload(&cluster, "default/a"), known("dep", 10, 1));
    assert_eq!(workload(&cluster, "default/b"), known("dep", 10, 1));
    assert_eq!(workload(&cluster, "default/c"), known("rs3", 4, 0));
    cluster.remove_pod("default/b");
    assert_eq!(workload(&cluster, "default/a"), known("dep", 10, 0));
    cluster.remove_object(std::any::TypeId::of::<Workload<Deployment>>(), "default/dep");
    assert_eq!(workload(&cluster, "default/a"), Err(Unresolved::Missing));
}

#[test]
fn a_workload_that_does_not_say_has_one_replica() {
    let unsaid = with(&replica_set("rs", 1), &json!({"spec": {"replicas": null}}));
    let cluster = cluster_of(&[unsaid, ready("p", "n1")]);
    let id = cluster.pod_id("default/p").unwrap();
    let pod = cluster.pod(id).unwrap();
    assert_eq!(Workloads::new(&cluster).of(id, pod).unwrap().as_ref().as_ref().map(|known| known.replicas), Ok(1));
}

#[test]
fn objects_of_other_kinds_are_no_workloads() {
    let mut cluster = Cluster::default();
    for (api_version, kind, expected) in [
        ("apps/v1", "Deployment", true),
        ("apps.kruise.io/v1beta1", "StatefulSet", true),
        ("apps.kruise.io/v1alpha1", "CloneSet", true),
        ("v1", "ReplicationController", true),
        ("batch/v1", "Job", false),
        ("apps/v1", "DaemonSet", false),
        ("apps/v1", "CloneSet", false),
    ] {
        let object = workload(api_version, kind, "w", 1);
        assert_eq!(set_workload(&mut cluster, &object), Ok(expected), "{api_version} {kind}");
    }
}

#[test]
fn controllers_of_other_kinds_are_looked_up_once() {
    let of = |name: &str, api_version: &str, kind: &str, owner: &str| {
        with(&ready(name, "n1"), &owned(api_version, kind, owner))
    };
    let mut cluster = cluster_of(&[
        of("a", "example.org/v1", "Widget", "w"),
        of("b", "example.org/v1", "Widget", "w"),
        of("c", "batch/v1", "Job", "j"),
        of("d", "apps/v1", "DaemonSet", "d"),
        of("e", "apps/v1", "ReplicaSet", "missing"),
        of("f", "example.org/v1", "Gadget", "g"),
    ]);
    let names = |cluster: &Cluster| -> Vec<String> {
        controllers_to_look_up(cluster)
            .values()
            .map(|(namespace, owner)| format!("{namespace}/{}", owner.name))
            .collect()
    };
    assert_eq!(names(&cluster), ["default/g", "default/w"]);
    cluster.set_object(Scale::NotFound.object(&Uid::from("w")));
    assert_eq!(names(&cluster), ["default/g"]);
}
