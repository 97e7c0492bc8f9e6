//! What Go calls the types of annotations, because its names stand in messages about them.

use koord_resource::go_json::Names;

pub(super) const NAMES: Names = Names {
    structs: &[
        ("ResourceSpec", "extension.ResourceSpec"),
        ("ResourceStatus", "extension.ResourceStatus"),
        ("NumaNodeResource", "extension.NUMANodeResource"),
        ("NumaTopologySpec", "extension.NUMATopologySpec"),
        ("DeviceHint", "extension.DeviceHint"),
        ("DeviceJointAllocate", "extension.DeviceJointAllocate"),
        ("GpuPartitionSpec", "extension.GPUPartitionSpec"),
        ("ExtendedResourceSpec", "extension.ExtendedResourceSpec"),
        ("ExtendedResourceContainerSpec", "extension.ExtendedResourceContainerSpec"),
        ("LabelSelector", "v1.LabelSelector"),
        ("LabelSelectorRequirement", "v1.LabelSelectorRequirement"),
    ],
    fields: &[
        ("ResourceSpec", "requiredCPUBindPolicy", "extension.CPUBindPolicy"),
        ("ResourceSpec", "preferredCPUBindPolicy", "extension.CPUBindPolicy"),
        ("ResourceSpec", "preferredCPUExclusivePolicy", "extension.CPUExclusivePolicy"),
        ("ResourceStatus", "numaNodeResources", "[]extension.NUMANodeResource"),
        ("NumaNodeResource", "resources", "v1.ResourceList"),
        ("ExtendedResourceSpec", "containers", "map[string]extension.ExtendedResourceContainerSpec"),
        ("ExtendedResourceContainerSpec", "limits", "v1.ResourceList"),
        ("ExtendedResourceContainerSpec", "requests", "v1.ResourceList"),
        ("NumaTopologySpec", "numaTopologyPolicy", "extension.NUMATopologyPolicy"),
        ("NumaTopologySpec", "singleNUMANodeExclusive", "extension.NumaTopologyExclusive"),
        ("DeviceHint", "allocateStrategy", "extension.DeviceAllocateStrategy"),
        ("DeviceHint", "requiredTopologyScope", "extension.DeviceTopologyScope"),
        ("DeviceHint", "exclusivePolicy", "extension.DeviceExclusivePolicy"),
        ("DeviceJointAllocate", "deviceTypes", "[]v1alpha1.DeviceType"),
        ("DeviceJointAllocate", "requiredScope", "extension.DeviceJointAllocateScope"),
        ("GpuPartitionSpec", "allocatePolicy", "extension.GPUPartitionAllocatePolicy"),
        ("LabelSelector", "matchLabels", "map[string]string"),
        ("LabelSelector", "matchExpressions", "[]v1.LabelSelectorRequirement"),
        ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
    ],
    embedded: &[],
    halves: &[],
};

#[cfg(test)]
mod tests {
    use crate::{
        device_protocol::{DeviceAllocateHints, DeviceJointAllocate, GpuPartitionSpec},
        numa::{NumaTopologySpec, ResourceSpec, ResourceStatus},
        protocol::Text,
    };

    #[test]
    fn what_cannot_be_decoded_is_told_with_the_types_of_go() {
        fn error<T: Text + std::fmt::Debug>(text: &str) -> String {
            T::read(text).unwrap_err().replace("json: cannot unmarshal ", "").replace("into Go ", "")
        }
        for (message, expected) in [
            (
                error::<ResourceSpec>(r#"{"preferredCPUBindPolicy":5}"#),
                "number struct field ResourceSpec.preferredCPUBindPolicy of type extension.CPUBindPolicy",
            ),
            (
                error::<ResourceSpec>(r#"{"preferredCPUExclusivePolicy":[]}"#),
                "array struct field ResourceSpec.preferredCPUExclusivePolicy of type extension.CPUExclusivePolicy",
            ),
            (error::<NumaTopologySpec>("[]"), "array value of type extension.NUMATopologySpec"),
            (
                error::<NumaTopologySpec>(r#"{"singleNUMANodeExclusive":true}"#),
                "bool struct field NUMATopologySpec.singleNUMANodeExclusive of type extension.NumaTopologyExclusive",
            ),
            (
                error::<ResourceStatus>(r#"{"numaNodeResources":[{"node":"0"}]}"#),
                "string struct field NUMANodeResource.numaNodeResources.node of type int32",
            ),
            (error::<DeviceAllocateHints>("1"), "number value of type extension.DeviceAllocateHints"),
            (error::<DeviceAllocateHints>(r#"{"gpu":1}"#), "number value of type extension.DeviceHint"),
            (
                error::<DeviceAllocateHints>(r#"{"gpu":{"exclusivePolicy":1}}"#),
                "number struct field DeviceHint.exclusivePolicy of type extension.DeviceExclusivePolicy",
            ),
            (
                error::<DeviceAllocateHints>(r#"{"gpu":{"selector":{"matchLabels":1}}}"#),
                "number struct field LabelSelector.selector.matchLabels of type map[string]string",
            ),
            (
                error::<DeviceJointAllocate>(r#"{"deviceTypes":[1]}"#),
                "number struct field DeviceJointAllocate.deviceTypes of type v1alpha1.DeviceType",
            ),
            (
                error::<DeviceJointAllocate>(r#"{"deviceTypes":"gpu"}"#),
                "string struct field DeviceJointAllocate.deviceTypes of type []v1alpha1.DeviceType",
            ),
            (error::<GpuPartitionSpec>("[]"), "array value of type extension.GPUPartitionSpec"),
        ] {
            assert_eq!(message, expected);
        }
    }
}
