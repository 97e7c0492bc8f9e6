//! The keys that become the NodeSLO of each node.

use std::collections::BTreeMap;

use koord_resource::{
    Quantity, Schema,
    declare::{Emit, Profile},
    go_json::DecodeError,
    quantity::ParseQuantityError,
    schema::{
        self,
        structural::within::{Correction, bring_within},
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    CPU_BURST_CONFIG, HOST_APPLICATION_CONFIG, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG, SYSTEM_CONFIG, decode,
    defaults,
    strategy::{NodeStrategy, first_match, laid_over},
};
use crate::{
    extensions::Extensions,
    node_annotations::NETWORK_BANDWIDTH,
    node_slo::{
        CpuBurstStrategy, HostApplicationSpec, NodeSLOSpec, ResourceQosStrategy, ResourceThresholdStrategy,
        SystemStrategy,
    },
    protocol::Labels,
};

/// One key with everything filled in: what holds on all nodes, and what holds on some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section<T> {
    /// For nodes that nothing else is said about.
    pub cluster: T,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeStrategy<T>>,
}

impl<T: Clone> Section<T> {
    /// What holds on a node with these labels.
    pub fn for_node(&self, labels: &Labels) -> &T {
        first_match(&self.nodes, labels).unwrap_or(&self.cluster)
    }
}

/// `host-application-config`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostApplications {
    /// On nodes that nothing else is said about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<HostApplicationSpec>,
    /// On some nodes, in place of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_configs: Vec<NodeStrategy<NodeHostApplications>>,
}

/// Applications on some nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeHostApplications {
    /// The applications.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<HostApplicationSpec>,
}

/// All keys that become NodeSLOs, with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSloConfig {
    /// `resource-threshold-config`.
    pub threshold: Section<ResourceThresholdStrategy>,
    /// `resource-qos-config`.
    pub qos: Section<ResourceQosStrategy>,
    /// `cpu-burst-config`.
    pub cpu_burst: Section<CpuBurstStrategy>,
    /// `system-config`.
    pub system: Section<SystemStrategy>,
    /// `host-application-config`.
    pub host_applications: HostApplications,
}

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// It cannot be read; its last good value stays in force.
    #[error("failed to unmarshal {section}, err: {error}")]
    Unreadable {
        /// The key in the ConfigMap.
        key: &'static str,
        /// What messages call the key: `ThresholdCfg`, …
        section: &'static str,
        /// What is wrong.
        error: DecodeError,
    },
    /// A value is none that a NodeSLO may have. The API server would refuse the whole object, so another one is used.
    #[error("{key}: {correction}")]
    OutOfRange {
        /// The key in the ConfigMap.
        key: &'static str,
        /// The value, and what takes its place.
        correction: Correction,
    },
}

impl SectionError {
    /// The key in the ConfigMap.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Unreadable { key, .. } | Self::OutOfRange { key, .. } => key,
        }
    }
}

/// What a node gets.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSloResolved {
    /// The spec; extensions that the manager does not own must be put back by the caller.
    pub spec: NodeSLOSpec,
    /// Why the node has no system strategy.
    pub bandwidth_error: Option<ParseQuantityError>,
}

impl Default for NodeSloConfig {
    fn default() -> Self {
        let section = Section::default;
        Self {
            threshold: Section { cluster: defaults::resource_threshold_strategy(), nodes: Vec::new() },
            qos: section(),
            cpu_burst: Section { cluster: defaults::cpu_burst_strategy(), nodes: Vec::new() },
            system: Section { cluster: defaults::system_strategy(), nodes: Vec::new() },
            host_applications: HostApplications::default(),
        }
    }
}

impl NodeSloConfig {
    /// Reads the keys of the ConfigMap. An absent key gives its defaults; one that cannot be read keeps what `self` has;
    /// values that a NodeSLO may not have are brought within their bounds.
    pub fn update(&self, data: &BTreeMap<String, String>) -> (Self, Vec<SectionError>) {
        let mut errors = Vec::new();
        let default = Self::default();
        let text = |key: &str| data.get(key).map(String::as_str);
        let errors_of = &mut errors;
        let config = Self {
            threshold: read::<ThresholdSection>(
                (RESOURCE_THRESHOLD_CONFIG, "ThresholdCfg", text(RESOURCE_THRESHOLD_CONFIG)),
                (&default.threshold, &self.threshold),
                errors_of,
            ),
            qos: read::<QosSection>(
                (RESOURCE_QOS_CONFIG, "ResourceQOSCfg", text(RESOURCE_QOS_CONFIG)),
                (&default.qos, &self.qos),
                errors_of,
            ),
            cpu_burst: read::<CpuBurstSection>(
                (CPU_BURST_CONFIG, "CPUBurstCfg", text(CPU_BURST_CONFIG)),
                (&default.cpu_burst, &self.cpu_burst),
                errors_of,
            ),
            system: read::<SystemSection>(
                (SYSTEM_CONFIG, "SystemCfg", text(SYSTEM_CONFIG)),
                (&default.system, &self.system),
                errors_of,
            ),
            host_applications: match text(HOST_APPLICATION_CONFIG).map(decode) {
                None => default.host_applications,
                Some(Ok(applications)) => applications,
                Some(Err(error)) => {
                    let (key, section) = (HOST_APPLICATION_CONFIG, "HostApplicationCfg");
                    errors.push(SectionError::Unreadable { key, section, error });
                    self.host_applications.clone()
                }
            },
        };
        (config, errors)
    }

