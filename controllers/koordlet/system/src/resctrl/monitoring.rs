//! `mon_data`: how much cache and bandwidth a group has.

use std::path::Path;

use crate::{
    file_tree::{FileTree, Reader, SkippedFile},
    parse_error::ParseError,
    text::{Field, NUMBER, unsigned, unsigned_32},
};

/// What a group has of one L3 cache and of the memory behind it. `None` is what the hardware does not count, or not for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L3Monitoring {
    /// The number of the cache.
    pub cache: u32,
    /// Bytes in the cache.
    pub occupancy_bytes: Option<u64>,
    /// Bytes from and to the memory of the same NUMA node, counted since the group exists.
    pub local_bytes: Option<u64>,
    /// Bytes from and to all memory, counted since the group exists.
    pub total_bytes: Option<u64>,
}

/// Reads `mon_data` of the folder of a group: its L3 caches in the order of their numbers, and the files that are not understood.
pub fn monitoring_of_group(tree: &dyn FileTree, group: &Path) -> (Vec<L3Monitoring>, Vec<SkippedFile>) {
    let mut reader = Reader::new(tree);
    let folder = group.join("mon_data");
    let mut caches: Vec<_> = reader
        .names(&folder)
        .iter()
        .filter_map(|name| Some((monitored_l3(name)?, folder.join(name))))
        .map(|(cache, folder)| {
            let mut value = |file: &'static str| {
                reader.parsed(&folder.join(file), |text| parse_monitored_value(file, text)).flatten()
            };
            L3Monitoring {
                cache,
                occupancy_bytes: value("llc_occupancy"),
                local_bytes: value("mbm_local_bytes"),
                total_bytes: value("mbm_total_bytes"),
            }
        })
        .collect();
    caches.sort_unstable_by_key(|monitoring| monitoring.cache);
    (caches, reader.skipped)
}

/// The L3 cache that a folder of `mon_data` is of: 1 for `mon_L3_01`. `None` for other folders.
pub fn monitored_l3(folder: &str) -> Option<u32> {
    let mut parts = folder.split('_');
    let (kind, resource, number) = (parts.next()?, parts.next()?, parts.next()?);
    let is_l3 = kind == "mon" && resource == "L3" && parts.next().is_none();
    unsigned_32(number.as_bytes()).filter(|_| is_l3)
}

/// Reads `llc_occupancy`, `mbm_total_bytes` or `mbm_local_bytes`: bytes. `None` where the hardware has no number for now.
///
/// Fails where the text is neither a number nor `Unavailable`.
pub fn parse_monitored_value(file: &'static str, text: &[u8]) -> Result<Option<u64>, ParseError> {
    let text = text.trim_ascii();
    if text == b"Unavailable" {
        return Ok(None);
    }
    let field = Field { file, field: "value" };
    unsigned(text).map(Some).ok_or_else(|| field.malformed(text, NUMBER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_the_cache() {
        for (folder, cache) in [
            ("mon_L3_00", Some(0)),
            ("mon_L3_01", Some(1)),
            ("mon_L3_123", Some(123)),
            ("mon_sub_L3_00", None),
            ("mon_L3_00_x", None),
            ("mon_L2_00", None),
            ("mon_L3_", None),
            ("mon_L3", None),
            ("", None),
        ] {
            assert_eq!(monitored_l3(folder), cache, "{folder:?}");
        }
    }

    #[test]
    fn caches_of_a_group_are_read_in_order() {
        let tree: crate::RecordedTree = [
            ("/r/BE/mon_data/mon_L3_01/llc_occupancy", "1048576\n"),
            ("/r/BE/mon_data/mon_L3_01/mbm_total_bytes", "2000000\n"),
            ("/r/BE/mon_data/mon_L3_01/mbm_local_bytes", "1000000\n"),
            ("/r/BE/mon_data/mon_L3_00/llc_occupancy", "Unavailable\n"),
            ("/r/BE/mon_data/mon_L3_00/mbm_total_bytes", "Error\n"),
            ("/r/BE/mon_data/mon_L2_00/llc_occupancy", "1\n"),
        ]
        .into_iter()
        .collect();
        let (caches, skipped) = monitoring_of_group(&tree, Path::new("/r/BE"));
        let second = L3Monitoring {
            cache: 1,
            occupancy_bytes: Some(1_048_576),
            local_bytes: Some(1_000_000),
            total_bytes: Some(2_000_000),
        };
        assert_eq!(caches, [L3Monitoring::default(), second]);
        let skipped: Vec<_> = skipped.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(skipped, ["/r/BE/mon_data/mon_L3_00/mbm_total_bytes"]);
        assert_eq!(monitoring_of_group(&tree, Path::new("/r/LS")), (vec![], vec![]));
    }

    #[test]
    fn values_may_be_unavailable() {
        assert_eq!(parse_monitored_value("llc_occupancy", b"1048576\n"), Ok(Some(1_048_576)));
        assert_eq!(parse_monitored_value("llc_occupancy", b"Unavailable\n"), Ok(None));
        let error = parse_monitored_value("mbm_total_bytes", b"Error\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "mbm_total_bytes: value is \"Error\", not a number from 0 to 18446744073709551615"
        );
    }
}
