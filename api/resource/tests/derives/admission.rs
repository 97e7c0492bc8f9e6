//! Handlers, their configuration entries and what derived ones decide.

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use koord_resource::{
    Mutate, Resource, Schema, Validate, admission,
    admission::{Denial, FailurePolicy, Handler, Operation, Patch, Request, Review, Verdict, WebhookKind},
    document::{WebhookService, webhook_configuration},
    field::{Errors, Path},
    handlers,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

/// A job that moves something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(admission(
    mutate(
        path = "/mutate-move",
        name = "mmove.example.com",
        on = [Create],
        gate = "Declared",
        timeout = 5,
        match_policy = Exact,
        reinvocation_policy = IfNeeded,
    ),
    validate(path = "/validate-move", name = "vmove.example.com", on = [Create, Update], code = 400),
))]
struct Move {
    metadata: ObjectMeta,
    spec: MoveSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
struct MoveSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(admission(default = "Slow", enumeration("Slow", "Fast")))]
    mode: Option<String>,
    #[koord(not_empty, admission(immutable))]
    target: String,
}

/// A crate that fits into what is free; the free space is in the snapshot, and the label of the crate is set by it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(admission(
    mutate(path = "/mutate-crate", name = "mcrate.example.com", on = [Create], snapshot),
    validate(
        path = "/validate-crate",
        gate = "Crates",
        failure_policy = Fail,
        entry(name = "vcrate.example.com", on = [Create]),
        entry(name = "vcrate-update.example.com", on = [Update], object_selector("heavy", Exists)),
        warns = "crane",
        snapshot,
    ),
))]
struct Crate {
    metadata: ObjectMeta,
    #[koord(admission(minimum = 1))]
    size: i32,
}

struct Snapshot {
    frozen: bool,
    storage: Storage,
}

struct Storage {
    free: i32,
}

impl Snapshot {
    fn storage(&self) -> &Storage {
        &self.storage
    }
}

/// A crate may grow by what is free.
#[admission(declared = Crate::VALIDATING, within = Snapshot::storage, rbac(group = "", resource = "nodes", verbs = [list]))]
fn validate_crate(review: &Review<'_, Crate>, storage: &Storage, errors: &mut Errors) {
    let (Some(new), old) = (&review.object, review.old_object.as_ref().map_or(0, |old| old.size)) else { return };
    if new.size - old > storage.free {
        errors.invalid(&Path::root("size"), new.size, format!("only {} is free", storage.free));
    }
}

/// Names the free space.
#[admission(declared = Crate::MUTATING)]
fn mutate_crate(_: &Request<'_>, snapshot: &Snapshot) -> Result<Patch, Denial> {
    let mut patch = Patch::default();
    patch.add(&Path::root("free"), &snapshot.storage.free)?;
    Ok(patch)
}

/// Says no while all is frozen.
#[admission(
    path = "/validate-pod",
    object_type = "pod", groups = [""], versions = ["v1"], resources = ["pods"],
    on = [Create, Update],
    review_versions = ["v1"],
    entry(name = "vpod.example.com", namespace_selector("control-plane", DoesNotExist)),
    entry(name = "vbinding.example.com", on = [Create], subresource = "binding", failure_policy = Ignore,
        object_selector("tier", In, ["a", "b"]), match_condition(name = "named", expression = "object.metadata.name != ''")),
    rbac(group = "", resources = ["pods", "nodes"], verbs = [get, list]),
)]
fn validate_pod(review: &Review<'_, Pod>, snapshot: &Snapshot) -> Verdict {
    let name = review.object.as_ref().and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
    if snapshot.frozen { Verdict::deny(Denial::forbidden(format!("{name} has to wait"))) } else { Verdict::allow() }
}

/// Lets every change of a node pass.
#[admission(
    path = "/validate-node",
    object_type = "node", groups = [""], versions = ["v1"], resources = ["nodes"],
    on = [Update], scope = "Cluster", side_effects = NoneOnDryRun, service(port = 9443),
    entry(name = "vnode.example.com"),
    entry(name = "vnode-other.example.com", scope = "*", service(name = "hooks", namespace = "other")),
    entry(name = "vnode-url.example.com", side_effects = None, url = "https://hooks.example.com/node"),
)]
fn validate_node(_: &Request<'_>, _: &Snapshot) -> Verdict {
    Verdict::allow()
}

const HANDLERS: &[Handler<Snapshot>] =
    handlers![validate_pod, Move::mutating_handler(), Move::validating_handler(), validate_crate, mutate_crate];

