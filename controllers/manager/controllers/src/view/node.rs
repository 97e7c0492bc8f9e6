//! What strategies and amounts of a node depend on.

use std::sync::Arc;

use koord_resource::{ResourceList, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject},
};
use koord_types::{node_annotations::NODE_NETWORK_BANDWIDTH, slo_config::NODE_COLOCATION_STRATEGY};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What strategies and amounts of a node depend on.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeView {
    /// All labels: selectors of strategies may ask for any.
    pub labels: Labels,
    /// The annotations of Koordinator.
    pub annotations: Labels,
    /// Whether it has any annotation, Koordinator's or not.
    pub annotated: bool,
    /// Whether nothing new shall be scheduled there.
    pub unschedulable: bool,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
    capacity: Arc<str>,
    allocatable: Arc<str>,
}

impl NodeView {
    /// Whether a change matters to those who keep one object per node: of labels, which strategies select by, of what the node has, or
    /// of an annotation that they read.
    pub fn triggers_reconcile(&self, old: &Self) -> bool {
        const READ: [&str; 2] = [NODE_COLOCATION_STRATEGY.name(), NODE_NETWORK_BANDWIDTH.name()];
        self.labels != old.labels
            || self.allocatable != old.allocatable
            || READ.iter().any(|key| self.annotations.get(key) != old.annotations.get(key))
    }

    /// All that the node has; none while its kubelet has not said it.
    pub fn capacity(&self) -> Option<ResourceList> {
        serde_json::from_str(&self.capacity).ok()
    }

    /// What pods may request of it; none while its kubelet has not said it.
    pub fn allocatable(&self) -> Option<ResourceList> {
        serde_json::from_str(&self.allocatable).ok()
    }
}

/// What is read of a Node.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    unschedulable: Option<bool>,
}

#[derive(Default, Deserialize)]
struct Status<'a> {
    #[serde(borrow, default)]
    capacity: Option<&'a RawValue>,
    #[serde(borrow, default)]
    allocatable: Option<&'a RawValue>,
    #[serde(borrow, default)]
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Deserialize)]
struct Condition<'a> {
    #[serde(borrow, rename = "type", default)]
    type_: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    status: std::borrow::Cow<'a, str>,
}

// By hand: Koordinator's annotations alone are kept, and of the status two texts that nodes of a pool share.
impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let ours = |key: &str| key.starts_with("node.koordinator.sh/");
        let annotations = wire.metadata.annotations;
        let status = wire.members.status.unwrap_or_default();
        let amounts = |raw: Option<&RawValue>, strings: &mut Interner| strings.intern(raw.map_or("", RawValue::get));
        let conditions = status.conditions.unwrap_or_default();
        Ok(Self {
            labels: Labels::read("metadata.labels", wire.metadata.labels, strings)?,
            annotations: Labels::read_some("metadata.annotations", annotations, strings, ours)?,
            annotated: annotations.is_some_and(|raw| !matches!(raw.get(), "null" | "{}")),
            unschedulable: wire.members.spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            capacity: amounts(status.capacity, strings),
            allocatable: amounts(status.allocatable, strings),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_what_is_read_triggers_and_another_one_does_not() {
        let view = |annotations: serde_json::Value| {
            let node = json!({"metadata": {"name": "n", "annotations": annotations}}).to_string();
            let wire = serde_json::from_str(&node).unwrap();
            NodeView::project(wire, &mut Interner::default()).unwrap()
        };
        let none = view(json!({}));
        for (annotations, matters) in [
            (json!({"node.koordinator.sh/network-bandwidth": "20M"}), true),
            (json!({"node.koordinator.sh/colocation-strategy": "{}"}), true),
            (json!({"node.koordinator.sh/originExtendedAllocatable": "{}"}), false),
            (json!({"example.com/x": "y"}), false),
        ] {
            let some = view(annotations.clone());
            assert_eq!([some.triggers_reconcile(&none), none.triggers_reconcile(&some)], [matters; 2], "{annotations}");
        }
    }
}
