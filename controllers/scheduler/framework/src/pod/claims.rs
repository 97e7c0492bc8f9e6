//! The ResourceClaims of a pod.

use std::sync::Arc;

use koord_core::key::ObjectKey;
use thiserror::Error;

use super::Pod;
use crate::dynamic::{ClaimSource, NamedClaim, PodResourceClaim};

/// Why the name of a ResourceClaim of a pod is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimNameError {
    /// The controller that creates claims from templates has not created it.
    #[error("pod {pod:?}: ResourceClaim not created yet")]
    NotCreated { pod: String },
    /// The API server knows a source of claims that this scheduler does not.
    #[error("pod {pod:?}, spec.resourceClaim {claim:?}: none of the supported fields are set")]
    UnknownSource { pod: String, claim: String },
}

impl Pod {
    /// Whether its spec names ResourceClaims.
    pub fn has_resource_claims(&self) -> bool {
        !self.template.resource_claims.is_empty()
    }

    /// Its ResourceClaims, in their order.
    ///
    /// # Errors
    ///
    /// The name of a claim is unknown.
    pub fn resource_claims(&self) -> Result<Vec<PodResourceClaim>, ClaimNameError> {
        let claims = self.template.resource_claims.iter().map(|NamedClaim { name, source }| {
            let (claim, is_generated) = match source {
                ClaimSource::Claim(claim) => (Some(claim), false),
                ClaimSource::Template => {
                    let generated = self.generated_claims.iter().find(|generated| generated.name == *name);
                    let generated =
                        generated.ok_or_else(|| ClaimNameError::NotCreated { pod: self.key.as_str().to_owned() })?;
                    (generated.claim.as_ref(), true)
                }
                ClaimSource::Unknown => {
                    let (pod, claim) = (self.key.as_str().to_owned(), name.to_string());
                    return Err(ClaimNameError::UnknownSource { pod, claim });
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
    use k8s_openapi::api::core::v1::{PodResourceClaimStatus, PodSpec};
    use serde_json::{Value, json};

    use super::*;
    use crate::{dynamic::GeneratedClaim, pod::Template};

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
        let error = |pod: &Pod| pod.resource_claims().unwrap_err().to_string();
        let waits = pod(&claims, json!([{"name": "b", "resourceClaimName": "p-b-x"}]));
        assert_eq!(error(&waits), "pod \"ns/p\": ResourceClaim not created yet");
        let unknown = pod(&json!([{"name": "d"}]), json!([]));
        let message = "pod \"ns/p\", spec.resourceClaim \"d\": none of the supported fields are set";
        assert_eq!(error(&unknown), message);
        assert!(!pod(&json!([]), json!([])).has_resource_claims());
    }
}
