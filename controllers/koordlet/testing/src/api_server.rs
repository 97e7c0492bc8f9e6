//! The objects of an API server, and the few requests that a node agent makes.
//!
//! Patches of every kind are merged as JSON merge patches, and server-side apply too: no object of a node agent has lists that are merged by keys, except
//! conditions, which it does not own. Schemas and admission are not played.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    agent::{Answer, ApiRequest, Event},
    names::text,
};

/// Kind, plural, whether its status is written apart.
const KINDS: [(&str, &str, bool); 7] = [
    ("Pod", "pods", true),
    ("Node", "nodes", true),
    ("Event", "events", false),
    ("NodeMetric", "nodemetrics", true),
    ("NodeSLO", "nodeslos", true),
    ("Device", "devices", false),
    ("NodeResourceTopology", "noderesourcetopologies", false),
];

/// Kind, namespace, name.
type Key = (String, String, String);

#[derive(Debug, Default)]
pub(crate) struct ApiServer {
    objects: BTreeMap<Key, Value>,
    revision: u64,
    /// Events that were written as objects.
    pub(crate) events: Vec<Event>,
}

/// What a watch shows after a request.
#[derive(Debug)]
pub(crate) enum Change {
    Changed(Value),
    Deleted(Value),
}

impl ApiServer {
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }

    /// All objects but pods.
    pub(crate) fn listed(&self) -> Vec<Value> {
        self.objects.values().filter(|object| object["kind"] != "Pod").cloned().collect()
    }

    /// Creates or replaces an object. One with a status of its own keeps it, except for members that are given.
    pub(crate) fn apply(&mut self, object: &Value) -> Value {
        let key = key_of(object);
        let mut applied = object.clone();
        if let Some(present) = self.objects.get(&key)
            && has_status(&key.0)
            && !present["status"].is_null()
        {
            let mut status = present["status"].clone();
            merge(&mut status, &object["status"]);
            applied["status"] = status;
        }
        self.store(key, applied)
    }

    pub(crate) fn delete(&mut self, object: &Value) -> Option<Value> {
        self.objects.remove(&key_of(object))
    }

    /// Answers a request of the agent.
    pub(crate) fn request(&mut self, request: &ApiRequest) -> (Answer, Option<Change>) {
        match self.answer(request) {
            Ok((status, body, change)) => (Answer { status, body: body.to_string() }, change),
            Err((status, reason, message)) => {
                let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": status});
                (Answer { status, body: body.to_string() }, None)
            }
        }
    }

    fn answer(&mut self, request: &ApiRequest) -> Result<(u16, Value, Option<Change>), Refusal> {
        let (kind, plural, namespace, name, subresource) = parse(&request.path)?;
        let (is_conflict, body) = (|message: &str| (409, "Conflict", message.to_owned()), &request.body);
        if request.method == "POST" && subresource.is_empty() {
            let name = text(body, "/metadata/name").to_owned();
            if kind == "Event" {
                self.events.push(event(body));
                return Ok((201, body.clone(), None));
            }
            let key = (kind.to_owned(), namespace, name);
            if self.objects.contains_key(&key) {
                return Err((409, "AlreadyExists", format!("{plural} \"{}\" already exists", key.2)));
            }
            let mut object = body.clone();
            object["kind"] = json!(kind);
            let object = self.store(key, object);
            return Ok((201, object.clone(), Some(Change::Changed(object))));
        }
        let key = (kind.to_owned(), namespace, name);
        let is_apply = request.method == "PATCH" && !body["apiVersion"].is_null() && !body["kind"].is_null();
        let Some(present) = self.objects.get(&key).cloned() else {
            if is_apply && subresource.is_empty() {
                let object = self.store(key, body.clone());
                return Ok((201, object.clone(), Some(Change::Changed(object))));
            }
            return Err((404, "NotFound", format!("{plural} \"{}\" not found", key.2)));
        };
        for field in ["uid", "resourceVersion"] {
            let preconditions = [
                &body["metadata"][field],
                &body["preconditions"][field],
                &body["deleteOptions"]["preconditions"][field],
            ];
            if preconditions
                .into_iter()
                .any(|wanted| !wanted.is_null() && wanted != "" && *wanted != present["metadata"][field])
            {
                return Err(is_conflict(&format!("{plural} \"{}\": the {field} is another", key.2)));
            }
        }
        match (request.method.as_str(), subresource.as_str()) {
            ("GET", _) => Ok((200, present, None)),
            ("POST", "eviction") | ("DELETE", _) if kind == "Pod" => {
                // Nothing ends the containers: the pod stays, terminating.
                let mut object = present;
                object["metadata"]["deletionTimestamp"] = json!("2025-01-01T01:00:00Z");
                let object = self.store(key, object);
                let created = if request.method == "POST" { 201 } else { 200 };
                Ok((
                    created,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
                    Some(Change::Changed(object)),
                ))
            }
            ("DELETE", _) => {
                self.objects.remove(&key);
                Ok((
                    200,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
                    Some(Change::Deleted(present)),
                ))
            }
            ("PUT", subresource) => {
                let mut object = if subresource == "status" { present.clone() } else { body.clone() };
                if has_status(kind) {
                    let status = if subresource == "status" { &body["status"] } else { &present["status"] };
                    object["status"] = status.clone();
                }
                object["metadata"]["uid"] = present["metadata"]["uid"].clone();
                object["kind"] = json!(kind);
                let object = self.store(key, object);
                Ok((200, object.clone(), Some(Change::Changed(object))))
            }
            ("PATCH", subresource) => {
                let mut patch = body.clone();
                if let Some(members) = patch.as_object_mut() {
                    match subresource {
                        "status" => members.retain(|key, _| key == "status"),
                        _ if has_status(kind) => _ = members.remove("status"),
                        _ => {}
                    }
                }
                let mut object = present.clone();
                merge(&mut object, &patch);
                if object == present {
                    return Ok((200, present, None));
                }
                let object = self.store(key, object);
                Ok((200, object.clone(), Some(Change::Changed(object))))
            }
            (method, _) => Err((405, "MethodNotAllowed", format!("{method} of {plural}"))),
        }
    }

    fn store(&mut self, key: Key, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("{}-{}", key.0.to_lowercase(), key.2));
        }
        self.objects.insert(key, object.clone());
        object
    }
}

