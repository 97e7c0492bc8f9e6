//! What the agent keeps of the objects of its node on the API server.

use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use koord_koordlet_framework::Node;
use koord_koordlet_reports::LiveTopology;
use koord_resource::{ResourceList, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Metadata, MetadataOnly, Projection, WireMetadata},
};
use koord_types::{
    device::Device, node_metric::NodeMetric, node_resource_topology::v1alpha1::NodeResourceTopology, node_slo::NodeSLO,
    protocol::Labels,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

/// What tells an object apart from an earlier or later one of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub uid: String,
    pub resource_version: String,
}

/// An object of which the agent keeps something.
pub trait Kept: Sized + PartialEq + Send + Sync + 'static {
    const KIND: ResourceKind;

    /// Reads it from the text of the object.
    ///
    /// # Errors
    ///
    /// A field cannot be read.
    fn read(text: &str) -> Result<Self, DecodeError>;
}

/// A NodeMetric: how it is collected, and whether it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricObject {
    pub identity: Identity,
    /// The spec as JSON, or null.
    pub spec: Value,
}

/// A NodeSLO: its strategies as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloObject {
    /// The spec as JSON, or null.
    pub spec: Value,
}

/// A NodeResourceTopology.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyObject {
    pub identity: Identity,
    pub live: LiveTopology,
}

/// A Device object, whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceObject {
    pub identity: Identity,
    pub labels: Labels,
    pub annotations: Labels,
    pub object: Value,
}

/// The volume that a PersistentVolumeClaim is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimObject {
    pub namespace: String,
    pub name: String,
    pub volume: String,
}

fn error(field: &'static str) -> impl Fn(serde_json::Error) -> DecodeError {
    move |error| DecodeError::new(field, error)
}

fn value(text: &str) -> Result<Value, DecodeError> {
    serde_json::from_str(text).map_err(error(""))
}

/// The labels or annotations of an object; none where they are absent.
fn map_of(metadata: &Value, field: &str) -> Result<Labels, DecodeError> {
    let map: Option<Labels> = Deserialize::deserialize(&metadata[field]).map_err(error("metadata"))?;
    Ok(map.unwrap_or_default())
}

impl Identity {
    fn of(metadata: &Value) -> Self {
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Self { uid: text("uid"), resource_version: text("resourceVersion") }
    }
}

impl Kept for Node {
    const KIND: ResourceKind = ResourceKind::NODE;

    fn read(text: &str) -> Result<Self, DecodeError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Meta,
            status: Status,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Meta {
            name: Arc<str>,
            uid: Arc<str>,
            labels: Option<Labels>,
            annotations: Option<Labels>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Status {
            capacity: Option<ResourceList>,
            allocatable: Option<ResourceList>,
            addresses: Option<Vec<Address>>,
            daemon_endpoints: Option<Endpoints>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Address {
            #[serde(rename = "type")]
            type_: Arc<str>,
            address: Arc<str>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Endpoints {
            kubelet_endpoint: Endpoint,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Endpoint {
            #[serde(rename = "Port")]
            port: u16,
        }
        let Wire { metadata, status } = serde_json::from_str(text).map_err(error(""))?;
        let ours = |mut map: Labels| {
            map.retain(|name, _| name.contains("koordinator.sh"));
            map
        };
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            labels: ours(metadata.labels.unwrap_or_default()),
            annotations: metadata.annotations.filter(|map| !map.is_empty()).map(ours),
            capacity: status.capacity.unwrap_or_default(),
            allocatable: status.allocatable.unwrap_or_default(),
            addresses: status
                .addresses
                .unwrap_or_default()
                .into_iter()
                .map(|address| (address.type_, address.address))
                .collect(),
            kubelet_port: status.daemon_endpoints.unwrap_or_default().kubelet_endpoint.port,
        })
    }
}

impl Kept for MetricObject {
    const KIND: ResourceKind = ResourceKind::typed::<NodeMetric>();

    fn read(text: &str) -> Result<Self, DecodeError> {
        let mut object = value(text)?;
        // The status is what the agent itself writes; its revision changes with each report.
        Ok(Self { identity: Identity::of(&object["metadata"]), spec: object["spec"].take() })
    }
}

impl Kept for SloObject {
    const KIND: ResourceKind = ResourceKind::typed::<NodeSLO>();

