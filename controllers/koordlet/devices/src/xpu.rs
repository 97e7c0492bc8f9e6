//! Accelerators of vendors that have no library here: their agents write device files, JSON arrays of devices, into a folder.

mod device;
mod files;
mod partitions;

pub use device::{PeerLink, XpuDevice};
pub use files::{DeviceFileError, DeviceFiles};
pub(crate) use partitions::{partition_policy, partitions};
