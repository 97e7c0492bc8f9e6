//! A write to the API server as data: what a plan shows, what is sent, and what an answer means.

use std::{collections::BTreeMap, fmt, time::Duration};

use koord_resource::{controller::ResourceKind, schema::patch::merge};
use serde_json::{Value, json};

use crate::{
    cache::Revision,
    error::{Fault, MissingPermission, ReconcileError},
    key::ObjectKey,
    refusal::Refused,
    uid::Uid,
};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The kind of the object.
    pub kind: ResourceKind,
    /// The object.
    pub key: ObjectKey,
    /// What is done to it.
    pub action: Action,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST of a new object.
    Create(Value),
    /// JSON merge patch; `metadata.uid` and `metadata.resourceVersion` in it are preconditions.
    Patch {
        /// `status` or another subresource; empty for the object itself.
        subresource: &'static str,
        /// The patch.
        patch: Value,
    },
    /// Strategic merge patch, for built-in kinds: items of lists are named by their keys, as conditions by their type.
    StrategicPatch {
        /// `status` or another subresource; empty for the object itself.
        subresource: &'static str,
        /// The patch.
        patch: Value,
    },
    /// Server-side apply: the fields of this object are ours, and no others. It is created where it does not exist.
    Apply {
        /// What we declare; `metadata.uid` in it is a precondition.
        object: Value,
        /// What the object shows of what this program applied before; `null` where it applied nothing.
        owned: Value,
    },
    /// PUT of a whole object or subresource; its `metadata.resourceVersion` is the precondition.
    Update {
        /// `status` or another subresource; empty for the object itself.
        subresource: &'static str,
        /// The object.
        object: Value,
    },
    /// DELETE of the object.
    Delete(Deletion),
    /// Binds a pod to a node.
    Bind {
        /// Precondition.
        uid: Uid,
        /// The node.
        node: String,
        /// Annotations that the pod gets with its node, in one write.
        annotations: BTreeMap<String, String>,
    },
    /// Evicts a pod: deletes it unless a disruption budget forbids that now (429).
    Evict(Deletion),
}

/// How an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Precondition: the object with this uid.
    pub uid: Uid,
    /// Precondition: the object at this revision; none for any.
    pub revision: Option<Revision>,
    /// How long the object has to end; none for its own time.
    pub grace: Option<Duration>,
}

impl Deletion {
    /// Deletes the object with this uid.
    pub fn of(uid: Uid) -> Self {
        Self { uid, ..Self::default() }
    }

    /// Only at this revision.
    pub fn at(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// With this time to end, in whole seconds.
    pub fn within(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// As `DeleteOptions`.
    fn options(&self) -> Value {
        let mut preconditions = json!({ "uid": self.uid });
        if let Some(revision) = self.revision {
            preconditions["resourceVersion"] = revision.0.to_string().into();
        }
        let mut options = json!({ "preconditions": preconditions, "propagationPolicy": "Background" });
        if let Some(grace) = self.grace {
            options["gracePeriodSeconds"] = grace.as_secs().into();
        }
        options
    }
}

impl Action {
    /// The verb for which a permission is needed.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) | Self::Bind { .. } | Self::Evict(_) => "create",
            Self::Patch { .. } | Self::StrategicPatch { .. } | Self::Apply { .. } => "patch",
            Self::Update { .. } => "update",
            Self::Delete(_) => "delete",
        }
    }
}

/// A write as an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    /// HTTP method.
    pub method: &'static str,
    /// Path and query.
    pub uri: String,
    /// Media type of the body.
    pub content_type: &'static str,
    /// JSON text.
    pub body: String,
}

/// An answer of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub code: u16,
    /// From the header of that name.
    pub retry_after: Option<Duration>,
    /// The body as text.
    pub body: String,
}

impl Answer {
    /// Whether the request was carried out.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// `reason` and `message` of a Status body; empty when there is none.
    pub fn status(&self) -> (String, String) {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Status {
            reason: Option<String>,
            message: Option<String>,
        }
        let status: Status = serde_json::from_str(&self.body).unwrap_or_default();
        (status.reason.unwrap_or_default(), status.message.unwrap_or_default())
    }
}