    fn read(text: &str) -> Result<Self, DecodeError> {
        Ok(Self { spec: value(text)?["spec"].take() })
    }
}

impl Kept for TopologyObject {
    const KIND: ResourceKind = ResourceKind::typed::<NodeResourceTopology>();

    fn read(text: &str) -> Result<Self, DecodeError> {
        let object = value(text)?;
        let metadata = &object["metadata"];
        let policies: Option<Vec<String>> =
            Deserialize::deserialize(&object["topologyPolicies"]).map_err(error("topologyPolicies"))?;
        let zones: Option<_> = Deserialize::deserialize(&object["zones"]).map_err(error("zones"))?;
        let live = LiveTopology {
            annotations: map_of(metadata, "annotations")?,
            labels: map_of(metadata, "labels")?,
            policies: policies.unwrap_or_default(),
            zones: zones.unwrap_or_default(),
        };
        Ok(Self { identity: Identity::of(metadata), live })
    }
}

impl Kept for DeviceObject {
    const KIND: ResourceKind = ResourceKind::typed::<Device>();

    fn read(text: &str) -> Result<Self, DecodeError> {
        let object = value(text)?;
        let metadata = &object["metadata"];
        Ok(Self {
            identity: Identity::of(metadata),
            labels: map_of(metadata, "labels")?,
            annotations: map_of(metadata, "annotations")?,
            object,
        })
    }
}

impl Kept for ClaimObject {
    const KIND: ResourceKind = ResourceKind::typed::<PersistentVolumeClaim>();

    fn read(text: &str) -> Result<Self, DecodeError> {
        let object = value(text)?;
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Self {
            namespace: field(&object["metadata"]["namespace"]),
            name: field(&object["metadata"]["name"]),
            volume: field(&object["spec"]["volumeName"]),
        })
    }
}

/// A kept object in a cache.
#[derive(Debug, PartialEq)]
pub(crate) struct View<T>(pub(crate) Arc<T>);

/// The text of an object, with its metadata.
pub(crate) struct Text<'a, T> {
    metadata: WireMetadata<'a>,
    json: &'a str,
    of: PhantomData<T>,
}

impl<'a, T> Metadata<'a> for Text<'a, T> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<'de: 'a, 'a, T> Deserialize<'de> for Text<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        let MetadataOnly { metadata } = serde_json::from_str(text).map_err(serde::de::Error::custom)?;
        Ok(Self { metadata, json: text, of: PhantomData })
    }
}

impl<T: Kept> Projection for View<T> {
    const KIND: ResourceKind = T::KIND;
    type Wire<'a> = Text<'a, T>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        T::read(wire.json).map(|object| Self(Arc::new(object)))
    }
}

/// The volumes of claims by `NAMESPACE/NAME`.
pub type ClaimVolumes = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_what_the_agent_reads() {
        let node = Node::read(
            r#"{"metadata":{"name":"n","uid":"u","labels":{"a":"b","node.koordinator.sh/x":"y"}},
                "status":{"capacity":{"cpu":"8"},"allocatable":{"cpu":"7"},"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],
                "daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}"#,
        )
        .unwrap();
        assert_eq!((node.labels.len(), node.annotations.is_none(), node.kubelet_port), (1, true, 10250));
        assert_eq!((node.capacity_milli_cpu(), node.reserved_milli_cpu()), (8000, 1000));
        assert!(Node::read(r#"{"status":{"capacity":{"cpu":"many"}}}"#).is_err());
    }

    #[test]
    fn a_report_of_usage_does_not_change_what_is_kept_but_the_revision() {
        let read = |status: &str| {
            MetricObject::read(&format!(r#"{{"metadata":{{"uid":"u"}},"spec":{{"a":1}},"status":{status}}}"#)).unwrap()
        };
        assert_eq!(read("{}"), read(r#"{"updateTime":"2026-01-01T00:00:00Z"}"#));
    }

    #[test]
    fn objects_without_members_are_read() {
        assert_eq!(SloObject::read("{}").unwrap().spec, Value::Null);
        assert_eq!(TopologyObject::read(r#"{"metadata":{},"zones":null}"#).unwrap(), TopologyObject::default());
        let claim = r#"{"metadata":{"namespace":"a","name":"b"},"spec":{"volumeName":"pv"}}"#;
        assert_eq!(ClaimObject::read(claim).unwrap().volume, "pv");
    }
}
