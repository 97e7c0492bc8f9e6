//! `/proc/cpuinfo`: who made the CPUs, their model and what they can do.

use crate::text::{fields, lines, split_once};

/// What `/proc/cpuinfo` says of the first CPU. What it does not say is empty: arm64 names neither vendor nor model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// `GenuineIntel` or `AuthenticAMD`.
    pub vendor_id: String,
    /// `Intel(R) Xeon(R) Platinum 8269CY CPU @ 2.50GHz`.
    pub model_name: String,
    /// Whether parts of the L3 cache can be given to groups of tasks: the flag `cat_l3`.
    pub has_l3_allocation: bool,
    /// Whether memory bandwidth can be limited for groups of tasks: the flag `mba`.
    pub has_bandwidth_allocation: bool,
}

impl CpuInfo {
    /// Reads `/proc/cpuinfo`. Bytes that are no UTF-8 are replaced.
    pub fn parse(text: &[u8]) -> Self {
        let mut info = Self::default();
        let mut has_flags = false;
        for line in lines(text) {
            let Some((key, value)) = split_once(line, b':') else { continue };
            let value = value.trim_ascii();
            let string = || String::from_utf8_lossy(value).into_owned();
            match key.trim_ascii() {
                b"vendor_id" if info.vendor_id.is_empty() => info.vendor_id = string(),
                b"model name" if info.model_name.is_empty() => info.model_name = string(),
                b"flags" if !has_flags => {
                    has_flags = true;
                    info.has_l3_allocation = fields(value).any(|flag| flag == b"cat_l3");
                    info.has_bandwidth_allocation = fields(value).any(|flag| flag == b"mba");
                }
                _ => {}
            }
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cpu_counts() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Example CPU @ 2.50GHz\n\
            flags\t\t: fpu sse cat_l3 cdp_l3 mba\n\nprocessor\t: 1\nvendor_id\t: Other\nflags\t\t: fpu\n";
        let info = CpuInfo::parse(text.as_bytes());
        assert_eq!((info.vendor_id.as_str(), info.model_name.as_str()), ("GenuineIntel", "Example CPU @ 2.50GHz"));
        assert!(info.has_l3_allocation && info.has_bandwidth_allocation);
        let info = CpuInfo::parse(b"flags\t: cat_l3x xmba\nflags\t: cat_l3 mba\n");
        assert!(!info.has_l3_allocation && !info.has_bandwidth_allocation);
    }

    #[test]
    fn arm64_names_neither_vendor_nor_model() {
        let text = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm aes\nCPU implementer\t: 0x41\n\
            CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n";
        assert_eq!(CpuInfo::parse(text.as_bytes()), CpuInfo::default());
        assert_eq!(CpuInfo::parse(b""), CpuInfo::default());
    }
}
