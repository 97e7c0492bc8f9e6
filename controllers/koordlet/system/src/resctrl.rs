//! Resctrl: shares of the L3 cache and of memory bandwidth for groups of tasks.
//!
//! A group is a folder below the mount point, with its `schemata` (what it may have), `tasks` and `mon_data` (what it has). `info` says what the CPUs can do.

mod cache_mask;
mod info;
mod memory_bandwidth;
mod monitoring;
mod schemata;

pub use cache_mask::{CacheMask, CacheMaskError};
pub use info::ResctrlInfo;
pub use memory_bandwidth::Vendor;
pub use monitoring::{L3Monitoring, monitored_l3, monitoring_of_group, parse_monitored_value};
pub use schemata::{DomainValues, Schemata};

use crate::cpu_info::CpuInfo;

/// The vendor of CPUs on which caches and bandwidth can be given to groups; the reason where they cannot.
///
/// # Errors
///
/// The CPU lacks a feature, or is of a vendor whose units of bandwidth are not known.
pub fn supported_vendor(info: &CpuInfo) -> Result<Vendor, Unsupported> {
    if !info.has_l3_allocation {
        return Err(Unsupported::Feature("cat_l3"));
    }
    if !info.has_bandwidth_allocation {
        return Err(Unsupported::Feature("mba"));
    }
    Vendor::of(&info.vendor_id).ok_or_else(|| Unsupported::Vendor(info.vendor_id.clone()))
}

/// Why resctrl is not used on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// A flag of `/proc/cpuinfo` is missing.
    #[error("the CPU has no {0}: /proc/cpuinfo does not list it among the flags")]
    Feature(&'static str),
    /// The vendor of the CPU is another one.
    #[error("CPUs of {0:?} are not supported, those of GenuineIntel and AuthenticAMD are")]
    Vendor(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_features_and_a_known_vendor_are_needed() {
        let info = |vendor: &str, has_l3_allocation, has_bandwidth_allocation| CpuInfo {
            vendor_id: vendor.to_owned(),
            has_l3_allocation,
            has_bandwidth_allocation,
            ..CpuInfo::default()
        };
        assert_eq!(supported_vendor(&info("GenuineIntel", true, true)), Ok(Vendor::Intel));
        assert_eq!(supported_vendor(&info("AuthenticAMD", true, true)), Ok(Vendor::Amd));
        assert_eq!(supported_vendor(&info("GenuineIntel", false, true)), Err(Unsupported::Feature("cat_l3")));
        assert_eq!(supported_vendor(&info("GenuineIntel", true, false)), Err(Unsupported::Feature("mba")));
        let error = supported_vendor(&info("", true, true)).unwrap_err();
        assert_eq!(error.to_string(), "CPUs of \"\" are not supported, those of GenuineIntel and AuthenticAMD are");
    }
}
