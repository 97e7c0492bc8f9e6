//! What kubelets may ask: what the pods on their node need, as the authorization mode `Node` of kube-apiserver allows.

use std::sync::OnceLock;

use serde_json::Value;

use super::bootstrap;
use super::rbac::{self, Action};
use crate::request::User;
use crate::server::ApiServer;
use crate::server::pod_references::{Referred, claims, is_mirror, refers_to};

/// The role with what every kubelet may do; what it may read is narrowed below.
const ROLE: &str = "system:node";
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// What this authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opinion {
    /// The user may do it.
    Allowed,
    /// Others decide; says why this one does not allow it, or nothing.
    None(String),
}

fn none(why: impl Into<String>) -> Opinion {
    Opinion::None(why.into())
}

/// Whether a kubelet may do this; no opinion about anyone else.
pub(super) fn decide(core: &ApiServer, user: &User, action: &Action) -> Opinion {
    let Some(node) = user.node() else { return none("") };
    if node.is_empty() {
        return none(format!("unknown node for user {:?}", user.name));
    }
    let asked = Asked { core, node, action };
    match (action.group.as_str(), action.resource.as_str()) {
        ("", "secrets" | "configmaps") => asked.namespaced_read(),
        ("", "persistentvolumeclaims") if action.subresource == "status" => match action.verb.as_str() {
            "update" | "patch" => asked.related(),
            _ => none("can only get/update/patch this type"),
        },
        ("", "persistentvolumeclaims" | "persistentvolumes")
        | ("resource.k8s.io", "resourceclaims")
        | ("storage.k8s.io", "volumeattachments") => asked.get(),
        ("", "serviceaccounts") => asked.service_account(),
        ("coordination.k8s.io", "leases") => asked.lease(),
        ("storage.k8s.io", "csinodes") => asked.csi_node(),
        ("resource.k8s.io", "resourceslices") => asked.resource_slice(),
        ("", "nodes") => asked.node(),
        ("", "pods") => asked.pod(),
        _ if rules().iter().any(|rule| rbac::allows(rule, action)) => Opinion::Allowed,
        _ => none(""),
    }
}

/// The rules of that role as every cluster begins with it, whatever has become of it.
fn rules() -> &'static [Value] {
    static RULES: OnceLock<Vec<Value>> = OnceLock::new();
    RULES.get_or_init(|| bootstrap::rules_of(ROLE))
}

/// A kubelet's question.
struct Asked<'a> {
    core: &'a ApiServer,
    node: &'a str,
    action: &'a Action,
}

