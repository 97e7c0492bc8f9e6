//! What kubelets may write: their own node and what belongs to it, as the plugin NodeRestriction of kube-apiserver allows.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::{
    ApiServer,
    node_health::LEASE_NAMESPACE,
    pod_references::{MIRROR, Referred, claims, is_mirror, refers_to},
    subject,
    write::{Operation, Write},
};
use crate::{metadata, request::User, status::ApiError, x509::CertificateRequest};

const RESTRICTED_LABELS: &str = "node-restriction.kubernetes.io";
/// Labels of Kubernetes' own that a kubelet sets.
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Further namespaces of such labels.
const KUBELET_LABEL_NAMESPACES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Signers of certificates by which a node is known.
const NODE_SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

impl ApiServer {
    /// Refuses what a kubelet may not write; others are not looked at.
    pub(super) fn restrict_node(&self, write: &Write) -> Result<(), ApiError> {
        let user = &write.request.user;
        let Some(node) = user.node() else { return Ok(()) };
        let refused = |why: String| Err(ApiError::forbidden(subject(&write.definition, &write.target.name), &why));
        if node.is_empty() {
            return refused(format!("could not determine node from user {:?}", user.name));
        }
        let resource = (write.definition.group.as_str(), write.definition.plural.as_str());
        let verdict = match (resource, write.target.subresource.as_str()) {
            (("", "pods"), "") => return self.restrict_pod(write, node),
            (("", "pods"), "status") => pod_status(write, node),
            (("", "pods"), "eviction") => {
                let is_own = self.pod_of(write)?["spec"]["nodeName"] == node;
                check(is_own, || format!("node {node} can only evict pods with spec.nodeName set to itself"))
            }
            (("", "pods"), other) => {
                Err(format!("unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"))
            }
            (("", "nodes"), _) => node_object(write, node),
            (("", "persistentvolumeclaims"), "status") => claim_status(write, node),
            (("", "persistentvolumeclaims"), _) => Err("may only update PVC status".to_owned()),
            (("coordination.k8s.io", "leases"), _) => lease(write, node),
            (("storage.k8s.io", "csinodes"), _) => check(write.target.name == node, || {
                "can only access CSINode with the same name as the requesting node".to_owned()
            }),
            (("resource.k8s.io", "resourceslices"), _) => resource_slice(write, node),
            (("certificates.k8s.io", "certificatesigningrequests"), _) => certificate_request(write, node),
            _ => Ok(()),
        };
        verdict.or_else(refused)
    }

    /// The stored pod that a write is about.
    fn pod_of(&self, write: &Write) -> Result<Value, ApiError> {
        self.parent(&write.definition, &write.target)
    }

    fn restrict_pod(&self, write: &Write, node: &str) -> Result<(), ApiError> {
        let refused = |why: String| ApiError::forbidden(subject(&write.definition, &write.target.name), &why);
        match write.operation {
            Operation::Create => {
                mirror_pod(&write.object, node).map_err(refused)?;
                let owner = write.object["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
                let nodes = self.registry.any_version("", "nodes").ok_or_else(ApiError::no_such_resource)?;
                let known = self.object(nodes, "", node).ok_or_else(|| ApiError::not_found(subject(nodes, node)))?;
                let uid = metadata::text(&known, "uid");
                check(uid == owner, || format!("node {node} UID mismatch: expected {owner} got {uid}"))
                    .and_then(|()| refers_to_nothing(&write.object, node))
                    .map_err(refused)
            }
            Operation::Delete => {
                let is_own = self.pod_of(write)?["spec"]["nodeName"] == node;
                check(is_own, || format!("node {node:?} can only delete pods with spec.nodeName set to itself"))
                    .map_err(refused)
            }
            Operation::Update => Err(refused(format!(
                "unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"
            ))),
        }
    }

    /// Refuses a token that a kubelet asks for without a pod of its own that needs it.
    pub(crate) fn restrict_token(
        &self,
        user: &User,
        namespace: &str,
        account: &str,
        spec: &Value,
    ) -> Result<(), ApiError> {
        let Some(node) = user.node() else { return Ok(()) };
        let about = crate::status::Subject { group: "", resource: "serviceaccounts", name: account };
        let refused = |why: &str| Err(ApiError::forbidden(about, why));
        let bound = &spec["boundObjectRef"];
        let text = |field: &str| bound[field].as_str().unwrap_or_default();
        if (text("apiVersion"), text("kind")) != ("v1", "Pod") || text("name").is_empty() {
            return refused("node requested token not bound to a pod");
        }
        if text("uid").is_empty() {
            return refused("node requested token with a pod binding without a uid");
        }
        let pods = self.registry.any_version("", "pods").ok_or_else(ApiError::no_such_resource)?;
        let pod = self.object(pods, namespace, text("name"));
        let pod = pod.ok_or_else(|| ApiError::not_found(subject(pods, text("name"))))?;
        if metadata::text(&pod, "uid") != text("uid") {
            let uid = text("uid");
            return refused(&format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            ));
        }
        if pod["spec"]["nodeName"] != node {
            return refused("node requested token bound to a pod scheduled on a different node");
        }
        let audiences = spec["audiences"].as_array().map_or(&[][..], Vec::as_slice);
        let ([] | [_]) = audiences else { return refused("node may only request 0 or 1 audiences") };
        let audience = audiences.first().and_then(Value::as_str).unwrap_or_default();
        let projected = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let mut sources = projected.flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
        let is_used = sources.any(|source| {
            let token = &source["serviceAccountToken"];
            token.is_object() && token["audience"].as_str().unwrap_or_default() == audience
        });
        if is_used || self.drivers_of(&pod, namespace).iter().any(|driver| self.asks_for(driver, audience)) {
            return Ok(());
        }
        let name = &user.name;
        refused(&format!(
            "audience {audience:?} not found in pod spec volume, {name} is not authorized to request tokens for this audience"
        ))
    }
}