    /// What a node gets.
    ///
    /// QUIRK: an annotation that names no bandwidth takes the whole system strategy away (spec/manager.md 2.2;
    /// `a_bandwidth_that_is_none_takes_the_system_strategy_away`).
    pub fn for_node(&self, labels: &Labels, annotations: &Labels) -> NodeSloResolved {
        let mut system = self.system.for_node(labels).clone();
        system.total_network_bandwidth.get_or_insert(Quantity::ZERO);
        let mut bandwidth_error = None;
        if let Some(text) = annotations.get(NETWORK_BANDWIDTH) {
            match text.parse() {
                Ok(bandwidth) => system.total_network_bandwidth = Some(bandwidth),
                Err(error) => bandwidth_error = Some(error),
            }
        }
        let hosts = &self.host_applications;
        let host_applications =
            first_match(&hosts.node_configs, labels).map_or(&hosts.applications, |node| &node.applications);
        let spec = NodeSLOSpec {
            resource_used_threshold_with_be: Some(self.threshold.for_node(labels).clone()),
            resource_qos_strategy: Some(self.qos.for_node(labels).clone()),
            cpu_burst_strategy: Some(self.cpu_burst.for_node(labels).clone()),
            system_strategy: bandwidth_error.is_none().then_some(system),
            extensions: Some(Extensions::empty()),
            host_applications: host_applications.clone(),
        };
        NodeSloResolved { spec, bandwidth_error }
    }
}

/// One key as it is written.
pub(super) trait Written: DeserializeOwned {
    type Strategy: Clone + Schema + Serialize + DeserializeOwned;

    fn parts(self) -> (Option<Self::Strategy>, Vec<NodeStrategy<Self::Strategy>>);
}

/// Declares the type of a key, by the name that [`super::names`] knows.
macro_rules! written {
    ($($name:ident of $strategy:ty;)*) => {$(
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(super) struct $name {
            cluster_strategy: Option<$strategy>,
            node_strategies: Vec<NodeStrategy<$strategy>>,
        }

        impl Written for $name {
            type Strategy = $strategy;

            fn parts(self) -> (Option<$strategy>, Vec<NodeStrategy<$strategy>>) {
                (self.cluster_strategy, self.node_strategies)
            }
        }
    )*};
}

written! {
    ThresholdSection of ResourceThresholdStrategy;
    QosSection of ResourceQosStrategy;
    CpuBurstSection of CpuBurstStrategy;
    SystemSection of SystemStrategy;
}

/// Reads one key: its name in the ConfigMap and in messages, and its text. Of the sections the first is the default and
/// the second what is in force.
fn read<W: Written>(
    (key, section, text): (&'static str, &'static str, Option<&str>),
    (default, in_force): (&Section<W::Strategy>, &Section<W::Strategy>),
    errors: &mut Vec<SectionError>,
) -> Section<W::Strategy> {
    let Some(text) = text else { return default.clone() };
    let (cluster, nodes) = match decode::<W>(text) {
        Ok(written) => written.parts(),
        Err(error) => {
            errors.push(SectionError::Unreadable { key, section, error });
            return in_force.clone();
        }
    };
    let schema = W::Strategy::schema(Emit::new(Profile::Compatible));
    let mut allowed = |strategy: W::Strategy, at: &str| {
        let (strategy, corrections) = within(&schema, strategy);
        errors.extend(corrections.into_iter().map(|correction| {
            let correction = Correction { path: format!("{at}.{}", correction.path), ..correction };
            SectionError::OutOfRange { key, correction }
        }));
        strategy
    };
    let cluster = cluster.map_or_else(
        || default.cluster.clone(),
        |cluster| laid_over(&default.cluster, &allowed(cluster, "clusterStrategy")),
    );
    let nodes = nodes.into_iter().enumerate().map(|(index, node)| {
        let strategy = allowed(node.second, &format!("nodeStrategies[{index}]"));
        NodeStrategy { first: node.first, second: laid_over(&cluster, &strategy) }
    });
    Section { nodes: nodes.collect(), cluster }
}

