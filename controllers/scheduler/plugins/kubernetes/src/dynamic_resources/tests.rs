mod history;

use std::sync::Arc;

use koord_core::{
    clock::Moment,
    random::Random,
    write::{Action, Write},
};
use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    AttemptState, BeforePreFilter, EnqueueExtensions, Filter, Plugin, PodActivation, PostFilter, Refusals,
    Registration, Reserve, StatusUpdates, StatusWriter, pod::Template,
};
use serde_json::{Value, json};

use super::{
    testing::{DRIVER, World, claimed, pod, pod_with_template, request},
    *,
};

fn one() -> Value {
    claimed(&json!([request("r", 1, &[])]))
}

fn allocated(node: &str, consumers: &[&str]) -> Value {
    let mut claim = one();
    let result = json!({"request": "r", "driver": DRIVER, "pool": node, "device": "0"});
    let only = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [only]}]});
    let consumers: Vec<Value> = consumers.iter().map(|uid| json!({"resource": "pods", "uid": uid})).collect();
    let allocation = json!({"devices": {"results": [result]}, "nodeSelector": selector});
    claim["status"] = json!({"allocation": allocation, "reservedFor": consumers});
    claim
}

#[test]
fn a_pod_waits_until_its_claims_are_there_and_its_own() {
    let mut world = World::of(&["a"]);
    let held = |world: &World, pod: &Pod| {
        world.plugin.pre_enqueue(pod, &world.cluster).map_or_else(|reason| reason.text, |()| String::new())
    };
    assert_eq!(held(&world, &pod("p", &[])), "");
    assert_eq!(held(&world, &pod("p", &["c"])), "could not find ResourceClaim \"ns/c\"");
    assert_eq!(held(&world, &pod_with_template("p", None)), "pod \"ns/p\": ResourceClaim not created yet");
    world.claim("c", &one());
    assert_eq!(held(&world, &pod("p", &["c"])), "");
    let foreign = "ResourceClaim ns/c was not created for pod ns/p (pod is not owner)";
    assert_eq!(held(&world, &pod_with_template("p", Some("c"))), foreign);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": true});
    let mut owned = one();
    owned["metadata"] = json!({"ownerReferences": [owner]});
    world.claim("c", &owned);
    assert_eq!(held(&world, &pod_with_template("p", Some("c"))), "");
    let claim: ResourceClaim = serde_json::from_value(owned).unwrap();
    let deleting =
        koord_scheduler_framework::object::Object::new(ObjectKey::new("ns", "c"), "c".into(), true, Arc::new(claim));
    world.cluster.set_object(deleting);
    assert_eq!(held(&world, &pod("p", &["c"])), "resourceclaim \"c\" is being deleted");
    let reference = koord_scheduler_framework::pod::Reference { kind: ResourceKind::POD, key: ObjectKey::cluster("r") };
    let reserve_pod = Pod { reservation: Some(Arc::new(reference)), ..Pod::clone(&pod("p", &["c"])) };
    assert_eq!(held(&world, &reserve_pod), "a Reservation cannot have resource claims");
}

#[test]
fn a_claim_with_unknown_requests_is_refused_with_the_reason() {
    let mut world = World::of(&["a"]);
    world.plain("a", &["0"]);
    let exactly = |members: Value| {
        let mut request = request("r", 1, &[]);
        request["exactly"].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        claimed(&json!([request]))
    };
    let mut constrained = one();
    constrained["spec"]["devices"]["constraints"] = json!([{"requests": ["r"]}]);
    for (claim, words) in [
        (exactly(json!({"deviceClassName": "none"})), "request r: device class none does not exist"),
        (exactly(json!({"deviceClassName": ""})), "request r: unsupported request type"),
        (claimed(&json!([{"name": "r"}])), "resource claim ns/c, request r: unknown request type"),
        (exactly(json!({"allocationMode": "Half"})), "claim ns/c, request r: unsupported count mode Half"),
        (
            exactly(json!({"capacity": {"requests": {"memory": "1Gi"}}})),
            "claim ns/c, request r: asks for a part of a device, which is not supported",
        ),
        (
            exactly(json!({"selectors": [{}]})),
            "claim ns/c, request r: selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            exactly(json!({"selectors": [{"cel": {"expression": "1 + 1"}}]})),
            "claim ns/c: selector #0: CEL compile error: must evaluate to bool or the unknown type, not int",
        ),
        (exactly(json!({"count": 33})), "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"),
        (constrained, "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)"),
    ] {
        world.claim("c", &claim);
        assert_eq!(world.answers(&pod("p", &["c"])), [format!("Unresolvable: {words}")]);
        world.claim("d", &one());
        assert_eq!(world.answers(&pod("q", &["d"])), [""], "other claims are as they were");
    }
}

