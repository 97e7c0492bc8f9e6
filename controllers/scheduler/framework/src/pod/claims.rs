//! The ResourceClaims of a pod.

use std::sync::Arc;

use koord_core::key::ObjectKey;

use super::Pod;
use crate::dynamic::{ClaimSource, NamedClaim, PodResourceClaim};

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
        let waits = pod(&claims, json!([{"name": "b", "resourceClaimName": "p-b-x"}])).resource_claims();
        assert_eq!(waits, Err("pod \"ns/p\": ResourceClaim not created yet".to_owned()));
        let unknown = pod(&json!([{"name": "d"}]), json!([])).resource_claims();
        let words = "pod \"ns/p\", spec.resourceClaim \"d\": none of the supported fields are set";
        assert_eq!(unknown, Err(words.to_owned()));
        assert!(!pod(&json!([]), json!([])).has_resource_claims());
    }
}
