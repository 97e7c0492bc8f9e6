//! Leader election of a component.

use koord_resource::{Duration, controller::ELECTION_JITTER};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DurationText, Problems};

/// Leader election between the replicas of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether only one replica works at a time. Default true.
    pub leader_elect: Option<bool>,
    /// How long other replicas wait before they take over a lease that is not renewed: longer than renewDeadline. Default 15s.
    #[schemars(with = "Option<DurationText>")]
    pub lease_duration: Option<Duration>,
    /// How long the leader tries to renew before it stops leading. Default 10s.
    #[schemars(with = "Option<DurationText>")]
    pub renew_deadline: Option<Duration>,
    /// How long replicas wait between attempts. Default 2s.
    #[schemars(with = "Option<DurationText>")]
    pub retry_period: Option<Duration>,
    /// The kind of the lock. Default leases.
    pub resource_lock: Option<String>,
    /// The name of the lock.
    pub resource_name: Option<String>,
    /// The namespace of the lock.
    pub resource_namespace: Option<String>,
}

impl LeaderElection {
    /// A document as it is written in a file, without what counts as not set of leader election: empty texts, and spans of no
    /// time.
    pub fn without_unset(document: &Value) -> Value {
        let mut document = document.clone();
        if let Some(election) = document.get_mut("leaderElection").and_then(Value::as_object_mut) {
            election.retain(|key, value| match (key.as_str(), value.as_str()) {
                ("leaseDuration" | "renewDeadline" | "retryPeriod", Some(text)) => {
                    text.parse::<Duration>().ok() != Some(Duration::ZERO)
                }
                (_, text) => text != Some(""),
            });
        }
        document
    }

    /// Sets what is not set. `name` and `namespace` are those of the lock.
    pub fn complete(&mut self, name: &str, namespace: &str) {
        self.leader_elect.get_or_insert(true);
        self.lease_duration.get_or_insert(Duration::from_secs(15));
        self.renew_deadline.get_or_insert(Duration::from_secs(10));
        self.retry_period.get_or_insert(Duration::from_secs(2));
        self.resource_lock.get_or_insert_with(|| "leases".to_owned());
        self.resource_name.get_or_insert_with(|| name.to_owned());
        self.resource_namespace.get_or_insert_with(|| namespace.to_owned());
    }

    /// Checks a complete value, which is the member `leaderElection` of its configuration.
    pub fn check(&self, problems: &mut Problems) {
        if self.leader_elect != Some(true) {
            return;
        }
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        for (key, duration) in [("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)] {
            if duration.is_none_or(|duration| duration <= Duration::ZERO) {
                problems.add(&["leaderElection", key], "must be longer than 0");
            }
        }
        if lease <= renew {
            problems.add(&["leaderElection", "leaseDuration"], "must be longer than renewDeadline");
        }
        let span = |span: Option<Duration>| span.and_then(Duration::to_std).unwrap_or_default();
        if span(renew) <= span(retry).mul_f64(ELECTION_JITTER) {
            let message = format!("must be longer than {ELECTION_JITTER} times retryPeriod");
            problems.add(&["leaderElection", "renewDeadline"], message);
        }
        if self.resource_lock.as_deref() != Some("leases") {
            problems.add(&["leaderElection", "resourceLock"], "must be leases");
        }
        for (key, text) in [("resourceName", &self.resource_name), ("resourceNamespace", &self.resource_namespace)] {
            if text.as_deref().is_none_or(str::is_empty) {
                problems.add(&["leaderElection", key], "must not be empty");
            }
        }
    }
}
