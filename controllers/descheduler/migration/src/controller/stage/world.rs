//! A small API server.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use koord_resource::schema::patch::merge;
use koord_runtime::write::{Action, Answer, WireRequest, Write};
use serde_json::{Value, json};

/// `Kind/namespace/name`, or `Kind/name`.
pub(super) type Name = (String, String, String);

fn name_of(object: &Value) -> Name {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

type Sinks = BTreeMap<String, Arc<dyn koord_runtime::store::Sink>>;

/// What the API server has, and what became of it.
#[derive(Default)]
pub(in crate::controller) struct World {
    pub(in crate::controller) objects: BTreeMap<Name, Value>,
    /// By uid: how pods went, and those that are being deleted.
    pub(in crate::controller) ways: BTreeMap<String, &'static str>,
    /// Of each job, by its uid: what it looked like, and the last state of it.
    pub(in crate::controller) courses: BTreeMap<String, (Vec<String>, Value)>,
    pub(in crate::controller) deleted: Vec<Value>,
    /// How often an object of a name was made.
    made: BTreeMap<Name, u32>,
    /// How often each pod was evicted, by uid.
    pub(in crate::controller) evictions: BTreeMap<String, u32>,
    revision: u64,
    pub(super) now: Timestamp,
    pub(super) sinks: Sinks,
}

impl World {
    pub(super) fn at(now: Timestamp) -> Self {
        Self { now, ..Self::default() }
    }

    fn uid(&mut self, name: &Name) -> String {
        let made = self.made.entry(name.clone()).or_default();
        *made += 1;
        let again = if *made > 1 { format!("#{made}") } else { String::new() };
        let (kind, namespace, object) = name;
        match kind.as_str() {
            "PodMigrationJob" => format!("$uid(PodMigrationJob {object})"),
            "Reservation" if object.starts_with("$uid(") => {
                format!("$uid(Reservation of {})", object.trim_start_matches("$uid(").trim_end_matches(')'))
            }
            "Reservation" => format!("$uid(Reservation {object})"),
            _ if namespace.is_empty() => format!("$uid({kind}/{object}{again})"),
            _ => format!("$uid({kind}/{namespace}/{object}{again})"),
        }
    }

    pub(in crate::controller) fn create(&mut self, mut object: Value) -> Answer {
        let name = name_of(&object);
        if self.objects.contains_key(&name) {
            return refused(409, "AlreadyExists", "it exists");
        }
        if name.0 == "Reservation" {
            if object["spec"]["owners"].as_array().is_none_or(Vec::is_empty) {
                return refused(422, "Invalid", "spec.owners: Required value");
            }
            if object["spec"]["ttl"].is_null() {
                object["spec"]["ttl"] = json!("24h");
            }
        }
        object["metadata"]["uid"] = self.uid(&name).into();
        object["metadata"]["creationTimestamp"] = koord_resource::Time::from(self.now).to_string().into();
        self.store(name, object)
    }

    /// Stores an object as it is, with a uid and a time where it has none.
    pub(super) fn put(&mut self, name: Name, mut object: Value) {
        let uid = self.uid(&name);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = uid.into();
        }
        self.store(name, object);
    }

    fn store(&mut self, name: Name, mut object: Value) -> Answer {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        if name.0 == "PodMigrationJob" {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let part = |name: &str| object["status"][name].as_str().filter(|text| !text.is_empty()).unwrap_or("-");
            let line = format!("{}/{}/{}", part("phase"), part("status"), part("reason"));
            let (history, last) = self.courses.entry(uid).or_default();
            if history.last() != Some(&line) {
                history.push(line);
            }
            *last = object.clone();
        }
        self.show(&name.0, &object, false);
        self.objects.insert(name, object.clone());
        Answer { code: 200, retry_after: None, body: object.to_string() }
    }

    pub(super) fn show(&self, kind: &str, object: &Value, is_gone: bool) {
        if let Some(sink) = self.sinks.get(kind) {
            let text = object.to_string();
            let _ = if is_gone { sink.remove(&text) } else { sink.upsert(&text) };
        }
    }

    pub(in crate::controller) fn patch(&mut self, name: &Name, patch: &Value) -> Answer {
        let Some(object) = self.objects.get(name) else { return refused(404, "NotFound", "not found") };
        let wanted = &patch["metadata"];
        for field in ["uid", "resourceVersion"] {
            if !wanted[field].is_null() && wanted[field] != object["metadata"][field] {
                return refused(409, "Conflict", "metadata: other");
            }
        }
        let patched = merge::apply(object.clone(), patch);
        self.store(name.clone(), patched)
    }

    /// Deletes an object at once, or begins to.
    pub(in crate::controller) fn delete(&mut self, name: &Name, options: &Value, way: &'static str) -> Answer {
        let Some(object) = self.objects.get(name) else { return refused(404, "NotFound", "not found") };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let wanted = &options["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != uid {
            return refused(409, "Conflict", "the uid is another");
        }
        let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let grace = options["gracePeriodSeconds"].as_i64().unwrap_or(own);
        if name.0 == "Pod" {
            self.ways.entry(uid.clone()).or_insert(way);
            if way != "step" {
                *self.evictions.entry(uid).or_default() += 1;
            }
            if grace > 0 && way != "step" {
                let patch = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}});
                return self.patch(name, &patch);
            }
        }
        let mut object = self.objects.remove(name).unwrap();
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        self.show(&name.0, &object, true);
        self.deleted.push(object);
        Answer { code: 200, ..Answer::default() }
    }

    fn evict(&mut self, name: &Name, options: &Value) -> Answer {
        let budgets = self
            .objects
            .iter()
            .filter(|((kind, namespace, _), _)| kind == "PodDisruptionBudget" && *namespace == name.1);
        let labels = self.objects.get(name).map(|pod| pod["metadata"]["labels"].clone()).unwrap_or_default();
        let blocks = |budget: &Value| {
            let selector = budget["spec"]["selector"]["matchLabels"].as_object().unwrap();
            budget["status"]["disruptionsAllowed"] == 0 && selector.iter().all(|(key, value)| labels[key] == *value)
        };
        if let Some(((_, _, budget), _)) = budgets.into_iter().find(|(_, budget)| blocks(budget)) {
            let why = format!("The disruption budget {budget} needs 1 healthy pods and has 1 currently");
            let body = json!({
                "reason": "TooManyRequests", "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "details": {"causes": [{"reason": "DisruptionBudget", "message": why}]},
            });
            return Answer { code: 429, retry_after: None, body: body.to_string() };
        }
        self.delete(name, options, "eviction")
    }

    pub(super) fn call(&mut self, request: &WireRequest) -> Answer {
        let path = request.uri.split('?').next().unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let at = |kind: &str, namespace: &str, name: &str| (kind.to_owned(), namespace.to_owned(), name.to_owned());
        let name = match parts.as_slice() {
            ["", "api", "v1", "namespaces", namespace, "pods", name, ..] => at("Pod", namespace, name),
            [.., "reservations", name] => at("Reservation", "", name),
            other => panic!("{other:?}"),
        };
        match request.method {
            "GET" => match self.objects.get(&name) {
                Some(object) => Answer { code: 200, retry_after: None, body: object.to_string() },
                None => refused(404, "NotFound", "not found"),
            },
            "POST" if path.ends_with("/eviction") => self.evict(&name, &body["deleteOptions"]),
            "DELETE" => self.delete(&name, &body, "delete"),
            "PATCH" => self.patch(&name, &body),
            other => panic!("{other}"),
        }
    }

    pub(super) fn write(&mut self, write: &Write) -> Answer {
        let name = (write.kind.kind.to_owned(), write.key.namespace().to_owned(), write.key.name().to_owned());
        match &write.action {
            Action::Create(object) => self.create(object.clone()),
            Action::Patch { patch, .. } => self.patch(&name, patch),
            Action::Delete(deletion) => self.delete(&name, &json!({"preconditions": {"uid": deletion.uid}}), "delete"),
            other => panic!("{other:?}"),
        }
    }
}

fn refused(code: u16, reason: &str, message: &str) -> Answer {
    Answer { code, retry_after: None, body: json!({"reason": reason, "message": message}).to_string() }
}
