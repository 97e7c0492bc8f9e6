//! The declared handlers: what they accept and what they refuse.

use std::{env, fs, path::Path};

use koord_resource::{Validate as _, admission::WebhookKind};
use koord_runtime::clock::SystemClock;
use koord_types::elastic_quota::ElasticQuota;
use koord_webhook_handlers::{Ctx, Declared, HANDLERS, serve};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use serde_json::{Value, json};

/// Plural, and the path of the validating handler, by kind.
const KINDS: [(&str, &str, &str); 4] = [
    ("Reservation", "reservations", "/validate-scheduling-koordinator-sh-v1alpha1-reservation"),
    ("PodMigrationJob", "podmigrationjobs", "/validate-scheduling-koordinator-sh-v1alpha1-podmigrationjob"),
    ("NodeSLO", "nodeslos", "/validate-slo-koordinator-sh-v1alpha1-nodeslo"),
    ("Device", "devices", "/validate-scheduling-koordinator-sh-v1alpha1-device"),
];

fn service() -> Service {
    service_where(Declared::Enforce)
}

fn service_where(declared: Declared) -> Service {
    let builder = ServiceBuilder::new(
        Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap(),
        SystemClock::shared(),
    );
    let mut ctx = Ctx::detached(|_| true);
    ctx.settings.declared = declared;
    serve(builder, &std::sync::Arc::new(ctx), |_| true).build()
}

fn status(object: &Value, old: Option<&Value>) -> Option<Value> {
    status_of(object, old, "kubectl")
}

fn status_of(object: &Value, old: Option<&Value>, author: &str) -> Option<Value> {
    let (_, plural, path) = KINDS.iter().find(|(kind, ..)| *kind == object["kind"])?;
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let review = json!({"request": {
        "uid": "u", "operation": operation, "resource": {"resource": plural}, "object": object, "oldObject": old,
        "options": {"fieldManager": author},
    }});
    let answer = service().decide(path, review.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    (answer["response"]["allowed"] == false).then(|| answer["response"]["status"].clone())
}

fn accepts(object: &Value) {
    assert_eq!(status(object, None), None, "{object}");
}

/// Refused with 422 and these causes, each `field: message`.
fn rejects(object: &Value, old: Option<&Value>, causes: &[&str]) {
    let status = status(object, old).unwrap_or_else(|| panic!("accepted: {object}"));
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")), "{status}");
    let shown = |cause: &Value| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap());
    let found: Vec<String> = status["details"]["causes"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(found, causes);
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match name.parse::<usize>() {
        Ok(index) => object.pointer_mut(parent).unwrap()[index] = value,
        Err(_) => object.pointer_mut(parent).unwrap()[name.replace("~1", "/")] = value,
    }
    object
}

/// Every path of a derived handler, of those that validate or of those that change objects.
fn derived(kind: WebhookKind) -> Vec<&'static str> {
    let handlers = HANDLERS.iter().filter(|handler| handler.gate == Some("DeclaredWebhooks"));
    let handlers = handlers.filter(|handler| handler.entries.iter().all(|entry| entry.kind == kind));
    handlers.map(|handler| handler.path).collect()
}

#[test]
fn what_is_not_enforced_is_admitted_with_a_warning_for_each_mistake_and_changed_by_nobody() {
    let object = with(job(), "/spec/ttl", json!("-5m"));
    let review = json!({"request": {"uid": "u", "operation": "CREATE", "object": object}}).to_string();
    let path = "/validate-scheduling-koordinator-sh-v1alpha1-podmigrationjob";
    let answer = service_where(Declared::Warn).decide(path, review.as_bytes()).unwrap();
    let response: Value = serde_json::from_slice::<Value>(&answer).unwrap()["response"].clone();
    assert_eq!(response["allowed"], true);
    assert_eq!(
        response["warnings"],
        json!(["would be denied where rules are enforced: spec.ttl: Invalid value: \"-5m\": must not be negative"])
    );
    let (validating, mutating) = (derived(WebhookKind::Validating), derived(WebhookKind::Mutating));
    assert!(validating.len() >= 4 && !mutating.is_empty());
    let served = |declared: Declared, paths: &[&str]| {
        let service = service_where(declared);
        let served: Vec<&str> = service.paths().collect();
        paths.iter().filter(|path| served.contains(*path)).count()
    };
    let counts = |declared| (served(declared, &validating), served(declared, &mutating));
    assert_eq!(counts(Declared::Warn), (validating.len(), 0));
    assert_eq!(counts(Declared::Enforce), (validating.len(), mutating.len()));
    assert_eq!(counts(Declared::Off), (0, 0));
    let mut advisory: Vec<&str> = service_where(Declared::Warn).advisory().collect();
    advisory.sort_unstable();
    let mut all = validating.clone();
    all.sort_unstable();
    assert_eq!(advisory, all);
}

