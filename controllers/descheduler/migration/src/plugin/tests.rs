use std::sync::Arc;

use koord_config::descheduler::MigrationControllerArgs;
use koord_core::uid::Uid;
use koord_descheduler_framework::pod::EVICT;
use koord_descheduler_testing::{args, with};
use serde_json::{Value, json};

use super::{
    fixtures::{
        at, cluster_of, controller, evictions, job, owned, ready, replica_set, replica_set_of, running, workload,
    },
    *,
};
use crate::workloads::Scale;

/// Why the filter leaves the pod `default/p` of a cluster.
fn refusal(arguments: &Value, cluster: &Cluster) -> Option<Refusal> {
    let controller = controller(arguments);
    let id = cluster.pod_id("default/p").unwrap();
    controller.prepare_filter(cluster, at(0)).filter(id).err()
}

fn verdict(arguments: &Value, objects: &[Value]) -> Option<ReasonCode> {
    refusal(arguments, &cluster_of(objects)).map(|refusal| refusal.code)
}

/// What the filter says of a changed pod of a ReplicaSet with 30 replicas.
fn verdict_of(arguments: &Value, change: &Value) -> Option<ReasonCode> {
    verdict(arguments, &[replica_set("rs", 30), with(&ready("p", "n1"), change)])
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

// --- which pods may migrate at all ---

#[test]
fn pods_that_must_not_move_stay() {
    let none = json!({});
    let volume = |volume: Value| json!({"spec": {"volumes": [volume]}});
    for (change, code, allowing) in [
        (annotated("kubernetes.io/config.mirror", "x"), ReasonCode::MirrorPod, None),
        (annotated("kubernetes.io/config.source", "file"), ReasonCode::StaticPod, None),
        (json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}), ReasonCode::Terminating, None),
        (owned("apps/v1", "DaemonSet", "d"), ReasonCode::DaemonSetPod, None),
        (annotated("scheduling.koordinator.sh/eviction-cost", "2147483647"), ReasonCode::EvictionCost, None),
        (
            json!({"metadata": {"ownerReferences": null}}),
            ReasonCode::BarePod,
            Some((json!({"evictAllBarePods": true}), "BarePods")),
        ),
        (
            json!({"spec": {"priority": 2_000_000_000}}),
            ReasonCode::SystemCritical,
            Some((json!({"evictSystemCriticalPods": true}), "SystemCritical")),
        ),
        (
            volume(json!({"name": "v", "emptyDir": {}})),
            ReasonCode::LocalStorage,
            Some((json!({"evictLocalStoragePods": true}), "LocalStorage")),
        ),
    ] {
        assert_eq!(verdict_of(&none, &change), Some(code), "{change}");
        if let Some((allowing, gate)) = allowing {
            assert_eq!(verdict_of(&allowing, &change), None, "{change} with {allowing}");
            assert_eq!(verdict_of(&json!({"skipEvictionGates": [gate]}), &change), None, "{change} without {gate}");
        }
    }
    assert_eq!(verdict_of(&none, &json!({})), None);
    assert_eq!(verdict_of(&none, &annotated("scheduling.koordinator.sh/eviction-cost", "2147483646")), None);
}

#[test]
fn a_failed_pod_without_owner_goes_where_the_arguments_say_so() {
    let failed = json!({"metadata": {"ownerReferences": null}, "status": {"phase": "Failed"}});
    let alive = json!({"metadata": {"ownerReferences": null}});
    let arguments = json!({"evictFailedBarePods": true});
    assert_eq!(verdict_of(&json!({}), &failed), Some(ReasonCode::BarePod));
    assert_eq!(verdict_of(&arguments, &failed), None);
    assert_eq!(verdict_of(&arguments, &alive), Some(ReasonCode::BarePod));
}

