//! Warnings about an admitted ConfigMap `slo-controller-config`: keys, fields and entries without an effect.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_types::slo_config::{
    COLOCATION_CONFIG, CPU_NORMALIZATION_CONFIG, CpuNormalizationConfig, Draft, KEYS, NodeSloConfig,
    RESOURCE_AMPLIFICATION_CONFIG, ResourceAmplificationConfig,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The warnings about the keys that this request brings or changes.
pub(crate) fn of_admitted<'d>(changed: impl Iterator<Item = (&'d str, &'d str)>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, text) in changed {
        let mut say = |what: String| warnings.push(format!("data[{key}]: {what}"));
        if !KEYS.contains(&key) {
            say("the key is unknown and has no effect".to_owned());
            continue;
        }
        if let Some(error) = unreadable(key, text) {
            say(error);
            continue;
        }
        let Ok(written) = serde_json::from_str::<Value>(text) else { continue };
        never_chosen(&written).into_iter().for_each(&mut say);
        if let Ok(draft) = Draft::read(key, text) {
            unknown(key, &written, &draft).into_iter().for_each(&mut say);
            if key == COLOCATION_CONFIG && is_off_with_settings(&draft) {
                say("no node has colocation enabled; the rest counts only on nodes whose annotation enables it"
                    .to_owned());
            }
        }
    }
    warnings
}

/// Why the manager cannot use the value of a key. The webhook validates only some of the keys.
fn unreadable(key: &str, text: &str) -> Option<String> {
    match key {
        CPU_NORMALIZATION_CONFIG => CpuNormalizationConfig::parse(Some(text)).err().map(|error| error.to_string()),
        RESOURCE_AMPLIFICATION_CONFIG => {
            ResourceAmplificationConfig::parse(Some(text)).err().map(|error| error.to_string())
        }
        _ => {
            let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
            let (_, errors) = NodeSloConfig::default().update(&data);
            errors.first().map(ToString::to_string)
        }
    }
}

/// A field of a section, whatever case it was written in.
fn field<'v>(object: &'v Map<String, Value>, name: &str) -> Option<(&'v str, &'v Value)> {
    object
        .iter()
        .find(|(written, _)| written.eq_ignore_ascii_case(name))
        .map(|(written, value)| (written.as_str(), value))
}

/// The list of settings for some nodes, with the name of its field as it was written.
fn about_nodes(section: &Value) -> Option<(&str, &Vec<Value>)> {
    let section = section.as_object()?;
    let (name, list) = field(section, "nodeStrategies").or_else(|| field(section, "nodeConfigs"))?;
    Some((name, list.as_array()?))
}

/// Of several entries that select a node the first counts: one whose selector is that of an earlier one, with or without
/// more terms, is never chosen.
fn never_chosen(section: &Value) -> Vec<String> {
    let Some((name, entries)) = about_nodes(section) else { return Vec::new() };
    let terms = |entry: &Value| {
        let (_, selector) = field(entry.as_object()?, "nodeSelector")?;
        let LabelSelector { match_labels, match_expressions } = LabelSelector::deserialize(selector).ok()?;
        let labels = match_labels.into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
        let expressions = match_expressions.into_iter().flatten().map(|term| format!("{term:?}"));
        Some(labels.chain(expressions).collect::<Vec<String>>())
    };
    let terms: Vec<Option<Vec<String>>> = entries.iter().map(terms).collect();
    let hides = |earlier: &Option<Vec<String>>, later: &[String]| {
        earlier.as_ref().is_some_and(|earlier| earlier.iter().all(|term| later.contains(term)))
    };
    let hidden = terms.iter().enumerate().filter_map(|(index, later)| {
        let by =
            terms.iter().take(index).position(|earlier| later.as_ref().is_some_and(|later| hides(earlier, later)))?;
        Some(format!("{name}[{index}] has no effect: {name}[{by}] stands before it and selects all its nodes"))
    });
    hidden.collect()
}

/// Fields that the controllers do not have.
fn unknown(key: &str, written: &Value, draft: &Draft) -> Vec<String> {
    let Some(section) = written.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    let of_nodes = about_nodes(written);
    for (name, value) in section.iter().filter(|(name, _)| of_nodes.is_none_or(|(list, _)| list != *name)) {
        let read = if key == COLOCATION_CONFIG {
            draft.cluster.as_object().and_then(|cluster| field(cluster, name)).map(|(_, read)| read)
        } else {
            name.eq_ignore_ascii_case("clusterStrategy").then_some(&draft.cluster)
        };
        compare(name, value, read, &mut found);
    }
    if let Some((name, entries)) = of_nodes {
        for (index, (entry, known)) in entries.iter().zip(&draft.nodes).enumerate() {
            for (field_name, value) in entry.as_object().into_iter().flatten() {
                if !["name", "nodeselector"].contains(&field_name.to_ascii_lowercase().as_str()) {
                    let known =
                        known.strategy.as_object().and_then(|known| field(known, field_name)).map(|(_, read)| read);
                    compare(&format!("{name}[{index}].{field_name}"), value, known, &mut found);
                }
            }
        }
    }
    found.into_iter().map(|field| format!("unknown field {field}")).collect()
}

