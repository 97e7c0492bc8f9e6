//! What is written beside attempts.

use koord_core::write::{Action, Write};
use koord_quota::Quota;

use super::*;

impl World {
    /// What is to be written, as `kind name: what`.
    fn status_updates(&self) -> Vec<(String, Write)> {
        let writes = self.engine.status_updates().writes.into_iter();
        writes.map(|write| (format!("{} {}", write.action.verb(), write.key.as_str()), write)).collect()
    }

    /// Writes are done, and their objects seen.
    fn write(&mut self) -> Vec<String> {
        let status_updates = self.status_updates();
        for (_, Write { key, action, .. }) in &status_updates {
            let now = self.now();
            let mut object = match action {
                Action::Create(object) => object.clone(),
                Action::Patch { patch, .. } => {
                    let known = self.engine.cluster().objects().get::<ElasticQuota>(key.as_str()).unwrap();
                    let spec = json!({"min": known.spec.min, "max": known.spec.max});
                    let mut object = json!({"metadata": known.metadata, "spec": spec, "status": patch["status"]});
                    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
                    for (name, text) in annotations {
                        object["metadata"]["annotations"][name] = text.clone();
                    }
                    object
                }
                _ => continue,
            };
            if object["status"].is_null() {
                object["status"] = json!({});
            }
            let quota: ElasticQuota = serde_json::from_value(object).unwrap();
            let object = Object::new(key.clone(), Uid::from(key.name()), false, Arc::new(quota));
            self.engine.set_object(object, now);
        }
        status_updates.into_iter().map(|(shown, _)| shown).collect()
    }
}

const BUILT_IN: [&str; 3] = [
    "create koordinator-system/koordinator-root-quota",
    "create koordinator-system/koordinator-system-quota",
    "create koordinator-system/koordinator-default-quota",
];

#[test]
fn quotas_that_exist_in_every_cluster_are_made_once() {
    let mut world = World::new(QuotaSettings::default());
    let status_updates = world.status_updates();
    let spec = |index: usize| match &status_updates[index].1.action {
        Action::Create(object) => (object["metadata"]["labels"].clone(), object["spec"].clone()),
        other => panic!("{other:?}"),
    };
    let root = json!({
        "quota.scheduling.koordinator.sh/allow-lent-resource": "false",
        "quota.scheduling.koordinator.sh/is-parent": "true",
        "quota.scheduling.koordinator.sh/parent": "",
    });
    let most = json!({"max": {"cpu": "1844674407370955161", "memory": "1844674407370955161"}});
    assert_eq!([spec(0), spec(1), spec(2)], [(root, json!({})), (json!({}), most.clone()), (json!({}), most)]);
    assert_eq!((world.write(), world.write()), (BUILT_IN.map(str::to_owned).to_vec(), vec![]));
    let (key, now) = (BUILT_IN[1].split_once(' ').unwrap().1, world.now());
    world.engine.remove_object(TypeId::of::<ElasticQuota>(), key, now);
    assert_eq!(world.write(), [BUILT_IN[1]], "it was deleted");
}

#[test]
fn what_is_observed_is_written_once_and_again_when_it_has_changed() {
    let mut world = World::new(QuotaSettings::default());
    world.write();
    world.quota("q1", "5", "10", &json!({"annotations": {"kept": "yes"}}));
    assert_eq!(world.write(), [""; 0], "nothing is requested");
    world.place(pod("a", "q1", "6", 0));
    let status_updates = world.status_updates();
    let Action::Patch { subresource: "", patch } = &status_updates[1].1.action else { panic!("{status_updates:?}") };
    let amounts = r#"{"cpu":"6","memory":"1Gi"}"#;
    let annotations = json!({
        "quota.scheduling.koordinator.sh/child-request": amounts,
        "quota.scheduling.koordinator.sh/request": amounts,
        "quota.scheduling.koordinator.sh/runtime": amounts,
    });
    let metadata = json!({"uid": "q1", "annotations": annotations});
    assert_eq!(*patch, json!({"metadata": metadata, "status": {"used": {"cpu": "6", "memory": "1Gi"}}}));
    let both = ["patch koordinator-system/koordinator-root-quota", "patch ns/q1"];
    let sorted = |mut writes: Vec<String>| {
        writes.sort();
        writes
    };
    assert_eq!(sorted(world.write()), both);
    assert_eq!(world.write(), [""; 0]);
    world.delete("a");
    assert_eq!(sorted(world.write()), both);
    let used = &world.engine.cluster().objects().get::<ElasticQuota>("ns/q1").unwrap().status.used;
    assert_eq!(serde_json::to_value(used).unwrap(), json!({"cpu": "0", "memory": "0"}), "not unknown");
    assert_eq!(world.write(), [""; 0]);
}

#[test]
fn of_quotas_with_one_name_only_the_one_that_counts_is_written() {
    let mut world = World::new(QuotaSettings::default());
    world.write();
    let now = world.now();
    let later = json!({"metadata": {"name": "q1", "namespace": "other"}, "spec": {"max": {"cpu": "1"}}});
    let later: ElasticQuota = serde_json::from_value(later).unwrap();
    let object = Object::new(ObjectKey::new("other", "q1"), Uid::from("2"), false, Arc::new(later));
    world.engine.set_object(object, now);
    world.quota("q1", "5", "10", &json!({}));
    world.place(pod("a", "q1", "6", 0));
    let keys: Vec<String> = world.status_updates().into_iter().map(|(shown, _)| shown).collect();
    assert_eq!(keys, ["patch koordinator-system/koordinator-root-quota", "patch ns/q1"]);
}

