//! Disks: which number a device, a volume group or a mounted folder has in `blkio` and `io` files.

mod command_output;
mod mounts;
mod sysfs;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

pub use command_output::CommandOutput;

use crate::file_tree::SkippedFile;

/// The number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device of the driver.
    pub minor: u32,
}

/// A text is no device number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no device number such as 253:0")]
pub struct DeviceNumberError(String);

/// The disks of a machine, and what lies on them. Partitions, logical volumes and file systems have no limits of their own: their disk has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disks {
    /// Disks by their name, such as `vda`.
    by_name: BTreeMap<String, DeviceNumber>,
    /// Names of the disks under other devices: `vda1`, `dm-0`, `mapper/vg-lv`.
    devices: BTreeMap<String, BTreeSet<String>>,
    /// Names of the disks under volume groups.
    volume_groups: BTreeMap<String, BTreeSet<String>>,
    /// Names of all block devices by their number.
    names: BTreeMap<DeviceNumber, String>,
    mounts: BTreeMap<String, Mount>,
    /// Files that are there and were not understood.
    pub skipped: Vec<SkippedFile>,
}

/// What is mounted on a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The path of the device, such as `/dev/vda1`.
    source: String,
    /// `None` where it is not known, and with file systems that make numbers up.
    device: Option<DeviceNumber>,
}

impl Disks {
    /// The disk of a device such as `/dev/vda`, `/dev/vda1`, `/dev/dm-0`, `/dev/mapper/vg-lv` or `/dev/vg/lv`; the first one of several.
    pub fn of_device(&self, path: &str) -> Option<DeviceNumber> {
        let name = path.strip_prefix("/dev/")?;
        self.of_name(name).or_else(|| {
            let (group, volume) = name.split_once('/')?;
            self.of_name(&mapper_name(group, volume))
        })
    }

    /// The disks of an LVM volume group.
    pub fn of_volume_group(&self, name: &str) -> impl Iterator<Item = DeviceNumber> {
        let disks = self.volume_groups.get(name).into_iter().flatten();
        disks.filter_map(|disk| self.by_name.get(disk).copied())
    }

    /// The disk of what is mounted on a folder.
    pub fn of_mount_point(&self, folder: &str) -> Option<DeviceNumber> {
        let mount = self.mounts.get(folder)?;
        let by_number = mount.device.and_then(|device| self.of_name(self.names.get(&device)?));
        by_number.or_else(|| self.of_device(&mount.source))
    }

    /// The path of a disk, such as `/dev/vda`.
    pub fn path(&self, disk: DeviceNumber) -> Option<String> {
        let name = self.names.get(&disk)?;
        self.by_name.contains_key(name).then(|| format!("/dev/{name}"))
    }

    /// The numbers of all disks, in the order of their names.
    pub fn numbers(&self) -> impl Iterator<Item = DeviceNumber> {
        self.by_name.values().copied()
    }

    fn of_name(&self, name: &str) -> Option<DeviceNumber> {
        let disk = self.by_name.get(name);
        disk.or_else(|| self.devices.get(name)?.iter().find_map(|disk| self.by_name.get(disk))).copied()
    }
}

/// The name that the device mapper gives a logical volume: dashes are doubled, and one dash separates group and volume.
fn mapper_name(group: &str, volume: &str) -> String {
    format!("mapper/{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
}

/// The volume group in a name of the device mapper.
fn group_of_mapper_name(name: &str) -> Option<String> {
    let separator = name.replace("--", "__").find('-')?;
    name.get(..separator).map(|group| group.replace("--", "-"))
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = DeviceNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| crate::text::unsigned_32(text.as_bytes());
        let numbers = text.split_once(':').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let (major, minor) = numbers.ok_or_else(|| DeviceNumberError(text.chars().take(40).collect()))?;
        Ok(Self { major, minor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_two_numbers() {
        let number: DeviceNumber = "253:16".parse().unwrap();
        assert_eq!((number, number.to_string().as_str()), (DeviceNumber { major: 253, minor: 16 }, "253:16"));
        for text in ["", "253", "253:", ":0", "a:0", "1:2:3", "-1:0", " 1:0"] {
            let error = text.parse::<DeviceNumber>().unwrap_err();
            assert_eq!(error.to_string(), format!("{text:?} is no device number such as 253:0"));
        }
    }

    #[test]
    fn names_of_logical_volumes_double_their_dashes() {
        assert_eq!(mapper_name("yoda-pool0", "yoda-vol1"), "mapper/yoda--pool0-yoda--vol1");
        for (name, group) in [
            ("yoda--pool0-yoda--vol1", Some("yoda-pool0")),
            ("vg-lv", Some("vg")),
            ("vg-thin-tpool", Some("vg")),
            ("vg", None),
            ("a---b", Some("a-")),
            ("ä--ö-x", Some("ä-ö")),
        ] {
            assert_eq!(group_of_mapper_name(name).as_deref(), group, "{name}");
        }
    }
}