#[test]
fn a_device_is_given_once_and_given_back_with_its_pod() {
    let mut world = World::of(&["a", "b"]);
    world.plain("a", &["0"]);
    for name in ["c", "d"] {
        world.claim(name, &one());
    }
    let (first, second) = (pod("first", &["c"]), pod("second", &["d"]));
    let (given, _) = world.reserve(&first, "a").unwrap();
    assert_eq!((given, world.used()), (vec!["r=0".to_owned()], vec!["a/0".to_owned()]));
    let none = "UU cannot allocate all claims";
    assert_eq!(world.answers(&second), [none, none]);
    assert_eq!(world.reserve(&second, "a").unwrap_err(), "cannot allocate all claims");
    let in_flight = "Unresolvable: resource claim ns/c is in the process of being allocated";
    assert_eq!(world.answers(&pod("third", &["c"])), [in_flight]);
    world.cluster.remove_pod(&first.uid);
    assert_eq!((world.answers(&second), world.used()), (vec![String::new(), none.to_owned()], vec![]));
    let gone = Event::PodRemoved(first);
    assert!(world.plugin.is_helped_by(&second, &gone, &world.cluster));
    assert!(!world.plugin.is_helped_by(&second, &Event::PodRemoved(pod("plain", &[])), &world.cluster));
}

#[test]
fn an_allocation_counts_until_the_claim_says_otherwise() {
    let mut world = World::of(&["a"]);
    world.plain("a", &["0"]);
    world.claim("c", &one());
    let first = pod("first", &["c"]);
    let (_, writes) = world.reserve(&first, "a").unwrap();
    let bound = Arc::new(Pod { node: Some("a".into()), ..Pod::clone(&first) });
    let holds = world.cluster.pod(&first.uid).unwrap().holds.clone();
    world.cluster.place(bound, &"a".into(), holds);
    assert_eq!(world.used(), ["a/0"], "the pod is bound before the claim is seen to have its device");
    let claim = world.carry_out("c", &one(), &writes);
    assert_eq!(world.used(), ["a/0"]);
    world.claim("c", &one());
    assert_eq!(world.used(), [""; 0], "what a claim has lost does not count for the sake of a pod that had it");
    let (_, writes) = world.reserve(&pod("second", &["c"]), "a").unwrap();
    assert_eq!((world.used(), writes.len()), (vec!["a/0".to_owned()], 2), "it may be given anew");
    world.claim("c", &claim);
    world.remove::<ResourceClaim>("c");
    assert_eq!(world.used(), [""; 0]);
}

#[test]
fn what_may_have_been_written_counts_for_a_while() {
    let mut world = World::of(&["a"]);
    world.plain("a", &["0"]);
    for name in ["c", "d"] {
        world.claim(name, &one());
    }
    let first = pod("first", &["c"]);
    world.reserve(&first, "a").unwrap();
    let second = pod("second", &["d"]);
    world.cluster.know(&second);
    let placed = world.cluster.remove_pod(&first.uid).unwrap();
    let mut orders = Orders::default();
    world.plugin.unreserve(&placed, &mut world.cluster, &mut orders);
    assert_eq!(world.answers(&second), ["UU cannot allocate all claims"], "the claim may have the device");
    assert_eq!(world.answers(&first), ["UU cannot allocate all claims"], "and its pod asks for another one");
    let until = world.cluster.wake_at().unwrap();
    world.plugin.order(&mut world.cluster, &mut orders);
    assert_eq!(orders.activate, []);
    world.cluster.tick(until);
    world.plugin.order(&mut world.cluster, &mut orders);
    assert_eq!(
        (orders.activate, world.answers(&second), world.used()),
        (vec![second.uid.clone()], vec![String::new()], vec![])
    );
    world.plugin.unreserve(&placed, &mut world.cluster, &mut Orders::default());
    world.claim("c", &allocated("a", &[]));
    world.claim("c", &one());
    assert_eq!(world.used(), [""; 0], "a claim that was seen leaves no doubt");
}

