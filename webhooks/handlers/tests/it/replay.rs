//! Answers to recorded reviews agree with the original's, except where it is said why not.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use koord_runtime::{clock::SystemClock, panics::PanicGuard, random::Random};
use koord_schema::patch::json;
use koord_webhook_handlers::{Ctx, Declared, QuotaEvaluator, Retries, Settings, serve};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use serde_json::{Value, json};

use crate::{
    charges::{Server, Wire},
    recordings::{Recording, own, shared},
};

/// Recordings with which we differ on purpose; each has its row in docs/reference/divergences.md.
const DIFFERENT: [&str; 9] = [
    // Memory has no thousandths of bytes.
    "node/mutate-memory-fraction",
    "node/mutate-memory-ki",
    // Percentages have nothing to do with bytes, and nothing needs to be known of the network.
    "configmap/qos-net-percent-total-small",
    "configmap/qos-net-text-request",
    "configmap/qos-net-without-system",
    // A dry run changes nothing, so what follows is decided as if it had not been.
    "elasticquota/validate-create-twice-dry-run",
    "elasticquota/validate-create-after-dry-run-delete",
    // Somebody else may have refused the first removal.
    "elasticquota/validate-delete-twice",
    // A selector that nobody understands does not select every pod.
    "pod-mutate/selector-in-without-values",
];

/// Recordings whose message differs on purpose: it names a Go type (docs/reference/divergences.md, type errors of a decoder).
const DIFFERENT_TEXTS: [&str; 1] = ["reservation/patch-bad"];

pub(crate) fn gate(list: &str) -> impl Fn(&str) -> bool + Clone + '_ {
    move |name: &str| {
        let set = list.split(',').find_map(|item| item.strip_prefix(name)?.strip_prefix('='));
        let default = [
            "WebhookFramework",
            "PodMutatingWebhook",
            "PodValidatingWebhook",
            "ElasticMutatingWebhook",
            "ElasticValidatingWebhook",
        ];
        set.map_or(default.contains(&name), |value| value == "true")
    }
}

/// The settings that a program with these flags has.
fn settings(flags: &[String]) -> Settings {
    let mut settings = Settings { declared: Declared::Off, ..Settings::default() };
    for (flag, value) in flags.iter().filter_map(|flag| flag.strip_prefix("--")?.split_once('=')) {
        let list = || value.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
        let bindings = &mut settings.bindings;
        match flag {
            "node-strategy-name-need-check" => settings.strategy_names_needed = value == "true",
            "binding-admission-user-name" => bindings.users = list(),
            "binding-admission-namespaces" => (bindings.everywhere, bindings.namespaces) = (value == "*", list()),
            "binding-admission-exclude-namespaces" => bindings.excluded_namespaces = list(),
            "binding-admission-bypass-labels" => bindings.bypass_labels = list(),
            "binding-admission-bypass-annotations" => bindings.bypass_annotations = list(),
            "binding-admission-dry-run" => bindings.dry_run = value == "true",
            _ => {}
        }
    }
    settings
}

