//! The NodeSLO as the agent follows it: defaults, overlaid by what the object says.

use koord_resource::{
    Schema,
    declare::Emit,
    go_json::{self, DecodeError},
};
use koord_types::{
    node_slo::{
        CpuBurstStrategy, HostApplicationSpec, ResourceQos, ResourceQosStrategy, ResourceThresholdStrategy,
        SystemStrategy,
    },
    qos::QosClass,
    slo_config as defaults,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The strategies of this node with everything filled in that has a default.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSlo {
    /// `resourceUsedThresholdWithBE`: suppression and eviction.
    pub threshold: ResourceThresholdStrategy,
    /// `resourceQOSStrategy`: isolation by class. A class whose isolation is disabled has the values that undo it.
    pub qos: ResourceQosStrategy,
    /// `cpuBurstStrategy`.
    pub cpu_burst: CpuBurstStrategy,
    /// `systemStrategy`.
    pub system: SystemStrategy,
    /// `hostApplications`, which have no defaults.
    pub host_applications: Vec<HostApplicationSpec>,
}

/// Reads one NodeSLO after the other. A section that cannot be decoded keeps its last good value.
#[derive(Debug, Default)]
pub struct NodeSloReader {
    last: NodeSlo,
}

/// A section of a NodeSLO that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.{section} of the NodeSLO cannot be decoded, its last good value stays in force: {source}")]
pub struct NodeSloError {
    /// The name of the section.
    pub section: &'static str,
    /// What is wrong, with the field.
    #[source]
    pub source: DecodeError,
}

// === impl NodeSlo ===

impl Default for NodeSlo {
    /// What an empty object means: everything is disabled.
    fn default() -> Self {
        Self {
            threshold: defaults::resource_threshold_strategy(),
            qos: with_disabled_classes_undone(defaults::full_resource_qos_strategy()),
            cpu_burst: defaults::cpu_burst_strategy(),
            system: defaults::system_strategy(),
            host_applications: Vec::new(),
        }
    }
}

impl NodeSlo {
    /// The isolation of pods of a class: pods of LSE have that of LSR.
    pub fn class(&self, class: &QosClass) -> Option<&ResourceQos> {
        match class {
            QosClass::Lse | QosClass::Lsr => self.qos.lsr_class.as_ref(),
            QosClass::Ls => self.qos.ls_class.as_ref(),
            QosClass::Be => self.qos.be_class.as_ref(),
            QosClass::System => self.qos.system_class.as_ref(),
            QosClass::Other(_) => None,
        }
    }
}

// === impl NodeSloReader ===

impl NodeSloReader {
    /// Reads the `spec` of an object.
    ///
    /// A field that is absent has its default, one that is given wins, be it zero or false. Returns what is in force with the sections that cannot be
    /// decoded.
    pub fn read(&mut self, spec: &Value) -> (NodeSlo, Vec<NodeSloError>) {
        let mut errors = Vec::new();
        let last = &self.last;
        let mut keep = |error| errors.push(error);
        let slo = NodeSlo {
            threshold: or_last(
                section(spec, "resourceUsedThresholdWithBE", defaults::resource_threshold_strategy()),
                &last.threshold,
                &mut keep,
            ),
            qos: or_last(
                section(spec, "resourceQOSStrategy", defaults::full_resource_qos_strategy())
                    .map(with_disabled_classes_undone),
                &last.qos,
                &mut keep,
            ),
            cpu_burst: or_last(
                section(spec, "cpuBurstStrategy", defaults::cpu_burst_strategy()),
                &last.cpu_burst,
                &mut keep,
            ),
            system: or_last(section(spec, "systemStrategy", defaults::system_strategy()), &last.system, &mut keep),
            host_applications: or_last(
                decoded(spec, "hostApplications").map(Option::unwrap_or_default),
                &last.host_applications,
                &mut keep,
            ),
        };
        self.last = slo.clone();
        (slo, errors)
    }
}

fn or_last<T: Clone>(section: Result<T, NodeSloError>, last: &T, report: &mut dyn FnMut(NodeSloError)) -> T {
    section.unwrap_or_else(|error| {
        report(error);
        last.clone()
    })
}

/// A section laid over its defaults.
fn section<T>(spec: &Value, name: &'static str, default: T) -> Result<T, NodeSloError>
where
    T: Schema + Serialize + DeserializeOwned,
{
    let Some(given) = decoded::<T>(spec, name)? else { return Ok(default) };
    Ok(go_json::merge(&default, &given, &T::schema(Emit::default())).unwrap_or(given))
}

fn decoded<T: DeserializeOwned>(spec: &Value, name: &'static str) -> Result<Option<T>, NodeSloError> {
    match spec.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            go_json::from_str(&value.to_string()).map(Some).map_err(|source| NodeSloError { section: name, source })
        }
    }
}

