//! L3 cache and memory bandwidth of the groups of QoS classes.

use std::path::PathBuf;

use koord_koordlet_system::{
    KeptFile, Roots, folders,
    resctrl::{monitored_l3, parse_monitored_value},
};

use super::reader::{Activity, Reader};

/// Reads `mon_data` of the groups LSR, LS and BE.
#[derive(Debug)]
pub struct ResctrlCollector {
    reader: Reader,
    root: PathBuf,
    groups: Vec<GroupFiles>,
    readings: Vec<ResctrlReading>,
    has_started: bool,
}

/// What a group has of one L3 cache, and what went through it; `None` where the hardware has no number for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResctrlReading {
    /// `LSR`, `LS` or `BE`.
    pub group: &'static str,
    pub cache: u32,
    pub occupancy_bytes: Option<u64>,
    /// Bytes from and to the memory of the cache's own NUMA node since the group exists.
    pub local_bytes: Option<u64>,
    /// Bytes from and to all memory since the group exists.
    pub total_bytes: Option<u64>,
}

#[derive(Debug)]
struct GroupFiles {
    group: &'static str,
    cache: u32,
    files: [KeptFile; 3],
}

const GROUPS: [&str; 3] = ["LSR", "LS", "BE"];
const FILES: [&str; 3] = ["llc_occupancy", "mbm_local_bytes", "mbm_total_bytes"];

impl ResctrlCollector {
    pub fn new(roots: &Roots) -> Self {
        Self {
            reader: Reader::default(),
            root: roots.sys_fs.join("resctrl"),
            groups: Vec::new(),
            readings: Vec::new(),
            has_started: false,
        }
    }

    /// Reads all groups. Folders are looked for while there are none.
    pub fn collect(&mut self) {
        if self.groups.is_empty() {
            self.groups = GROUPS.into_iter().flat_map(|group| self.group(group)).collect();
        }
        self.readings.clear();
        self.reader.begin();
        for files in &mut self.groups {
            let mut values = [None; FILES.len()];
            let mut is_there = false;
            for ((value, file), name) in values.iter_mut().zip(&mut files.files).zip(FILES) {
                let read = self.reader.of_cgroup(file, |text| parse_monitored_value(name, text));
                is_there |= read.is_some();
                *value = read.flatten();
            }
            if is_there {
                let [occupancy_bytes, local_bytes, total_bytes] = values;
                let (group, cache) = (files.group, files.cache);
                self.readings.push(ResctrlReading { group, cache, occupancy_bytes, local_bytes, total_bytes });
            }
        }
        self.reader.end();
        if self.readings.is_empty() {
            // The groups were made anew, or resctrl was mounted again.
            self.groups.clear();
        }
        self.has_started |= !self.readings.is_empty();
    }

    fn group(&self, group: &'static str) -> Vec<GroupFiles> {
        let folder = self.root.join(group).join("mon_data");
        let files = |name: String| {
            let domain = folder.join(&name);
            let files = FILES.map(|file| KeptFile::new(domain.join(file)));
            Some(GroupFiles { group, cache: monitored_l3(&name)?, files })
        };
        folders(&folder).unwrap_or_default().into_iter().filter_map(files).collect()
    }

    /// The readings of the last round, by group and cache.
    pub fn readings(&self) -> &[ResctrlReading] {
        &self.readings
    }

    /// Whether there was a reading.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    pub fn activity(&self) -> Activity {
        if self.groups.is_empty() {
            return Activity::Degraded {
                reason: format!("{} has no groups LSR, LS and BE with mon_data", self.root.display()).into(),
                remedy: "mount resctrl on a machine with cache monitoring, and turn the strategy RdtResctrl on",
            };
        }
        self.reader.activity()
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::Version;

    use super::*;
    use crate::collect::tree::Tree;

    #[test]
    fn groups_are_read_with_their_caches() {
        let tree = Tree::new(Version::V1);
        let mut collector = ResctrlCollector::new(&tree.roots());
        collector.collect();
        assert!(matches!(collector.activity(), Activity::Degraded { .. }));
        for (path, text) in [
            ("LS/mon_data/mon_L3_01/llc_occupancy", "1024\n"),
            ("LS/mon_data/mon_L3_01/mbm_local_bytes", "Unavailable\n"),
            ("LS/mon_data/mon_L3_01/mbm_total_bytes", "4096\n"),
            ("BE/mon_data/mon_L3_00/llc_occupancy", "7\n"),
            ("BE/mon_data/mon_MB_00/llc_occupancy", "7\n"),
        ] {
            tree.write(&format!("sysfs/resctrl/{path}"), text);
        }
        collector.collect();
        let reading = |group, cache, occupancy, total| ResctrlReading {
            group,
            cache,
            occupancy_bytes: Some(occupancy),
            local_bytes: None,
            total_bytes: total,
        };
        assert_eq!(collector.readings(), [reading("LS", 1, 1024, Some(4096)), reading("BE", 0, 7, None)]);
        assert_eq!((collector.has_started(), collector.activity()), (true, Activity::Active));
    }
}