fn reservation() -> Value {
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "r"},
        "spec": {"ttl": "1h", "owners": [{"labelSelector": {"matchLabels": {"app": "a"}}}],
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}})
}

#[test]
fn reservations() {
    accepts(&reservation());
    accepts(&with(reservation(), "/spec/ttl", json!("0s")));
    rejects(
        &with(reservation(), "/spec/owners/0/labelSelector", json!({"matchLabels": {"app": "a b"}})),
        None,
        &[concat!(
            r#"spec.owners[0].labelSelector: Invalid value: {"matchLabels":{"app":"a b"}}: values[0][app]: Invalid value: "a b": "#,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and ",
            "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is ",
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )],
    );
    rejects(
        &with(reservation(), "/spec/ttl", json!("1 day")),
        None,
        &["spec.ttl: Invalid value: \"1 day\": must be a duration such as 90s, 1h30m or 24h"],
    );
    rejects(
        &with(reservation(), "/spec/template/spec/containers", json!([])),
        None,
        &[
            "spec.template.spec.containers: Required value: the template must have the containers whose resources are reserved",
        ],
    );
    rejects(
        &with(reservation(), "/spec/template/spec/containers/0/resources/requests/cpu", json!("-1")),
        None,
        &[
            "spec.template.spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ],
    );
}

#[test]
fn the_template_of_a_reservation_stays_once_it_is_available() {
    let changed = with(reservation(), "/spec/template/spec/containers/0/name", json!("other"));
    let pending = with(reservation(), "/status", json!({"phase": "Pending"}));
    assert_eq!(status(&changed, Some(&pending)), None);
    let available = with(reservation(), "/status", json!({"phase": "Available"}));
    rejects(
        &changed,
        Some(&available),
        &["spec.template: Forbidden: field is immutable once the reservation is Available"],
    );
}

fn job() -> Value {
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob", "metadata": {"name": "j"},
        "spec": {"mode": "EvictDirectly", "ttl": "5m", "podRef": {"namespace": "default", "name": "p"}}})
}

#[test]
fn pod_migration_jobs() {
    accepts(&job());
    rejects(
        &with(job(), "/spec/podRef", json!({"name": "p"})),
        None,
        &["spec.podRef.namespace: Required value: the job must name the pod that it moves"],
    );
    rejects(
        &with(with(job(), "/spec/mode", json!("Teleport")), "/spec/ttl", json!("-5m")),
        None,
        &[
            "spec.ttl: Invalid value: \"-5m\": must not be negative",
            "spec.mode: Unsupported value: \"Teleport\": supported values: \"ReservationFirst\", \"EvictDirectly\"",
        ],
    );
    let found = with(job(), "/spec/podRef/uid", json!("u"));
    assert_eq!(status(&found, Some(&job())), None, "the uid may be added");
    rejects(
        &with(job(), "/spec/podRef/name", json!("q")),
        Some(&job()),
        &["spec.podRef: Forbidden: field is immutable; create another job for another pod"],
    );
}

#[test]
fn devices() {
    let device = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n"},
    "spec": {"devices": [
        {"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}},
        {"type": "rdma", "minor": 0, "health": true},
    ]}});
    accepts(&device);
    let twice = with(device.clone(), "/spec/devices/1/type", json!("gpu"));
    rejects(&twice, None, &["spec.devices[1].minor: Duplicate value: 0"]);
    let negative = with(device, "/spec/devices/0/resources/koordinator.sh~1gpu-core", json!("-1"));
    rejects(
        &negative,
        None,
        &[
            "spec.devices[0].resources[koordinator.sh/gpu-core]: Invalid value: \"-1\": must be greater than or equal to 0",
        ],
    );
}

