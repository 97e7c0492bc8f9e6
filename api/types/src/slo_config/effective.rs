//! What is in force of every key, value by value, with the origin of each.
//!
//! The values are those of [`ColocationConfig`], [`NodeSloConfig`] and [`SwitchableConfig`](super::SwitchableConfig); this module finds out which
//! part of the configuration each comes from.

use std::collections::BTreeMap;

use koord_resource::go_json::{DecodeError, Inline};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    COLOCATION_CONFIG, CPU_BURST_CONFIG, CPU_NORMALIZATION_CONFIG, ColocationConfig, CpuNormalizationConfig,
    CpuNormalizationStrategy, Draft, HOST_APPLICATION_CONFIG, HostApplications, NodeDraft, NodeProfile, NodeSloConfig,
    NodeStrategy, RESOURCE_AMPLIFICATION_CONFIG, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
    ResourceAmplificationConfig, ResourceAmplificationStrategy, SYSTEM_CONFIG, SectionError,
    colocation::overriding_label, decode, switchable::Switchable,
};
use crate::{
    node_annotations::{COLOCATION_STRATEGY, NETWORK_BANDWIDTH},
    protocol::Labels,
};

/// The part of the configuration, or of a node, that sets a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing sets it.
    Default,
    /// The strategy of all nodes.
    Cluster,
    /// The strategy of some nodes, by its index in the key.
    Nodes(usize),
    /// An annotation of the node.
    Annotation(&'static str),
    /// A label of the node.
    Label(&'static str),
}

/// One value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveValue {
    /// The names of its field and of the objects around it, within the strategy.
    pub path: Vec<String>,
    /// The value; a list is one value.
    pub value: Value,
    /// What sets it.
    pub origin: Origin,
}

impl EffectiveValue {
    /// The path in one text, such as `cpuReclaimThresholdPercent`. A name with dots of its own is quoted.
    pub fn field(&self) -> String {
        let quoted = |name: &String| if name.contains('.') { format!("{name:?}") } else { name.clone() };
        self.path.iter().map(quoted).collect::<Vec<_>>().join(".")
    }
}

/// One key.
#[derive(Clone, Debug)]
pub struct EffectiveKey {
    /// Its name in the ConfigMap.
    pub key: &'static str,
    /// Why its text cannot be used. Its last good value stays in force then; here there is none, and the defaults are shown.
    pub error: Option<String>,
    /// Strategies of some nodes, in the order of the configuration. The first whose selector matches a node is in force there.
    pub strategies: Vec<EffectiveStrategy>,
    cluster: Layer,
}

/// A strategy of some nodes.
#[derive(Clone, Debug)]
pub struct EffectiveStrategy {
    /// Its nodes.
    pub profile: NodeProfile,
    layer: Layer,
}

/// A strategy with everything filled in, and as it was written.
#[derive(Clone, Debug)]
struct Layer {
    in_force: Value,
    written: Value,
}

/// All keys.
#[derive(Clone, Debug)]
pub struct EffectiveConfig {
    /// In the order of [`KEYS`](super::KEYS).
    pub keys: Vec<EffectiveKey>,
    colocation: ColocationConfig,
    node_slo: NodeSloConfig,
}

// === impl EffectiveConfig ===