impl ApiServer {
    /// The drivers of a pod's volumes.
    fn drivers_of(&self, pod: &Value, namespace: &str) -> Vec<String> {
        let find = |plural: &str, namespace: &str, name: &str| {
            self.object(self.registry.any_version("", plural)?, namespace, name)
        };
        let inline = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let inline = inline.filter_map(|volume| volume["csi"]["driver"].as_str().map(str::to_owned));
        let claimed = claims(pod).filter_map(|claim| {
            let claim = find("persistentvolumeclaims", namespace, &claim)?;
            let volume = find("persistentvolumes", "", claim["spec"]["volumeName"].as_str()?)?;
            volume["spec"]["csi"]["driver"].as_str().map(str::to_owned)
        });
        inline.chain(claimed).collect()
    }

    /// Whether a driver wants tokens for this audience.
    fn asks_for(&self, driver: &str, audience: &str) -> bool {
        let drivers = self.registry.any_version("storage.k8s.io", "csidrivers");
        let driver = drivers.and_then(|drivers| self.object(drivers, "", driver)).unwrap_or_default();
        let requests = driver["spec"]["tokenRequests"].as_array().into_iter().flatten();
        requests.into_iter().any(|request| request["audience"].as_str().unwrap_or_default() == audience)
    }
}

fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn mirror_pod(pod: &Value, node: &str) -> Result<(), String> {
    check(is_mirror(pod), || {
        format!("pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods")
    })?;
    check(pod["spec"]["nodeName"] == node, || {
        format!("node {node:?} can only create pods with spec.nodeName set to itself")
    })?;
    let owners = pod["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    check(owners.len() <= 1, || {
        format!("node {node:?} can only create pods with a single owner reference set to itself")
    })?;
    let owner = owners.first().unwrap_or(&Value::Null);
    let is_itself = owner["apiVersion"] == "v1" && owner["kind"] == "Node" && owner["name"] == node;
    check(is_itself, || format!("node {node:?} can only create pods with an owner reference set to itself"))?;
    check(owner["controller"] == true, || {
        format!("node {node:?} can only create pods with a controller owner reference set to itself")
    })?;
    check(owner["blockOwnerDeletion"] != true, || {
        format!("node {node:?} must not set blockOwnerDeletion on an owner reference")
    })
}

/// A node gets no access to objects by pods that it makes up.
fn refers_to_nothing(pod: &Value, node: &str) -> Result<(), String> {
    let spec = &pod["spec"];
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let volumes = || spec["volumes"].as_array().into_iter().flatten();
    let projects = |source: &str| {
        volumes()
            .flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten())
            .any(|projected| projected[source].is_object())
    };
    let found = if text(&spec["serviceAccountName"]) || projects("serviceAccountToken") {
        "serviceaccounts"
    } else if refers_to(pod, Referred::Secret, None) {
        "secrets"
    } else if refers_to(pod, Referred::ConfigMap, None) {
        "configmaps"
    } else if spec["resourceClaims"].as_array().is_some_and(|claims| !claims.is_empty()) {
        "resourceclaims"
    } else if claims(pod).next().is_some() {
        "persistentvolumeclaims"
    } else if volumes().any(|volume| volume["csi"].is_object()) {
        "csidrivers"
    } else if projects("clusterTrustBundle") {
        "clustertrustbundles"
    } else {
        return Ok(());
    };
    Err(format!("node {node:?} can not create pods that reference {found}"))
}

