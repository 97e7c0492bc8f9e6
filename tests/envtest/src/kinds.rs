//! The built-in kinds: where each one's own rules are.

mod autoscaler;
mod certificate_request;
mod claim_spec;
mod conditions;
mod configuration;
mod daemon_set;
mod disruption_budget;
mod endpoints;
mod event;
mod job_policies;
mod namespace;
mod node;
mod plain;
mod pod;
mod pod_checks;
mod pod_template;
mod priority_class;
mod quota;
mod rbac;
mod schedule;
mod selectors;
mod service;
mod warnings;
mod webhook_configuration;
mod workload;
mod workload_checks;
mod workload_status;

use std::sync::Arc;

use self::{plain::Simple, webhook_configuration::WebhookConfigurations, workload::Workload};
use crate::{
    builtins, custom,
    registry::{ResourceDef, SelectableField, Subresource},
    server::ApiServer,
    strategy::{Generation, StatusKeeps, Strategy},
};

pub use self::priority_class::SYSTEM as SYSTEM_PRIORITY_CLASSES;

/// Serves the built-in kinds.
pub fn install(core: &mut ApiServer) {
    for resource in builtins::resources() {
        let (collection_group, _) = builtins::storage_version(resource.group, resource.version, resource.plural);
        let collection = core.store.collection_id(&format!("{collection_group}/{}", resource.plural));
        let (group, version, kind, plural) = (resource.group, resource.version, resource.kind, resource.plural);
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let mut definition = ResourceDef::new(group, version, kind, plural, resource.namespaced, collection);
        definition.singular.clone_from(&resource.singular);
        definition.short_names = owned(resource.short_names);
        definition.categories = owned(resource.categories);
        definition.verbs = owned(&resource.verbs);
        definition.subresources = resource
            .subresources
            .iter()
            .map(|subresource| Subresource {
                name: subresource.name.to_owned(),
                body: (subresource.kind != kind).then(|| {
                    (subresource.group.to_owned(), subresource.version.to_owned(), subresource.kind.to_owned())
                }),
                verbs: owned(&subresource.verbs),
            })
            .collect();
        let has_status = definition.subresource("status").is_some();
        definition.strategy = strategy(group, plural, has_status);
        definition.selectable_fields = selectable_fields(group, plural);
        definition.deprecation = deprecation(group, plural).map(ToOwned::to_owned);
        core.registry.insert(definition);
    }
}

/// The warning for every client of a deprecated kind.
fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        _ => None,
    }
}

