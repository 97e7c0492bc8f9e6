//! Smaller requests of a pod.

use koord_resource::{Quantity, controller::ResourceKind, quantity::Format};
use koord_runtime::key::ObjectKey;
use koord_scheduling::{count, quantity};
use serde_json::{Value, json};

use super::change::{Change, Edit, escaped};

/// The object whose spec is the pod's, and where the pod begins in it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Its kind: a Pod, or a Reservation.
    pub(super) kind: ResourceKind,
    pub(super) key: ObjectKey,
    /// The path of the pod in the object.
    pub(super) prefix: &'static str,
    pub(super) pod: Value,
}

impl Subject {
    /// An edit at a path of the pod.
    pub(super) fn edit(&self, path: &str, value: Value) -> Edit {
        Edit { kind: self.kind, key: self.key.clone(), path: format!("{}{path}", self.prefix), value }
    }

    /// Requests this much of a resource instead of `now`, both in the units of the engine; none where that cannot be written
    /// into its containers.
    pub(super) fn requesting(&self, resource: &str, now: i64, target: i64) -> Option<Change> {
        let edits = self.request_edits(resource, target)?;
        let text = format!(
            "it requested at most {} of {resource} (it requests {})",
            shown(resource, target),
            shown(resource, now)
        );
        let loss = i64::try_from(i128::from(now - target) * 1000 / i128::from(now.max(1))).unwrap_or(1000);
        Some(Change { loss, ..Change::of("request", text, edits).like(resource) })
    }

    fn request_edits(&self, resource: &str, target: i64) -> Option<Vec<Edit>> {
        let spec = &self.pod["spec"];
        let amount = |resources: &Value, list: &str| -> Option<i64> {
            let amount = match &resources[list][resource] {
                Value::String(text) => text.parse::<Quantity>().ok()?,
                Value::Number(number) => number.to_string().parse::<Quantity>().ok()?,
                _ => return None,
            };
            Some(count(resource, &amount))
        };
        let overhead = amount(&json!({"amounts": spec["overhead"]}), "amounts").unwrap_or(0);
        let mut available = target - overhead;
        if available < 0 {
            return None;
        }
        let name = escaped(resource);
        let at = |path: &str, list: &str, amount: i64| {
            self.edit(&format!("{path}/resources/{list}/{name}"), json!(shown(resource, amount)))
        };
        if amount(&spec["resources"], "requests").is_some() {
            return Some(vec![at("/spec", "requests", available)]);
        }
        let mut edits = Vec::new();
        let mut set = |path: &str, resources: &Value, amount_now: i64| {
            edits.push(at(path, "requests", amount_now));
            // Of what is not shared a container may not use more than it requests.
            if amount(resources, "limits").is_some() && !["cpu", "memory", "ephemeral-storage"].contains(&resource) {
                edits.push(at(path, "limits", amount_now));
            }
        };
        let containers = spec["containers"].as_array()?;
        let mut amounts: Vec<(usize, i64)> = (0..)
            .zip(containers)
            .filter_map(|(index, container)| Some((index, amount(&container["resources"], "requests")?)))
            .collect();
        // The largest gives up most: the small ones keep what they have.
        amounts.sort_by_key(|(_, amount)| *amount);
        let mut rest = i64::try_from(amounts.len()).ok()?;
        for (index, amount) in amounts {
            let taken = amount.min(available / rest.max(1));
            if taken < amount {
                set(&format!("/spec/containers/{index}"), &containers[index]["resources"], taken);
            }
            available -= taken;
            rest -= 1;
        }
        for (index, container) in (0..).zip(spec["initContainers"].as_array().into_iter().flatten()) {
            if amount(&container["resources"], "requests").is_some_and(|amount| amount > target - overhead) {
                set(&format!("/spec/initContainers/{index}"), &container["resources"], target - overhead);
            }
        }
        (!edits.is_empty()).then_some(edits)
    }
}

/// An amount of the engine, as people write it: whole steps of memory are named so.
pub(super) fn shown(resource: &str, amount: i64) -> String {
    let is_binary = resource.ends_with("memory") || resource.ends_with("storage") || resource.contains("hugepages");
    let format = if is_binary { Format::BinarySI } else { Format::DecimalSI };
    quantity(resource, amount, format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(spec: &Value) -> Subject {
        let pod = json!({"spec": spec});
        Subject { kind: ResourceKind::POD, key: ObjectKey::new("ns", "a"), prefix: "", pod }
    }

    fn edits(change: &Change) -> Vec<String> {
        change.edits.iter().map(|edit| format!("{}={}", edit.path, edit.value.as_str().unwrap())).collect()
    }

    #[test]
    fn the_largest_container_gives_up_what_is_too_much() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let containers = [container("500m"), container("4"), json!({})];
        let pod = subject(&json!({"containers": containers, "initContainers": [container("3"), container("1")]}));
        let change = pod.requesting("cpu", 4500, 2000).unwrap();
        assert_eq!(
            edits(&change),
            ["/spec/containers/1/resources/requests/cpu=1500m", "/spec/initContainers/0/resources/requests/cpu=2"]
        );
        assert_eq!((change.loss, &*change.text), (555, "it requested at most 2 of cpu (it requests 4500m)"));
    }

    #[test]
    fn limits_of_devices_follow_and_overhead_stays() {
        let amounts = json!({"nvidia.com/gpu": "4"});
        let pod = subject(&json!({"containers": [{"resources": {"requests": amounts, "limits": amounts}}]}));
        let change = pod.requesting("nvidia.com/gpu", 4, 1).unwrap();
        assert_eq!(
            edits(&change),
            [
                "/spec/containers/0/resources/requests/nvidia.com~1gpu=1",
                "/spec/containers/0/resources/limits/nvidia.com~1gpu=1"
            ]
        );
        let memory = json!([{"resources": {"requests": {"memory": "3Gi"}}}]);
        let pod = subject(&json!({"containers": memory, "overhead": {"memory": "512Mi"}}));
        assert_eq!(
            edits(&pod.requesting("memory", 7 << 29, 1 << 30).unwrap()),
            ["/spec/containers/0/resources/requests/memory=512Mi"]
        );
        assert!(pod.requesting("memory", 7 << 29, 1 << 28).is_none(), "the overhead alone is more");
    }
}
