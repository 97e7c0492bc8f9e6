//! What is in force of slo-controller-config: each value with the strategy, label or annotation that sets it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use koord_lint::configuration::{self, Mistake};
use koord_scheduling::Selector;
use koord_types::slo_config::{EffectiveConfig, EffectiveKey, EffectiveStrategy, EffectiveValue, Origin};
use serde_json::{Map, Value, json};

use crate::{Answer, cli::OutputFormat, reviewer::Reviewer, screen::Screen, table};

/// The objects that decide.
pub(super) struct Source<'o> {
    /// Namespace and name of the ConfigMap.
    pub(super) name: String,
    /// The ConfigMap; none where it does not exist, so that the defaults are in force.
    pub(super) config_map: Option<&'o Value>,
    /// The node whose values are shown; none for those of all nodes.
    pub(super) node: Option<&'o Value>,
}

pub(super) fn effective(source: &Source<'_>, output: OutputFormat, screen: Screen) -> Result<Answer> {
    let mistakes = match source.config_map {
        Some(found) => configuration::mistakes(&Reviewer::new("")?, found),
        None => Vec::new(),
    };
    let (unreadable, warnings): (Vec<Mistake>, Vec<Mistake>) =
        mistakes.into_iter().partition(|mistake| mistake.unreadable);
    if !unreadable.is_empty() {
        let lines = unreadable.iter().map(|mistake| {
            format!(
                "ConfigMap {}, key {}: {}; koord-manager goes on with the key's last good value, and a new leader with the default\n",
                source.name, mistake.key, mistake.message
            )
        });
        return Ok(Answer::failure(lines.collect::<String>()));
    }
    let mut warnings: Vec<String> =
        warnings.into_iter().map(|mistake| format!("key {}: {}", mistake.key, mistake.message)).collect();
    if source.config_map.is_none() {
        warnings.push(format!("there is no ConfigMap {}: the defaults are in force", source.name));
    }
    let data: BTreeMap<String, String> = match source.config_map.map(|found| &found["data"]) {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(data) => serde_json::from_value(data.clone()).context("the data of the ConfigMap are no texts")?,
    };
    let config = EffectiveConfig::read(&data);
    let shown = source.node.map(|node| Shown::of_node(&config, node)).transpose()?;
    let shown = shown.unwrap_or_else(|| Shown::of_all(&config));
    Ok(Answer::success(match output {
        OutputFormat::Table => shown.table(&warnings, screen),
        format => format.document(&shown.document(&source.name, &warnings))?,
    }))
}

/// What is shown: the values of one node, or those of all nodes and then those that strategies set on some.
struct Shown<'c> {
    node: Option<String>,
    keys: Vec<ShownKey<'c>>,
}

struct ShownKey<'c> {
    key: &'c EffectiveKey,
    values: Vec<EffectiveValue>,
    strategies: Vec<(&'c EffectiveStrategy, Vec<EffectiveValue>)>,
}

impl<'c> Shown<'c> {
    fn of_node(config: &'c EffectiveConfig, node: &Value) -> Result<Self> {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let texts = |field: &str| match &node["metadata"][field] {
            Value::Null => Ok(BTreeMap::new()),
            texts => serde_json::from_value(texts.clone())
                .with_context(|| format!("the {field} of node {name} are no texts")),
        };
        let (labels, annotations) = (texts("labels")?, texts("annotations")?);
        let keys = config.keys.iter().map(|key| ShownKey {
            key,
            values: config.for_node(key, &labels, &annotations),
            strategies: Vec::new(),
        });
        Ok(Self { node: Some(name.to_owned()), keys: keys.collect() })
    }

    fn of_all(config: &'c EffectiveConfig) -> Self {
        let keys = config.keys.iter().map(|key| {
            let strategies = key.strategies.iter().enumerate().map(|(index, strategy)| {
                let own = key.selected(index).into_iter().filter(|value| value.origin == Origin::Nodes(index));
                (strategy, own.collect())
            });
            ShownKey { key, values: key.cluster(), strategies: strategies.collect() }
        });
        Self { node: None, keys: keys.collect() }
    }

    fn table(&self, warnings: &[String], screen: Screen) -> String {
        let mut rows = vec![["FIELD", "VALUE", "FROM"].map(str::to_owned).to_vec()];
        for ShownKey { key, values, strategies } in &self.keys {
            let of_strategies = strategies.iter().flat_map(|(_, values)| values);
            rows.extend(values.iter().chain(of_strategies).map(|value| {
                vec![
                    format!("{}.{}", key.key, value.field()),
                    super::shown(&value.value),
                    self.origin_in_words(key, &value.origin),
                ]
            }));
        }
        let mut text = table::lines(&rows, screen);
        for warning in warnings {
            text.push_str(&screen.wrapped(&format!("warning: {warning}"), "", "  "));
            text.push('\n');
        }
        text
    }

    fn origin_in_words(&self, key: &EffectiveKey, origin: &Origin) -> String {
        let node = self.node.as_deref().unwrap_or_default();
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::Cluster => "cluster strategy".to_owned(),
            Origin::Nodes(index) => {
                let profile = &key.strategies[*index].profile;
                let name = if profile.name.is_empty() { index.to_string() } else { profile.name.clone() };
                format!("node strategy {name} ({})", nodes_in_words(&key.strategies[*index]))
            }
            Origin::Annotation(name) => format!("annotation {name} of node {node}"),
            Origin::Label(name) => format!("label {name} of node {node}"),
        }
    }

    fn document(&self, config_map: &str, warnings: &[String]) -> Value {
        let keys: Map<String, Value> = self
            .keys
            .iter()
            .map(|ShownKey { key, values, strategies }| {
                let mut shown = json!({ "values": documents(values) });
                if self.node.is_none() {
                    let strategies = strategies.iter().enumerate().map(|(index, (strategy, values))| {
                        let EffectiveStrategy { profile, .. } = strategy;
                        json!({
                            "index": index, "name": profile.name, "nodeSelector": profile.node_selector,
                            "values": documents(values),
                        })
                    });
                    shown["nodeStrategies"] = strategies.collect();
                }
                (key.key.to_owned(), shown)
            })
            .collect();
        json!({ "configMap": config_map, "node": self.node, "keys": keys, "warnings": warnings })
    }
}

fn documents(values: &[EffectiveValue]) -> Value {
    let document = |value: &EffectiveValue| {
        let mut document = json!({ "field": value.field(), "value": value.value });
        let (origin, name) = match &value.origin {
            Origin::Default => ("default", None),
            Origin::Cluster => ("clusterStrategy", None),
            Origin::Nodes(index) => ("nodeStrategy", Some(json!({ "index": index }))),
            Origin::Annotation(name) => ("annotation", Some(json!({ "name": name }))),
            Origin::Label(name) => ("label", Some(json!({ "name": name }))),
        };
        document["origin"] = origin.into();
        for (field, value) in name.iter().filter_map(Value::as_object).flatten() {
            document[field] = value.clone();
        }
        document
    };
    values.iter().map(document).collect()
}

/// Which nodes a strategy selects, as kubectl writes selectors.
fn nodes_in_words(strategy: &EffectiveStrategy) -> String {
    match &strategy.profile.node_selector {
        None => "no nodeSelector: selects no node".to_owned(),
        Some(selector) => match Selector::new(selector) {
            Ok(selector) if selector.is_everything() => "all nodes".to_owned(),
            Ok(selector) => selector.to_string(),
            Err(error) => format!("selects no node: {error}"),
        },
    }
}
