//! An API server that stores whole objects by their path: enough for the controller.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http_body_util::BodyExt;
use koord_runtime::{api::Api, clock::SystemClock, metrics::Metrics};
use koord_webhook_server::Defaults;
use kube::client::Body;
use serde_json::{Value, json};

pub(crate) const SECRET: &str = "/api/v1/namespaces/koordinator-system/secrets/koordinator-webhook-certs";
pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/koordinator-mutating-webhook-configuration";
pub(crate) const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/koordinator-validating-webhook-configuration";

pub(crate) const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/databases.db.example.com";

/// The names of the server's objects: those for which the original's Secret was made.
pub(crate) fn defaults() -> Defaults {
    Defaults {
        namespace: "koordinator-system".to_owned(),
        secret: "koordinator-webhook-certs".to_owned(),
        service: "koordinator-webhook-service".to_owned(),
        mutating: "koordinator-mutating-webhook-configuration".to_owned(),
        validating: "koordinator-validating-webhook-configuration".to_owned(),
        second_port: None,
    }
}

#[derive(Clone, Default)]
pub(crate) struct ApiServer {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    /// Every write: method and path.
    pub(crate) writes: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    /// With both configurations as a chart installs them.
    pub(crate) fn with_configurations() -> Self {
        let server = Self::default();
        for (path, entries) in [(MUTATING, ["/mutate-pod", "/off"]), (VALIDATING, ["/validate-pod", "/off"])] {
            server.put(path, configuration(&entries));
        }
        server
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.look(path, Value::clone)
    }

    /// Looks at an object without copying it.
    pub(crate) fn look<T>(&self, path: &str, at: impl FnOnce(&Value) -> T) -> Option<T> {
        self.objects.lock().unwrap().get(path).map(at)
    }

    pub(crate) fn put(&self, path: &str, object: Value) {
        self.objects.lock().unwrap().insert(path.to_owned(), with_revision(object, "1"));
    }

    pub(crate) fn delete(&self, path: &str) {
        self.objects.lock().unwrap().remove(path);
    }

    pub(crate) fn api(&self) -> Api {
        Api::new(self.client(), SystemClock::shared(), Metrics::new().unwrap().requests(), "test", (0.0, 0))
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let (code, answer) = server.answer(head.method.as_str(), head.uri.path(), &body);
                let answer = http::Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(answer.unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        if method != "GET" {
            self.writes.lock().unwrap().push(format!("{method} {path}"));
        }
        let mut objects = self.objects.lock().unwrap();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        match method {
            "GET" => {
                objects.get(path).map_or_else(|| (404, json!({"message": "not found"})), |found| (200, found.clone()))
            }
            "POST" => {
                let name = body["metadata"]["name"].as_str().unwrap();
                let object = with_revision(body.clone(), "1");
                objects.insert(format!("{path}/{name}"), object.clone());
                (201, object)
            }
            "PATCH" => {
                let object = objects.get_mut(path).unwrap();
                let revision = object["metadata"]["resourceVersion"].clone();
                let expected = &body["metadata"]["resourceVersion"];
                if !expected.is_null() && *expected != revision {
                    return (409, json!({"message": "conflict"}));
                }
                merge(object, &body);
                let next = revision.as_str().unwrap().parse::<u64>().unwrap() + 1;
                object["metadata"]["resourceVersion"] = next.to_string().into();
                (200, object.clone())
            }
            other => panic!("{other}"),
        }
    }
}

fn with_revision(mut object: Value, revision: &str) -> Value {
    object["metadata"]["resourceVersion"] = revision.into();
    object
}

fn merge(object: &mut Value, patch: &Value) {
    for (name, change) in patch.as_object().unwrap() {
        match change {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            Value::Object(_) if object[name].is_object() => merge(&mut object[name], change),
            plain => object[name] = plain.clone(),
        }
    }
}

fn configuration(paths: &[&str]) -> Value {
    let entry = |path: &&str| {
        json!({"name": format!("{}.example.com", &path[1..]),
            "clientConfig": {"caBundle": "Cg==", "service": {"name": "x", "namespace": "y", "path": path}}})
    };
    json!({"metadata": {"name": "c"}, "webhooks": paths.iter().map(entry).collect::<Vec<_>>()})
}
