//! How a pod is evicted: by the Eviction API, by deletion, or by an annotation for those who own it (`spec/descheduler.md` 5.9).

use std::sync::Arc;

use jiff::Timestamp;
use koord_config::descheduler::EvictionPolicy;
use koord_core::{
    key::ObjectKey,
    uid::Uid,
    write::{Answer, WireRequest},
};
use koord_resource::{Time, controller::ResourceKind};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Job, JobPod};

/// The label of pods and jobs that says how the pod is evicted.
pub const EVICT_POLICY: &str = "koordinator.sh/evict-policy";
/// The annotation of a pod that asks its owners to delete it.
pub const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";
/// The reason of an eviction for which no reason was given.
const NO_REASON: &str = "NotSet";

/// An eviction that a job asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvictionRequest {
    #[serde(serialize_with = "as_text")]
    pub pod: ObjectKey,
    /// No other pod of this name is evicted.
    pub uid: Uid,
    pub node: Arc<str>,
    pub policy: EvictionPolicy,
    /// `spec.deleteOptions` of the job; `null` without any.
    pub delete_options: Value,
    pub reason: String,
    /// The strategy that chose the pod; empty where the job does not say.
    pub trigger: String,
}

pub(super) fn as_text<S: Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.as_str())
}

impl EvictionRequest {
    /// The eviction of a pod as its label, or else the job's, or else the settings say.
    pub(super) fn of(job: &Job<'_>, key: &ObjectKey, pod: &JobPod, default: EvictionPolicy) -> Self {
        let label = pod.evict_policy.as_deref().or(job.evict_policy);
        let policy = match label {
            Some("Eviction") => EvictionPolicy::Eviction,
            Some("Delete") => EvictionPolicy::Delete,
            Some("SoftEviction") => EvictionPolicy::SoftEviction,
            // A word that is not known says nothing, and neither does the job's where the pod has one.
            Some(_) | None => default,
        };
        Self {
            pod: key.clone(),
            uid: pod.uid.clone(),
            node: Arc::clone(&pod.node),
            policy,
            delete_options: serde_json::to_value(&job.spec.delete_options).unwrap_or_default(),
            reason: reason(job),
            trigger: job.evict_trigger.unwrap_or_default().to_owned(),
        }
    }

    /// What is sent to the API server.
    pub fn request(&self, field_manager: &str, now: Timestamp) -> WireRequest {
        let path = ResourceKind::POD.url_path(self.pod.namespace(), Some(self.pod.name()));
        let (method, uri, content_type, body) = match self.policy {
            EvictionPolicy::Eviction => {
                let eviction = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"namespace": self.pod.namespace(), "name": self.pod.name()},
                    "deleteOptions": self.options(),
                });
                ("POST", format!("{path}/eviction"), "application/json", eviction)
            }
            EvictionPolicy::Delete => ("DELETE", path, "application/json", self.options()),
            EvictionPolicy::SoftEviction => {
                let metadata = json!({"uid": self.uid, "annotations": {SOFT_EVICTION: self.annotation(now)}});
                let uri = format!("{path}?fieldManager={field_manager}");
                ("PATCH", uri, "application/strategic-merge-patch+json", json!({ "metadata": metadata }))
            }
        };
        WireRequest { method, uri, content_type, body: body.to_string() }
    }

    /// The options of the job, for this pod alone.
    fn options(&self) -> Value {
        let mut options = match &self.delete_options {
            Value::Object(options) => Value::Object(options.clone()),
            _ => json!({}),
        };
        options["preconditions"]["uid"] = self.uid.to_string().into();
        options
    }

    /// What asks the owners of the pod to delete it.
    fn annotation(&self, now: Timestamp) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct SoftEviction<'a> {
            timestamp: Time,
            #[serde(skip_serializing_if = "Value::is_null")]
            delete_options: &'a Value,
            #[serde(skip_serializing_if = "str::is_empty")]
            initiator: &'a str,
            reason: &'a str,
        }
        let Self { delete_options, trigger, reason, .. } = self;
        let eviction = SoftEviction { timestamp: now.into(), delete_options, initiator: trigger, reason };
        serde_json::to_string(&eviction).unwrap_or_default()
    }
}

/// Why the pod is evicted, as people read it.
pub(super) fn reason(job: &Job<'_>) -> String {
    let texts = [job.evict_reason, job.evict_trigger].into_iter().flatten();
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or(NO_REASON).to_owned()
}

/// What an answer that refuses an eviction says. A disruption budget that forbids it is named.
pub fn refusal(answer: &Answer) -> String {
    let (_, message) = answer.status();
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let causes = body["details"]["causes"].as_array().into_iter().flatten();
    let budget = causes.filter(|cause| cause["reason"] == "DisruptionBudget").find_map(|cause| {
        let text = cause["message"].as_str()?.strip_prefix("The disruption budget ")?;
        text.split_once(' ')
    });
    let said = if message.is_empty() { &answer.body } else { &message };
    match budget {
        Some((name, why)) => format!("blocked by PodDisruptionBudget {name}, which {why}"),
        None if answer.code == 429 => format!("blocked: {said}"),
        None => format!("the API server answered {}: {said}", answer.code),
    }
}