impl Write {
    /// The write as an HTTP request in the name of `field_manager`.
    pub fn request(&self, field_manager: &str) -> WireRequest {
        let object = || self.kind.url_path(self.key.namespace(), Some(self.key.name()));
        match &self.action {
            Action::Create(body) => WireRequest {
                method: "POST",
                uri: format!("{}?fieldManager={field_manager}", self.kind.url_path(self.key.namespace(), None)),
                content_type: "application/json",
                body: body.to_string(),
            },
            Action::Patch { subresource, patch } | Action::StrategicPatch { subresource, patch } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let is_strategic = matches!(self.action, Action::StrategicPatch { .. });
                WireRequest {
                    method: "PATCH",
                    uri: format!("{}{slash}{subresource}?fieldManager={field_manager}", object()),
                    content_type: if is_strategic {
                        "application/strategic-merge-patch+json"
                    } else {
                        "application/merge-patch+json"
                    },
                    body: patch.to_string(),
                }
            }
            Action::Apply { object: body, .. } => WireRequest {
                method: "PATCH",
                uri: format!("{}?fieldManager={field_manager}&force=true", object()),
                content_type: "application/apply-patch+yaml",
                body: body.to_string(),
            },
            Action::Update { subresource, object: body } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                WireRequest {
                    method: "PUT",
                    uri: format!("{}{slash}{subresource}?fieldManager={field_manager}", object()),
                    content_type: "application/json",
                    body: body.to_string(),
                }
            }
            Action::Delete(deletion) => WireRequest {
                method: "DELETE",
                uri: object(),
                content_type: "application/json",
                body: deletion.options().to_string(),
            },
            Action::Bind { uid, node, annotations } => {
                let mut metadata = json!({"name": self.key.name(), "namespace": self.key.namespace(), "uid": uid});
                if !annotations.is_empty() {
                    metadata["annotations"] = json!(annotations);
                }
                WireRequest {
                    method: "POST",
                    uri: format!("{}/binding?fieldManager={field_manager}", object()),
                    content_type: "application/json",
                    body: json!({
                        "apiVersion": "v1", "kind": "Binding", "metadata": metadata,
                        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                    })
                    .to_string(),
                }
            }
            Action::Evict(deletion) => WireRequest {
                method: "POST",
                uri: format!("{}/eviction", object()),
                content_type: "application/json",
                body: json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": self.key.name(), "namespace": self.key.namespace()},
                    "deleteOptions": deletion.options(),
                })
                .to_string(),
            },
        }
    }

    /// What an answer to this write means.
    pub fn judge(&self, answer: Answer) -> Result<Answer, ReconcileError> {
        let gone = answer.code == 404 && matches!(self.action, Action::Delete(_) | Action::Evict(_));
        if answer.is_success() || gone {
            return Ok(answer);
        }
        let (reason, message) = answer.status();
        let details = if message.is_empty() { &answer.body } else { &message };
        // A webhook that denies something chooses the code itself, and means this object.
        let denied = message.contains("denied the request");
        let is_gone = answer.code == 404 && self.is_gone(&reason, &message);
        let refused = self.refused(answer.code, details);
        let remedy = refused.remedy().filter(|_| !is_gone);
        let advice = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let error = |fault| {
            let text = format!("{self}: the API server answered {}: {details}{advice}", answer.code);
            let mut error = ReconcileError::new(fault, text);
            if let Some(permission) = refused.permission() {
                let refusal = format!("{self}: the API server answered {}: {details}", answer.code);
                error = error.lacking(MissingPermission { permission, refusal });
            }
            // An eviction that a budget forbids says nothing about other writes.
            let budget = answer.code == 429 && matches!(self.action, Action::Evict(_));
            let aborts_plan = matches!(answer.code, 401 | 429 | 502..=504) && !denied && !budget;
            if aborts_plan { error.aborting_plan() } else { error }
        };
        Err(match answer.code {
            // The cache was behind; the next look decides again.
            409 => error(Fault::Api).of_stale_cache(),
            404 if is_gone => error(Fault::Api).of_stale_cache(),
            // The namespace is ending; what is to be in it has to wait for the next one of its name.
            403 if message.contains("is being terminated") => error(Fault::Api),
            401 | 403 | 404 => error(Fault::User),
            // Another object has come under this name: as good as a conflict.
            422 if message.contains("metadata.uid") => error(Fault::Api).of_stale_cache(),
            400 | 422 => error(Fault::Bug),
            _ => match answer.retry_after {
                Some(delay) => error(Fault::Api).after(delay),
                None => error(Fault::Api),
            },
        })
    }

    /// Whether `NotFound` means the object itself, which others have deleted.
    fn is_gone(&self, reason: &str, message: &str) -> bool {
        // A path that nobody serves has the same reason and these words.
        let is_served = !message.contains("could not find the requested resource");
        reason == "NotFound" && is_served && !matches!(self.action, Action::Create(_) | Action::Apply { .. })
    }

    /// The write as a request that was refused.
    pub fn refused<'a>(&'a self, code: u16, message: &'a str) -> Refused<'a> {
        let (verbs, subresource): (&[&str], &str) = match &self.action {
            Action::Create(_) => (&["create"], ""),
            // An apply makes what is not there.
            Action::Apply { .. } => (&["create", "patch"], ""),
            Action::Patch { subresource, .. } | Action::StrategicPatch { subresource, .. } => (&["patch"], subresource),
            Action::Update { subresource, .. } => (&["update"], subresource),
            Action::Delete(_) => (&["delete"], ""),
            Action::Bind { .. } => (&["create"], "binding"),
            Action::Evict(_) => (&["create"], "eviction"),
        };
        Refused { kind: self.kind, subresource, namespace: self.key.namespace(), verbs, code, message }
    }
}

