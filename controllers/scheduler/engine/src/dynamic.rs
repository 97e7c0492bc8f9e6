//! Dynamic resources (`resource.k8s.io`): claims of devices, and the devices that drivers offer.
//!
//! Of the objects that is kept which decides what a claim is given; what no plugin reads is dropped when they are decoded.

mod objects;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodResourceClaimStatus, PodSpec};
use koord_core::key::ObjectKey;

pub use self::objects::{
    AllocatedDevice, AllocatedDevices, Allocation, ClaimMetadata, ClaimSpec, ClaimStatus, Consumer, Device, DeviceAsk,
    DeviceAttribute, DeviceCapacity, DeviceClaim, DeviceClass, DeviceClassSpec, DeviceConfiguration, DeviceConstraint,
    DeviceId, DeviceRequest, DeviceTaint, DeviceToleration, Expression, ResourceClaim, ResourceSlice, Selector,
    SlicePool, SliceSpec,
};
use crate::pod::Pod;

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

impl Pod {
    /// Whether its spec names ResourceClaims.
    pub fn has_resource_claims(&self) -> bool {
        !self.template.resource_claims.is_empty()
    }

    /// Its ResourceClaims, in their order; or why one is not known.
    pub fn resource_claims(&self) -> Result<Vec<PodResourceClaim>, String> {
        let claims = self.template.resource_claims.iter().map(|NamedClaim { name, source }| {
            let (claim, is_generated) = match source {
                ClaimSource::Claim(claim) => (Some(claim), false),
                ClaimSource::Template => {
                    let generated = self.generated_claims.iter().find(|generated| generated.name == *name);
                    let generated = generated
                        .ok_or_else(|| format!("pod {:?}: ResourceClaim not created yet", self.key.as_str()))?;
                    (generated.claim.as_ref(), true)
                }
                ClaimSource::Unknown => {
                    let pod = self.key.as_str();
                    let why = "none of the supported fields are set";
                    return Err(format!("pod {pod:?}, spec.resourceClaim {name:?}: {why}"));
                }
            };
            let key = |claim: &Arc<str>| ObjectKey::new(self.key.namespace(), claim);
            Ok(claim.map(|claim| PodResourceClaim { key: key(claim), is_generated }))
        });
        claims.filter_map(Result::transpose).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::Template;

    fn pod(claims: &Value, statuses: Value) -> Pod {
        let spec: PodSpec = serde_json::from_value(json!({"containers": [], "resourceClaims": claims})).unwrap();
        let statuses: Vec<PodResourceClaimStatus> = serde_json::from_value(statuses).unwrap();
        Pod {
            key: ObjectKey::new("ns", "p"),
            template: Arc::new(Template { resource_claims: NamedClaim::of(&spec), ..Template::default() }),
            generated_claims: GeneratedClaim::of(&statuses),
            ..Pod::default()
        }
    }

    #[test]
    fn the_claims_of_a_pod_are_those_of_its_spec_and_those_that_were_made_for_it() {
        let claims = json!([
            {"name": "a", "resourceClaimName": "shared"},
            {"name": "b", "resourceClaimTemplateName": "t"},
            {"name": "c", "resourceClaimTemplateName": "t"},
        ]);
        let made = json!([{"name": "c"}, {"name": "b", "resourceClaimName": "p-b-x"}]);
        let known = pod(&claims, made).resource_claims().unwrap();
        let known: Vec<_> = known.iter().map(|claim| (claim.key.as_str(), claim.is_generated)).collect();
        assert_eq!(known, [("ns/shared", false), ("ns/p-b-x", true)]);
        let waits = pod(&claims, json!([{"name": "b", "resourceClaimName": "p-b-x"}])).resource_claims();
        assert_eq!(waits, Err("pod \"ns/p\": ResourceClaim not created yet".to_owned()));
        let unknown = pod(&json!([{"name": "d"}]), json!([])).resource_claims();
        let words = "pod \"ns/p\", spec.resourceClaim \"d\": none of the supported fields are set";
        assert_eq!(unknown, Err(words.to_owned()));
        assert!(!pod(&json!([]), json!([])).has_resource_claims());
    }

    #[test]
    fn what_drivers_are_told_is_kept_as_it_is() {
        let told = json!({"requests": ["a"], "opaque": {"driver": "d", "parameters": {"kind": "X", "n": [1]}}});
        let read: DeviceConfiguration = serde_json::from_value(told.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), told);
    }
}