impl Asked<'_> {
    fn verb(&self) -> &str {
        &self.action.verb
    }

    fn has_subresource(&self) -> bool {
        !self.action.subresource.is_empty()
    }

    /// Whether the selection is that of this node's objects.
    fn selects_own(&self) -> bool {
        self.action.fields.iter().any(|(field, value)| field == "spec.nodeName" && value == self.node)
    }

    fn get(&self) -> Opinion {
        match self.verb() {
            "get" if self.has_subresource() => none("cannot get subresource"),
            "get" => self.related(),
            _ => none("can only get individual resources of this type"),
        }
    }

    fn namespaced_read(&self) -> Opinion {
        match self.verb() {
            "get" | "list" | "watch" if self.has_subresource() => none("cannot read subresource"),
            "get" | "list" | "watch" if self.action.namespace.is_empty() => {
                none("can only read namespaced object of this type")
            }
            "get" | "list" | "watch" => self.related(),
            _ => none("can only read resources of this type"),
        }
    }

    fn service_account(&self) -> Opinion {
        match self.verb() {
            "get" if !self.has_subresource() => self.namespaced_read(),
            "create" if self.action.name.is_empty() => none("can only create tokens for individual service accounts"),
            "create" if self.action.subresource == "token" => self.related(),
            "create" => none("can only create token subresource of serviceaccount"),
            _ => none("can only create tokens for individual service accounts"),
        }
    }

    fn lease(&self) -> Opinion {
        match self.verb() {
            "get" | "create" | "update" | "patch" | "delete" if self.action.namespace != LEASE_NAMESPACE => {
                none(format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace"))
            }
            // The name of a new one is looked at by its admission.
            "create" => Opinion::Allowed,
            "get" | "update" | "patch" | "delete" if self.action.name == self.node => Opinion::Allowed,
            "get" | "update" | "patch" | "delete" => {
                none("can only access node lease with the same name as the requesting node")
            }
            _ => none("can only get, create, update, patch, or delete a node lease"),
        }
    }

    fn csi_node(&self) -> Opinion {
        match self.verb() {
            "get" | "create" | "update" | "patch" | "delete" if self.has_subresource() => {
                none("cannot authorize CSINode subresources")
            }
            "create" => Opinion::Allowed,
            "get" | "update" | "patch" | "delete" if self.action.name == self.node => Opinion::Allowed,
            "get" | "update" | "patch" | "delete" => {
                none("can only access CSINode with the same name as the requesting node")
            }
            _ => none("can only get, create, update, patch, or delete a CSINode"),
        }
    }

    fn resource_slice(&self) -> Opinion {
        match self.verb() {
            _ if self.has_subresource() => none("cannot authorize ResourceSlice subresources"),
            "create" => Opinion::Allowed,
            "get" | "update" | "patch" | "delete" => self.related(),
            "watch" | "list" | "deletecollection" if self.selects_own() => Opinion::Allowed,
            "watch" | "list" | "deletecollection" => {
                none("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => none(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn node(&self) -> Opinion {
        match (self.action.subresource.as_str(), self.verb()) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Opinion::Allowed,
            ("", "get" | "list" | "watch") if self.action.name == self.node => Opinion::Allowed,
            ("", "get" | "list" | "watch") if self.action.name.is_empty() => {
                none(format!("node '{}' cannot read all nodes, only its own Node object", self.node))
            }
            ("", "get" | "list" | "watch") => {
                none(format!("node '{}' cannot read '{}', only its own Node object", self.node, self.action.name))
            }
            _ => none(""),
        }
    }

    fn pod(&self) -> Opinion {
        match (self.action.subresource.as_str(), self.verb()) {
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Opinion::Allowed,
            ("", "list" | "watch") if self.selects_own() => Opinion::Allowed,
            ("", "list" | "watch") if self.action.name.is_empty() => {
                none("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "get" | "list" | "watch") => self.related(),
            _ => none(""),
        }
    }

    /// Whether the object has to do with the node.
    fn related(&self) -> Opinion {
        if self.action.name.is_empty() {
            return none("No Object name found");
        }
        if self.is_related() {
            return Opinion::Allowed;
        }
        none(format!("no relationship found between node '{}' and this object", self.node))
    }

    fn is_related(&self) -> bool {
        let name = self.action.name.as_str();
        match self.action.resource.as_str() {
            "pods" => self.object("", "pods").is_some_and(|pod| pod["spec"]["nodeName"] == self.node),
            "volumeattachments" => {
                self.object("storage.k8s.io", "volumeattachments").is_some_and(|it| it["spec"]["nodeName"] == self.node)
            }
            "resourceslices" => {
                self.object("resource.k8s.io", "resourceslices").is_some_and(|it| it["spec"]["nodeName"] == self.node)
            }
            "persistentvolumes" => self.object("", "persistentvolumes").is_some_and(|volume| {
                let claim = &volume["spec"]["claimRef"];
                self.pods().any(|pod| {
                    pod["metadata"]["namespace"] == claim["namespace"] && claims(&pod).any(|used| claim["name"] == used)
                })
            }),
            "secrets" => {
                self.own_pods().any(|pod| refers_to(&pod, Referred::Secret, Some(name)))
                    || self.own_pods().any(|pod| self.is_secret_of_volumes(&pod))
            }
            "configmaps" => self.own_pods().any(|pod| refers_to(&pod, Referred::ConfigMap, Some(name))),
            "serviceaccounts" => self.own_pods().any(|pod| pod["spec"]["serviceAccountName"] == name),
            "persistentvolumeclaims" => self.own_pods().any(|pod| claims(&pod).any(|claim| claim == name)),
            "resourceclaims" => self.own_pods().any(|pod| {
                let named = pod["spec"]["resourceClaims"].as_array().into_iter().flatten();
                let made = pod["status"]["resourceClaimStatuses"].as_array().into_iter().flatten();
                named.chain(made).any(|claim| claim["resourceClaimName"] == name)
                    || pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name
            }),
            _ => false,
        }
    }

    /// Whether the drivers of the pod's volumes need the secret.
    fn is_secret_of_volumes(&self, pod: &Value) -> bool {
        let find = |plural: &str, namespace: &str, name: &str| {
            self.core.object(self.core.registry.any_version("", plural)?, namespace, name)
        };
        let is_asked = |reference: &Value| {
            reference["name"] == self.action.name.as_str() && reference["namespace"] == self.action.namespace.as_str()
        };
        claims(pod)
            .filter_map(|claim| find("persistentvolumeclaims", &self.action.namespace, &claim))
            .filter_map(|claim| find("persistentvolumes", "", claim["spec"]["volumeName"].as_str()?))
            .any(|volume| {
                ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"]
                    .iter()
                    .any(|field| is_asked(&volume["spec"]["csi"][*field]))
            })
    }

    fn object(&self, group: &str, plural: &str) -> Option<Value> {
        let definition = self.core.registry.any_version(group, plural)?;
        self.core.object(definition, &self.action.namespace, &self.action.name)
    }

    /// The pods on the node, but for those that its kubelet has made up itself, which give no access to anything.
    fn pods(&self) -> impl Iterator<Item = Value> {
        let pods = self.core.registry.any_version("", "pods");
        let on_node = pods.map(|pods| self.core.pods_on(pods, self.node)).unwrap_or_default();
        on_node.into_iter().filter(|pod| !is_mirror(pod))
    }

    /// Those of the namespace in question.
    fn own_pods(&self) -> impl Iterator<Item = Value> {
        self.pods().filter(|pod| pod["metadata"]["namespace"] == self.action.namespace.as_str())
    }
}
