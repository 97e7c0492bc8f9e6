//! The kubelet's pod resources, forwarded, with devices added that the kubelet does not know.
//!
//! Answers are not decoded and encoded again: fields of later kubelets pass as they are.

mod proxy;
mod splice;

pub use proxy::{PodResourcesOptions, PodResourcesProxy, SERVICE};
pub use splice::{ContainerDevices, PodName, SpliceError, add_devices};
