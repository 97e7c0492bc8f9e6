//! What is said of pods that find no node where other plugins, or the pods themselves, keep them from it.

use koord_config::scheduler::{DefaultPreemptionArgs, SchedulingHintArgs};
use koord_scheduler_plugins_kubernetes::{DefaultPreemption, InterPodAffinity};
use koord_types::elastic_quota::ElasticQuota;

use super::{pods::preempting, *};
use crate::{
    SchedulingHint,
    elastic_quota::{ElasticQuotaPlugin, QuotaSettings},
};

/// Nodes of so many cores, with this plugin between NodeResourcesFit and Reservation.
fn beside(other: Arc<dyn Plugin>, cpus: &[u32]) -> World {
    let plugins: Vec<Arc<dyn Plugin>> =
        vec![Arc::new(Reservation::default()), Arc::new(NodeResourcesFit::default()), other];
    let profile =
        Profile { filters: vec![1, 2, 0], post_filters: vec![0], ..Profile::of("default-scheduler", plugins) };
    World::of_profile(profile, cpus)
}

#[test]
fn a_pod_whose_quota_is_short_is_reported_at_the_reservations_that_it_matches() {
    let mut world = beside(Arc::new(ElasticQuotaPlugin::from(QuotaSettings::default())), &[8]);
    let quota = json!({"metadata": {"name": "q1", "namespace": "ns"}, "spec": {"max": {"cpu": "2"}}});
    let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
    let object = Object::new(ObjectKey::new("ns", "q1"), Uid::from("q1"), false, Arc::new(quota));
    world.engine.set_object(object, world.now);
    assert_eq!(world.reserve("r", 4, &json!({})), "n1");
    let labels = [("app", "x"), ("quota.scheduling.koordinator.sh/name", "q1")];
    let short = "Insufficient quotas, quotaName: q1, runtime: cpu:2, used: <empty>, pod's request: cpu:4, \
                 exceedDimensions: [cpu]";
    let of_nodes = format!("1 Reservation(s) for node reason that {short}, 1 Reservation(s) matched owner total");
    assert_eq!(world.pod("p", 4, &labels, ""), format!("0/1 nodes are available: {short}. {of_nodes}"));
    assert_eq!(world.events, []);
    let named = "1 Reservation(s) exactly matches the requested reservation name";
    let said = world.pod("q", 4, &labels, r#"{"name":"r"}"#);
    assert_eq!(said, format!("0/1 nodes are available: {short}. {named}, {of_nodes}"));
    let event =
        format!("0/1 reservations are available: {named}, 1 Reservation(s) for node reason that Insufficient quotas.");
    assert_eq!(world.events, [("FailedScheduling-Reservation", event)]);
}

#[test]
fn a_failed_preemption_is_reported_with_its_reason() {
    let helpless = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let mut world = preempting(&[8]);
    assert_eq!(world.pod("large", 9, &[], ""), format!("{FULL} {helpless}"));
    let large = World::of("modest", 9, &[], "");
    let template = Template { preempts: false, ..Template::clone(&large.template) };
    world.engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..large }), world.now);
    assert_eq!(world.attempt(), format!("{FULL} preemption: not eligible due to preemptionPolicy=Never."));
    world.reserve("r", 4, &json!({}));
    let of_nodes = "1 Reservation(s) for node reason that Insufficient cpu, 1 Reservation(s) matched owner total";
    assert_eq!(world.owner("owner", 9, ""), format!("{FULL} {helpless}, {of_nodes}"));
}

#[test]
fn pods_do_not_go_for_one_whose_quota_is_short() {
    let args = ReservationArgs { enable_preemption: true, ..ReservationArgs::default() };
    let plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(Reservation::new(&args, |_| false)),
        Arc::new(NodeResourcesFit::default()),
        Arc::new(ElasticQuotaPlugin::from(QuotaSettings::default())),
    ];
    let profile =
        Profile { filters: vec![1, 0], post_filters: vec![0, 2], ..Profile::of("default-scheduler", plugins) };
    let mut world = World::of_profile(profile, &[20]);
    let quota =
        json!({"metadata": {"name": "q1", "namespace": "ns"}, "spec": {"min": {"cpu": "10"}, "max": {"cpu": "10"}}});
    let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
    let object = Object::new(ObjectKey::new("ns", "q1"), Uid::from("q1"), false, Arc::new(quota));
    world.engine.set_object(object, world.now);
    let of_quota = ("quota.scheduling.koordinator.sh/name", "q1");
    let protected = ("quota.scheduling.koordinator.sh/preemptible", "false");
    assert_eq!(world.pod("protected", 6, &[of_quota, protected], ""), "n1");
    let important = World::of("important", 6, &[of_quota], "");
    let template = Template { priority: 1000, ..Template::clone(&important.template) };
    world.engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..important }), world.now);
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("the quota is short") };
    assert_eq!(refused.victims, []);
    assert!(refused.message.contains("expected at least one victim pod on node"), "{}", refused.message);
}