/// Gives classes whose isolation is disabled the values of a node without the agent. SYSTEM and the root cgroup keep theirs; disks and network are undone by
/// their strategies.
fn with_disabled_classes_undone(mut strategy: ResourceQosStrategy) -> ResourceQosStrategy {
    let none = defaults::none_resource_qos();
    for class in [&mut strategy.lsr_class, &mut strategy.ls_class, &mut strategy.be_class].into_iter().flatten() {
        if class.cpu_qos.as_ref().is_none_or(|cpu| cpu.enable != Some(true)) {
            class.cpu_qos.clone_from(&none.cpu_qos);
        }
        if class.memory_qos.as_ref().is_none_or(|memory| memory.enable != Some(true)) {
            class.memory_qos.clone_from(&none.memory_qos);
        }
        if class.resctrl_qos.as_ref().is_none_or(|resctrl| resctrl.enable != Some(true)) {
            class.resctrl_qos.clone_from(&none.resctrl_qos);
        }
    }
    strategy
}

#[cfg(test)]
mod tests {
    use koord_types::node_slo::{CpuBurstPolicy, CpuSuppressPolicy};
    use serde_json::json;

    use super::*;

    fn read(spec: &Value) -> NodeSlo {
        let (slo, errors) = NodeSloReader::default().read(spec);
        assert_eq!(errors, []);
        slo
    }

    #[test]
    fn what_is_absent_has_its_default_and_what_is_given_wins_be_it_zero() {
        let slo = read(&json!({
            "resourceUsedThresholdWithBE": {"enable": true, "cpuSuppressThresholdPercent": 0},
            "cpuBurstStrategy": {"policy": "auto", "cfsQuotaBurstPercent": 0},
            "hostApplications": [{"name": "nginx"}],
        }));
        assert_eq!(slo.threshold.enable, Some(true));
        assert_eq!(slo.threshold.cpu_suppress_threshold_percent, Some(0));
        assert_eq!(slo.threshold.cpu_suppress_policy, Some(CpuSuppressPolicy::Cpuset));
        assert_eq!(slo.threshold.memory_evict_threshold_percent, Some(70));
        assert_eq!(slo.threshold.cpu_evict_threshold_percent, None);
        assert_eq!(slo.cpu_burst.policy, Some(CpuBurstPolicy::Auto));
        assert_eq!((slo.cpu_burst.cfs_quota_burst_percent, slo.cpu_burst.cpu_burst_percent), (Some(0), Some(1000)));
        assert_eq!(slo.host_applications.len(), 1);
    }

    #[test]
    fn an_empty_object_disables_everything() {
        assert_eq!(read(&json!({})), NodeSlo::default());
        assert_eq!(read(&json!(null)), NodeSlo::default());
        assert_eq!(NodeSlo::default().threshold.enable, Some(false));
    }

    #[test]
    fn a_disabled_class_has_the_values_that_undo_it() {
        let slo = read(&json!({"resourceQOSStrategy": {
            "lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 50}, "resctrlQOS": {"enable": false, "mbaPercent": 20}},
            "beClass": {"memoryQOS": {"enable": false, "priority": 5}, "cpuQOS": {"enable": true, "groupIdentity": -1}},
        }}));
        let ls = slo.class(&QosClass::Ls).unwrap();
        let memory = ls.memory_qos.as_ref().unwrap();
        assert_eq!(
            (memory.min_limit_percent, memory.wmark_ratio, memory.wmark_min_adj),
            (Some(50), Some(95), Some(-25))
        );
        assert_eq!(ls.resctrl_qos, defaults::none_resource_qos().resctrl_qos);
        assert_eq!(ls.cpu_qos, defaults::none_resource_qos().cpu_qos);
        let be = slo.class(&QosClass::Be).unwrap();
        assert_eq!(be.memory_qos, defaults::none_resource_qos().memory_qos, "also what the object gives");
        assert_eq!(be.cpu_qos.as_ref().unwrap().group_identity, Some(-1));
        assert_eq!(slo.class(&QosClass::Lse), slo.class(&QosClass::Lsr));
    }

    #[test]
    fn a_malformed_field_harms_its_section_alone_and_is_named() {
        let mut reader = NodeSloReader::default();
        let (first, _) = reader.read(&json!({
            "cpuBurstStrategy": {"policy": "auto", "cpuBurstPercent": 200},
            "resourceUsedThresholdWithBE": {"enable": true},
        }));
        let (second, errors) = reader.read(&json!({
            "cpuBurstStrategy": {"policy": "auto", "cpuBurstPercent": "many"},
            "resourceUsedThresholdWithBE": {"enable": true, "cpuSuppressThresholdPercent": 50},
            "hostApplications": {"name": "x"},
        }));
        assert_eq!(second.cpu_burst, first.cpu_burst);
        assert_eq!(second.threshold.cpu_suppress_threshold_percent, Some(50));
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(
            texts[0].starts_with("spec.cpuBurstStrategy of the NodeSLO") && texts[0].contains("cpuBurstPercent"),
            "{texts:?}"
        );
        assert!(texts[1].starts_with("spec.hostApplications"), "{texts:?}");
        let (third, errors) = reader.read(&json!({}));
        assert_eq!((third, errors), (NodeSlo::default(), vec![]));
    }
}
