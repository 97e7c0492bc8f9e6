//! Devices of pods that the kubelet does not know, for the list of pod resources that exporters read.

use std::collections::BTreeMap;

use koord_types::{
    device::DeviceType,
    device_protocol::{DEVICE_ALLOCATED, DeviceAllocation},
    protocol::{Labels, ProtocolError},
    resource_names::{NVIDIA_GPU, RDMA},
};

/// Devices of one resource, which belong to the first container of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatedDevices {
    /// `nvidia.com/gpu` or `koordinator.sh/rdma`.
    pub resource: &'static str,
    pub ids: Vec<String>,
}

/// What the scheduler gave a pod, by its annotation `scheduling.koordinator.sh/device-allocated`, sorted by resource. GPUs go by their UUID; network cards by
/// the PCI addresses of their virtual functions, or by their own where they have none. Devices of other types, and those without an id, are left out.
///
/// # Errors
///
/// The annotation is malformed.
pub fn allocated_devices(annotations: &Labels) -> Result<Vec<AllocatedDevices>, ProtocolError> {
    let allocations = DEVICE_ALLOCATED.get(annotations)?.unwrap_or_default();
    let mut by_resource = BTreeMap::new();
    for (type_, devices) in &allocations.0 {
        let resource = match type_ {
            DeviceType::Gpu => NVIDIA_GPU,
            DeviceType::Rdma => RDMA,
            _ => continue,
        };
        let ids: Vec<String> = devices.iter().flat_map(ids).filter(|id| !id.is_empty()).collect();
        if !ids.is_empty() {
            by_resource.insert(resource, ids);
        }
    }
    Ok(by_resource.into_iter().map(|(resource, ids)| AllocatedDevices { resource, ids }).collect())
}

fn ids(device: &DeviceAllocation) -> Vec<String> {
    let functions = device.extension.iter().flat_map(|extension| &extension.virtual_functions);
    let addresses: Vec<String> = functions.map(|function| function.bus_id.clone()).collect();
    if addresses.is_empty() { vec![device.id.clone()] } else { addresses }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(annotation: &str) -> Vec<(&'static str, Vec<String>)> {
        let annotations = Labels::from([(DEVICE_ALLOCATED.name().to_owned(), annotation.to_owned())]);
        allocated_devices(&annotations).unwrap().into_iter().map(|devices| (devices.resource, devices.ids)).collect()
    }

    #[test]
    fn gpus_go_by_uuid_and_cards_by_virtual_functions() {
        let annotation = r#"{"rdma":[{"minor":0,"id":"0000:1f:00.0","resources":{"koordinator.sh/rdma":"1"},
                "extension":{"vfs":[{"minor":-1,"busID":"0000:1f:00.2"},{"minor":-1,"busID":"0000:1f:00.3"}]}},
                {"minor":1,"id":"0000:2f:00.0","resources":{"koordinator.sh/rdma":"1"}}],
            "gpu":[{"minor":0,"id":"GPU-a","resources":{"koordinator.sh/gpu-core":"100"}},{"minor":1,"id":"GPU-b","resources":{}}],
            "fpga":[{"minor":0,"id":"f","resources":{}}]}"#;
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found(annotation),
            [
                ("koordinator.sh/rdma", ids(&["0000:1f:00.2", "0000:1f:00.3", "0000:2f:00.0"])),
                ("nvidia.com/gpu", ids(&["GPU-a", "GPU-b"])),
            ]
        );
    }

    #[test]
    fn an_extension_without_virtual_functions_does_not_hide_the_device() {
        let annotation =
            r#"{"gpu":[{"minor":0,"id":"GPU-a","resources":{},"extension":{"gpuSharedResourceTemplate":"4vcpu"}}]}"#;
        assert_eq!(found(annotation), [("nvidia.com/gpu", vec!["GPU-a".to_owned()])]);
    }

    #[test]
    fn what_has_no_id_is_not_listed() {
        assert_eq!(found(r#"{"gpu":[{"minor":0,"resources":{}}],"rdma":null}"#), []);
        assert_eq!(found("{}"), []);
        assert_eq!(allocated_devices(&Labels::new()), Ok(vec![]));
        let malformed = Labels::from([(DEVICE_ALLOCATED.name().to_owned(), "[".to_owned())]);
        assert_eq!(allocated_devices(&malformed).unwrap_err().key, DEVICE_ALLOCATED.name());
    }
}
