//! What Go calls the types of the configuration, because its names stand in messages that clients see.

use koord_resource::go_json::Names;

pub(super) const NAMES: Names = Names {
    structs: &[
        ("ColocationSection", "configuration.ColocationCfg"),
        ("ThresholdSection", "configuration.ResourceThresholdCfg"),
        ("QosSection", "configuration.ResourceQOSCfg"),
        ("CpuBurstSection", "configuration.CPUBurstCfg"),
        ("SystemSection", "configuration.SystemCfg"),
        ("HostApplications", "configuration.HostApplicationCfg"),
        ("NodeHostApplications", "configuration.NodeHostApplicationCfg"),
        ("CpuNormalizationSection", "configuration.CPUNormalizationCfg"),
        ("ResourceAmplificationSection", "configuration.ResourceAmplificationCfg"),
        ("NodeProfile", "configuration.NodeCfgProfile"),
        ("ColocationStrategy", "configuration.ColocationCfg"),
        ("CpuNormalizationStrategy", "configuration.CPUNormalizationCfg"),
        ("ModelRatios", "configuration.ModelRatioCfg"),
        ("ResourceAmplificationStrategy", "configuration.ResourceAmplificationCfg"),
        ("MetricAggregatePolicy", "v1alpha1.AggregatePolicy"),
        ("ResourceThresholdStrategy", "v1alpha1.ResourceThresholdStrategy"),
        ("ResourceQosStrategy", "v1alpha1.ResourceQOSStrategy"),
        ("ResourceQosPolicies", "v1alpha1.ResourceQOSPolicies"),
        ("ResourceQos", "v1alpha1.ResourceQOS"),
        ("CpuQosCfg", "v1alpha1.CPUQOSCfg"),
        ("MemoryQosCfg", "v1alpha1.MemoryQOSCfg"),
        ("BlkIoQosCfg", "v1alpha1.BlkIOQOSCfg"),
        ("BlockCfg", "v1alpha1.BlockCfg"),
        ("IoCfg", "v1alpha1.IOCfg"),
        ("ResctrlQosCfg", "v1alpha1.ResctrlQOSCfg"),
        ("NetworkQosCfg", "v1alpha1.NetworkQOSCfg"),
        ("CpuBurstStrategy", "v1alpha1.CPUBurstStrategy"),
        ("SystemStrategy", "v1alpha1.SystemStrategy"),
        ("HostApplicationSpec", "v1alpha1.HostApplicationSpec"),
        ("CgroupPath", "v1alpha1.CgroupPath"),
        ("LabelSelector", "v1.LabelSelector"),
        ("LabelSelectorRequirement", "v1.LabelSelectorRequirement"),
    ],
    fields: &[
        ("ColocationSection", "nodeConfigs", "[]configuration.NodeColocationCfg"),
        ("ColocationStrategy", "metricMemoryCollectPolicy", "v1alpha1.NodeMemoryCollectPolicy"),
        ("ColocationStrategy", "cpuCalculatePolicy", "configuration.CalculatePolicy"),
        ("ColocationStrategy", "memoryCalculatePolicy", "configuration.CalculatePolicy"),
        ("ColocationStrategy", "extensions", "configuration.ExtraFields"),
        ("MetricAggregatePolicy", "durations", "[]v1.Duration"),
        ("ThresholdSection", "nodeStrategies", "[]configuration.NodeResourceThresholdStrategy"),
        ("QosSection", "nodeStrategies", "[]configuration.NodeResourceQOSStrategy"),
        ("CpuBurstSection", "nodeStrategies", "[]configuration.NodeCPUBurstCfg"),
        ("SystemSection", "nodeStrategies", "[]configuration.NodeSystemStrategy"),
        ("HostApplications", "applications", "[]v1alpha1.HostApplicationSpec"),
        ("HostApplications", "nodeConfigs", "[]configuration.NodeHostApplicationCfg"),
        ("NodeHostApplications", "applications", "[]v1alpha1.HostApplicationSpec"),
        ("ResourceThresholdStrategy", "cpuSuppressPolicy", "v1alpha1.CPUSuppressPolicy"),
        ("ResourceThresholdStrategy", "cpuEvictPolicy", "v1alpha1.CPUEvictPolicy"),
        ("ResourceQosPolicies", "cpuPolicy", "v1alpha1.CPUQOSPolicy"),
        ("ResourceQosPolicies", "netQOSPolicy", "v1alpha1.NETQOSPolicy"),
        ("BlkIoQosCfg", "blocks", "[]*v1alpha1.BlockCfg"),
        ("BlockCfg", "type", "v1alpha1.BlockType"),
        ("CpuBurstStrategy", "policy", "v1alpha1.CPUBurstPolicy"),
        ("SystemStrategy", "schedFeatures", "map[string]bool"),
        ("HostApplicationSpec", "priority", "extension.PriorityClass"),
        ("HostApplicationSpec", "qos", "extension.QoSClass"),
        ("CgroupPath", "base", "v1alpha1.CgroupBaseType"),
        ("LabelSelector", "matchLabels", "map[string]string"),
        ("LabelSelector", "matchExpressions", "[]v1.LabelSelectorRequirement"),
        ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
        ("CpuNormalizationSection", "nodeConfigs", "[]configuration.NodeCPUNormalizationCfg"),
        ("ResourceAmplificationSection", "nodeConfigs", "[]configuration.NodeResourceAmplificationCfg"),
        ("CpuNormalizationStrategy", "ratioModel", "map[string]configuration.ModelRatioCfg"),
        ("ResourceAmplificationStrategy", "resourceAmplificationRatio", "map[v1.ResourceName]float64"),
    ],
    embedded: &[
        ("ColocationStrategy", "extensions", "ColocationStrategy.ColocationStrategyExtender"),
        ("ColocationStrategy", "*", "ColocationStrategy"),
        ("NodeProfile", "*", "NodeCfgProfile"),
        ("CpuNormalizationStrategy", "*", "CPUNormalizationStrategy"),
        ("ResourceAmplificationStrategy", "*", "ResourceAmplificationStrategy"),
        ("CpuQosCfg", "enable", ""),
        ("CpuQosCfg", "*", "CPUQOS"),
        ("MemoryQosCfg", "enable", ""),
        ("MemoryQosCfg", "*", "MemoryQOS"),
        ("ResctrlQosCfg", "enable", ""),
        ("ResctrlQosCfg", "*", "ResctrlQOS"),
        ("NetworkQosCfg", "enable", ""),
        ("NetworkQosCfg", "*", "NetworkQOS"),
        ("CpuBurstStrategy", "sharePoolThresholdPercent", ""),
        ("CpuBurstStrategy", "*", "CPUBurstConfig"),
    ],
    halves: &[
        ("ResourceThresholdStrategy", "ResourceThresholdStrategy"),
        ("ResourceQosStrategy", "ResourceQOSStrategy"),
        ("CpuBurstStrategy", "CPUBurstStrategy"),
        ("SystemStrategy", "SystemStrategy"),
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::slo_config::{
        ColocationConfig, CpuNormalizationConfig, NodeSloConfig, ResourceAmplificationConfig, SectionError,
    };

    fn error(key: &str, text: &str) -> String {
        let message = match key {
            "colocation-config" => ColocationConfig::parse(Some(text)).unwrap_err().to_string(),
            "cpu-normalization-config" => CpuNormalizationConfig::parse(Some(text)).unwrap_err().to_string(),
            "resource-amplification-config" => ResourceAmplificationConfig::parse(Some(text)).unwrap_err().to_string(),
            key => {
                let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
                let (_, errors) = NodeSloConfig::default().update(&data);
                let error = |error: &SectionError| match error {
                    SectionError::Unreadable { error, .. } => error.to_string(),
                    SectionError::OutOfRange { .. } => error.to_string(),
                };
                errors.iter().map(error).collect()
            }
        };
        let message = message.trim_start_matches("failed to unmarshal colocation config, err: ");
        message.replace("json: cannot unmarshal ", "").replace("into Go struct field ", "")
    }

    /// Go names the struct that holds the field, and the whole way to it with the structs that are embedded on it; what
    /// is said of some nodes embeds a profile and a strategy.
    #[test]
    fn type_errors_about_some_nodes_name_gos_structs() {
        for (key, text, message) in [
            (
                "colocation-config",
                r#"{"nodeConfigs":[{"name":"a","enable":"x"}]}"#,
                "string NodeColocationCfg.nodeConfigs.ColocationStrategy.enable of type bool",
            ),
            (
                "colocation-config",
                r#"{"nodeConfigs":[{"name":5}]}"#,
                "number NodeColocationCfg.nodeConfigs.NodeCfgProfile.name of type string",
            ),
            (
                "colocation-config",
                r#"{"nodeConfigs":[{"nodeSelector":{"matchLabels":{"a":1}}}]}"#,
                "number LabelSelector.nodeConfigs.NodeCfgProfile.nodeSelector.matchLabels of type string",
            ),
            (
                "colocation-config",
                r#"{"nodeConfigs":["a"]}"#,
                "string ColocationCfg.nodeConfigs of type configuration.NodeColocationCfg",
            ),
            (
                "colocation-config",
                r#"{"nodeConfigs":{}}"#,
                "object ColocationCfg.nodeConfigs of type []configuration.NodeColocationCfg",
            ),
            (
                "resource-threshold-config",
                r#"{"nodeStrategies":[{"cpuSuppressThresholdPercent":1.5}]}"#,
                "number 1.5 NodeResourceThresholdStrategy.nodeStrategies.ResourceThresholdStrategy.cpuSuppressThresholdPercent of type int64",
            ),
            (
                "resource-threshold-config",
                r#"{"nodeStrategies":[{"cpuSuppressPolicy":1}]}"#,
                "number NodeResourceThresholdStrategy.nodeStrategies.ResourceThresholdStrategy.cpuSuppressPolicy of type v1alpha1.CPUSuppressPolicy",
            ),
            (
                "resource-qos-config",
                r#"{"nodeStrategies":[{"lsClass":{"cpuQOS":{"groupIdentity":"x"}}}]}"#,
                "string CPUQOSCfg.nodeStrategies.ResourceQOSStrategy.lsClass.cpuQOS.CPUQOS.groupIdentity of type int64",
            ),
            (
                "resource-qos-config",
                r#"{"nodeStrategies":[{"beClass":[]}]}"#,
                "array NodeResourceQOSStrategy.nodeStrategies.ResourceQOSStrategy.beClass of type v1alpha1.ResourceQOS",
            ),
            (
                "resource-qos-config",
                r#"{"clusterStrategy":{"beClass":{"blkioQOS":{"blocks":[7]}}}}"#,
                "number BlkIOQOSCfg.clusterStrategy.beClass.blkioQOS.blocks of type v1alpha1.BlockCfg",
            ),
            (
                "cpu-burst-config",
                r#"{"nodeStrategies":[{"cpuBurstPercent":"x"}]}"#,
                "string NodeCPUBurstCfg.nodeStrategies.CPUBurstStrategy.CPUBurstConfig.cpuBurstPercent of type int64",
            ),
            (
                "system-config",
                r#"{"nodeStrategies":[{"minFreeKbytesFactor":true}]}"#,
                "bool NodeSystemStrategy.nodeStrategies.SystemStrategy.minFreeKbytesFactor of type int64",
            ),
            (
                "host-application-config",
                r#"{"nodeConfigs":[{"applications":[{"name":1}]}]}"#,
                "number HostApplicationSpec.nodeConfigs.applications.name of type string",
            ),
            (
                "host-application-config",
                r#"{"nodeConfigs":[{"applications":7}]}"#,
                "number NodeHostApplicationCfg.nodeConfigs.applications of type []v1alpha1.HostApplicationSpec",
            ),
            (
                "cpu-normalization-config",
                r#"{"nodeConfigs":[{"ratioModel":{"X":{"baseRatio":"x"}}}]}"#,
                "string ModelRatioCfg.nodeConfigs.CPUNormalizationStrategy.ratioModel.baseRatio of type float64",
            ),
            (
                "cpu-normalization-config",
                r#"{"ratioModel":{"X":1}}"#,
                "number CPUNormalizationCfg.CPUNormalizationStrategy.ratioModel of type configuration.ModelRatioCfg",
            ),
            (
                "resource-amplification-config",
                r#"{"nodeConfigs":[{"resourceAmplificationRatio":{"cpu":"x"}}]}"#,
                "string NodeResourceAmplificationCfg.nodeConfigs.ResourceAmplificationStrategy.resourceAmplificationRatio of type float64",
            ),
        ] {
            assert_eq!(error(key, text), message, "{key}: {text}");
        }
    }

    #[test]
    fn a_bandwidth_that_is_neither_an_integer_nor_a_text_is_refused_in_gos_words() {
        let class = "lsClass.networkQOS.NetworkQOS";
        for (value, found) in [
            ("50.5", "number 50.5"),
            ("4294967296", "number 4294967296"),
            ("true", "bool"),
            ("[]", "array"),
            ("{}", "object"),
        ] {
            let network = format!(r#"{{"lsClass":{{"networkQOS":{{"ingressRequest":{value}}}}}}}"#);
            assert_eq!(
                error("resource-qos-config", &format!(r#"{{"clusterStrategy":{network}}}"#)),
                format!("{found} NetworkQOSCfg.clusterStrategy.{class}.ingressRequest of type int32")
            );
            assert_eq!(
                error("resource-qos-config", &format!(r#"{{"nodeStrategies":[{network}]}}"#)),
                format!(
                    "{found} NetworkQOSCfg.nodeStrategies.ResourceQOSStrategy.{class}.ingressRequest of type int32"
                )
            );
        }
    }

    /// The first in the text, unless a type that decodes itself refuses its value: that ends the decoding.
    #[test]
    fn of_several_errors_in_a_key_the_one_that_go_reports_is_reported() {
        for (key, text, message) in [
            (
                "colocation-config",
                r#"{"enable":"x","nodeConfigs":[{"name":5}]}"#,
                "string ColocationCfg.ColocationStrategy.enable of type bool",
            ),
            (
                "colocation-config",
                r#"{"nodeConfigs":[{"enable":"x","name":5}],"enable":"x"}"#,
                "string NodeColocationCfg.nodeConfigs.ColocationStrategy.enable of type bool",
            ),
            (
                "resource-threshold-config",
                r#"{"nodeStrategies":[{"enable":1,"name":5}],"clusterStrategy":{"enable":"x"}}"#,
                "number NodeResourceThresholdStrategy.nodeStrategies.ResourceThresholdStrategy.enable of type bool",
            ),
            (
                "resource-qos-config",
                r#"{"clusterStrategy":{"beClass":[],"lsClass":{"networkQOS":{"egressLimit":true}}}}"#,
                "bool NetworkQOSCfg.clusterStrategy.lsClass.networkQOS.NetworkQOS.egressLimit of type int32",
            ),
            (
                "system-config",
                r#"{"clusterStrategy":{"minFreeKbytesFactor":"x","totalNetworkBandwidth":"1Gb"}}"#,
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        ] {
            assert_eq!(error(key, text), message, "{key}: {text}");
        }
    }
}