impl EffectiveConfig {
    /// Reads the ConfigMap's data.
    pub fn read(data: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| data.get(key).map(String::as_str).filter(|text| !text.is_empty());
        let (colocation, colocation_error) = or_default(ColocationConfig::parse(text(COLOCATION_CONFIG)));
        let (normalization, normalization_error) =
            or_default(CpuNormalizationConfig::parse(data.get(CPU_NORMALIZATION_CONFIG).map(String::as_str)));
        let (amplification, amplification_error) =
            or_default(ResourceAmplificationConfig::parse(data.get(RESOURCE_AMPLIFICATION_CONFIG).map(String::as_str)));
        let (node_slo, errors) = NodeSloConfig::default().update(data);
        let error = |key: &str| {
            let unreadable =
                |error: &&SectionError| error.key() == key && matches!(error, SectionError::Unreadable { .. });
            errors.iter().find(unreadable).map(ToString::to_string)
        };
        let written = |key: &str| text(key).and_then(|text| written(key, text).ok()).unwrap_or_default();
        let hosts = &node_slo.host_applications;
        let applications = |list: &Value| json!({ "applications": list });
        let keys = vec![
            EffectiveKey {
                error: colocation_error,
                ..EffectiveKey::of(
                    COLOCATION_CONFIG,
                    &colocation.cluster,
                    // Where a strategy is refused, that of the cluster is in force, so that the strategy sets nothing.
                    colocation.nodes.iter().map(|node| (&node.profile, value(&node.strategy), node.refused.is_none())),
                    written(COLOCATION_CONFIG),
                )
            },
            EffectiveKey::of_section(
                RESOURCE_THRESHOLD_CONFIG,
                (&node_slo.threshold.cluster, &node_slo.threshold.nodes),
                error(RESOURCE_THRESHOLD_CONFIG),
                written(RESOURCE_THRESHOLD_CONFIG),
            ),
            EffectiveKey::of_section(
                RESOURCE_QOS_CONFIG,
                (&node_slo.qos.cluster, &node_slo.qos.nodes),
                error(RESOURCE_QOS_CONFIG),
                written(RESOURCE_QOS_CONFIG),
            ),
            EffectiveKey::of_section(
                CPU_BURST_CONFIG,
                (&node_slo.cpu_burst.cluster, &node_slo.cpu_burst.nodes),
                error(CPU_BURST_CONFIG),
                written(CPU_BURST_CONFIG),
            ),
            EffectiveKey::of_section(
                SYSTEM_CONFIG,
                (&node_slo.system.cluster, &node_slo.system.nodes),
                error(SYSTEM_CONFIG),
                written(SYSTEM_CONFIG),
            ),
            EffectiveKey {
                error: error(HOST_APPLICATION_CONFIG),
                ..EffectiveKey::of(
                    HOST_APPLICATION_CONFIG,
                    &applications(&value(&hosts.applications)),
                    hosts
                        .node_configs
                        .iter()
                        .map(|node| (&node.first, applications(&value(&node.second.applications)), true)),
                    written(HOST_APPLICATION_CONFIG),
                )
            },
            EffectiveKey::of_section(
                CPU_NORMALIZATION_CONFIG,
                (&normalization.cluster, &normalization.nodes),
                normalization_error,
                written(CPU_NORMALIZATION_CONFIG),
            ),
            EffectiveKey::of_section(
                RESOURCE_AMPLIFICATION_CONFIG,
                (&amplification.cluster, &amplification.nodes),
                amplification_error,
                written(RESOURCE_AMPLIFICATION_CONFIG),
            ),
        ];
        Self { keys, colocation, node_slo }
    }

    /// The values of a key on a node.
    pub fn for_node(&self, key: &EffectiveKey, labels: &Labels, annotations: &Labels) -> Vec<EffectiveValue> {
        let chosen = key.strategies.iter().position(|strategy| strategy.profile.selects(labels));
        let of_configuration =
            |path: &[String]| chosen.map_or_else(|| key.cluster_origin(path), |index| key.origin(path, index));
        match key.key {
            COLOCATION_CONFIG => {
                let in_force = value(&self.colocation.for_node(labels, annotations));
                let annotated = annotations.get(COLOCATION_STRATEGY);
                let annotated = annotated.and_then(|text| decode::<super::ColocationStrategy>(text).ok());
                let annotated = annotated.map(|strategy| value(&strategy)).unwrap_or_default();
                values(&in_force, |path| {
                    if let Some(label) = overriding_label(&path[0], labels) {
                        return Origin::Label(label);
                    }
                    if says(&annotated, path) {
                        Origin::Annotation(COLOCATION_STRATEGY)
                    } else {
                        of_configuration(path)
                    }
                })
            }
            SYSTEM_CONFIG => {
                let in_force = value(&self.node_slo.for_node(labels, annotations).spec.system_strategy);
                let is_annotated = annotations.contains_key(NETWORK_BANDWIDTH);
                values(&in_force, |path| {
                    let is_bandwidth = path.len() == 1 && path[0] == "totalNetworkBandwidth";
                    if is_annotated && is_bandwidth {
                        Origin::Annotation(NETWORK_BANDWIDTH)
                    } else {
                        of_configuration(path)
                    }
                })
            }
            _ => {
                let layer = chosen.map_or(&key.cluster, |index| &key.strategies[index].layer);
                values(&layer.in_force, of_configuration)
            }
        }
    }
}

// === impl EffectiveKey ===

impl EffectiveKey {
    fn of<'n, T: Serialize>(
        key: &'static str,
        cluster: &T,
        nodes: impl Iterator<Item = (&'n NodeProfile, Value, bool)>,
        written: Draft,
    ) -> Self {
        let mut drafts = written.nodes.into_iter();
        let strategies = nodes.map(|(profile, in_force, is_accepted)| {
            let written = drafts.next().filter(|_| is_accepted).map(|draft| draft.strategy).unwrap_or_default();
            EffectiveStrategy { profile: profile.clone(), layer: Layer { in_force, written } }
        });
        let strategies = strategies.collect();
        Self { key, error: None, cluster: Layer { in_force: value(cluster), written: written.cluster }, strategies }
    }