fn strategy(group: &str, plural: &str, has_status: bool) -> Arc<dyn Strategy> {
    let simple = Simple { status: has_status, ..Simple::default() };
    match (group, plural) {
        ("", "namespaces") => Arc::new(namespace::Namespaces),
        (custom::GROUP, custom::PLURAL) => Arc::new(custom::definitions::Definitions),
        ("", "pods") => Arc::new(pod::Pods),
        ("", "nodes") => Arc::new(node::Nodes),
        ("", "services") => Arc::new(service::Services),
        ("", "endpoints") => Arc::new(endpoints::Endpoints),
        ("discovery.k8s.io", "endpointslices") => Arc::new(endpoints::EndpointSlices),
        ("", "configmaps") => Arc::new(configuration::ConfigMaps),
        ("", "secrets") => Arc::new(configuration::Secrets),
        ("", "events") => Arc::new(event::Events { is_new: false }),
        ("events.k8s.io", "events") => Arc::new(event::Events { is_new: true }),
        ("", "replicationcontrollers") => Arc::new(Workload::ReplicationController),
        ("apps", "deployments") => Arc::new(Workload::Deployment),
        ("apps", "replicasets") => Arc::new(Workload::ReplicaSet),
        ("apps", "statefulsets") => Arc::new(Workload::StatefulSet),
        ("apps", "daemonsets") => Arc::new(Workload::DaemonSet),
        ("autoscaling", "horizontalpodautoscalers") => Arc::new(autoscaler::Autoscalers),
        ("batch", "jobs") => Arc::new(Workload::Job),
        ("batch", "cronjobs") => Arc::new(Workload::CronJob),
        ("scheduling.k8s.io", "priorityclasses") => Arc::new(priority_class::PriorityClasses),
        ("certificates.k8s.io", "certificatesigningrequests") => Arc::new(certificate_request::CertificateRequests),
        ("policy", "poddisruptionbudgets") => Arc::new(disruption_budget::DisruptionBudgets),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
            Arc::new(rbac::Roles { is_cluster: plural == "clusterroles" })
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            Arc::new(rbac::Bindings { is_cluster: plural == "clusterrolebindings" })
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => {
            Arc::new(WebhookConfigurations { is_mutating: true })
        }
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => {
            Arc::new(WebhookConfigurations { is_mutating: false })
        }
        ("", "serviceaccounts" | "persistentvolumes" | "persistentvolumeclaims")
        | ("storage.k8s.io", "storageclasses") => {
            Arc::new(Simple { returns_deleted: true, status_keeps: StatusKeeps::Nothing, ..simple })
        }
        ("storage.k8s.io", "csidrivers" | "csinodes" | "volumeattachments") => {
            Arc::new(Simple { returns_deleted: true, needs_revision: true, ..simple })
        }
        ("node.k8s.io", "runtimeclasses") => {
            Arc::new(Simple { creates_on_update: true, needs_revision: true, ..simple })
        }
        ("apiregistration.k8s.io", _) => Arc::new(Simple { needs_revision: true, ..simple }),
        ("", "resourcequotas") => Arc::new(quota::ResourceQuotas),
        ("", "limitranges") => Arc::new(plain::LimitRanges),
        ("networking.k8s.io", "networkpolicies") => Arc::new(plain::NetworkPolicies),
        ("apps", "controllerrevisions") => Arc::new(plain::Revisions),
        ("", "podtemplates") => Arc::new(plain::PodTemplates),
        ("coordination.k8s.io", "leases") => Arc::new(plain::Leases),
        ("admissionregistration.k8s.io", _) => {
            Arc::new(Simple { generation: Generation::Spec, needs_revision: true, ..simple })
        }
        ("networking.k8s.io", _) => {
            Arc::new(Simple { generation: Generation::Spec, status_keeps: StatusKeeps::Nothing, ..simple })
        }
        ("resource.k8s.io", "resourceslices") => {
            Arc::new(Simple { generation: Generation::Spec, has_own_field_labels: true, ..simple })
        }
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => {
            Arc::new(Simple { generation: Generation::Spec, ..simple })
        }
        _ => Arc::new(simple),
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
            ("status.podIPs", ""),
            ("status.nominatedNodeName", ""),
        ],
        ("", "nodes") => &[("spec.unschedulable", "false")],
        ("", "secrets") => &[("type", "")],
        ("certificates.k8s.io", "certificatesigningrequests") => &[("spec.signerName", "")],
        ("", "services") => &[("spec.clusterIP", ""), ("spec.type", "")],
        ("resource.k8s.io", "resourceslices") => &[("spec.nodeName", ""), ("spec.driver", "")],
        ("batch", "jobs") => &[("status.successful", "0")],
        ("", "replicationcontrollers") => &[("status.replicas", "0")],
        // Each group reads its own form; what means the same has the same place in both lists.
        ("events.k8s.io", "events") => {
            return EVENT_FIELDS.iter().map(|(_, name)| SelectableField::new(name, "")).collect();
        }
        ("", "events") => {
            let source =
                SelectableField { pointer: "/source/component".to_owned(), ..SelectableField::new("source", "") };
            return EVENT_FIELDS.iter().map(|(name, _)| SelectableField::new(name, "")).chain([source]).collect();
        }
        _ => &[],
    };
    fields.iter().map(|(name, absent)| SelectableField::new(name, absent)).collect()
}

/// What events are selected by: in the core group, and in the newer one.
const EVENT_FIELDS: [(&str, &str); 10] = [
    ("involvedObject.kind", "regarding.kind"),
    ("involvedObject.namespace", "regarding.namespace"),
    ("involvedObject.name", "regarding.name"),
    ("involvedObject.uid", "regarding.uid"),
    ("involvedObject.apiVersion", "regarding.apiVersion"),
    ("involvedObject.resourceVersion", "regarding.resourceVersion"),
    ("involvedObject.fieldPath", "regarding.fieldPath"),
    ("reason", "reason"),
    ("reportingComponent", "reportingController"),
    ("type", "type"),
];
