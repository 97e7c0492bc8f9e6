//! Dynamic resources (`resource.k8s.io`): claims of devices, and the devices that drivers offer.
//!
//! Of the objects that is kept which decides what a claim is given; what no plugin reads is dropped when they are decoded.

mod objects;
mod taints;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodResourceClaimStatus, PodSpec};
use koord_core::key::ObjectKey;

pub use self::{
    objects::{
        AllocatedDevice, AllocatedDevices, Allocation, ClaimMetadata, ClaimSpec, ClaimStatus, Consumer, Device,
        DeviceAttribute, DeviceCapacity, DeviceClaim, DeviceClass, DeviceClassSpec, DeviceConfiguration,
        DeviceConstraint, DeviceId, DeviceRequest, DeviceRequestSpec, Expression, ResourceClaim, ResourceSlice,
        Selector, SlicePool, SliceSpec,
    },
    taints::{DeviceTaint, DeviceTaintRule, DeviceToleration, TaintRuleSpec, TaintedDevices},
};

/// A claim that a pod's spec names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedClaim {
    /// Its name within the pod.
    pub name: Arc<str>,
    /// Where the claim comes from.
    pub source: ClaimSource,
}

/// Where a claim of a pod comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimSource {
    /// It is the ResourceClaim of this name.
    Claim(Arc<str>),
    /// It is made for the pod, by a template; the pod's status has its name.
    Template,
    /// The spec names a source that is not known.
    Unknown,
}

/// The claim that was made for a pod by a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedClaim {
    /// Its name within the pod.
    pub name: Arc<str>,
    /// The name of the ResourceClaim; none where the pod needs none.
    pub claim: Option<Arc<str>>,
}

/// A ResourceClaim of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodResourceClaim {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Whether it is made for the pod, so that it must belong to it.
    pub is_generated: bool,
}

impl NamedClaim {
    /// The claims that a spec names.
    pub fn of(spec: &PodSpec) -> Box<[Self]> {
        let claims = spec.resource_claims.iter().flatten().map(|claim| {
            let source = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
                (Some(name), _) => ClaimSource::Claim(name.as_str().into()),
                (None, Some(_)) => ClaimSource::Template,
                (None, None) => ClaimSource::Unknown,
            };
            Self { name: claim.name.as_str().into(), source }
        });
        claims.collect()
    }
}

impl GeneratedClaim {
    /// The claims that a status names.
    pub fn of(statuses: &[PodResourceClaimStatus]) -> Box<[Self]> {
        let claims = statuses.iter().map(|status| Self {
            name: status.name.as_str().into(),
            claim: status.resource_claim_name.as_deref().map(Arc::from),
        });
        claims.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_devices_of_older_versions_are_those_of_the_newest() {
        let ask = json!({"deviceClassName": "gpu", "count": 2, "adminAccess": true, "tolerations": [{"key": "k"}]});
        let request = |old: serde_json::Value| serde_json::from_value::<DeviceRequest>(old).unwrap();
        let mut old = ask.clone();
        old["name"] = json!("r");
        let newest = request(json!({"name": "r", "exactly": ask}));
        assert_eq!(request(old), newest);
        assert_eq!((newest.name.as_str(), newest.exactly.as_ref().map(|ask| ask.count)), ("r", Some(Some(2))));
        let choice = request(json!({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}));
        assert_eq!((choice.exactly, choice.first_available[0].name.as_str()), (None, "a"));
        let like = json!({
            "attributes": {"model": {"string": "m"}}, "capacity": {"memory": {"value": "1Gi"}},
            "taints": [{"key": "k", "effect": "NoSchedule"}], "consumesCounters": [{"counterSet": "s"}],
        });
        let device = |old: serde_json::Value| serde_json::from_value::<Device>(old).unwrap();
        let mut newest = like.clone();
        newest["name"] = json!("d");
        let newest = device(newest);
        assert_eq!(device(json!({"name": "d", "basic": like})), newest);
        assert_eq!((&*newest.name, newest.taints.len(), newest.consumes_counters.len()), ("d", 1, 1));
    }

    #[test]
    fn opaque_parameters_of_drivers_are_copied_unchanged() {
        let parameters = json!({"requests": ["a"], "opaque": {"driver": "d", "parameters": {"kind": "X", "n": [1]}}});
        let read: DeviceConfiguration = serde_json::from_value(parameters.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), parameters);
    }
}