/// Compares the text with what was decoded from it, and collects the fields that were not decoded. Null and empty values are left out.
fn compare(at: &str, written: &Value, read: Option<&Value>, unknown: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Some(Value::Object(read))) => {
            for (name, value) in written {
                compare(&format!("{at}.{name}"), value, field(read, name).map(|(_, read)| read), unknown);
            }
        }
        (Value::Array(written), Some(Value::Array(read))) => {
            for (index, (written, read)) in written.iter().zip(read).enumerate() {
                compare(&format!("{at}[{index}]"), written, Some(read), unknown);
            }
        }
        (Value::Object(fields), None) if fields.is_empty() => {}
        (Value::Array(items), None) if items.is_empty() => {}
        (Value::Null, _) | (_, Some(_)) => {}
        (_, None) => unknown.push(at.to_owned()),
    }
}

fn is_off_with_settings(draft: &Draft) -> bool {
    let strategies = || draft.nodes.iter().map(|node| &node.strategy).chain([&draft.cluster]);
    let on = |strategy: &Value| strategy["enable"] == true;
    let settings =
        |strategy: &Value| strategy.as_object().is_some_and(|fields| fields.keys().any(|name| name != "enable"));
    !strategies().any(on) && strategies().any(settings)
}

#[cfg(test)]
mod tests {
    use koord_types::slo_config::{HOST_APPLICATION_CONFIG, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG};

    use super::*;

    fn warned(key: &str, text: &str) -> Vec<String> {
        of_admitted([(key, text)].into_iter())
    }

    #[test]
    fn unknown_keys_and_fields_are_reported() {
        assert_eq!(warned("colocation-confg", "{}"), ["data[colocation-confg]: the key is unknown and has no effect"]);
        let text = r#"{"clusterStrategy": {"ENABLE": true, "cpuSuppressThresholdPercnt": 60, "extra": null},
            "nodeStrategies": [{"name": "a", "nodeSelector": {"matchLabels": {"a": "b"}}, "memoryEvictTresholdPercent": 1}], "nodeStrategy": [1]}"#;
        assert_eq!(
            warned(RESOURCE_THRESHOLD_CONFIG, text),
            [
                "data[resource-threshold-config]: unknown field clusterStrategy.cpuSuppressThresholdPercnt",
                "data[resource-threshold-config]: unknown field nodeStrategy",
                "data[resource-threshold-config]: unknown field nodeStrategies[0].memoryEvictTresholdPercent",
            ]
        );
        let colocation = r#"{"enable": true, "cpuReclaimTresholdPercent": 65, "nodeConfigs": [{"nodeSelector": {"matchLabels": {"a": "b"}}, "x": 1}]}"#;
        assert_eq!(
            warned(COLOCATION_CONFIG, colocation),
            [
                "data[colocation-config]: unknown field cpuReclaimTresholdPercent",
                "data[colocation-config]: unknown field nodeConfigs[0].x"
            ]
        );
        let qos = r#"{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": true, "groupIdentiy": 0}, "blkioQOS": {"enable": true, "blocks": [{"name": "x", "nam": 1}]}}}}"#;
        assert_eq!(
            warned(RESOURCE_QOS_CONFIG, qos),
            [
                "data[resource-qos-config]: unknown field clusterStrategy.beClass.blkioQOS.blocks[0].nam",
                "data[resource-qos-config]: unknown field clusterStrategy.beClass.cpuQOS.groupIdentiy",
            ]
        );
    }

    #[test]
    fn keys_that_no_webhook_checks_are_told_when_they_cannot_be_read() {
        let warnings = warned(HOST_APPLICATION_CONFIG, r#"{"applications": "nginx"}"#);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("data[host-application-config]: failed to unmarshal HostApplicationCfg"),
            "{warnings:?}"
        );
        assert_eq!(warned(CPU_NORMALIZATION_CONFIG, "{").len(), 1);
    }

    #[test]
    fn an_entry_behind_one_that_selects_all_its_nodes_is_told() {
        let entry = |selector: &str| format!(r#"{{"nodeSelector": {selector}, "applications": []}}"#);
        let one = entry(r#"{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}"#);
        let narrower =
            entry(r#"{"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "pool", "operator": "Exists"}]}"#);
        let text = format!(
            r#"{{"nodeConfigs": [{one}, {}, {narrower}, {{"applications": []}}]}}"#,
            entry(r#"{"matchLabels": {"a": "b"}}"#)
        );
        assert_eq!(
            warned(HOST_APPLICATION_CONFIG, &text),
            [
                "data[host-application-config]: nodeConfigs[2] has no effect: nodeConfigs[0] stands before it and selects all its nodes"
            ]
        );
    }

    #[test]
    fn settings_of_a_colocation_that_is_off_are_told() {
        let off = "data[colocation-config]: no node has colocation enabled; the rest counts only on nodes whose annotation enables it";
        assert_eq!(warned(COLOCATION_CONFIG, r#"{"cpuReclaimThresholdPercent": 65}"#), [off]);
        for quiet in ["{}", r#"{"enable": false}"#, r#"{"enable": true, "cpuReclaimThresholdPercent": 65}"#] {
            assert_eq!(warned(COLOCATION_CONFIG, quiet), [""; 0]);
        }
        let by_node = r#"{"cpuReclaimThresholdPercent": 65, "nodeConfigs": [{"nodeSelector": {"matchLabels": {"a": "b"}}, "enable": true}]}"#;
        assert_eq!(warned(COLOCATION_CONFIG, by_node), [""; 0]);
    }
}