#[test]
fn arguments_choose_pods_and_gates_that_are_skipped_do_not() {
    let claim = json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}});
    let selector = json!({"matchLabels": {"app": "x"}});
    for (arguments, change, code, gate) in [
        (json!({"ignorePvcPods": true}), claim, ReasonCode::PersistentVolumeClaim, "PVC"),
        (json!({"namespaces": {"exclude": ["default"]}}), json!({}), ReasonCode::NamespaceNotSelected, "Namespaces"),
        (json!({"namespaces": {"include": ["other"]}}), json!({}), ReasonCode::NamespaceNotSelected, "Namespaces"),
        (json!({"labelSelector": selector}), json!({}), ReasonCode::LabelsNotSelected, "LabelSelector"),
        (
            json!({"priorityThreshold": {"value": 5000}}),
            json!({"spec": {"priority": 5000}}),
            ReasonCode::PriorityThreshold,
            "PriorityThreshold",
        ),
    ] {
        assert_eq!(verdict_of(&arguments, &change), Some(code), "{arguments}");
        let skipping = with(&arguments, &json!({"skipEvictionGates": [gate]}));
        assert_eq!(verdict_of(&skipping, &change), None, "{arguments} without {gate}");
    }
    assert_eq!(verdict_of(&json!({"labelSelector": selector}), &json!({"metadata": {"labels": {"app": "x"}}})), None);
    assert_eq!(verdict_of(&json!({"priorityThreshold": {"value": 5000}}), &json!({"spec": {"priority": 4999}})), None);
}

#[test]
fn a_threshold_by_the_name_of_a_class_holds() {
    let class = json!({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5000});
    let threshold = json!({"priorityThreshold": {"name": "high"}});
    for (priority, classes, expected) in [
        (5000, vec![class.clone()], Some(ReasonCode::PriorityThreshold)),
        (4999, vec![class], None),
        (0, vec![], Some(ReasonCode::PriorityThreshold)),
    ] {
        let pod = with(&ready("p", "n1"), &json!({"spec": {"priority": priority}}));
        let objects: Vec<Value> = [replica_set("rs", 30), pod].into_iter().chain(classes).collect();
        assert_eq!(verdict(&threshold, &objects), expected, "{priority}");
    }
}

#[test]
fn the_threshold_does_not_hold_where_critical_pods_may_go() {
    let arguments = json!({"priorityThreshold": {"value": 5000}, "evictSystemCriticalPods": true});
    assert_eq!(verdict_of(&arguments, &json!({"spec": {"priority": 9000}})), None);
}

// --- jobs and schedulers ---

#[test]
fn a_pod_whose_job_has_not_ended_gets_no_second_one() {
    let none = json!({});
    let of = |job: Value| verdict(&none, &[replica_set("rs", 30), ready("p", "n1"), job]);
    assert_eq!(of(job("j", "p")), Some(ReasonCode::MigratingAlready));
    assert_eq!(of(running("j", "p")), Some(ReasonCode::MigratingAlready));
    assert_eq!(of(with(&job("j", "p"), &json!({"spec": {"paused": true}}))), Some(ReasonCode::MigratingAlready));
    assert_eq!(of(with(&job("j", "p"), &json!({"status": {"phase": "Failed"}}))), None);
    assert_eq!(of(job("j", "other")), None);
}

#[test]
fn reservations_need_a_scheduler_that_serves_them() {
    let other = json!({"spec": {"schedulerName": "default-scheduler"}});
    assert_eq!(verdict_of(&json!({}), &other), Some(ReasonCode::SchedulerWithoutReservations));
    assert_eq!(verdict_of(&json!({"schedulerNames": ["mine", "default-scheduler"]}), &other), None);
    assert_eq!(
        verdict_of(&json!({"schedulerNames": ["mine"]}), &json!({})),
        Some(ReasonCode::SchedulerWithoutReservations)
    );
    assert_eq!(verdict_of(&json!({"defaultJobMode": "EvictDirectly"}), &other), None);
}

#[test]
fn the_annotation_lets_a_pod_go_past_all_but_its_job_and_scheduler() {
    let arguments = json!({"namespaces": {"exclude": ["default"]}, "maxMigratingGlobally": 1});
    let annotation = annotated(EVICT, "1");
    let bare = with(&annotation, &json!({"metadata": {"ownerReferences": null}}));
    let costly = with(&annotation, &annotated("scheduling.koordinator.sh/eviction-cost", "2147483647"));
    for change in [&annotation, &bare, &costly] {
        let pod = with(&ready("p", "n1"), change);
        assert_eq!(verdict(&arguments, &[pod, ready("o", "n1"), running("j", "o")]), None, "{change}");
    }
    let pod = with(&ready("p", "n1"), &annotation);
    assert_eq!(verdict(&json!({}), &[pod.clone(), job("j", "p")]), Some(ReasonCode::MigratingAlready));
    let elsewhere = with(&pod, &json!({"spec": {"schedulerName": "default-scheduler"}}));
    assert_eq!(verdict(&json!({}), &[elsewhere]), Some(ReasonCode::SchedulerWithoutReservations));
}