#[test]
fn a_claim_is_not_reserved_any_more_for_a_pod_that_has_lost_its_place() {
    let mut world = World::of(&["a"]);
    world.plain("a", &["0"]);
    world.claim("c", &one());
    let first = pod("first", &["c"]);
    world.cluster.know(&first);
    let (_, writes) = world.reserve(&first, "a").unwrap();
    let lose = |world: &mut World| {
        let placed = world.cluster.remove_pod(&first.uid).unwrap();
        world.plugin.unreserve(&placed, &mut world.cluster, &mut Orders::default());
        world.cluster.know(&first);
    };
    lose(&mut world);
    assert_eq!(world.plugin.status_writes(&world.cluster).writes, [], "it was not written, or is not seen yet");
    world.carry_out("c", &one(), &writes);
    let consumer = json!({"$patch": "delete", "uid": "first"});
    let patch = json!({"metadata": {"uid": "c"}, "status": {"reservedFor": [consumer]}});
    let writes = world.plugin.status_writes(&world.cluster).writes;
    let actions: Vec<Action> = writes.into_iter().map(|write| write.action).collect();
    assert_eq!(actions, [Action::StrategicPatch { subresource: "status", patch }]);
    let waits = "Unresolvable: resource claim ns/c is still reserved for an earlier attempt";
    assert_eq!(world.answers(&first), [waits], "or that would be taken back after it has its place");
    let free = world.claim("c", &allocated("a", &[]));
    assert!(world.helps(&first, free));
    assert_eq!(
        (world.answers(&first), world.plugin.status_writes(&world.cluster).writes),
        (vec![String::new()], vec![])
    );
    world.reserve(&first, "a").unwrap();
    world.claim("c", &allocated("a", &["first"]));
    assert_eq!(world.plugin.status_writes(&world.cluster).writes, [], "it has its place");
    lose(&mut world);
    assert_eq!(world.plugin.status_writes(&world.cluster).writes.len(), 1);
    world.cluster.forget(&first.uid);
    assert_eq!(
        world.plugin.status_writes(&world.cluster).writes,
        [],
        "it is gone, and the API server's controllers see to that"
    );
}

#[test]
fn a_claim_is_written_with_the_finalizer_first_and_then_with_its_devices_and_its_pod() {
    let mut world = World::of(&["a"]);
    world.plain("a", &["0"]);
    let mut claim = one();
    claim["metadata"] = json!({"finalizers": ["other"]});
    world.claim("c", &claim);
    let shown = |writes: &[Write]| -> Vec<Value> {
        let show = |write: &Write| match &write.action {
            Action::Patch { subresource, patch } => json!([subresource, patch]),
            Action::StrategicPatch { subresource, patch } => json!([subresource, patch, "strategic"]),
            other => panic!("{other:?}"),
        };
        writes.iter().map(show).collect()
    };
    let (_, writes) = world.reserve(&pod("p", &["c"]), "a").unwrap();
    let finalizer = "resource.kubernetes.io/delete-protection";
    let metadata = json!({"uid": "c", "resourceVersion": "3", "finalizers": ["other", finalizer]});
    let only = json!({"key": "metadata.name", "operator": "In", "values": ["a"]});
    let allocation = json!({
        "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "a", "device": "0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    });
    let consumer = json!({"resource": "pods", "name": "p", "uid": "p"});
    let status = json!({"allocation": allocation, "reservedFor": [consumer]});
    assert_eq!(
        shown(&writes),
        [
            json!(["", {"metadata": metadata}]),
            json!(["status", {"metadata": {"uid": "c"}, "status": status}, "strategic"])
        ]
    );
    world.carry_out("c", &claim, &writes);
    assert_eq!(world.reserve(&pod("p", &["c"]), "a").unwrap().1, [], "nothing is written twice");
    let (given, writes) = world.reserve(&pod("q", &["c"]), "a").unwrap();
    let consumer = json!({"resource": "pods", "name": "q", "uid": "q"});
    let shared = json!(["status", {"metadata": {"uid": "c"}, "status": {"reservedFor": [consumer]}}, "strategic"]);
    assert_eq!((given, shown(&writes)), (vec![], vec![shared]), "a claim that has its device is only reserved");
    world.cluster.remove_pod(&"p".into());
    claim["metadata"]["finalizers"] = json!([finalizer]);
    world.claim("c", &claim);
    let (_, writes) = world.reserve(&pod("r", &["c"]), "a").unwrap();
    let [status] = &*shown(&writes) else { panic!("{writes:?}") };
    assert_eq!(status[1]["metadata"], json!({"uid": "c", "resourceVersion": "5"}));
}