    fn of_section<T: Serialize>(
        key: &'static str,
        (cluster, nodes): (&T, &[NodeStrategy<T>]),
        error: Option<String>,
        written: Draft,
    ) -> Self {
        let nodes = nodes.iter().map(|node| (&node.first, value(&node.second), true));
        Self { error, ..Self::of(key, cluster, nodes, written) }
    }

    /// The values on nodes that no strategy selects.
    pub fn cluster(&self) -> Vec<EffectiveValue> {
        values(&self.cluster.in_force, |path| self.cluster_origin(path))
    }

    /// The values on nodes that the strategy of this index selects and no other before it.
    pub fn selected(&self, index: usize) -> Vec<EffectiveValue> {
        let in_force = self.strategies.get(index).map(|strategy| &strategy.layer.in_force);
        values(in_force.unwrap_or(&Value::Null), |path| self.origin(path, index))
    }

    fn cluster_origin(&self, path: &[String]) -> Origin {
        if says(&self.cluster.written, path) { Origin::Cluster } else { Origin::Default }
    }

    fn origin(&self, path: &[String], index: usize) -> Origin {
        // Applications of some nodes take the place of the others; they are not merged.
        let sets = self.key == HOST_APPLICATION_CONFIG || says(&self.strategies[index].layer.written, path);
        if sets { Origin::Nodes(index) } else { self.cluster_origin(path) }
    }
}

/// A key as it was written.
fn written(key: &str, text: &str) -> Result<Draft, DecodeError> {
    match key {
        HOST_APPLICATION_CONFIG => {
            let hosts: HostApplications = decode(text)?;
            let nodes = hosts.node_configs.into_iter();
            let nodes = nodes.map(|node| NodeDraft { strategy: value(&node.second), profile: node.first }).collect();
            Ok(Draft { cluster: json!({ "applications": hosts.applications }), nodes })
        }
        CPU_NORMALIZATION_CONFIG => of_switchable::<CpuNormalizationStrategy>(text),
        RESOURCE_AMPLIFICATION_CONFIG => of_switchable::<ResourceAmplificationStrategy>(text),
        _ => Draft::read(key, text),
    }
}

fn of_switchable<T: Switchable>(text: &str) -> Result<Draft, DecodeError> {
    let section: Inline<T::Beside, T> = decode(text)?;
    let nodes: Vec<NodeStrategy<T>> = section.first.into();
    let nodes = nodes.into_iter().map(|node| NodeDraft { strategy: value(&node.second), profile: node.first });
    Ok(Draft { cluster: value(&section.second), nodes: nodes.collect() })
}

fn or_default<T: Default, E: ToString>(read: Result<T, E>) -> (T, Option<String>) {
    match read {
        Ok(config) => (config, None),
        Err(error) => (T::default(), Some(error.to_string())),
    }
}

/// Strategies always have JSON.
fn value(strategy: &impl Serialize) -> Value {
    serde_json::to_value(strategy).unwrap_or_default()
}

/// Whether a part of the configuration sets the value at this path.
fn says(part: &Value, path: &[String]) -> bool {
    path.iter().try_fold(part, |part, name| part.get(name)).is_some_and(|value| !value.is_null())
}

/// Every value that is no object, with its origin.
fn values(in_force: &Value, origin: impl Fn(&[String]) -> Origin) -> Vec<EffectiveValue> {
    let mut values = Vec::new();
    leaves(&mut Vec::new(), in_force, &mut |path, value| {
        values.push(EffectiveValue { path: path.to_vec(), value: value.clone(), origin: origin(path) });
    });
    values
}