// --- expected replicas ---

#[test]
fn a_workload_keeps_some_of_its_replicas() {
    let no_limit = json!({});
    let limits = |migrating: Value, unavailable: Value| json!({"maxMigratingPerWorkload": migrating, "maxUnavailablePerWorkload": unavailable});
    for (replicas, arguments, expected) in [
        (1, no_limit.clone(), Some(ReasonCode::SingleReplica)),
        (0, no_limit.clone(), Some(ReasonCode::SingleReplica)),
        (2, no_limit.clone(), None),
        (3, no_limit, None),
        (100, limits(json!(99), json!(100)), Some(ReasonCode::LimitEqualsReplicas)),
        (100, limits(json!(99), json!(10)), None),
        (5, limits(json!(5), json!(2)), Some(ReasonCode::LimitEqualsReplicas)),
        (5, limits(json!(2), json!("100%")), Some(ReasonCode::LimitEqualsReplicas)),
        // A limit above the replicas is cut to them, and does not forbid every migration.
        (10, limits(json!(20), json!(20)), None),
        (5, limits(json!(2), json!("150%")), None),
        (1, limits(json!(20), json!("100%")), Some(ReasonCode::SingleReplica)),
    ] {
        let objects = [replica_set("rs", replicas), ready("p", "n1")];
        assert_eq!(verdict(&arguments, &objects), expected, "{replicas} {arguments}");
    }
}

#[test]
fn skip_check_expected_replicas_lets_all_replicas_of_a_workload_go() {
    for arguments in [json!({"skipCheckExpectedReplicas": true}), json!({"skipEvictionGates": ["ExpectedReplicas"]})] {
        assert_eq!(verdict(&arguments, &[replica_set("rs", 1), ready("p", "n1")]), None, "{arguments}");
    }
}

#[test]
fn the_refusal_of_a_single_replica_says_what_allows_it() {
    let cluster = cluster_of(&[replica_set("rs", 1), ready("p", "n1")]);
    let refusal = refusal(&json!({"maxUnavailablePerWorkload": "100%"}), &cluster).unwrap();
    assert_eq!(refusal.reason().operand("replicas"), Some("1"));
    let text = refusal.to_string();
    assert!(text.contains("single replica") && text.contains("skipCheckExpectedReplicas"), "{text}");
}

