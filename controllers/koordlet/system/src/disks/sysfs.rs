//! Disks as sysfs and the table of mounts show them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{DeviceNumber, Disks, group_of_mapper_name, mounts};
use crate::{
    file_tree::{FileTree, Reader},
    files::Roots,
    parse_error::ParseError,
    text::Field,
};

/// Devices in `block` that are no disks: they have no hardware, or are made of other devices.
const NO_DISKS: [&str; 6] = ["loop", "ram", "zram", "dm-", "sr", "fd"];
/// How deep devices may lie on each other, such as a volume on an encrypted one on a partition.
const DEPTH_MAX: usize = 8;

impl Disks {
    /// Reads `block` of sysfs, and the mounts of the first process, which are those of the host; those of this process where the first one's
    /// cannot be read. No program is run.
    ///
    /// A volume group that has no active logical volume is not visible there.
    pub fn discover(tree: &dyn FileTree, roots: &Roots) -> Self {
        let mut reader = Reader::new(tree);
        let block = roots.sys.join("block");
        let names = reader.names(&block);
        let mut disks = Self::default();
        for name in names.iter().filter(|name| !NO_DISKS.iter().any(|prefix| name.starts_with(prefix))) {
            disks.add_disk(&mut reader, &block.join(name), name);
        }
        for name in names.iter().filter(|name| name.starts_with("dm-")) {
            disks.add_mapped(&mut reader, &block, name);
        }
        let mountinfo = ["1/mountinfo", "self/mountinfo"].map(|path| reader.text(&roots.proc.join(path)));
        if let Some(mountinfo) = mountinfo.into_iter().flatten().next() {
            disks.mounts = mounts::parse_mountinfo(&mountinfo);
        }
        disks.skipped = reader.skipped;
        disks
    }

    /// A disk with its partitions.
    fn add_disk(&mut self, reader: &mut Reader, folder: &Path, name: &str) {
        let Some(number) = device_number(reader, folder) else { return };
        let disk = device_name(name);
        for partition in reader.names(folder).iter().filter(|partition| partition.starts_with(name)) {
            let folder = folder.join(partition);
            if reader.text(&folder.join("partition")).is_none() {
                continue;
            }
            if let Some(number) = device_number(reader, &folder) {
                self.names.insert(number, device_name(partition));
            }
            self.devices.insert(device_name(partition), BTreeSet::from([disk.clone()]));
        }
        self.names.insert(number, disk.clone());
        self.by_name.insert(disk, number);
    }

    /// A device of the device mapper, and the volume group if it is a logical volume.
    fn add_mapped(&mut self, reader: &mut Reader, block: &Path, name: &str) {
        let folder = block.join(name);
        let under = self.disks_under(reader, block, name, 0);
        let text = |file: &str| {
            reader.text(&folder.join("dm").join(file)).and_then(|text| String::from_utf8(text).ok()).unwrap_or_default()
        };
        let (mapper, uuid) = (text("name"), text("uuid"));
        if let Some(group) = group_of_mapper_name(&mapper).filter(|_| uuid.starts_with("LVM-")) {
            self.volume_groups.entry(group).or_default().extend(under.iter().cloned());
        }
        if let Some(number) = device_number(reader, &folder) {
            self.names.insert(number, name.to_owned());
        }
        self.devices.insert(format!("mapper/{mapper}"), under.clone());
        self.devices.insert(name.to_owned(), under);
    }

    /// The names of the disks on which a device lies.
    fn disks_under(&self, reader: &Reader, block: &Path, name: &str, depth: usize) -> BTreeSet<String> {
        let known = device_name(name);
        if self.by_name.contains_key(&known) {
            return BTreeSet::from([known]);
        }
        if !name.starts_with("dm-") {
            return self.devices.get(&known).cloned().unwrap_or_default();
        }
        if depth == DEPTH_MAX {
            return BTreeSet::new();
        }
        let slaves: PathBuf = block.join(name).join("slaves");
        let slaves = reader.names(&slaves);
        slaves.iter().flat_map(|slave| self.disks_under(reader, block, slave, depth + 1)).collect()
    }
}

/// Sysfs writes an exclamation mark in place of a slash.
fn device_name(name: &str) -> String {
    name.replace('!', "/")
}

