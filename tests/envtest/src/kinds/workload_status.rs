//! What may stand in the status of a workload.

use koord_schema::field::{Errors, Path};
use serde_json::Value;

use super::{workload::Workload, workload_checks::not_negative};

/// Counts of a status, in the order in which they are looked at, and which of them another one limits.
struct Rules {
    counts: &'static [&'static str],
    /// A count, the greatest that it may be, and how that is called.
    limits: &'static [(&'static str, &'static str, &'static str)],
}

const REPLICAS: &str = "status.replicas";

fn rules(kind: Workload) -> Rules {
    match kind {
        Workload::Deployment => Rules {
            counts: &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "collisionCount",
            ],
            limits: &[
                ("updatedReplicas", "replicas", REPLICAS),
                ("readyReplicas", "replicas", REPLICAS),
                ("availableReplicas", "replicas", REPLICAS),
                ("availableReplicas", "readyReplicas", "readyReplicas"),
            ],
        },
        Workload::ReplicaSet | Workload::ReplicationController => Rules {
            counts: &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
            limits: &[
                ("fullyLabeledReplicas", "replicas", REPLICAS),
                ("readyReplicas", "replicas", REPLICAS),
                ("availableReplicas", "replicas", REPLICAS),
                ("availableReplicas", "readyReplicas", "readyReplicas"),
            ],
        },
        Workload::StatefulSet => Rules {
            counts: &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            limits: &[
                ("readyReplicas", "replicas", REPLICAS),
                ("currentReplicas", "replicas", REPLICAS),
                ("updatedReplicas", "replicas", REPLICAS),
                ("availableReplicas", "replicas", REPLICAS),
                ("availableReplicas", "readyReplicas", "status.readyReplicas"),
            ],
        },
        Workload::DaemonSet => Rules {
            counts: &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
            limits: &[],
        },
        Workload::Job => Rules { counts: &["active", "succeeded", "failed", "ready", "terminating"], limits: &[] },
        Workload::CronJob => Rules { counts: &[], limits: &[] },
    }
}

/// Checks the status that a controller writes.
pub(super) fn check(kind: Workload, status: &Value, before: &Value, errors: &mut Errors) {
    let at = Path::root("status");
    let Rules { counts, limits } = rules(kind);
    not_negative(status, counts, &at, errors);
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    for (field, limit, name) in limits {
        if count(field) > count(limit) {
            errors.invalid(&at.child(field), count(field), format!("cannot be greater than {name}"));
        }
    }
    let collisions = count("collisionCount");
    let is_less = before["collisionCount"].as_i64().is_some_and(|before| collisions < before);
    if is_less && counts.contains(&"collisionCount") {
        errors.invalid(&at.child("collisionCount"), collisions, "cannot be decremented");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_more_replicas_are_ready_than_there_are() {
        let refused = |status: Value| {
            let mut errors = Errors::new();
            check(Workload::ReplicaSet, &status, &Value::Null, &mut errors);
            errors.to_string()
        };
        assert_eq!(refused(json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 2})), "[]");
        assert_eq!(
            refused(json!({"replicas": 1, "readyReplicas": 2})),
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
        );
    }
}
