//! A Lease, as tools read it that look at a cluster.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// What is read of a Lease.
pub struct Lease {
    /// Its namespace.
    pub namespace: String,
    /// Who holds it; empty where nobody does.
    pub holder: String,
    /// When its holder has renewed it last.
    pub renewed: Option<Timestamp>,
    /// For how long it is held then.
    pub lasts: SignedDuration,
}

impl Lease {
    /// Reads an object.
    pub fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            namespace: text(&object["metadata"]["namespace"]),
            holder: text(&spec["holderIdentity"]),
            renewed: spec["renewTime"].as_str().and_then(|time| time.parse().ok()),
            lasts: SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(15).clamp(1, 86_400)),
        }
    }

    /// The time since it was renewed.
    pub fn age(&self, now: Timestamp) -> Option<SignedDuration> {
        self.renewed.map(|renewed| now.duration_since(renewed))
    }

    /// Whether its holder has renewed it in time.
    pub fn is_held(&self, now: Timestamp) -> bool {
        !self.holder.is_empty() && self.age(now).is_some_and(|age| age <= self.lasts)
    }
}
