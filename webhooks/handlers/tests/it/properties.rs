//! What holds for every pod and every set of profiles, whatever they say.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_resource::admission::Patch;
use koord_runtime::clock::SystemClock;
use koord_schema::patch::json;
use koord_webhook_handlers::{Ctx, Declared, serve};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

// === What there is ===

/// Of these labels selectors are made; nothing writes them in [`settled_profile`].
const SELECTED: [&str; 3] = ["tier", "koordinator.sh/enable-colocation", "app"];
const SOURCES: [&str; 2] = ["source-a", "example.com/source-b"];
const TARGETS: [&str; 3] = ["target-a", "example.com/target-b", "koordinator.sh/qosClass"];
const RESOURCES: [&str; 10] = [
    "cpu",
    "memory",
    "kubernetes.io/batch-cpu",
    "kubernetes.io/batch-memory",
    "kubernetes.io/mid-cpu",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
    "example.com/other",
];

fn object(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn texts(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    vec((select(keys), select(vec!["", "a", "b", "BE", "LS"]).prop_map(Value::from)), 0..4).prop_map(object)
}

fn amounts() -> impl Strategy<Value = Value> {
    let amount =
        select(vec![json!("0"), json!("1"), json!("500m"), json!("200"), json!("1Gi"), json!(2), json!("1500m")]);
    vec((select(&RESOURCES[..]), amount), 0..4).prop_map(object)
}

fn container() -> impl Strategy<Value = Value> {
    let resources = option::of((option::of(amounts()), option::of(amounts())));
    (select(vec!["main", "side", "third"]), resources).prop_map(|(name, resources)| {
        let mut container =
            json!({"name": name, "image": "registry.example/app:1", "env": [{"name": "A", "value": "1"}]});
        if let Some((requests, limits)) = resources {
            container["resources"] = json!({"requests": requests, "limits": limits});
        }
        container
    })
}

fn affinity() -> impl Strategy<Value = Value> {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
    select(vec![
        Value::Null,
        json!({"podAffinity": {}}),
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, {}]}}}),
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
    ])
}

fn labels() -> impl Strategy<Value = Value> {
    const KEYS: [&str; 9] = [
        SELECTED[0],
        SELECTED[1],
        SELECTED[2],
        SOURCES[0],
        SOURCES[1],
        TARGETS[0],
        TARGETS[2],
        "koordinator.sh/priority-class",
        "quota.scheduling.koordinator.sh/name",
    ];
    let quota = option::of(Just("team"));
    (texts(&KEYS), option::of(select(vec!["koord-batch", "koord-mid"])), quota).prop_map(
        |(mut labels, class, quota)| {
            if let Some(class) = class {
                labels["koordinator.sh/priority-class"] = class.into();
            }
            if let Some(quota) = quota {
                labels["quota.scheduling.koordinator.sh/name"] = quota.into();
            }
            labels
        },
    )
}

fn pod() -> impl Strategy<Value = Value> {
    let annotation =
        option::of(select(vec!["{}", r#"{"containers":{"main":{"limits":{"kubernetes.io/batch-cpu":1}}}}"#]));
    let priority = option::of(select(vec![3500, 5500, 7500, 9500]));
    let parts = (labels(), annotation, vec(container(), 0..2), vec(container(), 1..4), option::of(amounts()));
    (parts, priority, affinity()).prop_map(
        |((labels, annotation, init_containers, containers, overhead), priority, affinity)| {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "web-0", "namespace": "default", "labels": labels, "annotations": {"kept": "1"}},
                "spec": {"initContainers": init_containers, "containers": containers, "overhead": overhead,
                         "priority": priority, "affinity": affinity, "volumes": [{"name": "v", "emptyDir": {}}]},
            });
            if let Some(annotation) = annotation {
                pod["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"] = annotation.into();
            }
            pod
        },
    )
}

fn selector() -> impl Strategy<Value = Value> {
    let term =
        (select(&SELECTED[..]), select(vec!["In", "NotIn", "Exists", "DoesNotExist"])).prop_map(|(key, operator)| {
            let values: &[&str] = if operator.ends_with("In") { &["a", "b"] } else { &[] };
            json!({"key": key, "operator": operator, "values": values})
        });
    let labels = vec((select(&SELECTED[..]), select(vec!["a", "b"]).prop_map(Value::from)), 0..2).prop_map(object);
    (option::of(labels), vec(term, 0..2))
        .prop_map(|(labels, terms)| json!({"matchLabels": labels, "matchExpressions": terms}))
}

fn own_patch() -> impl Strategy<Value = Value> {
    select(vec![
        json!({"spec": {"terminationGracePeriodSeconds": 5}}),
        json!({"metadata": {"labels": {"patched": "1", "target-a": null}, "finalizers": ["example.com/f"]}}),
        json!({"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}], "resources": {"limits": {"cpu": "3"}}}]}}),
        json!({"spec": {"volumes": [{"name": "v", "$patch": "delete"}], "tolerations": [{"key": "batch", "operator": "Exists"}]}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "main"}], "hostNetwork": true}}),
        json!({"spec": {"affinity": {"$patch": "replace", "podAntiAffinity": {}}}}),
    ])
}