/// A strategy with the values that its schema allows.
fn within<T: Serialize + DeserializeOwned>(schema: &schema::Schema, strategy: T) -> (T, Vec<Correction>) {
    let Ok(mut value) = serde_json::to_value(&strategy) else { return (strategy, Vec::new()) };
    let corrections = bring_within(schema, &mut value);
    if corrections.is_empty() {
        return (strategy, corrections);
    }
    (serde_json::from_value(value).unwrap_or(strategy), corrections)
}

#[cfg(test)]
mod tests {
    use koord_resource::go_json;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn system_of(config: &str, labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> String {
        let (config, errors) = NodeSloConfig::default().update(&map(&[(SYSTEM_CONFIG, config)]));
        assert_eq!(errors, []);
        let resolved = config.for_node(&map(labels), &map(annotations));
        resolved.spec.system_strategy.map_or("none".to_owned(), |system| go_json::to_string(&system).unwrap())
    }

    const NODE_BANDWIDTH: &str = r#"{"clusterStrategy":{"totalNetworkBandwidth":"100M"},"nodeStrategies":[{"nodeSelector":{"matchLabels":{"pool":"a"}},"totalNetworkBandwidth":"30M"}]}"#;

    #[test]
    fn nothing_configured_gives_the_defaults() {
        let resolved = NodeSloConfig::default().for_node(&map(&[]), &map(&[]));
        assert_eq!(resolved.spec, defaults::node_slo_spec());
    }

    #[test]
    fn the_nodes_bandwidth_goes_before_all_strategies() {
        let annotation = [(NETWORK_BANDWIDTH, "20M")];
        for labels in [&[("pool", "a")][..], &[]] {
            assert_eq!(system_of(NODE_BANDWIDTH, labels, &annotation), r#"{"totalNetworkBandwidth":"20M"}"#);
        }
        assert_eq!(system_of(NODE_BANDWIDTH, &[("pool", "a")], &[]), r#"{"totalNetworkBandwidth":"30M"}"#);
    }

    #[test]
    fn a_bandwidth_that_is_none_takes_the_system_strategy_away() {
        assert_eq!(system_of(NODE_BANDWIDTH, &[], &[(NETWORK_BANDWIDTH, "fast")]), "none");
    }

    /// The original resets it to 0 there (docs/reference/divergences.md).
    #[test]
    fn a_strategy_without_bandwidth_inherits_it() {
        let config = r#"{"clusterStrategy":{"totalNetworkBandwidth":"20M"},"nodeStrategies":[{"nodeSelector":{},"minFreeKbytesFactor":5}]}"#;
        assert_eq!(system_of(config, &[], &[]), r#"{"minFreeKbytesFactor":5,"totalNetworkBandwidth":"20M"}"#);
    }

    #[test]
    fn a_key_that_cannot_be_read_keeps_its_last_good_value() {
        let good = map(&[(RESOURCE_THRESHOLD_CONFIG, r#"{"clusterStrategy":{"enable":true}}"#)]);
        let (config, errors) = NodeSloConfig::default().update(&good);
        assert_eq!(errors, []);
        let bad = map(&[
            (RESOURCE_THRESHOLD_CONFIG, r#"{"clusterStrategy":{"cpuSuppressThresholdPercent":"60"}}"#),
            (CPU_BURST_CONFIG, r#"{"clusterStrategy":{"policy":"auto"}}"#),
            (SYSTEM_CONFIG, ""),
        ]);
        let (after, errors) = config.update(&bad);
        assert_eq!(after.threshold, config.threshold);
        assert_eq!(after.cpu_burst.cluster.policy, Some("auto".into()));
        let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "failed to unmarshal ThresholdCfg, err: json: cannot unmarshal string into Go struct field ResourceThresholdStrategy.clusterStrategy.cpuSuppressThresholdPercent of type int64",
                "failed to unmarshal SystemCfg, err: unexpected end of JSON input",
            ]
        );
    }

    #[test]
    fn values_that_no_node_slo_may_have_are_brought_within_their_bounds() {
        let data = map(&[
            (
                RESOURCE_THRESHOLD_CONFIG,
                r#"{"clusterStrategy":{"cpuSuppressThresholdPercent":150,"enable":true},"nodeStrategies":[{"nodeSelector":{},"memoryEvictThresholdPercent":-1}]}"#,
            ),
            (
                RESOURCE_QOS_CONFIG,
                r#"{"clusterStrategy":{"lsClass":{"memoryQOS":{"wmarkRatio":101}},"beClass":{"blkioQOS":{"blocks":[{"name":"d","ioCfg":{"readIOPS":-1}}]}}}}"#,
            ),
        ]);
        let (config, errors) = NodeSloConfig::default().update(&data);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "resource-threshold-config: clusterStrategy.cpuSuppressThresholdPercent: 150 is out of range; 100 is used instead",
                "resource-threshold-config: nodeStrategies[0].memoryEvictThresholdPercent: -1 is out of range; 0 is used instead",
                "resource-qos-config: clusterStrategy.beClass.blkioQOS.blocks[0].ioCfg.readIOPS: -1 is out of range; 0 is used instead",
                "resource-qos-config: clusterStrategy.lsClass.memoryQOS.wmarkRatio: 101 is out of range; 100 is used instead",
            ]
        );
        let resolved = config.for_node(&map(&[]), &map(&[])).spec;
        let threshold = resolved.resource_used_threshold_with_be.as_ref().unwrap();
        assert_eq!(
            (threshold.cpu_suppress_threshold_percent, threshold.memory_evict_threshold_percent),
            (Some(100), Some(0))
        );
        let schema = NodeSLOSpec::schema(Emit::new(Profile::Compatible));
        let spec = serde_json::to_value(&resolved).unwrap();
        assert!(schema::structural::validate::validate(&schema, &spec).is_empty());
    }

    #[test]
    fn the_first_entry_that_selects_the_node_holds_alone() {
        let data = map(&[(
            RESOURCE_THRESHOLD_CONFIG,
            r#"{"clusterStrategy":{"cpuSuppressThresholdPercent":50},"nodeStrategies":[
                {"name":"bad","nodeSelector":{"matchExpressions":[{"key":"pool","operator":"Nope"}]},"enable":true},
                {"name":"none","enable":true},
                {"name":"a","nodeSelector":{"matchLabels":{"pool":"a"}},"cpuSuppressThresholdPercent":11},
                {"name":"b","nodeSelector":{"matchLabels":{"pool":"a"}},"cpuSuppressThresholdPercent":12}]}"#,
        )]);
        let (config, _) = NodeSloConfig::default().update(&data);
        let percent = |pool| config.threshold.for_node(&map(&[("pool", pool)])).cpu_suppress_threshold_percent;
        assert_eq!((percent("a"), percent("b")), (Some(11), Some(50)));
        assert_eq!(config.threshold.for_node(&map(&[("pool", "a")])).enable, Some(false));
    }

    /// The spec on a node with the label `pool: a`, at a JSON pointer.
    fn at(key: &str, text: &str, pointer: &str) -> String {
        let (config, errors) = NodeSloConfig::default().update(&map(&[(key, text)]));
        assert_eq!(errors, [], "{text}");
        let spec = config.for_node(&map(&[("pool", "a")]), &map(&[])).spec;
        serde_json::to_value(&spec).unwrap().pointer(pointer).map_or("absent".to_owned(), ToString::to_string)
    }

    #[test]
    fn each_key_is_laid_over_its_defaults_and_some_nodes_over_all() {
        const POOL: &str = r#""nodeSelector":{"matchLabels":{"pool":"a"}}"#;
        let threshold = "/resourceUsedThresholdWithBE/cpuSuppressThresholdPercent";
        for nothing in ["null", "{}", r#"{"clusterStrategy":null}"#, r#"{"clusterStrategy":{},"nodeStrategies":null}"#]
        {
            assert_eq!(at(RESOURCE_THRESHOLD_CONFIG, nothing, threshold), "65", "{nothing}");
        }
        let some = format!(r#"{{"nodeStrategies":[{{{POOL},"memoryEvictThresholdPercent":0}}]}}"#);
        assert_eq!(at(RESOURCE_THRESHOLD_CONFIG, &some, threshold), "65");
        assert_eq!(
            at(RESOURCE_THRESHOLD_CONFIG, &some, "/resourceUsedThresholdWithBE/memoryEvictThresholdPercent"),
            "0"
        );
        let null = format!(
            r#"{{"clusterStrategy":{{"cpuSuppressThresholdPercent":30}},"nodeStrategies":[{{{POOL},"cpuSuppressThresholdPercent":null}}]}}"#
        );
        assert_eq!(at(RESOURCE_THRESHOLD_CONFIG, &null, threshold), "30");
        let word = format!(
            r#"{{"clusterStrategy":{{"cpuSuppressPolicy":"cfsQuota"}},"nodeStrategies":[{{{POOL},"cpuSuppressPolicy":""}}]}}"#
        );
        assert_eq!(
            at(RESOURCE_THRESHOLD_CONFIG, &word, "/resourceUsedThresholdWithBE/cpuSuppressPolicy"),
            r#""cfsQuota""#
        );
        let off = format!(r#"{{"clusterStrategy":{{"enable":true}},"nodeStrategies":[{{{POOL},"enable":false}}]}}"#);
        assert_eq!(at(RESOURCE_THRESHOLD_CONFIG, &off, "/resourceUsedThresholdWithBE/enable"), "false");
        let burst = format!(
            r#"{{"clusterStrategy":{{"policy":"auto"}},"nodeStrategies":[{{{POOL},"cfsQuotaBurstPeriodSeconds":0}}]}}"#
        );
        assert_eq!(
            at(CPU_BURST_CONFIG, &burst, "/cpuBurstStrategy"),
            r#"{"cfsQuotaBurstPercent":300,"cfsQuotaBurstPeriodSeconds":0,"cpuBurstPercent":1000,"policy":"auto","sharePoolThresholdPercent":50}"#
        );
        let qos = format!(
            r#"{{"clusterStrategy":{{"beClass":{{"cpuQOS":{{"enable":true,"groupIdentity":-1}},"memoryQOS":{{"enable":true}}}}}},
                "nodeStrategies":[{{{POOL},"beClass":{{"cpuQOS":{{"groupIdentity":0}}}},"lsClass":{{}}}}]}}"#
        );
        assert_eq!(
            at(RESOURCE_QOS_CONFIG, &qos, "/resourceQOSStrategy"),
            r#"{"beClass":{"cpuQOS":{"enable":true,"groupIdentity":0},"memoryQOS":{"enable":true}},"lsClass":{}}"#
        );
        let features = format!(
            r#"{{"clusterStrategy":{{"schedFeatures":{{"a":true,"b":false}}}},"nodeStrategies":[{{{POOL},"schedFeatures":{{"b":true}}}}]}}"#
        );
        assert_eq!(at(SYSTEM_CONFIG, &features, "/systemStrategy/schedFeatures"), r#"{"a":true,"b":true}"#);
    }

    #[test]
    fn applications_of_a_node_are_those_of_the_first_entry_that_selects_it() {
        const POOL: &str = r#""nodeSelector":{"matchLabels":{"pool":"a"}}"#;
        let names = |nodes: &str| {
            let text = format!(r#"{{"applications":[{{"name":"x"}}],"nodeConfigs":{nodes}}}"#);
            let (config, errors) = NodeSloConfig::default().update(&map(&[(HOST_APPLICATION_CONFIG, &text)]));
            assert_eq!(errors, [], "{text}");
            let spec = config.for_node(&map(&[("pool", "a")]), &map(&[])).spec;
            let names: Vec<String> = spec.host_applications.into_iter().map(|application| application.name).collect();
            names.join(" ")
        };
        let (y, z) = (r#""applications":[{"name":"y"}]"#, r#""applications":[{"name":"z"},{"name":"z2"}]"#);
        assert_eq!(names(&format!("[{{{POOL}}}]")), "", "selected, and without a value");
        assert_eq!(names(&format!(r#"[{{{POOL},"applications":[]}}]"#)), "");
        assert_eq!(names(&format!("[{{{y}}},{{{POOL},{z}}}]")), "z z2", "no selector selects nothing");
        assert_eq!(names(&format!(r#"[{{"nodeSelector":{{}},{y}}},{{{POOL},{z}}}]"#)), "y");
        assert_eq!(names("null"), "x");
    }

    #[test]
    fn applications_of_some_nodes_replace_the_others() {
        let data = map(&[(
            HOST_APPLICATION_CONFIG,
            r#"{"applications":[{"name":"x"}],"nodeConfigs":[{"nodeSelector":{"matchLabels":{"pool":"a"}},"applications":[{"name":"y"}]}]}"#,
        )]);
        let (config, _) = NodeSloConfig::default().update(&data);
        let names = |pool| {
            let resolved = config.for_node(&map(&[("pool", pool)]), &map(&[]));
            resolved.spec.host_applications.into_iter().map(|application| application.name).collect::<Vec<_>>()
        };
        assert_eq!((names("a"), names("b")), (vec!["y".to_owned()], vec!["x".to_owned()]));
    }
}
