//! When a pod ends at the latest, by the deadlines that its object and its Job declare.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use koord_resource::controller::ResourceKind;
use koord_runtime::key::ObjectKey;
use serde_json::Value;

use crate::Objects;

/// The earlier of the deadlines of a pod and of the Job that controls it; none where neither has one, or none can be read.
pub(super) async fn of_pod(objects: &mut Objects, key: &ObjectKey) -> Option<Timestamp> {
    let pod = objects.get(ResourceKind::POD, key).await.ok().flatten()?;
    let of_job = match job(&pod) {
        // Without permission to read Jobs the rest is shown.
        Some(name) => {
            let key = ObjectKey::new(key.namespace(), name);
            objects.get(ResourceKind::typed::<Job>(), &key).await.ok().flatten()
        }
        None => None,
    };
    [Some(pod), of_job].iter().flatten().filter_map(of_object).min()
}

/// The name of the Job that controls a pod.
fn job(pod: &Value) -> Option<&str> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["kind"] == "Job" && owner["controller"] == true)?;
    owner["name"].as_str()
}

/// `activeDeadlineSeconds` after the start of a pod or Job.
fn of_object(object: &Value) -> Option<Timestamp> {
    let seconds = object["spec"]["activeDeadlineSeconds"].as_i64()?;
    let start: Timestamp = object["status"]["startTime"].as_str()?.parse().ok()?;
    start.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_earlier_of_the_deadlines_of_a_pod_and_its_job_counts() {
        let object = |kind: &str, name: &str, seconds: Option<i64>| {
            let owners = json!([{"kind": "Job", "name": "j", "controller": true}]);
            json!({
                "kind": kind, "metadata": {"namespace": "ns", "name": name, "ownerReferences": owners},
                "spec": {"activeDeadlineSeconds": seconds}, "status": {"startTime": "2026-01-01T00:00:00Z"},
            })
        };
        for (of_pod_seconds, of_job_seconds, expected) in [
            (None, None, None),
            (Some(90), None, Some("2026-01-01T00:01:30Z")),
            (Some(90), Some(60), Some("2026-01-01T00:01:00Z")),
            (None, Some(3600), Some("2026-01-01T01:00:00Z")),
        ] {
            let mut objects =
                Objects::of_files(&[object("Pod", "p", of_pod_seconds), object("Job", "j", of_job_seconds)]);
            let found = of_pod(&mut objects, &ObjectKey::new("ns", "p")).await;
            assert_eq!(found.map(|at| at.to_string()).as_deref(), expected, "{of_pod_seconds:?} {of_job_seconds:?}");
        }
        assert_eq!(of_pod(&mut Objects::of_files(&[]), &ObjectKey::new("ns", "p")).await, None);
    }
}