fn ask(path: &str, operation: Operation, object: &Value, old: Option<&Value>) -> Verdict {
    let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
    let (object, old) = (raw(object), old.map(raw));
    let request = Request { operation, object: Some(&object), old_object: old.as_deref(), ..Request::default() };
    let handler = HANDLERS.iter().find(|handler| handler.path == path).unwrap();
    (handler.call)(&request, &Snapshot { frozen: true, storage: Storage { free: 5 } })
}

fn message(verdict: &Verdict) -> (u16, String) {
    verdict.denial.as_ref().map_or((200, String::new()), |denial| (denial.code, denial.message.clone()))
}

#[test]
fn a_function_answers_on_its_path() {
    let verdict =
        ask("/validate-pod", Operation::Create, &json!({"metadata": {"name": "p"}, "spec": {"containers": []}}), None);
    assert_eq!(message(&verdict), (403, "p has to wait".to_owned()));
    let (code, _) = message(&ask("/validate-pod", Operation::Create, &json!({"metadata": 1}), None));
    assert_eq!(code, 400);
}

#[test]
fn a_derived_handler_refuses_what_breaks_the_rules() {
    let object = |target: &str, mode: &str| json!({"metadata": {}, "spec": {"target": target, "mode": mode}});
    let path = "/validate-move";
    assert_eq!(message(&ask(path, Operation::Create, &object("a", "Slow"), None)), (200, String::new()));
    assert_eq!(
        message(&ask(path, Operation::Create, &object("", "Later"), None)),
        (
            400,
            "[spec.mode: Unsupported value: \"Later\": supported values: \"Slow\", \"Fast\", \
             spec.target: Required value: must not be empty]"
                .to_owned()
        )
    );
    let moved = ask(path, Operation::Update, &object("b", "Slow"), Some(&object("a", "Slow")));
    assert_eq!(message(&moved), (400, "spec.target: Invalid value: \"b\": field is immutable".to_owned()));
    let as_before = ask(path, Operation::Update, &object("a", "Later"), Some(&object("a", "Later")));
    assert_eq!(message(&as_before), (200, String::new()), "what was wrong before may stay");
    assert_eq!(message(&ask(path, Operation::Delete, &object("", ""), None)).0, 200);
    let leaving = json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": {"target": ""}});
    assert_eq!(message(&ask(path, Operation::Update, &leaving, None)).0, 200);
}

#[test]
fn an_attached_function_sees_the_snapshot_after_the_rules_of_the_type() {
    let object = |size: i32| json!({"metadata": {}, "size": size});
    let path = "/validate-crate";
    assert_eq!(message(&ask(path, Operation::Create, &object(5), None)).0, 200);
    assert_eq!(
        message(&ask(path, Operation::Create, &object(6), None)),
        (422, "size: Invalid value: 6: only 5 is free".to_owned())
    );
    assert_eq!(message(&ask(path, Operation::Update, &object(8), Some(&object(4)))).0, 200, "only growth counts");
    let small = ask(path, Operation::Create, &object(0), None);
    assert_eq!(small.denial.map(|denial| denial.causes.len()), Some(1), "the type's own rule");
    assert_eq!(
        ask("/mutate-crate", Operation::Create, &object(1), None).patch.as_str(),
        r#"[{"op":"add","path":"/free","value":5}]"#
    );
}

#[test]
fn a_trusted_field_manager_is_warned_and_not_denied() {
    let object = RawValue::from_string(json!({"metadata": {}, "size": 9}).to_string()).unwrap();
    let options = RawValue::from_string(json!({"fieldManager": "crane"}).to_string()).unwrap();
    let request =
        Request { operation: Operation::Create, object: Some(&object), options: Some(&options), ..Request::default() };
    let snapshot = Snapshot { frozen: false, storage: Storage { free: 5 } };
    let verdict = (VALIDATE_CRATE.call)(&request, &snapshot);
    assert_eq!((verdict.denial, verdict.warnings), (None, vec!["size: Invalid value: 9: only 5 is free".to_owned()]));
}

#[test]
fn a_declaration_has_the_entries_and_the_function_the_permissions() {
    assert_eq!((Crate::VALIDATING.gate, Crate::VALIDATING.rbac.len()), (Some("Crates"), 0));
    assert_eq!(VALIDATE_CRATE.rbac.len(), 1);
    let entries: Vec<_> = VALIDATE_CRATE.entries.iter().map(|entry| (entry.name, entry.failure_policy)).collect();
    let fail = FailurePolicy::Fail;
    assert_eq!(
        entries,
        [("vcrate.example.com", fail), ("vcrate-update.example.com", fail)],
        "as declared, despite the gate"
    );
}