/// The part of a declaration that `managedFields` records, and so [`Child::owned`](crate::child::Child::owned) shows: all but its identity.
pub fn comparable(declared: &Value) -> Value {
    let mut declared = declared.clone();
    if let Value::Object(object) = &mut declared {
        object.remove("apiVersion");
        object.remove("kind");
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for identity in ["name", "namespace", "uid"] {
                metadata.remove(identity);
            }
            if metadata.is_empty() {
                object.remove("metadata");
            }
        }
    }
    declared
}

/// `create NodeSLO node-1`, `apply ConfigMap ns/a {"data":…}`, `patch NodeSLO node-1 {"spec":…}`, `delete NodeSLO node-1`: one line of a plan.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Write { kind, key, action } = self;
        match action {
            Action::Create(_) => write!(f, "create {} {key}", kind.kind),
            Action::Patch { subresource: "", patch } | Action::StrategicPatch { subresource: "", patch } => {
                write!(f, "patch {} {key} {patch}", kind.kind)
            }
            Action::Patch { subresource, patch } | Action::StrategicPatch { subresource, patch } => {
                write!(f, "patch {}/{subresource} {key} {patch}", kind.kind)
            }
            Action::Apply { owned: Value::Null, .. } => write!(f, "apply {} {key}", kind.kind),
            Action::Apply { object, owned } => {
                let difference = merge::diff(owned, &comparable(object)).unwrap_or_else(|| json!({}));
                write!(f, "apply {} {key} {difference}", kind.kind)
            }
            Action::Update { subresource: "", .. } => write!(f, "update {} {key}", kind.kind),
            Action::Update { subresource, .. } => write!(f, "update {}/{subresource} {key}", kind.kind),
            Action::Delete(_) => write!(f, "delete {} {key}", kind.kind),
            Action::Bind { node, .. } => write!(f, "bind {} {key} to {node}", kind.kind),
            Action::Evict(_) => write!(f, "evict {} {key}", kind.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Retry;

    fn write(action: Action) -> Write {
        Write { kind: ResourceKind::CONFIG_MAP, key: ObjectKey::new("ns", "a"), action }
    }

    fn patch() -> Write {
        write(Action::Patch { subresource: "", patch: json!({"data": {"a": null}}) })
    }

    #[test]
    fn writes_become_requests() {
        let line = |write: &Write| {
            let request = write.request("me");
            format!("{} {} {}", request.method, request.uri, request.body)
        };
        assert_eq!(line(&patch()), r#"PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me {"data":{"a":null}}"#);
        assert_eq!(line(&write(Action::Create(json!({})))), "POST /api/v1/namespaces/ns/configmaps?fieldManager=me {}");
        assert_eq!(
            line(&write(Action::Delete(Deletion::of(Uid::from("u"))))),
            r#"DELETE /api/v1/namespaces/ns/configmaps/a {"preconditions":{"uid":"u"},"propagationPolicy":"Background"}"#
        );
        let deletion = Deletion::of(Uid::from("u")).at(Revision(7)).within(Duration::from_secs(5));
        let options = r#"{"gracePeriodSeconds":5,"preconditions":{"resourceVersion":"7","uid":"u"},"propagationPolicy":"Background"}"#;
        let sent = write(Action::Delete(deletion)).request("me").body;
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), serde_json::from_str::<Value>(options).unwrap());
        let update = write(Action::Update { subresource: "status", object: json!({}) });
        assert_eq!(line(&update), "PUT /api/v1/namespaces/ns/configmaps/a/status?fieldManager=me {}");
        let strategic = write(Action::StrategicPatch { subresource: "status", patch: json!({}) });
        assert_eq!(line(&strategic), "PATCH /api/v1/namespaces/ns/configmaps/a/status?fieldManager=me {}");
        assert_eq!(strategic.request("me").content_type, "application/strategic-merge-patch+json");
        let evict = write(Action::Evict(Deletion::of(Uid::from("u"))));
        assert!(line(&evict).starts_with("POST /api/v1/namespaces/ns/configmaps/a/eviction {"));
        let forbidden = Answer { code: 429, ..Answer::default() };
        let aborts = |write: &Write| write.judge(forbidden.clone()).unwrap_err().aborts_plan;
        assert!(!aborts(&evict) && aborts(&update), "a budget says nothing about other objects");
    }

    #[test]
    fn answers_say_whose_fault_it_is_and_when_to_come_back() {
        let judged = |write: &Write, code, body: &str| {
            let answer =
                Answer { code, retry_after: (code == 429).then_some(Duration::from_secs(7)), body: body.into() };
            write.judge(answer).map(drop).map_err(|error| (error.fault, error.retry))
        };
        let delete = write(Action::Delete(Deletion::of(Uid::from("u"))));
        assert_eq!(judged(&delete, 404, ""), Ok(()), "gone is gone");
        assert_eq!(judged(&patch(), 200, ""), Ok(()));
        assert_eq!(judged(&patch(), 409, ""), Err((Fault::Api, Retry::Backoff)));
        assert_eq!(judged(&patch(), 404, r#"{"reason":"NotFound"}"#), Err((Fault::Api, Retry::Backoff)));
        assert_eq!(judged(&patch(), 403, ""), Err((Fault::User, Retry::Backoff)));
        let ending = r#"{"message":"x is forbidden: … because it is being terminated"}"#;
        assert_eq!(judged(&patch(), 403, ending), Err((Fault::Api, Retry::Backoff)), "no permission helps");
        let reason = |body: &str| {
            let answer = Answer { code: 404, retry_after: None, body: body.to_owned() };
            write(Action::Create(json!({}))).judge(answer).unwrap_err().to_string()
        };
        let no_namespace = reason(r#"{"reason":"NotFound","message":"namespaces \"ns\" not found"}"#);
        assert!(no_namespace.ends_with("; create it: kubectl create namespace ns"), "{no_namespace}");
        assert!(reason("404 page not found").contains("; this API server does not serve configmaps of v1"));
        let unserved = r#"{"reason":"NotFound","message":"the server could not find the requested resource"}"#;
        assert_eq!(judged(&patch(), 404, unserved), Err((Fault::User, Retry::Backoff)), "the path, not the object");
        assert_eq!(
            judged(&patch(), 422, r#"{"message":"metadata.uid: Invalid value"}"#),
            Err((Fault::Api, Retry::Backoff))
        );
        assert_eq!(judged(&patch(), 422, r#"{"message":"spec.x: Invalid value"}"#), Err((Fault::Bug, Retry::Backoff)));
        assert_eq!(judged(&patch(), 429, ""), Err((Fault::Api, Retry::After(Duration::from_secs(7)))));
    }
}
