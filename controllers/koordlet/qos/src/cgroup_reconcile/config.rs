//! Which settings a pod's memory has: those of its class, and its annotation over them.

use koord_koordlet_framework::{NodeSlo, Pod};
use koord_resource::{Schema, declare::Emit, go_json};
use koord_types::{
    node_slo::MemoryQosCfg,
    pod_annotations::{MEMORY_QOS, PodMemoryQosPolicy},
    qos::QosClass,
    resource_names::BATCH_MEMORY,
    slo_config::{full_resource_qos_strategy, none_resource_qos},
};

use crate::outcome::Note;

/// The settings of one pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PodConfig {
    pub memory: MemoryQosCfg,
    /// Whether its memory is counted in batch memory.
    pub is_be: bool,
    is_own: bool,
}

impl PodConfig {
    /// The settings; `None` of pods without a class.
    ///
    /// Policy `none` undoes everything, `auto` takes the recommended values of the class even where the class is disabled, and fields of the annotation go
    /// before both those and the node's. An annotation that cannot be decoded is as if there were none.
    pub(super) fn of(pod: &Pod, slo: &NodeSlo, notes: &mut Vec<Note>) -> Option<Self> {
        let class = pod.qos()?;
        let is_be = class == QosClass::Be;
        let of_node = slo.class(&class).and_then(|class| class.memory_qos.clone()).unwrap_or_default();
        let text = pod.annotations.get(MEMORY_QOS.name());
        let Some(text) = text else { return Some(Self { memory: of_node, is_be, is_own: false }) };
        // The fields of the page cache are in the node's type only.
        let decoded = MEMORY_QOS.read(text).and_then(|own| {
            let fields = go_json::from_str::<MemoryQosCfg>(text);
            Ok((own.policy, fields.map_err(|error| MEMORY_QOS.wrong(text, error.to_string()))?))
        });
        let (policy, fields) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                notes.push(Note::invalid(format!("{}: {error}; it is ignored", pod.key()), "correct the annotation"));
                return Some(Self { memory: of_node, is_be, is_own: false });
            }
        };
        let base = match policy {
            Some(PodMemoryQosPolicy::None) => {
                let memory = none_resource_qos().memory_qos.unwrap_or_default();
                return Some(Self { memory, is_be, is_own: true });
            }
            Some(PodMemoryQosPolicy::Auto) => recommended(&class),
            _ => of_node,
        };
        let memory = go_json::merge(&base, &fields, &MemoryQosCfg::schema(Emit::default())).unwrap_or(base);
        Some(Self { memory, is_be, is_own: true })
    }

    /// The setting that values follow from.
    pub(super) fn setting(&self) -> &'static str {
        if self.is_own { super::ANNOTATION } else { super::CLASS }
    }

    /// The names of the resource that is requested, and limited.
    pub(super) fn names(&self) -> [&'static str; 2] {
        if self.is_be { [BATCH_MEMORY; 2] } else { ["memory"; 2] }
    }
}

/// What is recommended for a class.
fn recommended(class: &QosClass) -> MemoryQosCfg {
    let all = full_resource_qos_strategy();
    let class = match class {
        QosClass::Lse | QosClass::Lsr => all.lsr_class,
        QosClass::Ls => all.ls_class,
        QosClass::Be => all.be_class,
        _ => all.system_class,
    };
    class.and_then(|class| class.memory_qos).unwrap_or_default()
}