/// The objects that are there: those of every cluster, and the recording's own.
fn given(recording: &Recording) -> Vec<Value> {
    let class =
        |(name, value): (&str, i32)| json!({"kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    let classes = [("koord-prod", 9000), ("koord-mid", 7000), ("koord-batch", 5000), ("koord-free", 3000)].map(class);
    let namespace = |name: &str| json!({"kind": "Namespace", "metadata": {"name": name}});
    let always = classes.into_iter().chain([namespace("default"), namespace("koordinator-system")]);
    always.chain(recording.given.iter().cloned()).enumerate().map(stored).collect()
}

/// An object as the API server has it.
fn stored((revision, mut object): (usize, Value)) -> Value {
    let kind = object["kind"].as_str().unwrap().to_owned();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    object["metadata"]["uid"] = format!("{kind}/{name}").into();
    object["metadata"]["resourceVersion"] = (revision + 1).to_string().into();
    if kind == "Namespace" {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
    object
}

fn service(recording: &Recording, ctx: &Arc<Ctx>, server: &Arc<Server>) -> Service {
    let registry = koord_runtime::metrics::Metrics::new().unwrap();
    let builder = ServiceBuilder::new(Metrics::register(&registry).unwrap(), SystemClock::shared());
    let evaluator = QuotaEvaluator::new(Arc::clone(ctx), Retries::default(), Random::seeded(1), PanicGuard::default());
    evaluator.connect(Arc::new(Wire(Arc::clone(server))));
    evaluator.serve(serve(builder, ctx, gate(&recording.feature_gates))).build()
}

/// Where our answer differs; none where it agrees. `text`: only the message does.
#[derive(Debug)]
enum Difference {
    Answer(String),
    Text(String),
}

async fn play(recording: &Recording) -> Option<Difference> {
    let mut ctx = Ctx::detached(gate(&recording.feature_gates));
    ctx.settings = settings(&recording.flags);
    let ctx = Arc::new(ctx);
    let server = Server::new(&ctx, Duration::ZERO);
    for object in given(recording) {
        let kind = object["kind"].as_str().unwrap();
        ctx.put(kind, &object.to_string()).unwrap();
        if kind == "ElasticQuota" {
            server.keep(&object);
        }
    }
    let service = service(recording, &ctx, &server);
    for prior in &recording.prior {
        let body = prior["review"].to_string();
        service.decide(prior["path"].as_str().unwrap(), body.as_bytes());
    }
    if recording.raw.is_object() {
        return play_raw(&service, recording).await;
    }
    match play_review(&service, recording).await {
        None => charges_differ(&server, recording).or(play_debug_view(&service, recording).await),
        difference => difference,
    }
}

/// What was charged to the quotas that the recording watches.
fn charges_differ(server: &Server, recording: &Recording) -> Option<Difference> {
    const CHILD_REQUEST: &str = "quota.scheduling.koordinator.sh/child-request";
    for wanted in recording.recorded["after"].as_array().into_iter().flatten() {
        let metadata = &wanted["metadata"];
        let key = format!("{}/{}", metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        let wanted = metadata["annotations"][CHILD_REQUEST].as_str();
        let wanted = wanted.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let got = server.charged(&key);
        if got != wanted {
            return Some(Difference::Answer(format!("charged: {got:?} instead of {wanted:?}")));
        }
    }
    None
}

/// Of a debug view, the parts that the recording is about. The order of quotas below another one says nothing.
async fn play_debug_view(service: &Service, recording: &Recording) -> Option<Difference> {
    let request = http::Request::get(recording.debug_path.as_deref()?).body(Full::new(Bytes::new())).unwrap();
    let body = service.answer(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let view: Value = serde_json::from_slice(&body).unwrap();
    let wanted = &recording.recorded["debug"];
    for (part, wanted) in wanted.as_object().unwrap() {
        for name in &recording.debug_keep {
            if pruned(&view[part][name]) != pruned(&wanted[name]) {
                return Some(Difference::Answer(format!(
                    "{part}/{name}: {} instead of {}",
                    view[part][name], wanted[name]
                )));
            }
        }
    }
    None
}

async fn play_review(service: &Service, recording: &Recording) -> Option<Difference> {
    let wanted = &recording.recorded;
    let (path, body) = (recording.review["path"].as_str().unwrap(), &recording.review["body"]);
    // Only with quota admission more happens than a decision.
    let answer = if recording.feature_gates.contains("EnableQuotaAdmission=true") {
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = service.answer(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.unwrap();
        answer.into_body().collect().await.unwrap().to_bytes().to_vec()
    } else if let Some(answer) = service.decide(path, body.to_string().as_bytes()) {
        answer
    } else {
        return (wanted["httpStatus"] != 404).then(|| Difference::Answer("no such path".to_owned()));
    };
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let response = &answer["response"];
    let status = &response["status"];
    let got = json!({"allowed": response["allowed"], "code": status["code"], "reason": status["reason"], "warnings": response["warnings"]});
    for field in ["allowed", "code", "reason", "warnings"] {
        let empty = |value: &Value| value.is_null() || value == "";
        if got[field] != wanted[field] && !(empty(&got[field]) && empty(&wanted[field])) {
            let message = &status["message"];
            return Some(Difference::Answer(format!(
                "{field}: {} instead of {} ({message})",
                got[field], wanted[field]
            )));
        }
    }
    let object = body.pointer("/request/object").cloned().unwrap_or_default();
    let wanted_object = if wanted["patched"].is_null() { object.clone() } else { wanted["patched"].clone() };
    let got_object = patched(&object, response);
    if pruned(&got_object) != pruned(&wanted_object) {
        return Some(Difference::Answer(format!("patched: {got_object} instead of {wanted_object}")));
    }
    text_differs(&status["message"], &wanted["message"])
}

async fn play_raw(service: &Service, recording: &Recording) -> Option<Difference> {
    let (raw, wanted) = (&recording.raw, &recording.recorded);
    let mut request =
        http::Request::builder().method(raw["method"].as_str().unwrap()).uri(raw["path"].as_str().unwrap());
    for (name, value) in raw["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let sent = raw["body"].as_str().unwrap_or_default().to_owned();
    let answer = service.answer(request.body(Full::new(Bytes::from(sent.clone()))).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    if wanted["httpStatus"] != status {
        return Some(Difference::Answer(format!("HTTP {status} instead of {}", wanted["httpStatus"])));
    }
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let Ok(got) = serde_json::from_slice::<Value>(&body) else {
        let wanted = wanted["body"].as_str().unwrap_or_default();
        return (body != wanted).then(|| Difference::Text(format!("{body:?} instead of {wanted:?}")));
    };
    let wanted = &wanted["json"];
    for pointer in
        ["/kind", "/apiVersion", "/response/allowed", "/response/uid", "/response/patchType", "/response/status/code"]
    {
        if got.pointer(pointer) != wanted.pointer(pointer) {
            let (got, wanted) = (got.pointer(pointer), wanted.pointer(pointer));
            return Some(Difference::Answer(format!("{pointer}: {got:?} instead of {wanted:?}")));
        }
    }
    if wanted.pointer("/response/patch").is_some() || got.pointer("/response/patch").is_some() {
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let [got, wanted] =
            [&got, wanted].map(|answer| pruned(&patched(&sent["request"]["object"], &answer["response"])));
        if got != wanted {
            return Some(Difference::Answer(format!("patched: {got} instead of {wanted}")));
        }
    }
    text_differs(&got["response"]["status"]["message"], &wanted["response"]["status"]["message"])
}

fn text_differs(got: &Value, wanted: &Value) -> Option<Difference> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(got) != text(wanted)).then(|| Difference::Text(format!("{got} instead of {wanted}")))
}

fn patched(object: &Value, response: &Value) -> Value {
    let Some(patch) = response["patch"].as_str() else { return object.clone() };
    let patch = serde_json::from_slice(&BASE64.decode(patch).unwrap()).unwrap();
    json::apply(object.clone(), &patch).unwrap()
}

/// Without nulls and empty objects, which mean the same as nothing.
pub(crate) fn pruned(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), pruned(value)))
            .filter(|(_, value)| !empty(value))
            .collect(),
        Value::Array(items) => items.iter().map(pruned).collect(),
        plain => plain.clone(),
    }
}

/// Plays recordings; gives how many agreed, by group. Answers and messages must be as recorded, but for those that are
/// named above.
async fn play_all(recordings: Vec<Recording>) -> BTreeMap<String, (usize, usize)> {
    let (mut counts, mut wrong) = (BTreeMap::<String, (usize, usize)>::new(), Vec::new());
    for recording in recordings {
        // Where the original broke off, any answer is better.
        let broke_off = recording.recorded["panicked"] == true || recording.recorded.get("crash").is_some();
        if broke_off {
            continue;
        }
        let (agreed, all) = counts.entry(recording.group.clone()).or_default();
        *all += 1;
        let difference = play(&recording).await;
        if DIFFERENT.contains(&recording.title().as_str()) {
            let text = format!("{} no longer differs; strike it off the list", recording.title());
            if difference.is_none() {
                wrong.push(text);
            }
            continue;
        }
        let has_own_text = DIFFERENT_TEXTS.contains(&recording.title().as_str());
        match difference {
            Some(Difference::Text(_)) if has_own_text => *agreed += 1,
            None if has_own_text => {
                wrong.push(format!("{} has the same text; strike it off the list", recording.title()));
            }
            None => *agreed += 1,
            Some(Difference::Text(text) | Difference::Answer(text)) => {
                wrong.push(format!("{}: {text}", recording.title()));
            }
        }
    }
    assert!(wrong.is_empty(), "{counts:?}\n{}", wrong.join("\n"));
    counts
}

#[tokio::test]
async fn our_selection_agrees() {
    let counts = play_all(own()).await;
    let played: usize = counts.values().map(|(_, all)| all).sum();
    assert!(played >= 150, "{played} recordings were played: {counts:?}");
}

#[tokio::test]
async fn shared_recordings_agree() {
    let shared = shared();
    if shared.is_empty() {
        return programs::skipped("shared recordings of reviews", "KOORD_SHARED names no folder with them");
    }
    println!("{:?}", play_all(shared).await);
}