#[test]
fn every_post_filter_plugin_reports_why_it_does_not_preempt() {
    let args = ReservationArgs { enable_preemption: true, ..ReservationArgs::default() };
    let plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(Reservation::new(&args, |_| false)),
        Arc::new(NodeResourcesFit::default()),
        Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
    ];
    let profile = Profile { filters: vec![1], post_filters: vec![0, 2], ..Profile::of("default-scheduler", plugins) };
    let helpless = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let said = World::of_profile(profile, &[8]).pod("large", 9, &[], "");
    assert_eq!(said, format!("{FULL} {helpless}, {helpless}"));
}

/// Where an owner goes with a hint of this node and this affinity, where the reservation is on n2, and the event about it.
fn hinted(node: &str, affinity: &str) -> (String, Vec<String>) {
    let mut world = beside(Arc::new(SchedulingHint::new(&SchedulingHintArgs::default())), &[8, 8]);
    world.reserve("r", 4, &json!({"nodeName": "n2", "labels": {"k": "v"}}));
    let pod = World::of("p", 2, &[("app", "x")], affinity);
    let hint = json!({"nodeNames": [node]}).to_string();
    let hint = ("internal.scheduling.koordinator.sh/scheduling-hint", &*hint);
    let annotations = pod.template.annotations.iter().chain([hint]).collect();
    let template = Template { annotations, ..Template::clone(&pod.template) };
    world.engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..pod }), world.now);
    (world.attempt(), world.events.into_iter().map(|(_, said)| said).collect())
}

#[test]
fn reservations_count_on_the_nodes_of_a_scheduling_hint_alone() {
    let none = "0/2 nodes are available: node(s) no reservations match reservation affinity. \
                0 Reservation(s) matched owner total";
    let event = "0/0 reservations are available: .";
    for affinity in [r#"{"reservationSelector":{"k":"v"}}"#, r#"{"name":"r"}"#] {
        assert_eq!(hinted("n1", affinity), (none.to_owned(), vec![event.to_owned()]), "{affinity}");
        assert_eq!(hinted("n2", affinity), ("n2 in r".to_owned(), vec![]), "{affinity}");
    }
    assert_eq!(hinted("n1", ""), ("n1".to_owned(), vec![]));
}

#[test]
fn a_node_that_comes_takes_a_reservation_that_waits_for_it() {
    let mut world = World::new(&[8]);
    let said = world.reserve("r", 4, &json!({"nodeName": "n2"}));
    assert_eq!(said, "0/1 nodes are available: 1 node(s) didn't match the nodeName specified by reservation.");
    let allocatable = json!({"cpu": "8", "memory": "1Ti", "pods": "110"});
    let members =
        json!({"metadata": {"labels": {"kubernetes.io/hostname": "n2"}}, "status": {"allocatable": allocatable}});
    world.now = world.now + std::time::Duration::from_mins(1);
    world.engine.set_node(node("n2", &members), world.now);
    assert_eq!(world.attempt(), "n2");
}

/// A pod of this app that keeps apart from those of the app `x` and from what stands for their Reservations.
fn apart(name: &str, app: &str) -> Pod {
    let term = json!({
        "labelSelector": {"matchLabels": {"app": "x"}}, "namespaces": ["ns", "default"],
        "topologyKey": "kubernetes.io/hostname",
    });
    let spec = json!({
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    });
    let spec = serde_json::from_value(spec).unwrap();
    let template = Template::of("ns", [("app", app)].into_iter().collect(), &BTreeMap::new(), &spec).unwrap();
    Pod { template: Arc::new(template), ..World::of(name, 2, &[], "") }
}

#[test]
fn an_owner_has_no_anti_affinity_with_the_reserve_pod_of_its_reservation() {
    let mut world = beside(Arc::new(InterPodAffinity::default()), &[8]);
    assert_eq!(world.reserve("r", 4, &json!({"labels": {"app": "x"}})), "n1");
    let mut placed = |pod: Pod| {
        world.engine.set_pod(Arc::new(pod), world.now);
        world.attempt()
    };
    let said = placed(apart("other", "y"));
    assert!(said.contains("node(s) didn't match pod anti-affinity rules"), "{said}");
    assert_eq!(placed(apart("p", "x")), "n1 in r");
}
