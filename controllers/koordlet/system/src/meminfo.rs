//! `/proc/meminfo`, and `meminfo` of a NUMA node.

use crate::{
    parse_error::ParseError,
    text::{all_present, fields, keyed, keyed_fields, lines},
};

/// The memory of a machine, in KiB. Bytes that are derived of it saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    pub total_kib: u64,
    pub free_kib: u64,
    /// What new processes can have without swapping.
    pub available_kib: u64,
}

/// The memory of a NUMA node, in KiB. Bytes that are derived of it saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaMemInfo {
    pub total_kib: u64,
    pub free_kib: u64,
    pub active_file_kib: u64,
    pub inactive_file_kib: u64,
    pub slab_reclaimable_kib: u64,
}

const KIB: u64 = 1024;

impl MemInfo {
    /// Reads `/proc/meminfo`.
    ///
    /// Fails where MemTotal, MemFree or MemAvailable is missing or no number.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let keys = ["MemTotal", "MemFree", "MemAvailable"];
        let [total_kib, free_kib, available_kib] = keyed("/proc/meminfo", text, keys)?;
        Ok(Self { total_kib, free_kib, available_kib })
    }

    /// MemTotal.
    pub fn total_bytes(&self) -> u64 {
        self.total_kib.saturating_mul(KIB)
    }

    /// MemTotal without MemAvailable.
    pub fn used_bytes(&self) -> u64 {
        self.total_kib.saturating_sub(self.available_kib).saturating_mul(KIB)
    }

    /// MemTotal without MemFree.
    pub fn used_with_page_cache_bytes(&self) -> u64 {
        self.total_kib.saturating_sub(self.free_kib).saturating_mul(KIB)
    }
}

impl NumaMemInfo {
    /// Reads `node<i>/meminfo`, each line of which begins with `Node <i>`.
    ///
    /// Fails where MemTotal, MemFree, Active(file), Inactive(file) or SReclaimable is missing or no number.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        const FILE: &str = "meminfo of a NUMA node";
        let keys = ["MemTotal", "MemFree", "Active(file)", "Inactive(file)", "SReclaimable"];
        let without_node = lines(text).map(|line| {
            let has_node = fields(line).next() == Some(b"Node");
            fields(line).skip(if has_node { 2 } else { 0 })
        });
        let values = all_present(FILE, keys, keyed_fields(FILE, keys, without_node)?)?;
        let [total_kib, free_kib, active_file_kib, inactive_file_kib, slab_reclaimable_kib] = values;
        Ok(Self { total_kib, free_kib, active_file_kib, inactive_file_kib, slab_reclaimable_kib })
    }

    /// MemTotal.
    pub fn total_bytes(&self) -> u64 {
        self.total_kib.saturating_mul(KIB)
    }

    /// MemTotal without MemFree, Active(file), Inactive(file) and SReclaimable; 0 where these are more.
    pub fn used_bytes(&self) -> u64 {
        let reclaimable = [self.free_kib, self.active_file_kib, self.inactive_file_kib, self.slab_reclaimable_kib];
        let reclaimable = reclaimable.into_iter().fold(0, u64::saturating_add);
        self.total_kib.saturating_sub(reclaimable).saturating_mul(KIB)
    }

    /// MemTotal without MemFree.
    pub fn used_with_page_cache_bytes(&self) -> u64 {
        self.total_kib.saturating_sub(self.free_kib).saturating_mul(KIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_machine_is_used_where_it_is_not_available() {
        let text = "MemTotal:       24684084 kB\nMemFree:        20821008 kB\nMemAvailable:   23013936 kB\n\
            Buffers:           10420 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n";
        let memory = MemInfo::parse(text.as_bytes()).unwrap();
        assert_eq!(memory, MemInfo { total_kib: 24_684_084, free_kib: 20_821_008, available_kib: 23_013_936 });
        assert_eq!(memory.total_bytes(), 24_684_084 * 1024);
        assert_eq!(memory.used_bytes(), (24_684_084 - 23_013_936) * 1024);
        assert_eq!(memory.used_with_page_cache_bytes(), (24_684_084 - 20_821_008) * 1024);
    }

    #[test]
    fn memory_of_a_numa_node_is_used_where_it_cannot_be_reclaimed() {
        let lines = |prefix: &str| {
            let line = |(key, kib): (&str, u32)| format!("{prefix}{key}:       {kib} kB\n");
            let fields = [("MemTotal", 1000), ("MemFree", 200), ("MemUsed", 800), ("Active", 70), ("Inactive", 90)];
            let more = [("Active(file)", 50), ("Inactive(file)", 60), ("Unevictable", 1), ("SReclaimable", 10)];
            fields.into_iter().chain(more).map(line).collect::<String>()
        };
        for text in [lines("Node 0 "), lines("Node 12 "), lines("")] {
            let memory = NumaMemInfo::parse(text.as_bytes()).unwrap();
            assert_eq!(memory.used_bytes(), (1000 - 200 - 50 - 60 - 10) * 1024, "{text}");
            assert_eq!((memory.total_bytes(), memory.used_with_page_cache_bytes()), (1000 * 1024, 800 * 1024));
        }
        let more_free_than_there_is = NumaMemInfo { total_kib: 1, free_kib: u64::MAX, ..NumaMemInfo::default() };
        assert_eq!(NumaMemInfo { active_file_kib: 1, ..more_free_than_there_is }.used_bytes(), 0);
        assert_eq!(NumaMemInfo { total_kib: u64::MAX, ..NumaMemInfo::default() }.used_bytes(), u64::MAX);
    }

    #[test]
    fn a_missing_or_malformed_field_is_named() {
        for (text, error) in [
            ("", "/proc/meminfo lacks MemTotal"),
            ("MemTotal: 1 kB\nMemFree: 1 kB\n", "/proc/meminfo lacks MemAvailable"),
            ("MemTotal: -1 kB\n", "/proc/meminfo: MemTotal is \"-1\", not a number from 0 to 18446744073709551615"),
            ("MemTotal:\n", "/proc/meminfo lacks MemTotal"),
        ] {
            assert_eq!(MemInfo::parse(text.as_bytes()).unwrap_err().to_string(), error, "{text:?}");
        }
        let error = NumaMemInfo::parse(b"Node 0 MemTotal: 1 kB\nNode 0 MemFree: 1 kB\nNode\n").unwrap_err();
        assert_eq!(error.to_string(), "meminfo of a NUMA node lacks Active(file)");
    }
}
