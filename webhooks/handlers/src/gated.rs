//! Caches that only handlers behind a gate read; nothing is watched for a gate that is off.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{Projection as Derive, controller::ResourceKind, go_json};
use koord_runtime::{
    intern::Interner,
    projection::{Labels, Metadata, MetadataOnly, Projection, Unreadable, WireMetadata},
    reflector::Selection,
    store::{Sink as _, Store},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    follow::Follow,
    settings::{ObjectName, Settings},
};

/// See the module.
#[derive(Default)]
pub(crate) struct Gated {
    pub(crate) slo_config: Arc<Store<ConfigMapData>>,
    pub(crate) required_labels: Arc<Store<RequiredLabels>>,
    pub(crate) nodes: Arc<Store<NodeLabels>>,
    pub(crate) marks: Arc<Store<PodMarks>>,
}

impl Gated {
    pub(crate) fn watch(follow: &mut Follow<'_>, gate: impl Fn(&str) -> bool, settings: &Settings) -> Self {
        let all = Selection::default();
        Self {
            slo_config: follow.when(gate("NodeValidatingWebhook"), &only(&settings.slo_config)),
            nodes: follow.when(gate("ConfigMapValidatingWebhook"), &all),
            required_labels: follow.when(gate("EnablePodEnhancedValidator"), &only(&settings.required_labels)),
            marks: follow.when(gate("BindingAdmissionWebhook"), &all),
        }
    }

    /// Puts an object into the caches of its kind.
    pub(crate) fn put(&self, kind: &str, object: &str) -> Result<(), Unreadable> {
        match kind {
            "ConfigMap" => {
                self.slo_config.upsert(object)?;
                self.required_labels.upsert(object)?;
            }
            "Node" => drop(self.nodes.upsert(object)?),
            "Pod" => drop(self.marks.upsert(object)?),
            _ => {}
        }
        Ok(())
    }
}

fn only(object: &ObjectName) -> Selection {
    let fields = format!("metadata.name={}", object.name);
    Selection { namespace: object.namespace.clone(), fields, labels: String::new() }
}

/// The data of a ConfigMap.
#[derive(Debug, PartialEq, Eq, Derive)]
#[koord(kind = ResourceKind::CONFIG_MAP)]
pub(crate) struct ConfigMapData {
    pub(crate) data: Option<BTreeMap<String, String>>,
}

/// Labels that pods must have, by a ConfigMap.
#[derive(Debug, PartialEq)]
pub(crate) struct RequiredLabels(pub(crate) Vec<LabelRule>);

/// Labels that pods of most namespaces must have.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LabelRule {
    pub(crate) required_labels: Vec<String>,
    pub(crate) namespace_whitelist: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigMapWire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    data: Option<BTreeMap<String, String>>,
}

impl<'a> Metadata<'a> for ConfigMapWire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for RequiredLabels {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
    type Wire<'a> = ConfigMapWire<'a>;
    type Index = ();

    /// Rules that cannot be read leave the last good ones in force.
    fn project(wire: ConfigMapWire<'_>, _: &mut Interner) -> Result<Self, Unreadable> {
        let data = wire.data.unwrap_or_default();
        let enabled = data.get("enable").is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
        let rules = data.get("rules").filter(|text| enabled && !text.is_empty());
        let rules = rules.map(|text| go_json::from_str(text)).transpose();
        Ok(Self(rules.map_err(|error| Unreadable::new("data.rules", error))?.unwrap_or_default()))
    }
}

/// The labels of a node.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeLabels(pub(crate) Labels);

impl Projection for NodeLabels {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self(Labels::read("metadata.labels", wire.metadata.labels, strings)?))
    }
}

/// The keys of a pod's labels and annotations.
#[derive(Debug, PartialEq)]
pub(crate) struct PodMarks {
    pub(crate) labels: Box<[Arc<str>]>,
    pub(crate) annotations: Box<[Arc<str>]>,
}

impl Projection for PodMarks {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self {
            labels: keys("metadata.labels", wire.metadata.labels, strings)?,
            annotations: keys("metadata.annotations", wire.metadata.annotations, strings)?,
        })
    }
}

fn keys(field: &'static str, raw: Option<&RawValue>, strings: &mut Interner) -> Result<Box<[Arc<str>]>, Unreadable> {
    let Some(raw) = raw else { return Ok(Box::default()) };
    let map: Option<BTreeMap<String, &RawValue>> =
        serde_json::from_str(raw.get()).map_err(|error| Unreadable::new(field, error))?;
    Ok(map.unwrap_or_default().keys().map(|key| strings.intern(key)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_leave_the_last_good_ones_in_force() {
        let gated = Gated::default();
        let put = |revision: u32, data: &str| {
            let metadata = format!(r#"{{"namespace":"n","name":"c","uid":"u","resourceVersion":"{revision}"}}"#);
            gated.put("ConfigMap", &format!(r#"{{"metadata":{metadata},"data":{data}}}"#)).unwrap();
            let cache = gated.required_labels.read();
            let rules = cache.get("n/c").map_or(0, |entry| entry.value.0.len());
            (rules, cache.quarantined("n/c").map(|quarantined| quarantined.reason.to_string()))
        };
        assert_eq!(put(1, r#"{"enable":" True ","rules":"[{\"requiredLabels\":[\"app\"]}]"}"#), (1, None));
        let (rules, reason) = put(2, r#"{"enable":"true","rules":"["}"#);
        assert_eq!((rules, reason.as_deref()), (1, Some("data.rules: unexpected end of JSON input")));
        assert_eq!(put(3, r#"{"enable":"false","rules":"["}"#), (0, None));
    }
}