fn leaves(path: &mut Vec<String>, value: &Value, see: &mut dyn FnMut(&[String], &Value)) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members {
                path.push(name.clone());
                leaves(path, member, see);
                path.pop();
            }
        }
        value => see(path, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node_annotations::CPU_RECLAIM_RATIO, slo_config::KEYS};

    fn map(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// Field, value and origin of the values that are not the defaults.
    fn set(values: &[EffectiveValue]) -> Vec<(String, String, Origin)> {
        let set = values.iter().filter(|value| value.origin != Origin::Default);
        set.map(|value| (value.field(), value.value.to_string(), value.origin.clone())).collect()
    }

    fn row(field: &str, value: &str, origin: Origin) -> (String, String, Origin) {
        (field.to_owned(), value.to_owned(), origin)
    }

    const DATA: [(&str, &str); 4] = [
        (
            COLOCATION_CONFIG,
            r#"{"ENABLE":true,"cpuReclaimThresholdPercent":70,"nodeConfigs":[
                {"name":"gold","nodeSelector":{"matchLabels":{"pool":"gold"}},"cpuReclaimThresholdPercent":50},
                {"name":"bad","nodeSelector":{"matchLabels":{"pool":"bad"}},"cpuReclaimThresholdPercent":-5}]}"#,
        ),
        (SYSTEM_CONFIG, r#"{"clusterStrategy":{"totalNetworkBandwidth":"10M"}}"#),
        (
            CPU_NORMALIZATION_CONFIG,
            r#"{"enable":true,"ratioModel":{"X @ 2.5GHz":{"baseRatio":1.5}},
                "nodeConfigs":[{"nodeSelector":{},"ratioModel":{"X @ 2.5GHz":{"turboEnabledRatio":2}}}]}"#,
        ),
        (
            HOST_APPLICATION_CONFIG,
            r#"{"applications":[{"name":"nginx"}],"nodeConfigs":[{"nodeSelector":{"matchLabels":{"pool":"gold"}}}]}"#,
        ),
    ];

    fn key<'c>(config: &'c EffectiveConfig, name: &str) -> &'c EffectiveKey {
        config.keys.iter().find(|key| key.key == name).unwrap()
    }

    #[test]
    fn every_key_is_there_and_without_a_configuration_all_values_are_defaults() {
        let config = EffectiveConfig::read(&map(&[]));
        assert_eq!(config.keys.iter().map(|key| key.key).collect::<Vec<_>>(), KEYS);
        for key in &config.keys {
            assert_eq!((set(&key.cluster()), &key.error), (vec![], &None), "{}", key.key);
        }
        assert!(key(&config, RESOURCE_THRESHOLD_CONFIG).cluster().len() > 3);
    }

    #[test]
    fn a_value_comes_from_the_strategy_of_its_nodes_or_of_the_cluster() {
        let config = EffectiveConfig::read(&map(&DATA));
        let colocation = key(&config, COLOCATION_CONFIG);
        let cluster =
            [row("cpuReclaimThresholdPercent", "70", Origin::Cluster), row("enable", "true", Origin::Cluster)];
        assert_eq!(set(&colocation.cluster()), cluster);
        let gold = [row("cpuReclaimThresholdPercent", "50", Origin::Nodes(0)), cluster[1].clone()];
        assert_eq!(set(&colocation.selected(0)), gold);
        assert_eq!(set(&colocation.selected(1)), cluster, "a strategy that is refused sets nothing");
        let normalization = key(&config, CPU_NORMALIZATION_CONFIG).selected(0);
        assert_eq!(
            set(&normalization),
            [
                row("enable", "true", Origin::Cluster),
                row(r#"ratioModel."X @ 2.5GHz".turboEnabledRatio"#, "2.0", Origin::Nodes(0)),
            ],
            "an entry of a map is replaced, its fields are not merged"
        );
    }

    #[test]
    fn labels_and_annotations_of_a_node_go_before_the_configuration() {
        let config = EffectiveConfig::read(&map(&DATA));
        let labels = map(&[("pool", "gold"), (CPU_RECLAIM_RATIO, "0.4")]);
        let annotations = map(&[(COLOCATION_STRATEGY, r#"{"degradeTimeMinutes":3}"#), (NETWORK_BANDWIDTH, "1M")]);
        let on_node = |name| set(&config.for_node(key(&config, name), &labels, &annotations));
        assert_eq!(
            on_node(COLOCATION_CONFIG),
            [
                row("cpuReclaimThresholdPercent", "40", Origin::Label(CPU_RECLAIM_RATIO)),
                row("degradeTimeMinutes", "3", Origin::Annotation(COLOCATION_STRATEGY)),
                row("enable", "true", Origin::Cluster),
            ]
        );
        assert_eq!(
            on_node(SYSTEM_CONFIG),
            [row("totalNetworkBandwidth", r#""1M""#, Origin::Annotation(NETWORK_BANDWIDTH))]
        );
        // The strategy of these nodes names none.
        assert_eq!(on_node(HOST_APPLICATION_CONFIG), [row("applications", "[]", Origin::Nodes(0))]);
        let other = config.for_node(key(&config, HOST_APPLICATION_CONFIG), &map(&[]), &map(&[]));
        assert_eq!(other[0].origin, Origin::Cluster);
    }

    #[test]
    fn a_label_without_a_ratio_sets_nothing() {
        let config = EffectiveConfig::read(&map(&DATA));
        let values = config.for_node(key(&config, COLOCATION_CONFIG), &map(&[(CPU_RECLAIM_RATIO, "-1")]), &map(&[]));
        assert_eq!(set(&values)[0], row("cpuReclaimThresholdPercent", "70", Origin::Cluster));
    }

    #[test]
    fn a_key_that_cannot_be_decoded_says_so_and_shows_the_defaults() {
        for name in KEYS {
            let config = EffectiveConfig::read(&map(&[(name, "{")]));
            for key in &config.keys {
                assert_eq!((key.error.is_some(), set(&key.cluster())), (key.key == name, vec![]), "{}", key.key);
            }
        }
    }
}