#[test]
fn a_pod_follows_the_claim_that_has_its_devices() {
    let mut world = World::of(&["a", "b"]);
    world.claim("c", &allocated("b", &["q"]));
    let out_of_reach = "UU resourceclaim not available on the node";
    assert_eq!(world.answers(&pod("p", &["c"])), [out_of_reach, ""]);
    let everybody: Vec<String> = (0..256).map(|number| format!("pod-{number}")).collect();
    let everybody: Vec<&str> = everybody.iter().map(String::as_str).collect();
    world.claim("c", &allocated("b", &everybody));
    assert_eq!(world.answers(&pod("p", &["c"])), ["Unresolvable: resourceclaim in use"]);
    assert_eq!(world.answers(&pod("pod-7", &["c"])), [out_of_reach, ""]);
}

/// What PostFilter says of a pod that no node takes, and which claims are to lose their devices.
fn post_filtered(world: &mut World, waiting: &Arc<Pod>) -> (PostFilterResult, Vec<Write>) {
    let class = world.cluster.class(&waiting.template);
    let request = Request { pod: waiting, class: &class, plugins: &[], state: &AttemptState::default() };
    let plugin = Arc::new(DynamicResources::default());
    let PreparedFilter::Nodes(filter) = plugin.prepare_filter(&request, &world.cluster) else { panic!() };
    let mut refusals = Refusals::default();
    for (row, _) in world.cluster.rows() {
        if let Err(refusal) = filter.filter(&world.cluster, row) {
            refusals.add(Verdict { plugin: 0, refusal }, row);
        }
    }
    let found = Found::Nothing(refusals);
    let profile = Profile::of("s", vec![Arc::clone(&plugin) as _]);
    let mut draw = |_| 0;
    let mut attempted = Attempted { cluster: &mut world.cluster, profile: &profile, found: &found, draw: &mut draw };
    let result = plugin.post_filter(&request, &mut attempted);
    let StatusUpdates { writes, .. } = plugin.status_writes(&world.cluster);
    (result, writes)
}

#[test]
fn an_idle_claim_loses_devices_that_its_pod_cannot_reach() {
    let mut world = World::of(&["a"]);
    let waiting = pod("p", &["free", "c"]);
    let words = |text: &str| PostFilterResult::Nothing(text.to_owned());
    world.plain("a", &["0"]);
    world.claim("free", &one());
    world.claim("c", &allocated("gone", &["q"]));
    assert_eq!(post_filtered(&mut world, &waiting), (words("still not schedulable"), vec![]));
    world.claim("c", &allocated("gone", &["p"]));
    let (result, writes) = post_filtered(&mut world, &waiting);
    assert_eq!(result, words("deallocation of ResourceClaim completed"));
    let status = json!({"allocation": null, "reservedFor": null, "devices": null});
    let patch = json!({"metadata": {"uid": "c", "resourceVersion": "5"}, "status": status});
    assert_eq!(
        writes.iter().map(|write| write.action.clone()).collect::<Vec<_>>(),
        [Action::Patch { subresource: "status", patch }]
    );
    world.claim("c", &one());
    assert_eq!(world.plugin.status_writes(&world.cluster).writes, [], "it has lost them");
    let plain = pod("plain", &[]);
    let class = world.cluster.class(&plain.template);
    let request = Request { pod: &plain, class: &class, plugins: &[], state: &AttemptState::default() };
    let found = Found::Nothing(Refusals::default());
    let (profile, mut draw) = (Profile::default(), |_| 0);
    let mut attempted = Attempted { cluster: &mut world.cluster, profile: &profile, found: &found, draw: &mut draw };
    assert_eq!(world.plugin.post_filter(&request, &mut attempted), words("no new claims to deallocate"));
}

