//! `/validate-configmap`: mistakes in the ConfigMap `slo-controller-config` are refused before they are in force.
//!
//! Keys that did not change are not looked at: what is wrong already must not stand in the way of other changes.

use std::collections::BTreeMap;

use koord_resource::admission::{Denial, Operation, Request, Verdict};
use koord_types::slo_config::CHECKED_KEYS;
use serde::Deserialize;

use super::{ConfigView, warnings};
use crate::{
    Ctx, decode,
    slo_config::{Checked, Example, check, conflict},
};

/// Checks the configuration of the node controllers.
#[koord_resource::admission(
    path = "/validate-configmap",
    gate = "ConfigMapValidatingWebhook",
    failure_policy = Fail,
    name = "vconfigmap.koordinator.sh",
    within = Ctx::config,
    on = [Create, Update, Delete],
    object_type = "configmap", groups = [""], versions = ["v1"], resources = ["configmaps"],
    object_selector("koordinator.sh/configmap-type", In, ["slo-controller-config"]),
    rbac(group = "", resource = "nodes", verbs = [list, watch]),
)]
pub fn validate_configmap(request: &Request<'_>, view: ConfigView<'_>) -> Verdict {
    match validate(request, view) {
        Ok(warnings) => Verdict { warnings, ..Verdict::allow() },
        Err(denial) => Verdict::deny(denial),
    }
}

/// A ConfigMap. Absent and `null` are the same everywhere.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConfigMap {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Metadata>,
    data: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
}

impl ConfigMap {
    fn read(raw: Option<&serde_json::value::RawValue>) -> Result<Self, Denial> {
        let map: Self = decode::object(raw)?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        decode::kind(&text(&map.api_version), &text(&map.kind), ("v1", "ConfigMap"), "*v1.ConfigMap")?;
        Ok(map)
    }

    fn data(self) -> BTreeMap<String, String> {
        let entries = self.data.unwrap_or_default();
        entries.into_iter().map(|(key, text)| (key, text.unwrap_or_default())).collect()
    }
}

/// What the user should know although the ConfigMap is admitted, or why it is not.
fn validate(request: &Request<'_>, view: ConfigView<'_>) -> Result<Vec<String>, Denial> {
    let of_config_maps = request.sub_resource.is_empty() && request.resource.resource == "configmaps";
    if !of_config_maps {
        return Ok(Vec::new());
    }
    // Whatever is done, what it is done to must be a ConfigMap.
    if request.operation == Operation::Delete {
        return request.old_object.map_or(Ok(Vec::new()), |_| ConfigMap::read(request.old_object).map(|_| Vec::new()));
    }
    let mut map = ConfigMap::read(request.object)?;
    let old = match request.operation {
        Operation::Update => ConfigMap::read(request.old_object)?.data(),
        Operation::Create => BTreeMap::new(),
        _ => return Ok(Vec::new()),
    };
    let metadata = map.metadata.take().unwrap_or_default();
    let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
    let wanted = view.name;
    if namespace != wanted.namespace || name != wanted.name {
        return Ok(Vec::new());
    }
    let data = map.data();
    let names_needed = view.names_needed;
    let checked = Checked { namespace: &namespace, name: &name, data: &data, names_needed };
    let changed = |key: &str| data.get(key).is_some_and(|text| !text.is_empty() && old.get(key) != Some(text));
    let mut chosen = Vec::new();
    for key in CHECKED_KEYS.into_iter().filter(|key| changed(key)) {
        chosen.push((key, check(key, &checked)?));
    }
    let nodes = view.nodes.read();
    for (key, chosen) in &chosen {
        for (name, entry) in nodes.iter() {
            conflict(key, chosen, &Example { name: name.as_str(), label: |key: &str| entry.value.0.get(key) })?;
        }
    }
    if !view.warns {
        return Ok(Vec::new());
    }
    let texts = data.iter().map(|(key, text)| (key.as_str(), text.as_str()));
    Ok(warnings::of_admitted(texts.filter(|(key, _)| changed(key))))
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;
    use serde_json::value::RawValue;

    use super::*;
    use crate::node::{mutate_status::MUTATE_NODE_STATUS, validate::VALIDATE_NODE};

    #[test]
    fn namespace_and_name_of_the_object_count_alone() {
        let is_checked = |metadata: &str| {
            let object =
                RawValue::from_string(format!(r#"{{"metadata":{metadata},"data":{{"colocation-config":"x"}}}}"#))
                    .unwrap();
            let resource = GroupVersionResource { resource: "configmaps".into(), ..GroupVersionResource::default() };
            let request = Request {
                operation: Operation::Create,
                object: Some(&object),
                namespace: "koordinator-system".into(),
                name: "slo-controller-config".into(),
                resource,
                ..Request::default()
            };
            (VALIDATE_CONFIGMAP.call)(&request, &Ctx::detached(|_| true)).denial.is_some()
        };
        assert!(is_checked(r#"{"name":"slo-controller-config","namespace":"koordinator-system"}"#));
        for metadata in [
            r#"{"name":"slo-controller-config"}"#,
            r#"{"name":"slo-controller-config","namespace":""}"#,
            r#"{"name":"slo-controller-config","namespace":"default"}"#,
            r#"{"namespace":"koordinator-system"}"#,
        ] {
            assert!(!is_checked(metadata), "{metadata}");
        }
    }

    #[test]
    fn what_is_changed_or_removed_must_be_readable_too() {
        let kinds = [
            ("ConfigMap", "configmaps", "", VALIDATE_CONFIGMAP),
            ("Node", "nodes", "", VALIDATE_NODE),
            ("Node", "nodes", "status", MUTATE_NODE_STATUS),
        ];
        for (kind, resource, sub_resource, handler) in kinds {
            let raw = |text: String| RawValue::from_string(text).unwrap();
            let (good, bad) = (raw(format!(r#"{{"apiVersion":"v1","kind":"{kind}"}}"#)), raw("[]".to_owned()));
            let code = |operation, object, old_object| {
                let resource = GroupVersionResource { resource: resource.into(), ..GroupVersionResource::default() };
                let request = Request {
                    operation,
                    object,
                    old_object,
                    resource,
                    sub_resource: sub_resource.into(),
                    ..Request::default()
                };
                (handler.call)(&request, &Ctx::detached(|_| true)).denial.map(|denial| denial.code)
            };
            assert_eq!(code(Operation::Update, Some(&*good), Some(&*good)), None, "{kind}");
            assert_eq!(code(Operation::Update, Some(&*good), None), Some(400), "{kind}");
            assert_eq!(code(Operation::Create, Some(&*good), None), None, "{kind}");
            assert_eq!(code(Operation::Delete, None, None), None, "{kind}");
            assert_eq!(code(Operation::Delete, None, Some(&*bad)), Some(400), "{kind}");
            assert_eq!(code(Operation::Connect, None, None), Some(400), "{kind}");
        }
    }
}
