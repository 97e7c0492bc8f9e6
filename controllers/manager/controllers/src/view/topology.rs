//! The NUMA nodes of a node, and what kind of CPU it has.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{Quantity, Resource as _, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject, text},
};
use koord_types::{
    node_annotations::{CPU_BASIC_INFO, CpuBasicInfo},
    node_resource_topology::v1alpha1::NodeResourceTopology,
    protocol::ProtocolError,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The NUMA nodes of a node, and what kind of CPU it has.
#[derive(Debug, PartialEq, Eq)]
pub struct TopologyView {
    zones: Arc<str>,
    cpu: Option<Arc<str>>,
}

impl TopologyView {
    /// The zones as they stand in the object, so that what we do not know stays when they are written.
    pub fn zones(&self) -> Vec<Value> {
        serde_json::from_str::<Option<Vec<Value>>>(&self.zones).ok().flatten().unwrap_or_default()
    }

    /// The annotation with the kind of CPU.
    pub fn cpu(&self) -> Option<&str> {
        self.cpu.as_deref()
    }

    /// Whether some zone says how much CPU or memory it has, or the annotation what kind of CPU that is.
    pub fn has_amounts_or_cpu(&self) -> bool {
        self.allocatable().values().any(ZoneAllocatable::says_something) || matches!(self.cpu_info(), Ok(Some(_)))
    }

    /// Whether the change from `old` matters to the amounts of the node: CPU or memory of a zone, or the kind of CPU.
    /// QUIRK: an annotation that cannot be decoded triggers nothing.
    pub fn triggers_reconcile(&self, old: &Self) -> bool {
        let kind_of_cpu = |info: Option<CpuBasicInfo>| {
            info.map(|info| (info.cpu_model, info.hyper_thread_enabled, info.turbo_enabled))
        };
        let cpu_differs = match (old.cpu_info(), self.cpu_info()) {
            (_, Err(_)) => false,
            (Err(_), Ok(_)) => true,
            (Ok(old), Ok(new)) => kind_of_cpu(old) != kind_of_cpu(new),
        };
        cpu_differs || self.allocatable() != old.allocatable()
    }

    fn cpu_info(&self) -> Result<Option<CpuBasicInfo>, ProtocolError> {
        self.cpu().map(|text| CPU_BASIC_INFO.read(text)).transpose()
    }

    /// What pods may request of each zone, by its name; zones without resources are left out.
    fn allocatable(&self) -> BTreeMap<String, ZoneAllocatable> {
        let named = |zone: Value| {
            let resources = zone["resources"].as_array().filter(|resources| !resources.is_empty())?;
            let amount = |name: &str| {
                let resource = resources.iter().rfind(|resource| resource["name"] == name)?;
                Some(serde_json::from_value(resource["allocatable"].clone()).unwrap_or_default())
            };
            let allocatable = ZoneAllocatable { cpu: amount("cpu"), memory: amount("memory") };
            Some((zone["name"].as_str().unwrap_or_default().to_owned(), allocatable))
        };
        self.zones().into_iter().filter_map(named).collect()
    }
}

/// What pods may request of one zone; none where it does not say.
#[derive(Debug, PartialEq, Eq)]
struct ZoneAllocatable {
    cpu: Option<Quantity>,
    memory: Option<Quantity>,
}

impl ZoneAllocatable {
    fn says_something(&self) -> bool {
        self.cpu.is_some() || self.memory.is_some()
    }
}

/// What is read of a NodeResourceTopology.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    zones: Option<&'a RawValue>,
}

// By hand: of all annotations one is kept.
impl Projection for TopologyView {
    const KIND: ResourceKind = ResourceKind::of(&NodeResourceTopology::INFO);
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let wanted = |key: &str| key == CPU_BASIC_INFO.name();
        let annotations = Labels::read_some("metadata.annotations", wire.metadata.annotations, strings, wanted)?;
        let cpu = annotations.get(CPU_BASIC_INFO.name()).map(|text| strings.intern(text));
        Ok(Self { zones: strings.intern(text(wire.members.zones)), cpu })
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;
    use serde_json::json;

    use super::*;

    fn view(zones: &Value, cpu: Option<&str>) -> Arc<TopologyView> {
        let annotations: BTreeMap<&str, &str> = cpu.into_iter().map(|cpu| (CPU_BASIC_INFO.name(), cpu)).collect();
        let metadata = json!({"name": "n", "uid": "u", "resourceVersion": "1", "annotations": annotations});
        let mut cache = Cache::<TopologyView>::default();
        cache.upsert(&json!({"metadata": metadata, "zones": zones}).to_string()).unwrap();
        Arc::clone(&cache.get("n").unwrap().value)
    }

    fn zones(cpu: &str, available: &str, batch: &str) -> Value {
        json!([{"name": "node-0", "type": "Node", "resources": [
            {"name": "cpu", "capacity": "64", "allocatable": cpu, "available": available},
            {"name": "kubernetes.io/batch-cpu", "capacity": batch, "allocatable": batch, "available": batch},
        ]}])
    }

    #[test]
    fn allocatable_cpu_and_memory_of_zones_matter_alone() {
        let old = view(&zones("50", "50", "1k"), None);
        for (new, matters) in [
            (zones("50", "50", "1k"), false),
            (zones("50000m", "40", "2k"), false),
            (zones("51", "50", "1k"), true),
            (json!([]), true),
            (json!([{"name": "node-1", "type": "Node", "resources": []}]), true),
        ] {
            assert_eq!(view(&new, None).triggers_reconcile(&old), matters, "{new}");
            assert_eq!(old.triggers_reconcile(&view(&new, None)), matters, "{new}");
        }
        let nameless = view(&json!([{"name": "node-1", "type": "Node", "resources": []}]), None);
        assert!(!nameless.triggers_reconcile(&view(&json!([]), None)));
    }

    #[test]
    fn the_kind_of_cpu_matters_where_it_can_be_decoded() {
        let of = |cpu| view(&json!([]), cpu);
        let model = r#"{"cpuModel":"X","hyperThreadEnabled":true}"#;
        for (old, new, matters) in [
            (None, None, false),
            (None, Some(model), true),
            (Some(model), None, true),
            (Some(model), Some(r#"{"hyperThreadEnabled":true,"cpuModel":"X","vendorID":"V"}"#), false),
            (Some(model), Some(r#"{"cpuModel":"X"}"#), true),
            (Some(model), Some(r#"{"cpuModel":"X","hyperThreadEnabled":true,"turboEnabled":true}"#), true),
            (Some(model), Some("{"), false),
            (None, Some(""), false),
            (Some("{"), Some(model), true),
            (Some("{"), None, true),
        ] {
            assert_eq!(of(new).triggers_reconcile(&of(old)), matters, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_new_one_matters_where_it_says_something() {
        for (zones, cpu, matters) in [
            (json!([]), None, false),
            (json!([]), Some("{"), false),
            (json!([]), Some("{}"), true),
            (json!([{"name": "node-0", "resources": [{"name": "example.com/x", "allocatable": "1"}]}]), None, false),
            (zones("0", "0", "0"), None, true),
        ] {
            assert_eq!(view(&zones, cpu).has_amounts_or_cpu(), matters, "{zones} {cpu:?}");
        }
    }
}