#[test]
fn a_workload_is_found_by_kind_name_and_uid() {
    for (api_version, kind) in [
        ("v1", "ReplicationController"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
    ] {
        let pod = with(&ready("p", "n1"), &owned(api_version, kind, "w"));
        let of = |replicas| verdict(&json!({}), &[workload(api_version, kind, "w", replicas), pod.clone()]);
        assert_eq!((of(5), of(1)), (None, Some(ReasonCode::SingleReplica)), "{api_version} {kind}");
        let other = with(&workload(api_version, kind, "w", 5), &json!({"metadata": {"uid": "other"}}));
        for objects in [vec![pod.clone()], vec![pod.clone(), other]] {
            assert_eq!(verdict(&json!({}), &objects), Some(ReasonCode::WorkloadNotFound), "{api_version} {kind}");
        }
    }
}

#[test]
fn other_kinds_count_by_their_scale() {
    let pod = with(&ready("p", "n1"), &owned("example.org/v1", "Widget", "w"));
    let of = |arguments: Value, scale: Option<Scale>| {
        let mut cluster = cluster_of(std::slice::from_ref(&pod));
        if let Some(scale) = scale {
            cluster.set_object(scale.object(&Uid::from("w")));
        }
        refusal(&arguments, &cluster).map(|refusal| refusal.code)
    };
    let skipping = json!({"skipCheckExpectedReplicas": true});
    for (scale, expected, skipped) in [
        (None, Some(ReasonCode::WorkloadNotLookedUp), Some(ReasonCode::WorkloadNotLookedUp)),
        (Some(Scale::Replicas(5)), None, None),
        (Some(Scale::Replicas(1)), Some(ReasonCode::SingleReplica), None),
        (Some(Scale::NotFound), Some(ReasonCode::WorkloadNotFound), Some(ReasonCode::WorkloadNotFound)),
        (Some(Scale::Failed), Some(ReasonCode::WorkloadLookupFailed), Some(ReasonCode::WorkloadLookupFailed)),
    ] {
        assert_eq!(of(json!({}), scale), expected, "{scale:?}");
        assert_eq!(of(skipping.clone(), scale), skipped, "{scale:?} without the check of replicas");
    }
}

#[test]
fn pods_of_unknown_workloads_wait_where_all_replicas_may_go() {
    let arguments = json!({"skipCheckExpectedReplicas": true});
    let of_job = with(&ready("p", "n1"), &owned("batch/v1", "Job", "b"));
    assert_eq!(verdict(&arguments, std::slice::from_ref(&of_job)), Some(ReasonCode::WorkloadNotFound));
    let one_at_a_time = with(&arguments, &json!({"skipEvictionGates": ["MaxUnavailablePerWorkload"]}));
    let another = with(&ready("o", "n2"), &owned("batch/v1", "Job", "b"));
    let both = [of_job.clone(), another, running("j", "o")];
    assert_eq!(verdict(&one_at_a_time, &both[..2]), None);
    assert_eq!(verdict(&one_at_a_time, &both), Some(ReasonCode::WorkloadNotFound));
    let gates =
        json!({"skipEvictionGates": ["ExpectedReplicas", "MaxMigratingPerWorkload", "MaxUnavailablePerWorkload"]});
    assert_eq!(verdict(&gates, &both), None);
}

// --- limits ---

#[test]
fn jobs_of_other_pods_count_for_each_limit() {
    let objects = |jobs: &[Value]| {
        let pods = [ready("p", "n1"), ready("same", "n1"), ready("more", "n1"), ready("far", "n2")];
        [replica_set("rs", 30)].iter().chain(&pods).chain(jobs).cloned().collect::<Vec<Value>>()
    };
    let wide = json!({"maxMigratingPerNode": 0, "maxMigratingPerWorkload": 20, "maxUnavailablePerWorkload": 20});
    for (limit, value, jobs, expected) in [
        ("maxMigratingPerNode", 1, vec![running("a", "same")], Some(ReasonCode::MigratingPerNode)),
        ("maxMigratingPerNode", 1, vec![job("a", "same")], Some(ReasonCode::MigratingPerNode)),
        ("maxMigratingPerNode", 1, vec![running("a", "far")], None),
        ("maxMigratingPerNode", 2, vec![running("a", "same"), running("b", "same")], None),
        (
            "maxMigratingPerNode",
            2,
            vec![running("a", "same"), running("b", "more")],
            Some(ReasonCode::MigratingPerNode),
        ),
        ("maxMigratingPerNode", 0, vec![running("a", "same"), running("b", "more")], None),
        ("maxMigratingPerNamespace", 1, vec![running("a", "far")], Some(ReasonCode::MigratingPerNamespace)),
        ("maxMigratingPerNamespace", 1, vec![running("a", "gone")], Some(ReasonCode::MigratingPerNamespace)),
        ("maxMigratingPerNamespace", 2, vec![running("a", "far")], None),
        ("maxMigratingGlobally", 1, vec![running("a", "far")], Some(ReasonCode::MigratingGlobally)),
        ("maxMigratingGlobally", 2, vec![running("a", "far")], None),
        ("maxMigratingPerWorkload", 1, vec![running("a", "far")], Some(ReasonCode::MigratingPerWorkload)),
        ("maxUnavailablePerWorkload", 1, vec![running("a", "far")], Some(ReasonCode::UnavailablePerWorkload)),
        ("maxUnavailablePerWorkload", 2, vec![running("a", "far")], None),
    ] {
        let arguments = with(&wide, &json!({limit: value}));
        assert_eq!(verdict(&arguments, &objects(&jobs)), expected, "{limit} {value} {jobs:?}");
        let mut gate = limit.to_owned();
        gate.replace_range(..1, "M");
        let skipping = with(&arguments, &json!({"skipEvictionGates": [gate]}));
        assert_eq!(verdict(&skipping, &objects(&jobs)), None, "{limit} is skipped");
    }
    let elsewhere = with(&running("a", "x"), &json!({"spec": {"podRef": {"namespace": "other"}}}));
    assert_eq!(verdict(&with(&wide, &json!({"maxMigratingPerNamespace": 1})), &objects(&[elsewhere])), None);
}

#[test]
fn by_default_two_pods_of_a_node_migrate_at_a_time() {
    let pods = [ready("p", "n1"), ready("a", "n1"), ready("b", "n1"), replica_set("rs", 50)];
    let with_jobs = |jobs: &[Value]| verdict(&json!({}), &pods.iter().chain(jobs).cloned().collect::<Vec<_>>());
    assert_eq!(with_jobs(&[running("a", "a")]), None);
    assert_eq!(with_jobs(&[running("a", "a"), running("b", "b")]), Some(ReasonCode::MigratingPerNode));
}

#[test]
fn a_paused_job_that_has_not_started_takes_no_room() {
    let arguments = json!({"maxMigratingGlobally": 1});
    let paused = json!({"spec": {"paused": true}});
    let with_job = |job: Value| verdict(&arguments, &[replica_set("rs", 30), ready("p", "n1"), ready("o", "n2"), job]);
    assert_eq!(with_job(with(&job("j", "o"), &paused)), None);
    assert_eq!(with_job(with(&running("j", "o"), &paused)), Some(ReasonCode::MigratingGlobally));
}

#[test]
fn pods_of_all_replica_sets_of_a_deployment_count_together() {
    let arguments = json!({"maxMigratingPerNode": 0, "maxMigratingPerWorkload": 5, "maxUnavailablePerWorkload": 1});
    let deployment = workload("apps/v1", "Deployment", "dep", 10);
    let sets = [replica_set_of("dep", "rs1", 5), replica_set_of("dep", "rs2", 1)];
    let of = |pod: &Value, set: &str| with(pod, &owned("apps/v1", "ReplicaSet", set));
    let pods = [of(&ready("p", "n1"), "rs1"), of(&ready("o", "n1"), "rs2")];
    let objects: Vec<Value> = sets.iter().chain(&pods).cloned().chain([deployment]).collect();
    assert_eq!(verdict(&arguments, &objects), None, "replicas of the Deployment count, not those of the ReplicaSet");
    let migrating: Vec<Value> = objects.iter().cloned().chain([running("j", "o")]).collect();
    assert_eq!(verdict(&arguments, &migrating), Some(ReasonCode::UnavailablePerWorkload));
    let one = with(&arguments, &json!({"maxMigratingPerWorkload": 1, "maxUnavailablePerWorkload": 5}));
    assert_eq!(verdict(&one, &migrating), Some(ReasonCode::MigratingPerWorkload));
    assert_eq!(verdict(&arguments, &objects[..4]), Some(ReasonCode::WorkloadNotFound), "without the Deployment");
}

#[test]
fn pods_that_are_not_ready_have_ended_or_are_being_deleted_are_unavailable() {
    let arguments = json!({"maxUnavailablePerWorkload": 1, "maxMigratingPerWorkload": 20});
    let other = |change: Value| {
        let other = with(&ready("o", "n2"), &change);
        verdict(&arguments, &[replica_set("rs", 30), ready("p", "n1"), other])
    };
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    assert_eq!(other(json!({})), None);
    for change in [
        not_ready.clone(),
        json!({"status": {"phase": "Succeeded"}}),
        json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}),
    ] {
        assert_eq!(other(change.clone()), Some(ReasonCode::UnavailablePerWorkload), "{change}");
    }
    // QUIRK: a pod that is not ready counts itself.
    assert_eq!(verdict_of(&arguments, &not_ready), Some(ReasonCode::UnavailablePerWorkload));
    // A pod that is not ready and migrates counts once.
    let two = json!({"maxUnavailablePerWorkload": 2, "maxMigratingPerWorkload": 20});
    let objects = [replica_set("rs", 30), ready("p", "n1"), with(&ready("o", "n2"), &not_ready), running("j", "o")];
    assert_eq!(verdict(&two, &objects), None);
}

