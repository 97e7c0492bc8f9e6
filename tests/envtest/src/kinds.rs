//! The built-in kinds: where each one's own rules are.

mod namespace;

use std::sync::Arc;

use crate::{
    builtins, custom,
    registry::{ResourceDef, SelectableField, Subresource},
    server::ApiServer,
    strategy::{Plain, Strategy},
};

/// Serves the built-in kinds.
pub fn install(core: &mut ApiServer) {
    for resource in builtins::resources() {
        let (shelf_group, _) = builtins::storage_version(resource.group, resource.version, resource.plural);
        let shelf = core.store.shelf_id(&format!("{shelf_group}/{}", resource.plural));
        let (group, version, kind, plural) = (resource.group, resource.version, resource.kind, resource.plural);
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let mut definition = ResourceDef::new(group, version, kind, plural, resource.namespaced, shelf);
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
        definition.strategy = strategy(group, plural);
        definition.selectable_fields = selectable_fields(group, plural);
        core.registry.insert(definition);
    }
}

fn strategy(group: &str, plural: &str) -> Arc<dyn Strategy> {
    match (group, plural) {
        ("", "namespaces") => Arc::new(namespace::Namespaces),
        (custom::GROUP, custom::PLURAL) => Arc::new(custom::definitions::Definitions),
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
        ("" | "events.k8s.io", "events") => &[
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