/// A profile that reads nothing that a profile writes, and appends nothing: applied again it changes nothing.
fn settled_profile() -> impl Strategy<Value = Value> {
    let selectors =
        (option::of(selector()), option::of(select(vec![json!({}), json!({"matchLabels": {"team": "x"}})])));
    let maps = (
        texts(&TARGETS),
        texts(&["note", "example.com/note"]),
        option::of((select(&SOURCES[..]), select(&TARGETS[..2]))),
        option::of(Just(("kept", "copied"))),
    );
    let classes = (
        option::of(select(vec!["BE", "LS", "LSR"])),
        option::of(select(vec!["koord-prod", "koord-mid", "koord-batch", "koord-free"])),
        option::of(0..3000),
        option::of(Just("koord-scheduler")),
    );
    let rest = (
        option::of(select(vec![json!(0), json!(50), json!("30%"), json!(100)])),
        any::<bool>(),
        option::of(own_patch()),
    );
    (selectors, maps, classes, rest).prop_map(
        |((selector, namespaces), (labels, annotations, label, annotation), (qos, class, priority, scheduler), rest)| {
            let mapping = |pair: Option<(&str, &str)>| pair.map(|(from, to)| json!({from: to}));
            let (probability, skip, patch) = rest;
            let annotated = if skip { json!({"config.koordinator.sh/skip-update-resources": "true"}) } else { json!({}) };
            json!({"kind": "ClusterColocationProfile", "metadata": {"annotations": annotated}, "spec": {
                "selector": selector, "namespaceSelector": namespaces, "probability": probability, "labels": labels,
                "annotations": annotations, "labelKeysMapping": mapping(label), "annotationKeysMapping": mapping(annotation),
                "qosClass": qos, "priorityClassName": class, "koordinatorPriority": priority, "schedulerName": scheduler,
                "patch": patch,
            }})
        },
    )
}

/// Any profile: it may also read what others write, and append.
fn profile() -> impl Strategy<Value = Value> {
    let chained = option::of((select(&TARGETS[..]), select(&SELECTED[..])));
    let suffix = option::of((select(&TARGETS[..]), select(vec!["-x", ""])));
    (settled_profile(), chained, suffix).prop_map(|(mut profile, chained, suffix)| {
        if let Some((from, to)) = chained {
            profile["spec"]["labelKeysMapping"] = json!({from: to});
        }
        profile["spec"]["labelSuffixes"] = suffix.map_or(Value::Null, |(key, suffix)| json!({key: suffix}));
        profile
    })
}

// === What is done ===

/// Serves the profiles, which get the names p0, p1, … and come in the order of `order`.
fn service(profiles: &[Value], reversed: bool) -> Service {
    let mut ctx = Ctx::detached(|gate| gate == "MultiQuotaTree");
    ctx.settings.declared = Declared::Enforce;
    let put = |mut object: Value, name: &str| {
        let kind = object["kind"].as_str().unwrap().to_owned();
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = format!("{kind}/{name}").into();
        object["metadata"]["resourceVersion"] = "1".into();
        ctx.put(&kind, &object.to_string()).unwrap();
    };
    for (name, value) in [("koord-prod", 9000), ("koord-mid", 7000), ("koord-batch", 5000), ("koord-free", 3000)] {
        put(json!({"kind": "PriorityClass", "value": value}), name);
    }
    put(json!({"kind": "Namespace", "metadata": {"labels": {"team": "x"}}}), "default");
    let tree = json!({"quota.scheduling.koordinator.sh/tree-id": "t"});
    put(json!({"kind": "ElasticQuota", "metadata": {"namespace": "default", "labels": tree}}), "team");
    let selector = json!({"matchLabels": {"pool": "a"}});
    put(
        json!({"kind": "ElasticQuotaProfile", "metadata": {"namespace": "default", "labels": tree}, "spec": {"nodeSelector": selector}}),
        "tree",
    );
    let named = profiles.iter().enumerate().map(|(index, profile)| (profile.clone(), format!("p{index}")));
    let mut named: Vec<(Value, String)> = named.collect();
    if reversed {
        named.reverse();
    }
    for (profile, name) in named {
        put(profile, &name);
    }
    let builder = ServiceBuilder::new(
        Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap(),
        SystemClock::shared(),
    );
    serve(builder, &Arc::new(ctx), |_| true).build()
}

struct Target {
    path: &'static str,
    resource: &'static str,
}

const POD: Target = Target { path: "/mutate-pod", resource: "pods" };
const RESERVATION: Target = Target { path: "/mutate-reservation", resource: "reservations" };
const JOB: Target =
    Target { path: "/mutate-scheduling-koordinator-sh-v1alpha1-podmigrationjob", resource: "podmigrationjobs" };

