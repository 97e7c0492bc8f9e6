//! managedFields and server-side apply against the recordings: from each recorded object to the next.

use std::collections::HashMap;

use koord_schema::{
    Schema,
    fieldset::FieldSet,
    managed_fields::{self, ApplyError, Writer},
    typed::{SchemaNode, TypeNode},
};
use serde_json::{Value, json};

use crate::{
    openapi::Node,
    recordings::{cases, is_crd, list},
};

struct Request<'a> {
    method: &'a str,
    object: String,
    subresource: &'a str,
    manager: &'a str,
    force: bool,
    applies: bool,
}

impl<'a> Request<'a> {
    fn of(step: &'a Value) -> Option<Self> {
        let (path, query) = step["path"].as_str()?.split_once('?').unwrap_or((step["path"].as_str()?, ""));
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let method = step["method"].as_str()?;
        let subresource = ["status", "scale", "binding", "eviction", "resize", "ephemeralcontainers", "token"]
            .into_iter()
            .find(|name| path.ends_with(&format!("/{name}")))
            .unwrap_or_default();
        let mut object = path.strip_suffix(subresource).unwrap_or(path).trim_end_matches('/').to_owned();
        if method == "POST" && subresource.is_empty() {
            object = format!("{object}/{}", step["recorded"]["body"]["metadata"]["name"].as_str().unwrap_or("?"));
        }
        let content_type = step["headers"]["Content-Type"].as_str().unwrap_or_default();
        Some(Request {
            method,
            object,
            subresource,
            manager: parameter("fieldManager").unwrap_or("parity"),
            force: parameter("force") == Some("true"),
            applies: content_type.starts_with("application/apply-patch"),
        })
    }
}

fn normalised(managed: Option<&Value>) -> Vec<Value> {
    let mut entries = managed.and_then(Value::as_array).cloned().unwrap_or_default();
    let key = |entry: &Value| {
        ["operation", "manager", "apiVersion", "subresource"].map(|name| entry[name].as_str().unwrap_or("").to_owned())
    };
    entries.sort_by_key(key);
    entries
}

/// The object as it was when its ownership was recorded: before admission and the kind's own strategy wrote to it.
fn as_requested(stored: &Value, request: &Value) -> Value {
    let server_made: &[&str] = match stored["kind"].as_str().unwrap_or_default() {
        "Pod" => &["/spec/priority", "/spec/preemptionPolicy", "/spec/tolerations"],
        "Namespace" => &["/spec/finalizers"],
        "Node" => &["/spec/taints"],
        "Service" => &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/ipFamilies",
            "/spec/ipFamilyPolicy",
            "/spec/ports/0/nodePort",
        ],
        "Job" => &["/metadata/labels", "/spec/selector", "/spec/template/metadata/labels"],
        _ => &[],
    };
    let mut object = stored.clone();
    for pointer in server_made.iter().chain(&["/metadata/managedFields"]) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        if request.pointer(pointer).is_none()
            && let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut)
        {
            parent.remove(name);
        }
    }
    object
}