// --- a pass ---

#[test]
fn the_jobs_that_a_pass_makes_count_over_all_profiles() {
    let pods: Vec<Value> = (0..6).map(|index| ready(&format!("p{index}"), "n1")).collect();
    let objects: Vec<Value> = pods.into_iter().chain([ready("q0", "n2"), replica_set("rs", 60)]).collect();
    let cluster = cluster_of(&objects);
    let wide = json!({"maxMigratingPerNode": 0, "maxMigratingPerWorkload": 20, "maxUnavailablePerWorkload": 20});
    for (limit, value, expected) in [
        ("maxMigratingPerNode", 1, 2),
        ("maxMigratingPerNode", 2, 3),
        ("maxMigratingGlobally", 3, 3),
        ("maxMigratingPerNamespace", 4, 4),
        ("maxMigratingPerWorkload", 2, 2),
        ("maxUnavailablePerWorkload", 1, 1),
        ("maxMigratingPerNode", 0, 7),
    ] {
        let arguments = with(&wide, &json!({limit: value}));
        for profiles in [&["a"][..], &["a", "b"]] {
            let evictions = evictions(&arguments, profiles, &cluster);
            assert_eq!(evictions.len(), expected, "{limit} {value} in {profiles:?}");
        }
    }
}

#[test]
fn jobs_carry_what_the_arguments_say() {
    let cluster = cluster_of(&[replica_set("rs", 60), ready("p", "n1")]);
    let means = |arguments: Value| evictions(&arguments, &["a"], &cluster).remove(0).means;
    let mode = PodMigrationJobMode::ReservationFirst;
    assert_eq!(means(json!({})), Means::Job { mode: mode.clone(), ttl_ms: 300_000, delete_options: None });
    assert_eq!(means(json!({"defaultJobTTL": "0s"})), Means::Job { mode, ttl_ms: 0, delete_options: None });
    let options = json!({"gracePeriodSeconds": 3});
    let arguments =
        json!({"defaultJobMode": "EvictDirectly", "defaultJobTTL": "7m", "defaultDeleteOptions": options.clone()});
    let mode = PodMigrationJobMode::EvictDirectly;
    assert_eq!(means(arguments), Means::Job { mode, ttl_ms: 420_000, delete_options: Some(options) });
    assert_eq!(means(json!({"dryRun": true})), Means::DryRun);
}

