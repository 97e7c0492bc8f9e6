//! `memory.stat` of a cgroup.

use crate::{cgroup::Version, parse_error::ParseError, text::keyed};

/// What the memory of a cgroup and of those below it is, in bytes. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStat {
    /// Page cache: `total_cache` on v1, `file` on v2.
    pub cache_bytes: u64,
    /// Anonymous memory: `total_rss` on v1, `anon` on v2.
    pub anonymous_bytes: u64,
    pub inactive_file_bytes: u64,
    pub active_file_bytes: u64,
    pub inactive_anon_bytes: u64,
    pub active_anon_bytes: u64,
    pub unevictable_bytes: u64,
}

/// The fields of v1 that count the cgroups below too.
const V1: [&str; 7] = [
    "total_cache",
    "total_rss",
    "total_inactive_file",
    "total_active_file",
    "total_inactive_anon",
    "total_active_anon",
    "total_unevictable",
];
const V2: [&str; 7] = ["file", "anon", "inactive_file", "active_file", "inactive_anon", "active_anon", "unevictable"];

impl MemoryStat {
    /// Reads `memory.stat`.
    ///
    /// Fails where one of the seven fields is missing or no number.
    pub fn parse(version: Version, text: &[u8]) -> Result<Self, ParseError> {
        let keys = match version {
            Version::V1 => V1,
            Version::V2 => V2,
        };
        let [
            cache_bytes,
            anonymous_bytes,
            inactive_file_bytes,
            active_file_bytes,
            inactive_anon_bytes,
            active_anon_bytes,
            unevictable_bytes,
        ] = keyed("memory.stat", text, keys)?;
        Ok(Self {
            cache_bytes,
            anonymous_bytes,
            inactive_file_bytes,
            active_file_bytes,
            inactive_anon_bytes,
            active_anon_bytes,
            unevictable_bytes,
        })
    }

    /// inactive_anon + active_anon + unevictable.
    pub fn used_bytes(&self) -> u64 {
        self.inactive_anon_bytes.saturating_add(self.active_anon_bytes).saturating_add(self.unevictable_bytes)
    }

    /// [`Self::used_bytes`] + active_file + inactive_file.
    pub fn used_with_page_cache_bytes(&self) -> u64 {
        self.used_bytes().saturating_add(self.active_file_bytes).saturating_add(self.inactive_file_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_TEXT: &str = "cache 1\nrss 2\nrss_huge 0\nshmem 0\nmapped_file 0\ndirty 0\nwriteback 0\npgpgin 1\npgpgout 1\n\
        pgfault 1\npgmajfault 0\ninactive_anon 5\nactive_anon 6\ninactive_file 3\nactive_file 4\nunevictable 7\n\
        hierarchical_memory_limit 9223372036854771712\ntotal_cache 10\ntotal_rss 20\ntotal_rss_huge 0\ntotal_shmem 0\n\
        total_mapped_file 0\ntotal_dirty 0\ntotal_writeback 0\ntotal_pgpgin 1\ntotal_pgpgout 1\ntotal_pgfault 1\n\
        total_pgmajfault 0\ntotal_inactive_anon 50\ntotal_active_anon 60\ntotal_inactive_file 30\ntotal_active_file 40\n\
        total_unevictable 70\n";
    const V2_TEXT: &str = "anon 20\nfile 10\nkernel 1\nkernel_stack 0\npagetables 0\nsec_pagetables 0\npercpu 0\nsock 0\n\
        vmalloc 0\nshmem 0\nzswap 0\nzswapped 0\nfile_mapped 0\nfile_dirty 0\nfile_writeback 0\nswapcached 0\nanon_thp 0\n\
        file_thp 0\nshmem_thp 0\ninactive_anon 50\nactive_anon 60\ninactive_file 30\nactive_file 40\nunevictable 70\n\
        slab_reclaimable 0\nslab_unreclaimable 0\nslab 0\nworkingset_refault_anon 0\npgfault 1\n";

    #[test]
    fn both_versions_are_read() {
        for (version, text) in [(Version::V1, V1_TEXT), (Version::V2, V2_TEXT)] {
            let stat = MemoryStat::parse(version, text.as_bytes()).unwrap();
            let files = (stat.cache_bytes, stat.anonymous_bytes, stat.inactive_file_bytes, stat.active_file_bytes);
            assert_eq!(files, (10, 20, 30, 40));
            assert_eq!((stat.inactive_anon_bytes, stat.active_anon_bytes, stat.unevictable_bytes), (50, 60, 70));
            assert_eq!((stat.used_bytes(), stat.used_with_page_cache_bytes()), (180, 250));
        }
        let most = MemoryStat { active_anon_bytes: u64::MAX, unevictable_bytes: 1, ..MemoryStat::default() };
        assert_eq!((most.used_bytes(), most.used_with_page_cache_bytes()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn each_of_the_seven_fields_must_be_there() {
        for (version, text, keys) in [(Version::V1, V1_TEXT, V1), (Version::V2, V2_TEXT, V2)] {
            for key in keys {
                let without: String = text
                    .lines()
                    .filter(|line| !line.starts_with(&format!("{key} ")))
                    .fold(String::new(), |text, line| text + line + "\n");
                let error = MemoryStat::parse(version, without.as_bytes()).unwrap_err();
                assert_eq!(error, ParseError::Missing { file: "memory.stat", field: key });
            }
        }
        assert_eq!(
            MemoryStat::parse(Version::V1, b"cache 1\n").unwrap_err().to_string(),
            "memory.stat lacks total_cache"
        );
    }
}
