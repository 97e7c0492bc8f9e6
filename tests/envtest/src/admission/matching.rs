//! Which requests a webhook wants to see.

use std::sync::Arc;

use serde_json::Value;

use super::configuration::Webhook;
use crate::registry::ResourceDef;
use crate::server::{ApiServer, Attributes, Operation};
use koord_scheduling::Selector;

/// One rule of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
}

/// The resource in the request of a webhook.
#[derive(Clone, Debug)]
pub(super) enum Match {
    /// The one that was asked for.
    Exact,
    /// Another version of the same, which the object must be converted to.
    Equivalent(Arc<ResourceDef>),
}

impl Match {
    /// The version that the webhook sees.
    pub(super) fn definition<'a>(&'a self, about: &Attributes<'a>) -> &'a Arc<ResourceDef> {
        match self {
            Match::Exact => about.definition,
            Match::Equivalent(other) => other,
        }
    }
}

// === impl Rule ===

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: rule["scope"].as_str().filter(|scope| *scope != "*").map(ToOwned::to_owned),
        }
    }

    fn matches(&self, operation: Operation, definition: &ResourceDef, subresource: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let resource = |pattern: &String| {
            let (resource, sub) = pattern.split_once('/').unwrap_or((pattern, ""));
            (resource == "*" || resource == definition.plural) && (sub == "*" || sub == subresource)
        };
        let scope = match self.scope.as_deref() {
            None => true,
            // A namespace counts as cluster-scoped.
            Some("Namespaced") => definition.namespaced,
            Some(_) => !definition.namespaced,
        };
        scope
            && has(&self.operations, operation.word())
            && has(&self.groups, &definition.group)
            && has(&self.versions, &definition.version)
            && self.resources.iter().any(resource)
    }
}

/// Whether the webhook wants to see the request, by rules and selectors; an error is returned to the client.
pub(super) fn find(core: &ApiServer, webhook: &Webhook, about: &Attributes<'_>) -> Result<Option<Match>, String> {
    // Nobody could ever repair a webhook that forbids repairs.
    if about.definition.group == "admissionregistration.k8s.io" {
        return Ok(None);
    }
    let Some(found) = by_rules(core, webhook, about) else { return Ok(None) };
    if !namespace_matches(core, webhook, about)? {
        return Ok(None);
    }
    let selector = webhook.object_selector.as_ref().map_err(Clone::clone)?;
    let old = about.old_object.unwrap_or(&Value::Null);
    let is_selected = selector.is_everything() || selects(selector, about.object) || selects(selector, old);
    Ok(is_selected.then_some(found))
}

fn by_rules(core: &ApiServer, webhook: &Webhook, about: &Attributes<'_>) -> Option<Match> {
    let wants = |definition: &ResourceDef| {
        webhook.rules.iter().any(|rule| rule.matches(about.operation, definition, about.subresource))
    };
    if wants(about.definition) {
        return Some(Match::Exact);
    }
    if !webhook.equivalent {
        return None;
    }
    let is_same = |other: &&Arc<ResourceDef>| {
        other.collection == about.definition.collection && other.api_version() != about.definition.api_version()
    };
    core.registry.iter().filter(is_same).find(|other| wants(other)).map(|other| Match::Equivalent(Arc::clone(other)))
}

fn selects(selector: &Selector, object: &Value) -> bool {
    object.is_object() && selector.selects(|key| object["metadata"]["labels"].get(key).and_then(Value::as_str))
}

fn namespace_matches(core: &ApiServer, webhook: &Webhook, about: &Attributes<'_>) -> Result<bool, String> {
    let selector = webhook.namespace_selector.as_ref().map_err(Clone::clone)?;
    if selector.is_everything() {
        return Ok(true);
    }
    let is_namespace = about.definition.group.is_empty() && about.definition.plural == "namespaces";
    if is_namespace && about.object.is_object() {
        return Ok(selects(selector, about.object));
    }
    let name = if is_namespace { about.name } else { about.namespace };
    if name.is_empty() {
        return Ok(true);
    }
    let namespaces = core.registry.get("", "v1", "namespaces");
    let namespace = namespaces.and_then(|definition| core.object(definition, "", name));
    let namespace = namespace.ok_or_else(|| format!("namespaces \"{name}\" not found"))?;
    Ok(selects(selector, &namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{HistoryLimits, Store};
    use serde_json::json;

    #[test]
    fn rules_select_operations_resources_and_scopes() {
        let mut store = Store::new(HistoryLimits::default());
        let collection = store.collection_id("/pods");
        let pods = ResourceDef::new("", "v1", "Pod", "pods", true, collection);
        let rule = |value: Value| {
            let mut full =
                json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
            full.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            Rule::read(&full)
        };
        let table = [
            (json!({}), Operation::Create, "", true),
            (json!({}), Operation::Create, "status", false),
            (json!({"resources": ["*"]}), Operation::Create, "status", false),
            (json!({"resources": ["*/*"]}), Operation::Create, "status", true),
            (json!({"resources": ["pods/*"]}), Operation::Create, "status", true),
            (json!({"resources": ["*/binding"]}), Operation::Create, "binding", true),
            (json!({"operations": ["UPDATE"]}), Operation::Create, "", false),
            (json!({"scope": "Cluster"}), Operation::Create, "", false),
            (json!({"scope": "Namespaced"}), Operation::Delete, "", true),
            (json!({"apiGroups": ["apps"]}), Operation::Create, "", false),
        ];
        for (change, operation, subresource, expected) in table {
            assert_eq!(rule(change.clone()).matches(operation, &pods, subresource), expected, "{change} {subresource}");
        }
    }
}