#[test]
fn a_quota_that_uses_too_much_for_long_loses_its_least_important_pods() {
    let seconds = jiff::SignedDuration::from_secs;
    let revocation = Some(Revocation { every: seconds(1), after: seconds(3) });
    let mut world = World::new(QuotaSettings { revocation, ..QuotaSettings::default() });
    world.write();
    world.quota("q1", "30", "100", &json!({}));
    world.quota("q2", "60", "100", &json!({}));
    let bound = |name: &str, cpu, priority| {
        let pod = pod(name, "q1", cpu, priority);
        Arc::new(Pod { node: Some("n1".into()), ..Pod::clone(&pod) })
    };
    let now = world.now();
    // The least important one is of another scheduler, which is not evicted.
    let theirs = with(&bound("c", "10", 0), |template| template.scheduler = "default-scheduler".into());
    for pod in [bound("a", "30", 5), bound("b", "30", 1), theirs] {
        world.engine.set_pod(pod, now);
    }
    world.tick(0);
    world.write();
    world.refuse(pod("d", "q2", "50", 0));
    let evicted = |world: &mut World, second| {
        world.tick(second);
        let again = world.engine.status_updates().again.map(jiff::Timestamp::as_second);
        assert_eq!(again, Some(i64::try_from(second).unwrap() + 1), "it is looked at every second");
        world.write().into_iter().filter(|shown| !shown.starts_with("patch")).collect::<Vec<_>>()
    };
    assert_eq!([1, 2, 4].map(|second| evicted(&mut world, second).len()), [0, 0, 0]);
    assert_eq!(evicted(&mut world, 5), ["create ns/b"], "an eviction is created");
    assert_eq!(evicted(&mut world, 6), ["create ns/b"], "as long as it is not going");
    let going = Arc::new(Pod { deleting: true, ..Pod::clone(&bound("b", "30", 1)) });
    let now = world.now();
    world.engine.set_pod(going, now);
    assert_eq!([7, 9].map(|second| evicted(&mut world, second).len()), [0, 0]);
    assert_eq!(evicted(&mut world, 20), [""; 0], "what goes already makes room enough");
    world.delete("b");
    assert_eq!(evicted(&mut world, 30), [""; 0]);
}

#[test]
fn pods_of_a_quota_that_uses_too_much_are_evicted_only_by_the_overuse_monitor() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "10", &json!({}));
    world.place(pod("a", "q1", "8", 0));
    world.quota("q1", "5", "5", &json!({}));
    world.tick(1000);
    assert!(world.status_updates().iter().all(|(shown, _)| !shown.ends_with("/a")));
    assert_eq!(world.engine.tick_at(), None);
}

#[test]
fn usage_is_guaranteed_where_that_is_configured() {
    let tried = |guarantees_usage| {
        let mut world = World::new(QuotaSettings { guarantees_usage, ..QuotaSettings::default() });
        world.write();
        let parent = |name: &str| json!({"labels": {"quota.scheduling.koordinator.sh/parent": name}});
        world.quota("par", "10", "100", &json!({"labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}}));
        world.quota("q1", "10", "100", &parent("par"));
        world.quota("q2", "20", "100", &json!({}));
        world.place(pod("a", "q1", "70", 0));
        let now = world.now();
        world.engine.set_pod(with(&pod("b", "q2", "50", 0), |template| template.scheduler = "other".into()), now);
        let limit = |name| {
            let quotas: &Quotas = world.engine.cluster().state().unwrap();
            quotas.forest().limit(name).amount("cpu").value()
        };
        let limits = ["par", "q1", "q2"].map(limit);
        world.write();
        let said = |quota: &str, key: &str| {
            let quota = world.engine.cluster().objects().get::<ElasticQuota>(&format!("ns/{quota}")).unwrap();
            let annotations = quota.metadata.annotations.clone().unwrap_or_default();
            annotations.get(&format!("quota.scheduling.koordinator.sh/{key}")).cloned()
        };
        let written = ["q1", "par"].map(|quota| ["allocated", "guaranteed"].map(|key| said(quota, key)));
        (limits, written)
    };
    assert_eq!(tried(false), ([50, 50, 50], [[None, None], [None, None]]));
    let of = |cpu, memory| Some(format!(r#"{{"cpu":"{cpu}","memory":"{memory}Gi"}}"#));
    let written = [[of(70, 1), of(70, 10)], [of(70, 10), of(70, 10)]];
    assert_eq!(tried(true), ([70, 70, 30], written));
}

#[test]
fn a_guarantee_follows_the_pods_and_the_min() {
    let mut world = World::new(QuotaSettings { guarantees_usage: true, ..QuotaSettings::default() });
    world.quota("q1", "10", "100", &json!({}));
    let guaranteed = |world: &World| {
        let quotas: &Quotas = world.engine.cluster().state().unwrap();
        quotas.forest().node("q1").unwrap().guaranteed.amount("cpu").value()
    };
    assert_eq!(guaranteed(&world), 10);
    world.place(pod("a", "q1", "30", 0));
    assert_eq!(guaranteed(&world), 30);
    world.quota("q1", "40", "100", &json!({}));
    assert_eq!(guaranteed(&world), 40);
    world.delete("a");
    world.quota("q1", "5", "100", &json!({}));
    assert_eq!(guaranteed(&world), 5);
}

#[test]
fn quotas_are_read_alike_whatever_the_scheduler_has_written() {
    let written = json!({"metadata": {"name": "q", "annotations": {
        "quota.scheduling.koordinator.sh/guaranteed": r#"{"cpu":"1"}"#,
        "quota.scheduling.koordinator.sh/child-request": r#"{"cpu":"1"}"#,
    }}});
    let quota = |object: Value| quotas::decisive(&serde_json::from_value::<ElasticQuota>(object).unwrap());
    let plain: Quota = quota(json!({"metadata": {"name": "q"}}));
    assert_eq!(quota(written), plain);
}