#[test]
fn quotas_are_asked_about_by_the_tree_and_then_by_the_rules_of_their_type() {
    let path = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota";
    let weight = "quota.scheduling.koordinator.sh/shared-weight";
    let quota = |text: &str| {
        json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": "q", "namespace": "d", "annotations": {weight: text}}, "spec": {"max": {"cpu": "4"}}})
    };
    // The original looks at no change of this annotation.
    let review = json!({"request": {
        "uid": "u", "operation": "UPDATE", "namespace": "d", "object": quota("a lot"), "oldObject": quota(r#"{"cpu":"1"}"#),
        "resource": {"group": "scheduling.sigs.k8s.io", "version": "v1alpha1", "resource": "elasticquotas"},
    }});
    let answer = |declared| {
        let answer = service_where(declared).decide(path, review.to_string().as_bytes()).unwrap();
        serde_json::from_slice::<Value>(&answer).unwrap()["response"].clone()
    };
    let mistake = r#"metadata.annotations[quota.scheduling.koordinator.sh/shared-weight]: Invalid value: "a lot": must be a JSON object such as {"cpu":"4","memory":"8Gi"}"#;
    let off = answer(Declared::Off);
    assert_eq!((&off["allowed"], &off["warnings"]), (&json!(true), &Value::Null));
    let warned = answer(Declared::Warn);
    assert_eq!(warned["allowed"], true);
    assert_eq!(warned["warnings"], json!([format!("would be denied where rules are enforced: {mistake}")]));
    let denied = answer(Declared::Enforce);
    assert_eq!((&denied["allowed"], &denied["status"]["code"]), (&json!(false), &json!(422)));
    assert_eq!(denied["status"]["message"], mistake);
}

/// Whole objects, wherever they stand in a recording, each with who wrote it.
fn objects_in(value: &Value, author: &'static str, found: &mut Vec<(Value, &'static str)>) {
    match value {
        Value::Object(fields) => {
            let whole = value.get("apiVersion").is_some() && value.get("spec").is_some();
            // Times relative to the recording and annotations still to be encoded stand for texts.
            let text = value.to_string();
            let plain = !text.contains("\"$now") && !text.contains("{\"json\":");
            if whole && plain && KINDS.iter().any(|(kind, ..)| value["kind"] == *kind) {
                found.push((value.clone(), author));
            }
            fields.values().for_each(|value| objects_in(value, author, found));
        }
        Value::Array(items) => items.iter().for_each(|value| objects_in(value, author, found)),
        _ => {}
    }
}

/// Inputs that recordings made wrong on purpose, to see what the agents make of them.
fn wrong_on_purpose(object: &Value) -> bool {
    const NODE_SLOS: [&str; 4] = [
        "n-evict-cpualloc-prod-limit",
        "n-evict-mem-lower-equal",
        "n-evict-mem-lower-above",
        "n-resctrl-range-invalid",
    ];
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["kind"].as_str().unwrap() {
        "NodeSLO" => NODE_SLOS.contains(&name),
        // The schema refuses these before any webhook is asked.
        "Reservation" => object["spec"].get("template").is_none(),
        "PodMigrationJob" => {
            let pod = &object["spec"]["podRef"];
            object["spec"]["mode"] == "Whatever" || pod.get("name").is_none() || pod.get("namespace").is_none()
        }
        _ => false,
    }
}

#[test]
fn every_object_of_the_recordings_passes_its_own_validator() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let home = env::var_os("KOORD_SHARED").map_or(beside, Into::into).join("corpus");
    let mut objects = Vec::new();
    for component in ["manager", "scheduler", "descheduler", "koordlet"] {
        let Ok(groups) = fs::read_dir(home.join(component).join("cases")) else { continue };
        for group in groups.map(|group| group.unwrap().path()).filter(|path| path.is_dir()) {
            for file in fs::read_dir(group).unwrap().map(|file| file.unwrap().path()) {
                let mut recording: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
                let written = recording.as_object_mut().unwrap().remove("recorded").unwrap_or_default();
                let writer = if component == "manager" { "koordinator-manager" } else { "koord-descheduler" };
                objects_in(&recording, "kubectl", &mut objects);
                objects_in(&written, writer, &mut objects);
            }
        }
    }
    let refused: Vec<String> = objects
        .iter()
        .filter(|(object, _)| !wrong_on_purpose(object))
        .filter_map(|(object, author)| Some(format!("{} {object}", status_of(object, None, author)?["message"])))
        .collect();
    println!("{} objects", objects.len());
    assert!(refused.is_empty(), "{} of {}:\n{}", refused.len(), objects.len(), refused.join("\n"));
}

#[test]
fn every_quota_that_the_original_wrote_keeps_the_rules_of_its_type() {
    fn quotas(value: &Value, found: &mut Vec<ElasticQuota>) {
        if value["kind"] == "ElasticQuota"
            && let Ok(quota) = serde_json::from_value(value.clone())
        {
            found.push(quota);
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|value| quotas(value, found)),
            Value::Array(items) => items.iter().for_each(|value| quotas(value, found)),
            _ => {}
        }
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let home = env::var_os("KOORD_SHARED").map_or(beside, Into::into).join("corpus");
    let mut written = Vec::new();
    for component in ["manager", "scheduler"] {
        let Ok(groups) = fs::read_dir(home.join(component).join("cases")) else { continue };
        for group in groups.map(|group| group.unwrap().path()).filter(|path| path.is_dir()) {
            for file in fs::read_dir(group).unwrap().map(|file| file.unwrap().path()) {
                let recording: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
                quotas(&recording["recorded"], &mut written);
            }
        }
    }
    println!("{} quotas", written.len());
    for quota in &written {
        assert!(quota.validate().is_empty(), "{}: {}", serde_json::to_value(quota).unwrap(), quota.validate());
    }
}

#[test]
fn every_sample_passes_its_own_validator() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples/valid");
    let Ok(files) = fs::read_dir(samples) else { return };
    for file in files.map(|file| file.unwrap().path()) {
        let object: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(status(&object, None), None, "{}", file.display());
    }
}