#[test]
fn with_node_fit_a_pod_has_to_fit_another_selected_node() {
    let pinned = with(&ready("p", "n1"), &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
    let cluster = cluster_of(&[replica_set("rs", 60), pinned]);
    let count = |arguments: Value, cluster: &Cluster| evictions(&arguments, &["a"], cluster).len();
    assert_eq!(count(json!({}), &cluster), 1);
    assert_eq!(count(json!({"nodeFit": true}), &cluster), 0);
    assert_eq!(count(json!({"nodeFit": true, "skipEvictionGates": ["NodeFit"]}), &cluster), 1);
    let free = cluster_of(&[replica_set("rs", 60), ready("p", "n1")]);
    assert_eq!(count(json!({"nodeFit": true}), &free), 1);
    assert_eq!(count(json!({"nodeFit": true, "nodeSelector": "kubernetes.io/hostname=n1"}), &free), 0);
}

#[test]
fn a_pod_of_a_workload_that_an_eviction_was_just_made_of_gets_no_job() {
    let objects = [replica_set("rs", 60), ready("p", "n1"), ready("gone", "n2")];
    let mut cluster = cluster_of(&objects);
    let arguments = json!({"maxMigratingPerWorkload": 1});
    assert_eq!(evictions(&arguments, &["a"], &cluster).len(), 1);
    let mut limiters = ObjectLimiters::default();
    let gone = Arc::clone(cluster.pod(cluster.pod_id("default/gone").unwrap()).unwrap());
    controller(&arguments).count_eviction(&mut limiters, &cluster, &gone, None, at(-1000));
    limiters.store(&mut cluster);
    assert_eq!(evictions(&arguments, &["a"], &cluster), []);
    assert_eq!(evictions(&with(&arguments, &json!({"dryRun": true})), &["a"], &cluster).len(), 1);
}

#[test]
fn arguments_that_cannot_be_read_are_reported() {
    let error =
        |change: Value| MigrationController::new(&args::<MigrationControllerArgs>("MigrationController", &change));
    for (change, field) in [
        (json!({"maxMigratingPerWorkload": "5"}), "maxMigratingPerWorkload"),
        (json!({"maxUnavailablePerWorkload": "x%"}), "maxUnavailablePerWorkload"),
        (json!({"objectLimiters": {"workload": {"maxMigrating": "5"}}}), "objectLimiters.workload.maxMigrating"),
    ] {
        let text = error(change).unwrap_err().to_string();
        assert!(text.starts_with(field), "{text}");
    }
}

#[test]
fn the_plugin_reads_jobs_classes_and_workloads() {
    let registration = Arc::new(controller(&json!({}))).register();
    let kinds: Vec<&str> = registration.reads.iter().map(|kind| kind.kind).collect();
    let workloads = ["ReplicationController", "Deployment", "ReplicaSet", "StatefulSet", "CloneSet", "StatefulSet"];
    assert_eq!(kinds[..2], ["PodMigrationJob", "PriorityClass"]);
    assert_eq!(kinds[2..], workloads);
}
