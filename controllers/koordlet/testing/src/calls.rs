//! Calls to the agent: the hook server, NRI, its own HTTP server.

use serde_json::{Value, json};

use crate::{agent::Answer, names::text, play::Player, wire};

impl Player<'_> {
    fn filled(&self, request: &Value) -> Value {
        serde_json::from_str(&self.names.fill(&request.to_string())).unwrap()
    }

    pub(crate) fn hook(&mut self, method: &str, request: &Value) -> Value {
        let kind = if method.contains("PodSandbox") { "PodSandboxHook" } else { "ContainerResourceHook" };
        let bytes = wire::encode(&format!("{kind}Request"), &self.filled(request));
        let answer = match &mut self.agent {
            Some(agent) => agent.call_hook(self.now, method, &bytes),
            None => Err("UNAVAILABLE".to_owned()),
        };
        answered(answer, &format!("{kind}Response"))
    }

    /// The runtime's side of a registration.
    pub(crate) fn greet(&mut self) {
        if self.case.nri.is_empty() || self.nri.contains_key("register") {
            return;
        }
        let Some(registration) = self.agent.as_mut().and_then(|agent| agent.nri_registration(self.now)) else { return };
        self.nri.insert(
            "register".to_owned(),
            wire::decode("RegisterPluginRequest", &registration).unwrap_or_else(Value::String),
        );
        let about = json!({"runtime_name": "containerd", "runtime_version": "2.1.0", "registration_timeout": 5000, "request_timeout": 2000});
        let configured = self.call_nri("Configure", &about, "ConfigureResponse");
        let synchronized = self.call_nri("Synchronize", &json!({}), "SynchronizeResponse");
        self.nri.extend([("configure".to_owned(), configured), ("synchronize".to_owned(), synchronized)]);
    }

    pub(crate) fn nri_event(&mut self, method: &str, request: &Value) -> Value {
        if !self.nri.contains_key("register") {
            return json!({"error": "not registered"});
        }
        let mut request = self.filled(request);
        let state = match method {
            "RunPodSandbox" => 1,
            "StopPodSandbox" => 2,
            "RemovePodSandbox" => 3,
            "StopContainer" => 10,
            "RemoveContainer" => 11,
            _ => {
                let mut answer = self.call_nri(method, &request, &format!("{method}Response"));
                if let Some(variables) = answer.pointer_mut("/response/adjust/env").and_then(Value::as_array_mut) {
                    variables.sort_by_key(|variable| text(variable, "/key").to_owned());
                }
                return answer;
            }
        };
        request["event"] = json!(state);
        self.call_nri("StateChange", &request, "")
    }

    /// A call over NRI; an answer without name has no content.
    fn call_nri(&mut self, method: &str, request: &Value, response: &str) -> Value {
        let kind = if method == "StateChange" { "StateChangeEvent".to_owned() } else { format!("{method}Request") };
        let bytes = wire::encode(&kind, request);
        let answer = match &mut self.agent {
            Some(agent) => agent.call_nri(self.now, method, &bytes),
            None => return json!({"error": "closed"}),
        };
        if response.is_empty() {
            answered(answer.map(|_| Vec::new()), "UpdateContainerResponse")
        } else {
            answered(answer, response)
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Option<Answer> {
        let now = self.now;
        self.agent.as_mut().and_then(|agent| agent.http(now, path))
    }

    pub(crate) fn http(&mut self, path: &str) -> Value {
        let Some(answer) = self.get(path) else { return json!({"status": null}) };
        let mut seen = json!({"status": answer.status});
        if self.case.http_body {
            match audit_events(&answer.body) {
                Some(events) => seen["events"] = events,
                None => seen["body"] = json!(answer.body),
            }
        }
        seen
    }
}

/// The audit events of a page, each once and without its time.
fn audit_events(body: &str) -> Option<Value> {
    let page: Value = serde_json::from_str(body).ok()?;
    let mut events: Vec<Value> = page["Events"].as_array()?.clone();
    for event in &mut events {
        _ = event.as_object_mut()?.remove("createdAt");
    }
    events.sort_by_key(Value::to_string);
    events.dedup();
    Some(json!(events))
}

/// An answer as it is recorded.
fn answered<E: Into<Value>>(answer: Result<Vec<u8>, E>, message: &str) -> Value {
    let decoded = answer.map(|bytes| wire::decode(message, &bytes));
    match decoded {
        Ok(Ok(response)) => json!({"response": response}),
        Ok(Err(error)) => json!({"error": error}),
        Err(error) => json!({"error": error.into()}),
    }
}