/// Status code, reason, message.
type Refusal = (u16, &'static str, String);

/// Kind, plural, namespace, name, subresource of a path.
fn parse(path: &str) -> Result<(&'static str, &'static str, String, String, String), Refusal> {
    let unknown = || (404, "NotFound", format!("the server could not find {path}"));
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').filter(|part| !part.is_empty()).skip(if path.starts_with("/api/") { 2 } else { 3 });
    let mut plural = parts.next().ok_or_else(unknown)?;
    let mut namespace = "";
    if plural == "namespaces" {
        namespace = parts.next().ok_or_else(unknown)?;
        plural = parts.next().ok_or_else(unknown)?;
    }
    let (kind, plural, _) = KINDS.iter().find(|(_, known, _)| *known == plural).ok_or_else(unknown)?;
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Ok((kind, plural, namespace.to_owned(), next(), next()))
}

fn has_status(kind: &str) -> bool {
    KINDS.iter().any(|(known, _, has_status)| *known == kind && *has_status)
}

fn key_of(object: &Value) -> Key {
    let part = |pointer: &str| text(object, pointer).to_owned();
    (part("/kind"), part("/metadata/namespace"), part("/metadata/name"))
}

fn event(object: &Value) -> Event {
    let about = if object["involvedObject"].is_null() { &object["regarding"] } else { &object["involvedObject"] };
    let first = |pointers: [&str; 2]| {
        let found = pointers.iter().map(|pointer| text(object, pointer)).find(|text| !text.is_empty());
        found.unwrap_or_default().to_owned()
    };
    Event {
        kind: text(about, "/kind").to_owned(),
        namespace: text(about, "/namespace").to_owned(),
        name: text(about, "/name").to_owned(),
        type_: text(object, "/type").to_owned(),
        reason: text(object, "/reason").to_owned(),
        message: first(["/message", "/note"]),
        component: first(["/source/component", "/reportingController"]),
    }
}

/// JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in members {
        if value.is_null() {
            _ = target.as_object_mut().and_then(|target| target.remove(key));
        } else {
            merge(&mut target[key], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, body: Value) -> ApiRequest {
        ApiRequest { method: method.to_owned(), path: path.to_owned(), body }
    }

    #[test]
    fn a_status_is_written_apart_and_events_are_kept() {
        let mut server = ApiServer::default();
        server.apply(&json!({"apiVersion": "v1", "kind": "NodeMetric", "metadata": {"name": "n"}, "spec": {"a": 1}}));
        let path = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n";
        let patch = json!({"spec": {"a": 2}, "status": {"b": 1}});
        assert_eq!(server.request(&request("PATCH", &format!("{path}/status"), patch)).0.status, 200);
        let object = server.get("NodeMetric", "", "n").unwrap();
        assert_eq!((&object["spec"]["a"], &object["status"]["b"]), (&json!(1), &json!(1)));
        // A change of the spec keeps the status.
        server.apply(&json!({"apiVersion": "v1", "kind": "NodeMetric", "metadata": {"name": "n"}, "spec": {"a": 3}}));
        assert_eq!(server.get("NodeMetric", "", "n").unwrap()["status"]["b"], 1);
        let stale = json!({"metadata": {"name": "n", "resourceVersion": "1"}});
        assert_eq!(server.request(&request("PUT", path, stale)).0.status, 409);
        let event = json!({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "r", "message": "m", "source": {"component": "c"}});
        assert_eq!(server.request(&request("POST", "/api/v1/namespaces/a/events", event)).0.status, 201);
        assert_eq!((server.events[0].name.as_str(), server.events[0].component.as_str()), ("p", "c"));
    }

    #[test]
    fn an_evicted_pod_stays_terminating_and_a_missing_one_is_named() {
        let mut server = ApiServer::default();
        server.apply(&json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "1"}}));
        let path = "/api/v1/namespaces/a/pods/p/eviction";
        let wrong = json!({"deleteOptions": {"preconditions": {"uid": "2"}}});
        assert_eq!(server.request(&request("POST", path, wrong)).0.status, 409);
        assert_eq!(server.request(&request("POST", path, json!({}))).0.status, 201);
        assert!(!server.get("Pod", "a", "p").unwrap()["metadata"]["deletionTimestamp"].is_null());
        let (answer, _) = server.request(&request("POST", "/api/v1/namespaces/a/pods/q/eviction", json!({})));
        assert_eq!(answer.status, 404);
        assert!(answer.body.contains(r#"pods \"q\" not found"#));
    }
}
