//! Leader election of a component.

use koord_resource::{Duration, controller::ELECTION_JITTER};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Configuration, Problems};

/// Leader election between the replicas of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct LeaderElection {
    /// Whether only one replica works at a time.
    #[koord(default = true)]
    pub leader_elect: bool,
    /// How long other replicas wait before they take over a lease that is not renewed: longer than renewDeadline.
    #[koord(default = "15s")]
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops leading.
    #[koord(default = "10s")]
    pub renew_deadline: Duration,
    /// How long replicas wait between attempts.
    #[koord(default = "2s")]
    pub retry_period: Duration,
    /// The kind of the lock.
    #[koord(default = "leases")]
    pub resource_lock: String,
    /// The name of the lock. A component has one of its own by default.
    pub resource_name: Option<String>,
    /// The namespace of the lock. A component has one of its own by default.
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

    /// Names the lock where it has no name, as a component does: `name` and `namespace` are those of its lock.
    pub fn name_lock(&mut self, name: &str, namespace: &str) {
        self.resource_name.get_or_insert_with(|| name.to_owned());
        self.resource_namespace.get_or_insert_with(|| namespace.to_owned());
    }

    fn check(&self, problems: &mut Problems) {
        if !self.leader_elect {
            return;
        }
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        for (key, duration) in [("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)] {
            if duration <= Duration::ZERO {
                problems.add(&[key], "must be longer than 0");
            }
        }
        if lease <= renew {
            problems.add(&["leaseDuration"], "must be longer than renewDeadline");
        }
        let span = |span: Duration| span.to_std().unwrap_or_default();
        if span(renew) <= span(retry).mul_f64(ELECTION_JITTER) {
            let message = format!("must be longer than {ELECTION_JITTER} times retryPeriod");
            problems.add(&["renewDeadline"], message);
        }
        if self.resource_lock != "leases" {
            problems.add(&["resourceLock"], "must be leases");
        }
        for (key, text) in [("resourceName", &self.resource_name), ("resourceNamespace", &self.resource_namespace)] {
            if text.as_deref().is_none_or(str::is_empty) {
                problems.add(&[key], "must not be empty");
            }
        }
    }
}
