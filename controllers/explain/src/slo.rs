//! Where each value of a NodeSLO came from: the part for some nodes, the part for all, or the default.

use anyhow::{Result, bail};
use koord_program::{
    output::{Answer, OutputFormat},
    screen::Screen,
    table,
};
use koord_types::slo_config::{
    CPU_BURST_CONFIG, EffectiveConfig, EffectiveKey, HOST_APPLICATION_CONFIG, Origin, RESOURCE_QOS_CONFIG,
    RESOURCE_THRESHOLD_CONFIG, SYSTEM_CONFIG,
};
use serde_json::{Value, json};

use crate::{NodeOptions, objects::Objects};

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

/// Where each value of the NodeSLO came from.
pub async fn explain(options: &NodeOptions<'_>, screen: Screen) -> Result<Answer> {
    let objects = Objects::gather(options).await?;
    let Some(node) = objects.nodes.get(options.node) else { bail!("there is no node {}", options.node) };
    let (labels, annotations) = (node.value.labels.to_map(), node.value.annotations.to_map());
    let nothing = std::collections::BTreeMap::new();
    let data = objects.config().and_then(|config| config.data()).unwrap_or(&nothing);
    let config = EffectiveConfig::read(data);
    let mut lines = Vec::new();
    for (field, name) in FIELDS {
        let Some(key) = config.keys.iter().find(|key| key.key == name) else { continue };
        if let Some(error) = &key.error {
            bail!("key {name}: {error}; the manager goes on with the last good value");
        }
        for value in config.for_node(key, &labels, &annotations) {
            let is_list = name == HOST_APPLICATION_CONFIG;
            if is_list && value.value.as_array().is_some_and(Vec::is_empty) {
                continue;
            }
            let field = if is_list { field.to_owned() } else { format!("{field}.{}", value.field()) };
            lines.push(Line { field, value: value.value, origin: origin_of(&value.origin, key, options.node) });
        }
    }
    if let Some(extensions) = objects.slos.get(options.node).map(|slo| slo.value.spec()["extensions"]["Object"].clone())
    {
        leaves("extensions.Object", &extensions, &mut |path, value| {
            let origin = format!("NodeSLO {}, written by others and kept", options.node);
            lines.push(Line { field: path.to_owned(), value: value.clone(), origin });
        });
    }
    Ok(Answer::success(match options.output {
        OutputFormat::Table => table(&lines, screen),
        format => {
            let lines =
                lines.iter().map(|line| json!({"field": line.field, "value": line.value, "origin": line.origin}));
            format.document(&json!({"node": options.node, "values": lines.collect::<Vec<_>>()}))?
        }
    }))
}

fn origin_of(origin: &Origin, key: &EffectiveKey, node: &str) -> String {
    let (cluster, nodes) = match key.key {
        HOST_APPLICATION_CONFIG => ("applications", "nodeConfigs"),
        _ => ("clusterStrategy", "nodeStrategies"),
    };
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::Cluster => format!("{} {cluster}", key.key),
        Origin::Nodes(index) => format!("{} {nodes}[{}]", key.key, key.strategies[*index].profile.name),
        Origin::Annotation(name) => format!("Node {node} annotation {name}"),
        Origin::Label(name) => format!("Node {node} label {name}"),
    }
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