#[test]
fn post_filter_reports_that_it_does_not_help_or_has_no_state_of_the_pod() {
    let said = |spec: &Value| {
        let profile = crate::testing::default_profile();
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for name in ["a", "b"] {
            let status = json!({"allocatable": {"cpu": "1", "pods": "9"}});
            engine.set_node(koord_scheduler_testing::node(name, &json!({"status": status})), Moment::default());
        }
        let pod = koord_scheduler_testing::pod("p", spec);
        let template = Template { scheduler: "test".into(), ..Template::clone(&pod.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) }), Moment::default());
        match engine.attempt(Moment::default()).map(|attempt| attempt.outcome) {
            Some(Outcome::Refused(refused)) => refused.message,
            other => panic!("{other:?}"),
        }
    };
    let large = json!({"containers": [{"resources": {"requests": {"cpu": "2"}}}]});
    let too_large = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: \
                     2 Preemption is not helpful for scheduling.";
    assert_eq!(said(&large), too_large);
    let claims = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]);
    let missing = "0/2 nodes are available: persistentvolumeclaim \"none\" not found. not found";
    assert_eq!(said(&json!({"volumes": claims})), missing);
    let named = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
    let terms = json!([{"matchFields": [named("a"), named("b")]}]);
    let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let conflict = "0/2 nodes are available: pod affinity terms conflict. not found";
    assert_eq!(
        said(&json!({"volumes": claims, "affinity": {"nodeAffinity": affinity}})),
        conflict,
        "it is asked first"
    );
}

/// Rejects every pod before PreFilter.
struct Screens;

impl Plugin for Screens {
    fn name(&self) -> &'static str {
        "Screens"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).before_pre_filter(&self)
    }
}

impl BeforePreFilter for Screens {
    fn before_pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        Err(Rejection::unresolvable(ReasonCode::TooManyPods.reason("no")))
    }
}

#[test]
fn nothing_is_known_of_a_pod_that_is_rejected_before_pre_filter() {
    let mut world = World::of(&["a"]);
    let waiting = pod("p", &["c"]);
    let class = world.cluster.class(&waiting.template);
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(DynamicResources::default()), Arc::new(Screens)];
    let profile = Profile::of("test", plugins);
    let request = Request { pod: &waiting, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
    let (plugin, rejection) = profile.admit(&request, &world.cluster).unwrap();
    let (found, mut draw) = (Found::Never(plugin, rejection), |_| 0);
    let mut attempted = Attempted { cluster: &mut world.cluster, profile: &profile, found: &found, draw: &mut draw };
    assert_eq!(world.plugin.post_filter(&request, &mut attempted), PostFilterResult::Stop("not found".to_owned()));
}

#[test]
fn changes_of_what_a_claim_depends_on_help() {
    let mut world = World::of(&["a"]);
    let waiting = pod("p", &["c"]);
    let created = world.claim("c", &one());
    assert!(world.helps(&waiting, created));
    let same = world.claim("c", &one());
    assert!(!world.helps(&waiting, same), "only its revision has changed");
    let unrelated = world.claim("d", &allocated("a", &[]));
    assert!(!world.helps(&waiting, unrelated));
    let freed = world.claim("d", &one());
    assert!(world.helps(&waiting, freed), "its device may be what is waited for");
    world.claim("d", &allocated("a", &[]));
    let deleted = world.remove::<ResourceClaim>("d");
    assert!(world.helps(&waiting, deleted));
    let slice = world.plain("a", &["0"]);
    assert!(world.helps(&waiting, slice));
    let class = world.set::<DeviceClass>("new", &json!({}));
    assert!(world.helps(&waiting, class));
    let class = world.remove::<DeviceClass>("new");
    assert!(!world.helps(&waiting, class));
    let allocated = world.claim("c", &allocated("a", &[]));
    assert!(world.helps(&waiting, allocated));
    assert!(world.plugin.is_helped_by(&waiting, &Event::PodChanged, &world.cluster));
    assert!(!world.plugin.is_helped_by(&pod("q", &["absent"]), &Event::PodChanged, &world.cluster));
    let freed = world.claim("c", &one());
    assert!(!world.helps(&pod("q", &["absent"]), freed), "it waits for its own claim first");
}