/// Runs with the type of an object: built-in, or that of the case's CRD.
fn with_type<T>(case: &Value, object: &Value, then: &mut dyn FnMut(Type<'_>) -> T) -> Option<T> {
    let (version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    if let Some(node) = Node::of_kind(version, kind) {
        return Some(then(Type::BuiltIn(node)));
    }
    let crds = || list(case, "setup").iter().chain(list(case, "steps")).map(|request| &request["body"]);
    let crd = crds().find(|body| is_crd(body) && body["spec"]["names"]["kind"] == kind)?;
    let schema: Schema =
        serde_json::from_value(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()).ok()?;
    let has_status = crd["spec"]["versions"][0]["subresources"].get("status").is_some();
    Some(then(Type::Custom { node: SchemaNode::of_object(&schema), has_status }))
}

enum Type<'a> {
    BuiltIn(Node),
    Custom { node: SchemaNode<'a>, has_status: bool },
}

impl Type<'_> {
    fn update(&self, live: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
        fn run<N: TypeNode>(live: Option<&Value>, new: &mut Value, writer: &Writer<'_>, node: &N, has_status: bool) {
            let zero = node.zero();
            // The status is written through its own door.
            let ignored = if has_status && writer.subresource.is_empty() {
                FieldSet::of_fields(&[&["status"]])
            } else {
                FieldSet::new()
            };
            managed_fields::update(live.unwrap_or(&zero), new, writer, node, &ignored);
        }
        match self {
            Type::BuiltIn(node) => run(live, new, writer, node, true),
            Type::Custom { node, has_status } => run(live, new, writer, node, *has_status),
        }
    }

    fn apply(&self, live: &Value, applied: &Value, writer: &Writer<'_>, force: bool) -> Result<Value, ApplyError> {
        let ignored = match writer.subresource {
            "status" => FieldSet::of_fields(&[&["spec"], &["metadata"]]),
            _ => FieldSet::of_fields(&[&["status"]]),
        };
        match self {
            Type::BuiltIn(node) => managed_fields::apply(live, applied, writer, node, &ignored, force),
            Type::Custom { node, .. } => managed_fields::apply(live, applied, writer, node, &ignored, force),
        }
    }
}

#[test]
fn managed_fields_follow_every_recorded_write() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for group in ["crud", "patch", "apply", "crd", "subresources", "gc-finalizers"] {
        for (name, case) in cases(group) {
            let mut objects: HashMap<String, Value> = HashMap::new();
            for (number, step) in list(&case, "steps").iter().enumerate() {
                let Some(request) = Request::of(step) else { continue };
                let recorded = &step["recorded"]["body"];
                let whole = step["recorded"]["status"].as_u64().is_some_and(|status| status < 300)
                    && step.get("project").is_none_or(Value::is_null)
                    && recorded["metadata"].get("uid").is_some()
                    && !step["path"].as_str().unwrap().contains("dryRun");
                let is_write = ["POST", "PUT", "PATCH"].contains(&request.method);
                if !whole || !is_write || ["scale", "token"].contains(&request.subresource) {
                    if is_write && whole
                        || request.method == "DELETE"
                        || (is_write && step["recorded"]["status"].as_u64().is_some_and(|status| status < 300))
                    {
                        objects.remove(&request.object);
                    }
                    if request.method == "GET" && whole {
                        objects.insert(request.object.clone(), recorded.clone());
                    }
                    continue;
                }
                let live = objects.insert(request.object.clone(), recorded.clone());
                let creates = request.method == "POST" && request.subresource.is_empty();
                if (live.is_none() && !creates) || request.applies {
                    continue;
                }
                let found = with_type(&case, recorded, &mut |kind| {
                    let mut new = if creates { as_requested(recorded, &step["body"]) } else { recorded.clone() };
                    new["metadata"].as_object_mut().unwrap().remove("managedFields");
                    // What the request says about managedFields comes to the server together with the rest.
                    if let Some(stated) = step["body"].pointer("/metadata/managedFields") {
                        new["metadata"]["managedFields"] = stated.clone();
                    }
                    let writer = Writer {
                        manager: request.manager,
                        api_version: recorded["apiVersion"].as_str().unwrap(),
                        subresource: request.subresource,
                        time: "<time>",
                    };
                    kind.update(live.as_ref(), &mut new, &writer);
                    normalised(new["metadata"].get("managedFields"))
                });
                let Some(found) = found else { continue };
                compared += 1;
                let expected = normalised(recorded["metadata"].get("managedFields"));
                if found != expected {
                    wrong.push(format!(
                        "{group}/{name} step {number}:\n  found    {}\n  recorded {}",
                        json!(found),
                        json!(expected)
                    ));
                }
            }
        }
    }
    println!("{compared} writes compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn configurations_are_applied_as_recorded() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, case) in cases("apply") {
        let mut objects: HashMap<String, Value> = HashMap::new();
        let setup: Vec<Value> = list(&case, "setup").to_vec();
        for (number, step) in setup.iter().chain(list(&case, "steps")).enumerate() {
            let Some(request) = Request::of(step) else { continue };
            let recorded = &step["recorded"]["body"];
            let status = step["recorded"]["status"].as_u64();
            let mut body = step["body"].clone();
            let is_setup = status.is_none();
            if is_setup {
                body["metadata"]["uid"] = json!("<uid>");
            }
            if !request.applies {
                let created = is_setup && request.method == "POST" && body["kind"] == "ConfigMap";
                let object = if created {
                    format!("{}/{}", request.object.trim_end_matches("/?"), body["metadata"]["name"].as_str().unwrap())
                } else {
                    request.object.clone()
                };
                let stored = if created {
                    with_type(&case, &body, &mut |kind| {
                        let mut new = body.clone();
                        let writer =
                            Writer { manager: request.manager, api_version: "v1", subresource: "", time: "<time>" };
                        new["metadata"].as_object_mut().unwrap().remove("uid");
                        kind.update(None, &mut new, &writer);
                        new["metadata"]["uid"] = json!("<uid>");
                        new
                    })
                } else {
                    recorded["metadata"].get("uid").map(|_| recorded.clone())
                };
                match stored {
                    Some(stored) => drop(objects.insert(object, stored)),
                    None => drop(objects.remove(&object)),
                }
                continue;
            }
            // Recordings that a validation refused, or that show a part only, cannot be followed here.
            let followed = is_setup || matches!(status, Some(200 | 201 | 409 | 500));
            let has_defaults = matches!(body["kind"].as_str(), Some("Deployment" | "Pod" | "Secret" | "Namespace"));
            if !followed
                || !body["metadata"].is_object()
                || (has_defaults && status != Some(500))
                || body["metadata"].get("resourceVersion").is_some()
                || (status == Some(409)
                    && !recorded["message"].as_str().unwrap_or_default().starts_with("Apply failed")
                    && recorded["message"].is_string())
            {
                continue;
            }
            if is_setup {
                body["metadata"].as_object_mut().unwrap().remove("uid");
            }
            let live = objects.get(&request.object).cloned().unwrap_or_else(|| json!({}));
            let Some(result) = with_type(&case, &body, &mut |kind| {
                let writer = Writer {
                    manager: request.manager,
                    api_version: body["apiVersion"].as_str().unwrap(),
                    subresource: request.subresource,
                    time: "<time>",
                };
                kind.apply(&live, &body, &writer, request.force)
            }) else {
                continue;
            };
            compared += usize::from(!is_setup);
            let mut report = |found: Value, expected: Value| {
                if found != expected {
                    wrong.push(format!("{name} step {number}:\n  found    {found}\n  recorded {expected}"));
                }
            };
            match (result, status) {
                (Ok(mut new), None | Some(200 | 201)) => {
                    if is_setup {
                        new["metadata"]["uid"] = json!("<uid>");
                    } else {
                        let managed = normalised(new["metadata"].get("managedFields"));
                        report(json!(managed), json!(normalised(recorded["metadata"].get("managedFields"))));
                        // A write through the status door leaves the rest to the server.
                        let parts: &[&str] =
                            if request.subresource == "status" { &["status"] } else { &["spec", "data"] };
                        for part in parts {
                            let found = new.get(*part).filter(|value| !value.is_null()).cloned();
                            report(json!(found), json!(recorded.get(*part)));
                        }
                        new = recorded.clone();
                    }
                    if !step["path"].as_str().unwrap().contains("dryRun") {
                        objects.insert(request.object.clone(), new);
                    }
                }
                (Err(ApplyError::Conflicts(conflicts)), Some(409)) => {
                    let causes: Vec<Value> = conflicts
                        .iter()
                        .map(|conflict| json!({"field": conflict.field, "message": conflict.message(), "reason": "FieldManagerConflict"}))
                        .collect();
                    let mut sorted = causes.clone();
                    sorted.sort_by_key(|cause| cause["field"].as_str().unwrap().to_owned());
                    report(json!(sorted), recorded["details"]["causes"].clone());
                    if recorded["message"].is_string() {
                        report(json!(ApplyError::Conflicts(conflicts).to_string()), recorded["message"].clone());
                    }
                }
                (Err(error @ ApplyError::Mismatch(_)), Some(500)) => {
                    let message = recorded["message"].as_str().unwrap();
                    report(json!(message.ends_with(&error.to_string())), json!(true));
                    if !message.ends_with(&error.to_string()) {
                        report(json!(error.to_string()), json!(message));
                    }
                }
                (Err(ApplyError::ManagedFields), _) => {}
                (result, status) => report(json!(format!("{result:?}")), json!(status)),
            }
        }
    }
    println!("{compared} configurations compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_item_of_a_keyed_list_needs_one_of_its_keys() {
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "zone"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "zone": {"type": "string"}, "text": {"type": "string"}}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic",
            "x-kubernetes-preserve-unknown-fields": true}}}}}}))
    .unwrap();
    let writer = Writer { manager: "m", api_version: "v1", subresource: "", time: "t" };
    let applied = |spec: Value| {
        let node = SchemaNode::of_object(&schema);
        managed_fields::apply(&json!({}), &json!({"spec": spec}), &writer, &node, &FieldSet::new(), false)
    };
    let one_key = applied(json!({"ports": [{"port": 80}, {"zone": "a"}]})).unwrap();
    let owned = &one_key["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:ports"];
    assert_eq!(
        owned,
        &json!({r#"k:{"port":80}"#: {".": {}, "f:port": {}}, r#"k:{"zone":"a"}"#: {".": {}, "f:zone": {}}})
    );
    let refused = |spec| applied(spec).unwrap_err().to_string();
    assert!(refused(json!({"ports": [{"text": "x"}]})).ends_with(
        r#".spec.ports: element 0: associative list with keys has an element that omits all key fields ["port" "zone"] (and doesn't have default values for any key fields)"#
    ));
    assert!(
        refused(json!({"set": [{"a": 1}]})).ends_with("associative list without keys has an element that's a map type")
    );
}