fn pod_status(write: &Write, node: &str) -> Result<(), String> {
    let (new, Some((_, old))) = (&write.object, &write.old) else {
        return Err(format!("unexpected operation {:?}", write.operation.word()));
    };
    check(old["spec"]["nodeName"] == node, || {
        format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself")
    })?;
    let labels = |pod: &Value| pod["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    check(labels(old) == labels(new), || format!("node {node:?} cannot update labels through pod status"))?;
    let same = |field: &str| old["status"][field] == new["status"][field];
    check(same("resourceClaimStatuses"), || format!("node {node:?} cannot update resource claim statues"))?;
    check(same("extendedResourceClaimStatus"), || format!("node {node:?} cannot update extended resource claim status"))
}

/// A kubelet says of a claim how large its volume is, and nothing else.
fn claim_status(write: &Write, node: &str) -> Result<(), String> {
    let Some((_, old)) = &write.old else { return Err(format!("unexpected operation {:?}", write.operation.word())) };
    let rest = |claim: &Value| {
        let mut rest = claim.clone();
        for (part, fields) in [
            ("metadata", &["resourceVersion", "managedFields"][..]),
            ("status", &["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"][..]),
        ] {
            if let Some(part) = rest.get_mut(part).and_then(Value::as_object_mut) {
                part.retain(|field, _| !fields.contains(&field.as_str()));
            }
        }
        rest
    };
    check(rest(old) == rest(&write.object), || {
        format!("node {node:?} is not allowed to update fields other than status.quantity and status.conditions")
    })
}

fn node_object(write: &Write, node: &str) -> Result<(), String> {
    let name = &write.target.name;
    check(name == node, || format!("node {node:?} is not allowed to modify node {name:?}"))?;
    let (new, old) = (&write.object, write.old.as_ref().map_or(&Value::Null, |(_, old)| old));
    let source = &new["spec"]["configSource"];
    match write.operation {
        Operation::Create => {
            check(source.is_null(), || {
                format!("node {node:?} is not allowed to create pods with a non-nil configSource")
            })?;
            let forbidden = forbidden_labels(new, old);
            check(forbidden.is_empty(), || {
                format!("node {node:?} is not allowed to set the following labels: {forbidden}")
            })
        }
        Operation::Update => {
            check(source.is_null() || *source == old["spec"]["configSource"], || {
                format!("node {node:?} is not allowed to update configSource to a new non-nil configSource")
            })?;
            check(new["spec"]["taints"] == old["spec"]["taints"], || {
                format!("node {node:?} is not allowed to modify taints")
            })?;
            check(new["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"], || {
                format!("node {node:?} is not allowed to modify ownerReferences")
            })?;
            let forbidden = forbidden_labels(new, old);
            check(forbidden.is_empty(), || format!("is not allowed to modify labels: {forbidden}"))
        }
        Operation::Delete => Ok(()),
    }
}

/// The changed labels that no kubelet may change.
fn forbidden_labels(new: &Value, old: &Value) -> String {
    let (new, old) = (&new["metadata"]["labels"], &old["metadata"]["labels"]);
    let keys = [new, old].into_iter().filter_map(Value::as_object).flat_map(|labels| labels.keys().map(String::as_str));
    let changed: BTreeSet<&str> = keys.filter(|key| new.get(*key) != old.get(*key)).collect();
    let forbidden: Vec<&str> = changed.into_iter().filter(|key| !is_kubelets_to_set(key)).collect();
    forbidden.join(", ")
}

fn is_kubelets_to_set(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |(namespace, _)| namespace);
    let is_in =
        |domain: &str| namespace.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    if is_in(RESTRICTED_LABELS) {
        return false;
    }
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    !is_kubernetes || KUBELET_LABELS.contains(&label) || KUBELET_LABEL_NAMESPACES.into_iter().any(is_in)
}

fn lease(write: &Write, node: &str) -> Result<(), String> {
    check(write.target.namespace == LEASE_NAMESPACE, || {
        format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace")
    })?;
    check(write.target.name == node, || {
        "can only access node lease with the same name as the requesting node".to_owned()
    })
}

fn resource_slice(write: &Write, node: &str) -> Result<(), String> {
    let (slice, verb) = match (write.operation, &write.old) {
        (Operation::Create, _) => (&write.object, "create"),
        (Operation::Delete, Some((_, old))) => (old, "delete"),
        _ => return Ok(()),
    };
    check(slice["spec"]["nodeName"] == node, || {
        format!("can only {verb} ResourceSlice with the same NodeName as the requesting node")
    })
}

fn certificate_request(write: &Write, node: &str) -> Result<(), String> {
    let spec = &write.object["spec"];
    let is_for_nodes = spec["signerName"].as_str().is_some_and(|signer| NODE_SIGNERS.contains(&signer));
    if write.operation != Operation::Create || !is_for_nodes {
        return Ok(());
    }
    let pem = BASE64.decode(spec["request"].as_str().unwrap_or_default()).unwrap_or_default();
    let request = CertificateRequest::from_pem(&pem).map_err(|error| format!("unable to parse csr: {error}"))?;
    check(request.subject.common_name.strip_prefix(User::NODE_PREFIX) == Some(node), || {
        format!("can only create a node CSR with CN=system:node:{node}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_set_labels_of_their_own_and_of_others_but_none_that_steer_pods() {
        for label in [
            "example.com/a",
            "plain",
            "kubernetes.io/hostname",
            "node.kubernetes.io/x",
            "x.node.kubernetes.io/y",
            "kubelet.kubernetes.io/z",
            "notkubernetes.io/a",
        ] {
            assert!(is_kubelets_to_set(label), "{label}");
        }
        for label in [
            "kubernetes.io/role",
            "node-role.kubernetes.io/master",
            "node-restriction.kubernetes.io/a",
            "x.k8s.io/y",
            "a.node-restriction.kubernetes.io/b",
        ] {
            assert!(!is_kubelets_to_set(label), "{label}");
        }
    }
}
