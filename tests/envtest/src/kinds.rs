//! The built-in kinds: where each one's own rules are.

mod namespace;

use std::sync::Arc;

use crate::{
    registry::{ResourceDef, SelectableField, Subresource},
    server::ApiServer,
    strategy::{Plain, Strategy},
};

/// Group, version, kind, plural, whether namespaced.
type Row = (&'static str, &'static str, &'static str, &'static str, bool);

const BUILT_IN: &[Row] = &[
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "Node", "nodes", false),
    ("", "v1", "Event", "events", true),
    ("", "v1", "Service", "services", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("coordination.k8s.io", "v1", "Lease", "leases", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
];

/// Serves the built-in kinds.
pub fn install(core: &mut ApiServer) {
    for (group, version, kind, plural, namespaced) in BUILT_IN {
        let shelf = core.store.shelf_id(&format!("{group}/{plural}"));
        let mut definition = ResourceDef::new(group, version, kind, plural, *namespaced, shelf);
        if ["pods", "nodes", "namespaces", "deployments", "replicasets", "services"].contains(plural) {
            let verbs = ["get", "patch", "update"].map(ToOwned::to_owned).to_vec();
            definition.subresources.push(Subresource { name: "status".to_owned(), body: None, verbs });
        }
        definition.strategy = strategy(group, plural);
        definition.selectable_fields = selectable_fields(group, plural);
        core.registry.insert(definition);
    }
}

fn strategy(group: &str, plural: &str) -> Arc<dyn Strategy> {
    match (group, plural) {
        ("", "namespaces") => Arc::new(namespace::Namespaces),
        _ => Arc::new(Plain),
    }
}

/// What field selectors may use beside name and namespace.
fn selectable_fields(group: &str, plural: &str) -> Vec<SelectableField> {
    let fields: &[(&str, &str)] = match (group, plural) {
        ("", "namespaces") => &[("status.phase", "")],
        ("", "pods") => &[
            ("spec.nodeName", ""),
            ("spec.restartPolicy", ""),
            ("spec.schedulerName", ""),
            ("spec.serviceAccountName", ""),
            ("spec.hostNetwork", "false"),
            ("status.phase", ""),
            ("status.podIP", ""),
            ("status.nominatedNodeName", ""),
        ],
        ("", "nodes") => &[("spec.unschedulable", "false")],
        ("", "secrets") => &[("type", "")],
        ("", "services") => &[("spec.clusterIP", ""), ("spec.type", "")],
        ("batch", "jobs") => &[("status.successful", "0")],
        ("", "replicationcontrollers") => &[("status.replicas", "0")],
        ("", "events") | ("events.k8s.io", "events") => &[
            ("involvedObject.kind", ""),
            ("involvedObject.namespace", ""),
            ("involvedObject.name", ""),
            ("involvedObject.uid", ""),
            ("involvedObject.apiVersion", ""),
            ("involvedObject.resourceVersion", ""),
            ("involvedObject.fieldPath", ""),
            ("reason", ""),
            ("reportingComponent", ""),
            ("source", ""),
            ("type", ""),
        ],
        _ => &[],
    };
    fields.iter().map(|(name, absent)| SelectableField::new(name, absent)).collect()
}