fn device_number(reader: &mut Reader, folder: &Path) -> Option<DeviceNumber> {
    reader.parsed(&folder.join("dev"), |text| -> Result<_, ParseError> {
        let text = text.trim_ascii();
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| Field { file: "dev", field: "value" }.malformed(text, "a device number such as 253:0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_tree::RecordedTree;

    const MOUNTS: &str = "22 27 0:21 / /proc rw - proc proc rw\n\
        27 1 253:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard\n\
        28 27 252:1 / /data\\040dir rw - ext4 /dev/mapper/crypt rw\n\
        29 27 0:40 /sub /var/lib rw - btrfs /dev/nvme0n1p2 rw\n";

    fn discover(files: &[(&str, &str)]) -> Disks {
        let tree: RecordedTree = files.iter().map(|(path, text)| (*path, format!("{text}\n"))).collect();
        Disks::discover(&tree, &Roots { sys: "/sys".into(), proc: "/proc".into(), ..Roots::host() })
    }

    /// The disks of the recorded cases, and a volume on an encrypted partition of a third one.
    fn machine() -> Disks {
        discover(&[
            ("/sys/block/vda/dev", "253:0"),
            ("/sys/block/vda/vda1/dev", "253:1"),
            ("/sys/block/vda/vda1/partition", "1"),
            ("/sys/block/vda/queue/rotational", "0"),
            ("/sys/block/vdb/dev", "253:16"),
            ("/sys/block/nvme0n1/dev", "259:0"),
            ("/sys/block/nvme0n1/nvme0n1p2/dev", "259:7"),
            ("/sys/block/nvme0n1/nvme0n1p2/partition", "2"),
            ("/sys/block/cciss!c0d0/dev", "104:0"),
            ("/sys/block/loop0/dev", "7:0"),
            ("/sys/block/dm-0/dev", "252:0"),
            ("/sys/block/dm-0/dm/name", "yoda--pool0-yoda--vol1"),
            ("/sys/block/dm-0/dm/uuid", "LVM-aBcD"),
            ("/sys/block/dm-0/slaves/vdb/dev", "253:16"),
            ("/sys/block/dm-1/dev", "252:1"),
            ("/sys/block/dm-1/dm/name", "crypt"),
            ("/sys/block/dm-1/dm/uuid", "CRYPT-LUKS2-1"),
            ("/sys/block/dm-1/slaves/nvme0n1p2/dev", "259:7"),
            ("/sys/block/dm-2/dev", "252:2"),
            ("/sys/block/dm-2/dm/name", "vg-lv"),
            ("/sys/block/dm-2/dm/uuid", "LVM-eFgH"),
            ("/sys/block/dm-2/slaves/dm-1/dev", "252:1"),
            ("/sys/block/dm-2/slaves/vdb/dev", "253:16"),
            ("/proc/1/mountinfo", MOUNTS),
        ])
    }

    #[test]
    fn devices_have_the_number_of_their_disk() {
        let disks = machine();
        let number = |path: &str| disks.of_device(path).map(|number| number.to_string());
        for (path, expected) in [
            ("/dev/vda", Some("253:0")),
            ("/dev/vda1", Some("253:0")),
            ("/dev/vdb", Some("253:16")),
            ("/dev/nvme0n1p2", Some("259:0")),
            ("/dev/cciss/c0d0", Some("104:0")),
            ("/dev/dm-0", Some("253:16")),
            ("/dev/mapper/yoda--pool0-yoda--vol1", Some("253:16")),
            ("/dev/yoda-pool0/yoda-vol1", Some("253:16")),
            ("/dev/mapper/crypt", Some("259:0")),
            ("/dev/loop0", None),
            ("/dev/vdz", None),
            ("vda", None),
            ("", None),
        ] {
            assert_eq!(number(path).as_deref(), expected, "{path}");
        }
        let vda = DeviceNumber { major: 253, minor: 0 };
        assert_eq!(disks.path(vda).as_deref(), Some("/dev/vda"));
        assert_eq!(disks.path(DeviceNumber { minor: 1, ..vda }), None, "a partition");
        assert_eq!(disks.numbers().count(), 4);
    }

    #[test]
    fn volume_groups_have_the_disks_of_their_volumes() {
        let disks = machine();
        let numbers = |group| disks.of_volume_group(group).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(numbers("yoda-pool0"), ["253:16"]);
        assert_eq!(numbers("vg"), ["259:0", "253:16"]);
        assert_eq!(numbers("crypt"), Vec::<String>::new());
    }

    #[test]
    fn mounted_folders_have_the_disk_of_their_device() {
        let disks = machine();
        for (folder, expected) in [
            ("/", Some("253:0")),
            ("/data dir", Some("259:0")),
            ("/var/lib", Some("259:0")),
            ("/proc", None),
            ("/x", None),
        ] {
            let number = disks.of_mount_point(folder).map(|number| number.to_string());
            assert_eq!(number.as_deref(), expected, "{folder}");
        }
    }

    #[test]
    fn devices_that_lie_on_each_other_in_a_circle_have_no_disk() {
        let disks = discover(&[
            ("/sys/block/dm-0/dm/name", "a-b"),
            ("/sys/block/dm-0/slaves/dm-1/dev", "252:1"),
            ("/sys/block/dm-1/slaves/dm-0/dev", "252:0"),
            ("/sys/block/vda/dev", "none"),
        ]);
        assert_eq!((disks.of_device("/dev/dm-0"), disks.of_device("/dev/vda")), (None, None));
        let skipped: Vec<_> = disks.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(skipped, [r#"/sys/block/vda/dev: dev: value is "none", not a device number such as 253:0"#]);
        assert_eq!(discover(&[]), Disks::default());
    }
}
