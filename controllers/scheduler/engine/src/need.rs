//! What a pod needs that the scheduler cannot give it yet. Such a pod is refused with that reason, and never placed wrongly.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, Volume};
use koord_resource::ResourceList;

/// A set of needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs(u64);

/// The names of the needs, each with its bit: what a user would look for.
const NAMES: &[&str] = &[
    "volumes with claims",
    "resource claims",
    "gangs",
    "reservations",
    "devices",
    "scheduling hints",
];

impl Needs {
    /// No need.
    pub const NONE: Self = Self(0);
    /// Volumes whose place or state counts.
    pub const VOLUMES: Self = Self(1);
    /// Resource claims.
    pub const CLAIMS: Self = Self(1 << 1);
    /// Other pods of a gang.
    pub const GANGS: Self = Self(1 << 2);
    /// A reservation.
    pub const RESERVATIONS: Self = Self(1 << 3);
    /// Devices.
    pub const DEVICES: Self = Self(1 << 4);
    /// A scheduling hint.
    pub const HINTS: Self = Self(1 << 5);

    /// The needs of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those needs that are in the other set too.
    pub const fn among(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What a pod needs by its spec, its labels and annotations, and what it requests.
    pub fn of(
        spec: &PodSpec,
        labels: &BTreeMap<&str, &str>,
        annotations: &BTreeMap<&str, &str>,
        requests: &ResourceList,
    ) -> Self {
        let has_volumes = spec.volumes.iter().flatten().any(is_claimed);
        let annotated = |name: &str| annotations.contains_key(name);
        let is_gang = labels.contains_key("pod-group.scheduling.sigs.k8s.io")
            || labels.contains_key("pod-group.scheduling.sigs.k8s.io/name")
            || annotations.keys().any(|name| name.starts_with("gang.scheduling.koordinator.sh/"));
        let when = |is_needed: bool, need: Self| if is_needed { need.0 } else { 0 };
        Self(
            when(has_volumes, Self::VOLUMES)
                | when(spec.resource_claims.iter().flatten().next().is_some(), Self::CLAIMS)
                | when(is_gang, Self::GANGS)
                | when(annotated("scheduling.koordinator.sh/reservation-affinity"), Self::RESERVATIONS)
                | when(requests.names().any(is_device), Self::DEVICES)
                | when(annotated("scheduling.koordinator.sh/device-joint-allocate"), Self::DEVICES)
                | when(annotated("scheduling.koordinator.sh/scheduling-hint"), Self::HINTS),
        )
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As the operand of a refusal.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The names of the needs in the operand of a refusal.
    pub fn names(bits: u64) -> impl Iterator<Item = &'static str> {
        (0..).zip(NAMES).filter(move |(bit, _)| bits & (1_u64 << bit) != 0).map(|(_, name)| *name)
    }
}

fn is_claimed(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_some()
        || volume.ephemeral.is_some()
        || volume.csi.is_some()
        || volume.gce_persistent_disk.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.azure_disk.is_some()
        || volume.iscsi.is_some()
        || volume.rbd.is_some()
        || volume.cinder.is_some()
}

/// Devices of which the scheduler says which ones a pod gets.
fn is_device(resource: &str) -> bool {
    const DEVICES: [&str; 5] = ["gpu", "rdma", "fpga", "shared-gpu", "xpu"];
    let of_koordinator = |name: &str| DEVICES.iter().any(|device| name.starts_with(device));
    resource.strip_prefix("koordinator.sh/").is_some_and(of_koordinator)
        || matches!(resource, "nvidia.com/gpu" | "hygon.com/dcu" | "amd.com/gpu" | "huawei.com/npu-core")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn needs(pod: &Value) -> Vec<&'static str> {
        let mut spec = pod["spec"].clone();
        if spec["containers"].is_null() {
            spec = json!({"containers": [], "volumes": spec["volumes"]});
        }
        let texts = |part: &'static str| -> BTreeMap<&str, &str> {
            let members = pod[part].as_object().into_iter().flatten();
            members.map(|(key, value)| (&**key, value.as_str().unwrap())).collect()
        };
        let requests = texts("requests").into_iter().map(|(name, amount)| (name, amount.parse().unwrap())).collect();
        let spec = serde_json::from_value(spec).unwrap();
        Needs::names(Needs::of(&spec, &texts("labels"), &texts("annotations"), &requests).bits()).collect()
    }

    #[test]
    fn what_is_not_built_is_named() {
        assert_eq!(needs(&json!({"requests": {"cpu": "1", "kubernetes.io/batch-cpu": "1"}})), [""; 0]);
        for (pod, expected) in [
            (
                json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}),
                "volumes with claims",
            ),
            (json!({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}), "gangs"),
            (json!({"annotations": {"gang.scheduling.koordinator.sh/name": "g"}}), "gangs"),
            (json!({"requests": {"koordinator.sh/gpu-core": "50"}}), "devices"),
        ] {
            assert_eq!(needs(&pod), [expected], "{pod}");
        }
        let empty_dir = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
        assert_eq!(needs(&empty_dir), [""; 0]);
        assert_eq!(Needs::names(u64::MAX).count(), NAMES.len());
    }
}