/// Any document with an object at its root.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
    let any = leaf.prop_recursive(3, 24, 4, |inner| {
        let fields = vec((select(vec!["a", "b/c", "d~e", "\"f"]), inner.clone()), 0..4).prop_map(object);
        prop_oneof![vec(inner, 0..4).prop_map(Value::from), fields]
    });
    vec((select(vec!["x", "y", ""]), any), 0..3).prop_map(object)
}

/// The answer, without the uid.
fn answer(service: &Service, target: &Target, object: &Value, uid: &str) -> Value {
    let review = json!({"request": {"uid": uid, "operation": "CREATE", "namespace": "default",
        "resource": {"version": "v1", "resource": target.resource}, "object": object}});
    let answer = service.decide(target.path, review.to_string().as_bytes()).unwrap();
    let mut answer: Value = serde_json::from_slice(&answer).unwrap();
    answer["response"]["uid"] = Value::Null;
    answer
}

/// The object after the review; none where it was refused.
fn mutated(service: &Service, target: &Target, object: &Value) -> Option<Value> {
    let answer = answer(service, target, object, "u");
    let response = &answer["response"];
    if response["allowed"] != true {
        return None;
    }
    let Some(patch) = response["patch"].as_str() else { return Some(object.clone()) };
    let patch = serde_json::from_slice(&BASE64.decode(patch).unwrap()).unwrap();
    Some(json::apply(object.clone(), &patch).unwrap())
}

fn mutates_once(service: &Service, target: &Target, object: &Value) -> Result<(), TestCaseError> {
    if let Some(once) = mutated(service, target, object) {
        prop_assert_eq!(mutated(service, target, &once), Some(once));
    }
    Ok(())
}

/// The profile with its patch aimed at the pod's template.
fn of_reservations(mut profile: Value) -> Value {
    let patch = profile["spec"]["patch"].take();
    if !patch.is_null() {
        profile["spec"]["patch"] = json!({"spec": {"template": patch}});
    }
    profile
}

fn reservation(labels: &Value) -> Value {
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": "r", "labels": labels},
        "spec": {"owners": [{"labelSelector": {}}], "template": {"spec": {"containers": [{"name": "main"}]}}}})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_between_two_documents_turns_one_into_the_other(old in document(), new in document()) {
        let patch = Patch::between(&old, &new).unwrap();
        prop_assert_eq!(patch.is_empty(), old == new);
        if !patch.is_empty() {
            let operations = serde_json::from_slice(patch.as_bytes()).unwrap();
            prop_assert_eq!(json::apply(old, &operations), Ok(new));
        }
    }

    #[test]
    fn a_pod_that_was_mutated_stays_as_it_is(pod in pod(), profiles in vec(settled_profile(), 0..4)) {
        mutates_once(&service(&profiles, false), &POD, &pod)?;
    }

    #[test]
    fn a_reservation_that_was_mutated_stays_as_it_is(labels in labels(), profiles in vec(settled_profile(), 0..4)) {
        let profiles: Vec<Value> = profiles.into_iter().map(of_reservations).collect();
        mutates_once(&service(&profiles, false), &RESERVATION, &reservation(&labels))?;
    }

    #[test]
    fn a_job_that_was_completed_stays_as_it_is(ttl in option::of("[0-9]{1,3}[sm]"), mode in option::of("[A-Z][a-z]*"), spec in any::<bool>()) {
        let mut job = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob", "metadata": {"name": "j"}});
        if spec {
            job["spec"] = json!({"podRef": {"name": "p"}, "ttl": ttl, "mode": mode});
        }
        mutates_once(&service(&[], false), &JOB, &job)?;
    }

    #[test]
    fn the_answer_follows_from_the_pod_and_the_profiles_alone(pod in pod(), profiles in vec(profile(), 0..5)) {
        let (one, other) = (service(&profiles, false), service(&profiles, true));
        let first = answer(&one, &POD, &pod, "first");
        prop_assert_eq!(&answer(&one, &POD, &pod, "second"), &first);
        prop_assert_eq!(&answer(&other, &POD, &pod, "third"), &first);
    }

    /// A patch of its own makes a profile read a part of the pod into a tree; the answer is as if it were all of it.
    #[test]
    fn fields_that_no_profile_names_change_nothing(pod in pod(), profiles in vec(profile(), 0..4)) {
        let service = service(&profiles, false);
        let mut more = pod.clone();
        more["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
        more["spec"]["dnsConfig"] = json!({"nameservers": ["10.0.0.1"]});
        more["status"] = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        let (without, with) = (mutated(&service, &POD, &pod), mutated(&service, &POD, &more));
        let stripped = with.map(|mut with| {
            with["metadata"].as_object_mut().unwrap().remove("managedFields");
            with["spec"].as_object_mut().unwrap().remove("dnsConfig");
            with.as_object_mut().unwrap().remove("status");
            with
        });
        prop_assert_eq!(stripped, without);
    }
}
