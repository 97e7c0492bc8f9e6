//! Where each value of a NodeSLO came from: the part for some nodes, the part for all, or the default.

use anyhow::{Result, bail};
use koord_api::{
    node_annotations::NETWORK_BANDWIDTH,
    slo_config::{
        CPU_BURST_CONFIG, HOST_APPLICATION_CONFIG, NodeSloConfig, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
        SYSTEM_CONFIG, SectionError,
    },
};
use serde_json::{Value, json};

use super::objects::Objects;
use crate::{
    Answer,
    cli::{ExplainArgs, OutputFormat},
    screen::Screen,
    table,
};

/// The fields of a NodeSLO's spec with the keys that they come from.
const FIELDS: [(&str, &str); 5] = [
    ("resourceUsedThresholdWithBE", RESOURCE_THRESHOLD_CONFIG),
    ("resourceQOSStrategy", RESOURCE_QOS_CONFIG),
    ("cpuBurstStrategy", CPU_BURST_CONFIG),
    ("systemStrategy", SYSTEM_CONFIG),
    ("hostApplications", HOST_APPLICATION_CONFIG),
];

/// One value with its origin.
struct Line {
    field: String,
    value: Value,
    origin: String,
}

pub(super) fn explain(objects: &Objects, args: &ExplainArgs, screen: Screen) -> Result<Answer> {
    let Some(node) = objects.nodes.get(&args.node) else { bail!("there is no node {}", args.node) };
    let (labels, annotations) = (node.value.labels.to_map(), node.value.annotations.to_map());
    let nothing = std::collections::BTreeMap::new();
    let data = objects.config().and_then(|config| config.data()).unwrap_or(&nothing);
    let (config, errors) = NodeSloConfig::default().update(data);
    for error in errors {
        match error {
            // What takes its place is among the lines.
            SectionError::OutOfRange { .. } => {}
            SectionError::Unreadable { key, .. } => {
                bail!("key {key}: {error}; the manager goes on with the last good value")
            }
        }
    }
    let spec = serde_json::to_value(config.for_node(&labels, &annotations).spec)?;
    let mut lines = Vec::new();
    for (field, key) in FIELDS {
        let section: Value = data.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let list = if key == HOST_APPLICATION_CONFIG { "nodeConfigs" } else { "nodeStrategies" };
        let strategies = section[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = strategies.iter().find(|strategy| {
            let selector = serde_json::from_value(strategy["nodeSelector"].clone()).ok();
            koord_scheduling::matches(selector.as_ref(), &labels).unwrap_or(false)
        });
        let name = |strategy: &Value| format!("{key} {list}[{}]", strategy["name"].as_str().unwrap_or_default());
        leaves(field, &spec[field], &mut |path, value| {
            let within = &path[field.len()..];
            let says = |part: &Value| part.pointer(&within.replace('.', "/")).is_some_and(|said| !said.is_null());
            let origin =
                if path == "systemStrategy.totalNetworkBandwidth" && annotations.contains_key(NETWORK_BANDWIDTH) {
                    format!("Node {} annotation {NETWORK_BANDWIDTH}", args.node)
                } else if key == HOST_APPLICATION_CONFIG {
                    chosen.map_or_else(|| format!("{key} applications"), name)
                } else if let Some(strategy) = chosen.filter(|strategy| says(strategy)) {
                    name(strategy)
                } else if says(&section["clusterStrategy"]) {
                    format!("{key} clusterStrategy")
                } else {
                    "default".to_owned()
                };
            lines.push(Line { field: path.to_owned(), value: value.clone(), origin });
        });
    }
    if let Some(extensions) = objects.slos.get(&args.node).map(|slo| slo.value.spec()["extensions"]["Object"].clone()) {
        leaves("extensions.Object", &extensions, &mut |path, value| {
            let origin = format!("NodeSLO {}, written by others and kept", args.node);
            lines.push(Line { field: path.to_owned(), value: value.clone(), origin });
        });
    }
    Ok(Answer::success(match args.answer.output {
        OutputFormat::Table => table(&lines, screen),
        format => {
            let lines =
                lines.iter().map(|line| json!({"field": line.field, "value": line.value, "origin": line.origin}));
            format.document(&json!({"node": args.node, "values": lines.collect::<Vec<_>>()}))?
        }
    }))
}

/// Every value that is no object, with its path.
fn leaves(path: &str, value: &Value, see: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| leaves(&format!("{path}.{name}"), member, see));
        }
        value => see(path, value),
    }
}

fn table(lines: &[Line], screen: Screen) -> String {
    let value = |line: &Line| line.value.as_str().map_or_else(|| line.value.to_string(), str::to_owned);
    let rows: Vec<Vec<String>> =
        lines.iter().map(|line| vec![line.field.clone(), value(line), line.origin.clone()]).collect();
    table::lines(&rows, screen)
}
