//! Resources under names that they had before.

use koord_scheduler_framework::AttemptState;
use koord_types::resource_names::{BATCH_CPU, BATCH_MEMORY};

use super::*;

#[test]
fn min_and_max_limit_batch_resources_under_their_deprecated_names() {
    let read = |amounts: &Value| {
        let spec = json!({"min": amounts, "max": amounts});
        let object: ElasticQuota = serde_json::from_value(json!({"metadata": {"name": "q"}, "spec": spec})).unwrap();
        let quota = quotas::decisive(&object);
        assert_eq!(quota.min, quota.max);
        json!(quota.max)
    };
    let (old, new) = (["koordinator.sh/batch-cpu", "koordinator.sh/batch-memory"], [BATCH_CPU, BATCH_MEMORY]);
    for (written, known) in [
        (json!({old[0]: "1k", old[1]: "1Gi", "cpu": "2"}), json!({new[0]: "1k", new[1]: "1Gi", "cpu": "2"})),
        (json!({old[0]: "1k", new[0]: "2k"}), json!({old[0]: "1k", new[0]: "2k"})),
        (json!({old[0]: "1k", new[1]: "1Gi"}), json!({new[0]: "1k", new[1]: "1Gi"})),
        (json!({"kubernetes.io/gpu": "1"}), json!({"kubernetes.io/gpu": "1"})),
    ] {
        assert_eq!(read(&written), known, "{written}");
    }
}

#[test]
fn a_quota_of_batch_cpu_under_its_deprecated_name_refuses_what_is_more() {
    let mut world = World::new(QuotaSettings::default());
    let spec = json!({"max": {"koordinator.sh/batch-cpu": "1000"}});
    let metadata = json!({"name": "q1", "namespace": "ns"});
    let quota: ElasticQuota = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    let object = Object::new(ObjectKey::new("ns", "q1"), Uid::from("q1"), false, Arc::new(quota));
    let now = world.now();
    world.engine.set_object(object, now);
    let requests = json!({"containers": [{"resources": {"requests": {BATCH_CPU: "1500"}}}], "schedulerName": "test"});
    let large =
        koord_scheduler_testing::labelled("ns", "a", &[("quota.scheduling.koordinator.sh/name", "q1")], &requests);
    let message = world.refuse(large).message;
    assert!(
        message.contains("quotaName: q1") && message.contains("exceedDimensions: [kubernetes.io/batch-cpu]"),
        "{message}"
    );
}

#[test]
fn a_quota_that_does_not_exist_is_named_where_the_default_quota_refuses_the_pod_and_where_it_takes_it() {
    let default_max = [("cpu", "4".parse().unwrap())].into_iter().collect();
    let mut world = World::new(QuotaSettings { default_max, ..QuotaSettings::default() });
    let said = |world: &mut World, cpu: &str| {
        let now = world.now();
        world.engine.set_pod(pod("p", "typo", cpu, 0), now);
        koord_scheduler_testing::coded(&world.engine, "p", now)
    };
    let remark = "remark: QuotaNotFound quota=typo counted_in=koordinator-default-quota";
    assert_eq!(said(&mut world, "2"), [remark]);
    let refused = said(&mut world, "8");
    assert!(
        refused[0] == remark
            && refused[1].starts_with("QuotaNotFound quota=typo counted_in=koordinator-default-quota limit=cpu:4"),
        "{refused:?}"
    );
    world.quota("typo", "1", "20", &json!({}));
    assert_eq!(said(&mut world, "8"), [""; 0], "it exists now");
}

#[test]
fn a_pod_that_names_the_root_counts_in_the_default_quota() {
    let default_max = [("cpu", "4".parse().unwrap())].into_iter().collect();
    let mut world = World::new(QuotaSettings { default_max, ..QuotaSettings::default() });
    world.place(pod("a", ROOT_QUOTA, "3", 0));
    let message = world.refuse(pod("b", ROOT_QUOTA, "2", 0)).message;
    assert!(message.contains("quotaName: koordinator-default-quota, runtime: cpu:4, used: cpu:3"), "{message}");
    let mut cluster = world.engine.cluster().clone();
    let quotas = cluster.state::<Quotas>().unwrap();
    let used = |name: &str| quotas.status(name).unwrap().used.amount("cpu").value();
    assert_eq!([DEFAULT_QUOTA, ROOT_QUOTA].map(used), [3, 3], "as every pod it counts in the sum of all");
    let pod = pod("c", ROOT_QUOTA, "1", 0);
    let class = cluster.class(&pod.template);
    let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let remarks = ElasticQuotaPlugin::from(QuotaSettings::default()).remarks(&request, &cluster);
    let texts: Vec<&str> = remarks.iter().map(|remark| remark.text.as_str()).collect();
    assert_eq!(texts, ["koordinator-root-quota takes no pods of its own; the pod counts in koordinator-default-quota"]);
}