#[test]
fn a_derived_handler_changes_only_what_it_must() {
    let object = json!({"metadata": {"name": "m"}, "spec": {"target": "a", "unknown": {"kept": 1}}});
    let verdict = ask("/mutate-move", Operation::Create, &object, None);
    assert_eq!(verdict.patch.as_str(), r#"[{"op":"add","path":"/spec/mode","value":"Slow"}]"#);
    let given = json!({"metadata": {}, "spec": {"target": "a", "mode": "Fast"}});
    assert!(ask("/mutate-move", Operation::Create, &given, None).patch.is_empty());
    let incomplete = json!({"metadata": {}, "spec": {}});
    assert_eq!(ask("/mutate-move", Operation::Create, &incomplete, None), Verdict::allow(), "the schema denies it");
}

#[test]
fn the_table_becomes_both_webhook_configurations() {
    let service = WebhookService { namespace: "system", name: "webhook-service", ca_bundle: "Cg==" };
    let validating = webhook_configuration(WebhookKind::Validating, "v", &HANDLERS[..3], &service);
    let client = |path: &str| json!({"caBundle": "Cg==", "service": {"name": "webhook-service", "namespace": "system", "path": path}});
    assert_eq!(
        validating["webhooks"],
        json!([
            {
                "name": "vpod.example.com", "admissionReviewVersions": ["v1"], "clientConfig": client("/validate-pod"),
                "failurePolicy": "Fail", "sideEffects": "None",
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}],
                "namespaceSelector": {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]},
            },
            {
                "name": "vbinding.example.com", "admissionReviewVersions": ["v1"], "clientConfig": client("/validate-pod"),
                "failurePolicy": "Ignore", "sideEffects": "None",
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}],
                "objectSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]},
                "matchConditions": [{"name": "named", "expression": "object.metadata.name != ''"}],
            },
            {
                "name": "vmove.example.com", "admissionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": client("/validate-move"), "failurePolicy": "Fail", "sideEffects": "None",
                "rules": [{
                    "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["moves"],
                }],
            },
        ])
    );
    let mutating = webhook_configuration(WebhookKind::Mutating, "m", HANDLERS, &service);
    assert_eq!(mutating["webhooks"][0]["failurePolicy"], "Ignore", "what stands behind a gate is in nobody's way");
    assert_eq!(mutating["webhooks"][0]["timeoutSeconds"], 5);
    assert_eq!(mutating["webhooks"][0]["matchPolicy"], "Exact");
    assert_eq!(mutating["webhooks"][0]["reinvocationPolicy"], "IfNeeded");
    let [validate_pod, ..] = HANDLERS else { panic!() };
    let rules: Vec<_> = validate_pod.rbac.iter().map(|rule| (rule.group, rule.resource, rule.verbs)).collect();
    assert_eq!(rules, [("", "pods", &["get", "list"][..]), ("", "nodes", &["get", "list"][..])]);
    assert_eq!(
        HANDLERS.iter().map(|handler| handler.object_type).collect::<Vec<_>>(),
        ["pod", "move", "move", "crate", "crate"]
    );
}

#[test]
fn an_entry_says_where_it_is_found_and_what_it_does_beside_its_answer() {
    let service = WebhookService { namespace: "system", name: "webhook-service", ca_bundle: "Cg==" };
    let document = webhook_configuration(WebhookKind::Validating, "v", handlers![validate_node], &service);
    let said = |entry: &Value| {
        let scope = entry["rules"][0]["scope"].clone();
        (entry["clientConfig"].clone(), scope, entry["sideEffects"].clone())
    };
    let path = "/validate-node";
    assert_eq!(
        document["webhooks"].as_array().unwrap().iter().map(said).collect::<Vec<_>>(),
        [
            (
                json!({
                    "caBundle": "Cg==",
                    "service": {"name": "webhook-service", "namespace": "system", "path": path, "port": 9443},
                }),
                json!("Cluster"),
                json!("NoneOnDryRun"),
            ),
            (
                json!({"caBundle": "Cg==", "service": {"name": "hooks", "namespace": "other", "path": path}}),
                json!("*"),
                json!("NoneOnDryRun"),
            ),
            (json!({"caBundle": "Cg==", "url": "https://hooks.example.com/node"}), json!("Cluster"), json!("None"),),
        ]
    );
}
