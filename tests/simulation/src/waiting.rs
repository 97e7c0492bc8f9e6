//! Pods that wait for a node, and the colocation profiles that people make for them.

use http::Method;
use koord_resource::controller::ResourceKind;
use koord_runtime::{random::Random, write::Write};
use serde_json::{Map, Value, json};

use crate::{Disturbance, Fault, Stage, people::name_of};

pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const TEAMS: &str = "/api/v1/namespaces/teams/pods";
const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const PROFILES: &str = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 4;
/// What a pod's name ends in whose changes an admission webhook denies for ever.
const FROZEN: &str = "-8";
/// No probability.
const NONSENSE: &str = "often";

/// Whether an admission webhook denies a change, for ever.
pub(crate) fn is_denied(write: &Write) -> bool {
    write.kind == ResourceKind::POD && is_frozen(write.key.name())
}

/// Whether nobody can change a pod.
pub(crate) fn is_frozen(pod: &str) -> bool {
    pod.ends_with(FROZEN)
}

/// Two namespaces with pods.
pub(crate) fn prepare(stage: &mut Stage) {
    let teams = json!({"metadata": {"name": "teams", "labels": {"team": "x"}}});
    stage.person(&Method::POST, NAMESPACES, &teams);
}

/// One thing that a person does about profiles and the pods that they are for.
pub(crate) fn disturb(stage: &mut Stage, random: &Random, sensible: bool) -> Disturbance {
    let (number, amount) = (random.below(NAMES), 1 + random.below(8));
    let collection = if number.is_multiple_of(2) { PODS } else { TEAMS };
    let pod = format!("{collection}/w{number}-{amount}");
    let path = format!("{PROFILES}/c{number}");
    let (what, code, fault) = match random.below(16) {
        0..=4 => ("a pod waits", stage.person(&Method::POST, collection, &waiting(number, amount)), None),
        5 => (
            "a pod gives up",
            stage.person(&Method::DELETE, &format!("{pod}?gracePeriodSeconds=0"), &Value::Null),
            None,
        ),
        6 => {
            let over = json!({"status": {"phase": "Failed"}});
            ("a pod fails", stage.person(&Method::PATCH, &format!("{pod}/status"), &over), None)
        }
        7 => {
            let labels = json!({"last": "nobody", "tier": format!("t{amount}"), format!("by-c{number}"): null});
            ("a pod is labelled", stage.person(&Method::PATCH, &pod, &json!({"metadata": {"labels": labels}})), None)
        }
        8 => {
            let team = if amount > 4 { json!("x") } else { json!("y") };
            let body = json!({"metadata": {"labels": {"team": team}}});
            (
                "a namespace goes to another team",
                stage.person(&Method::PATCH, &format!("{NAMESPACES}/teams"), &body),
                None,
            )
        }
        9 => ("a profile is deleted", stage.person(&Method::DELETE, &path, &Value::Null), None),
        10 if !sensible => {
            let body = json!({"spec": {"probability": NONSENSE}});
            ("nobody knows how often", stage.person(&Method::PATCH, &path, &body), Some(Fault::Malformed))
        }
        _ => ("a profile is written", write_profile(stage, number, amount), None),
    };
    Disturbance { what: format!("{what} {number} ({amount}) -> {code}"), fault: fault.filter(|_| code < 300) }
}

/// A program that starts reports profiles with errors: they are repaired.
pub(crate) fn conclude(stage: &mut Stage) {
    for profile in stage.objects(PROFILES) {
        if profile["spec"]["probability"] == NONSENSE {
            let path = format!("{PROFILES}/{}", name_of(&profile));
            stage.person(&Method::PATCH, &path, &json!({"spec": {"probability": null}}));
        }
    }
}

/// The pods of both namespaces that wait.
pub(crate) fn pods(stage: &mut Stage) -> Vec<Value> {
    let mut pods = stage.objects(PODS);
    pods.append(&mut stage.objects(TEAMS));
    pods.retain(|pod| pod["spec"]["nodeName"].is_null() && pod["status"]["phase"] == "Pending");
    pods
}

fn waiting(number: u64, amount: u64) -> Value {
    json!({
        "metadata": {
            "name": format!("w{number}-{amount}"),
            "labels": {"app": format!("a{}", amount % 3), "tier": format!("t{number}")},
        },
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    })
}

/// Makes a profile, or changes the one of this name.
fn write_profile(stage: &mut Stage, number: u64, amount: u64) -> u16 {
    let (metadata, spec) = profile(number, amount);
    let change = json!({"metadata": metadata, "spec": spec});
    match stage.person(&Method::PATCH, &format!("{PROFILES}/c{number}"), &change) {
        404 => {
            let stated: Map<String, Value> =
                spec.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).map(owned).collect();
            let mut new = json!({"apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile",
                "metadata": metadata, "spec": stated});
            new["metadata"]["name"] = json!(format!("c{number}"));
            stage.person(&Method::POST, PROFILES, &new)
        }
        code => code,
    }
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// What a profile says; null is what it does not say. Which pods it selects does not follow from what profiles change.
fn profile(number: u64, amount: u64) -> (Value, Value) {
    let name = format!("c{number}");
    let is = |wanted: bool, value: Value| if wanted { value } else { Value::Null };
    let managed = if amount == 4 { "false" } else { "true" };
    let selector = match amount {
        7 => Value::Null,
        6 => json!({"matchLabels": null}),
        _ => json!({"matchLabels": {"app": format!("a{}", amount % 3)}}),
    };
    let probability = match amount {
        5 => json!("50%"),
        3 if number == 3 => json!(0),
        _ => Value::Null,
    };
    let spec = json!({
        "selector": selector, "probability": probability,
        "namespaceSelector": is(amount.is_multiple_of(3), json!({"matchLabels": {"team": "x"}})),
        "labels": {format!("by-{name}"): amount.to_string(), "last": name},
        "annotations": {"by": name},
        "labelKeysMapping": is(!amount.is_multiple_of(2), json!({"tier": "was", "missing": "was-missing"})),
        "annotationKeysMapping": is(amount > 6, json!({"by": "stated-by"})),
        "labelSuffixes": is(amount > 3, json!({"tier": format!("-x{}", number % 2)})),
        "qosClass": is(amount > 2, json!(if number > 1 { "BE" } else { "LS" })),
        "koordinatorPriority": is(amount > 5, json!(1000 + number)),
        "schedulerName": is(amount > 1, json!("koord-scheduler")),
        "patch": is(amount < 3, json!({"metadata": {"labels": {"patched": name}, "annotations": {"patched": amount.to_string()}}})),
    });
    (json!({"labels": {"config.koordinator.sh/controller-managed": managed}}), spec)
}
