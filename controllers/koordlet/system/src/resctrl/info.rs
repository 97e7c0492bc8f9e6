//! `info`: what the CPUs can share out, and in which steps.

use std::path::Path;

use super::CacheMask;
use crate::file_tree::{FileTree, Reader, SkippedFile, number_of};

/// What the kernel takes in `schemata`. What it does not say is `None`: it is not mounted, or the CPU lacks the feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResctrlInfo {
    /// All ways of the L3 cache.
    pub l3_mask: Option<CacheMask>,
    /// The least ways that a group may have.
    pub l3_ways_min: Option<u32>,
    /// The least bandwidth that a group may have, in the units of the vendor.
    pub bandwidth_min: Option<u32>,
    /// Bandwidth is rounded up to a multiple of this.
    pub bandwidth_step: Option<u32>,
    /// How many groups there may be, the root included: the smallest number of the resources.
    pub groups_max: Option<u32>,
    /// Files that are there and were not understood.
    pub skipped: Vec<SkippedFile>,
}

impl ResctrlInfo {
    /// Reads the folder `info` below the mount point of resctrl.
    pub fn discover(tree: &dyn FileTree, mount_point: &Path) -> Self {
        let mut reader = Reader::new(tree);
        let folder = mount_point.join("info");
        let l3_mask = reader.parsed(&folder.join("L3/cbm_mask"), CacheMask::parse);
        let mut number = |path: &str, file: &'static str| reader.parsed(&folder.join(path), number_of(file));
        let groups = [number("L3/num_closids", "num_closids"), number("MB/num_closids", "num_closids")];
        Self {
            l3_mask,
            l3_ways_min: number("L3/min_cbm_bits", "min_cbm_bits"),
            bandwidth_min: number("MB/min_bandwidth", "min_bandwidth"),
            bandwidth_step: number("MB/bandwidth_gran", "bandwidth_gran"),
            groups_max: groups.into_iter().flatten().min(),
            skipped: reader.skipped,
        }
    }

    /// Whether resctrl is mounted and the L3 cache can be shared out. The mount point is a bare folder otherwise.
    pub fn has_l3(&self) -> bool {
        self.l3_mask.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_tree::RecordedTree;

    fn discover(files: &[(&str, &str)]) -> ResctrlInfo {
        let tree: RecordedTree =
            files.iter().map(|(path, text)| (format!("/r/info/{path}"), format!("{text}\n"))).collect();
        ResctrlInfo::discover(&tree, Path::new("/r"))
    }

    #[test]
    fn the_smallest_number_of_groups_counts() {
        let info = discover(&[
            ("L3/cbm_mask", "7ff"),
            ("L3/min_cbm_bits", "1"),
            ("L3/num_closids", "16"),
            ("MB/min_bandwidth", "10"),
            ("MB/bandwidth_gran", "10"),
            ("MB/num_closids", "8"),
        ]);
        assert_eq!(
            (info.l3_mask.map(CacheMask::ways), info.l3_ways_min, info.groups_max),
            (Some(11), Some(1), Some(8))
        );
        assert_eq!((info.bandwidth_min, info.bandwidth_step, info.has_l3()), (Some(10), Some(10), true));
        assert_eq!(discover(&[("L3/num_closids", "16")]).groups_max, Some(16));
    }

    #[test]
    fn a_bare_folder_says_nothing_and_malformed_files_are_named() {
        assert_eq!(discover(&[]), ResctrlInfo::default());
        let info = discover(&[("L3/cbm_mask", "7fd"), ("MB/min_bandwidth", "ten")]);
        assert_eq!((info.has_l3(), info.bandwidth_min), (false, None));
        let skipped: Vec<_> = info.skipped.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(skipped, ["/r/info/L3/cbm_mask", "/r/info/MB/min_bandwidth"]);
    }
}
