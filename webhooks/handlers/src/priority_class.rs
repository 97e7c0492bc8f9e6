//! What the caches keep of PriorityClasses.

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Projection, WireObject},
};
use serde::Deserialize;

/// What a pod of a PriorityClass gets.
#[derive(Debug, PartialEq)]
pub(crate) struct PriorityClassValue {
    pub(crate) value: i32,
    pub(crate) preemption_policy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PriorityClassMembers {
    #[serde(default)]
    value: i32,
    /// The API server always sets it.
    #[serde(default)]
    preemption_policy: Option<String>,
}

impl Projection for PriorityClassValue {
    const KIND: ResourceKind = ResourceKind {
        group: "scheduling.k8s.io",
        version: "v1",
        kind: "PriorityClass",
        plural: "priorityclasses",
        namespaced: false,
    };
    type Wire<'a> = WireObject<'a, PriorityClassMembers>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let preemption_policy = wire.members.preemption_policy.unwrap_or_else(|| "PreemptLowerPriority".to_owned());
        Ok(Self { value: wire.members.value, preemption_policy })
    }
}
