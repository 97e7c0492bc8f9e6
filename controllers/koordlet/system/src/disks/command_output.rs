//! Disks as the programs `lsblk`, `vgs`, `lvs` and `findmnt` print them, for trees that lack the files of sysfs.

use std::collections::{BTreeMap, BTreeSet};

use super::{DeviceNumber, Disks, Mount, mapper_name};

/// What four programs print. Programs that are missing print nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandOutput<'a> {
    /// `lsblk -P -o NAME,TYPE,MAJ:MIN`.
    pub lsblk: &'a str,
    /// `vgs --noheadings`, with the name of the group, the number of its physical volumes and their names.
    pub vgs: &'a str,
    /// `lvs --noheadings`, with the names of the logical volume and its group.
    pub lvs: &'a str,
    /// `findmnt -P -o TARGET,SOURCE`.
    pub findmnt: &'a str,
}

/// From a disk on, so many minor numbers are those of its partitions.
const MINORS_OF_DISK: u32 = 16;

impl Disks {
    /// Lines that are not understood are ignored.
    pub fn of_commands(output: CommandOutput) -> Self {
        let mut disks = Self::default();
        let mut partitions = Vec::new();
        for row in output.lsblk.lines().map(pairs) {
            let number = row.get("MAJ:MIN").or_else(|| row.get("MAJ_MIN")).and_then(|number| number.parse().ok());
            let (Some(name), Some(kind), Some(number)) = (row.get("NAME"), row.get("TYPE"), number) else { continue };
            match kind.as_str() {
                "disk" => {
                    disks.by_name.insert(name.clone(), number);
                    disks.names.insert(number, name.clone());
                }
                "part" => partitions.push((name.clone(), number)),
                "lvm" => {
                    disks.names.insert(number, format!("mapper/{name}"));
                }
                _ => {}
            }
        }
        for (partition, number) in partitions {
            if let Some(disk) = disks.disk_of_partition(&partition, number) {
                disks.devices.insert(partition.clone(), BTreeSet::from([disk]));
            }
            disks.names.insert(number, partition);
        }
        disks.add_volumes(output);
        let mounts = output.findmnt.lines().map(pairs);
        disks.mounts = mounts
            .filter_map(|mut row| {
                // A folder of the file system stands in brackets behind its device.
                let source = row.remove("SOURCE")?.split('[').next().unwrap_or_default().to_owned();
                Some((row.remove("TARGET")?, Mount { source, device: None }))
            })
            .collect();
        disks
    }

    /// The disk with the longest name that the partition's begins with, else that with the numbers before.
    fn disk_of_partition(&self, partition: &str, number: DeviceNumber) -> Option<String> {
        let by_name =
            self.by_name.keys().filter(|disk| partition.starts_with(disk.as_str())).max_by_key(|disk| disk.len());
        let first = DeviceNumber { minor: number.minor - number.minor % MINORS_OF_DISK, ..number };
        by_name.or_else(|| self.names.get(&first).filter(|name| self.by_name.contains_key(*name))).cloned()
    }

    fn add_volumes(&mut self, output: CommandOutput) {
        for line in output.vgs.lines() {
            let mut fields = line.split_whitespace();
            let (Some(group), Some(volume)) = (fields.next(), fields.nth(1)) else { continue };
            let name = volume.strip_prefix("/dev/").unwrap_or(volume);
            let under = if self.by_name.contains_key(name) {
                BTreeSet::from([name.to_owned()])
            } else {
                self.devices.get(name).cloned().unwrap_or_default()
            };
            self.volume_groups.entry(group.to_owned()).or_default().extend(under);
        }
        for line in output.lvs.lines() {
            let mut fields = line.split_whitespace();
            let (Some(volume), Some(group)) = (fields.next(), fields.next()) else { continue };
            let under = self.volume_groups.get(group).cloned().unwrap_or_default();
            self.devices.insert(mapper_name(group, volume), under);
        }
    }
}

/// Reads `NAME="vda" TYPE="disk"`.
fn pairs(line: &str) -> BTreeMap<&str, String> {
    let mut pairs = BTreeMap::new();
    let mut rest = line;
    while let Some((key, behind)) = rest.split_once("=\"") {
        let Some((value, behind)) = behind.split_once('"') else { break };
        pairs.insert(key.trim(), value.replace("\\x20", " "));
        rest = behind;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the recorded cases print.
    const RECORDED: CommandOutput = CommandOutput {
        lsblk: "NAME=\"vda\" TYPE=\"disk\" MAJ:MIN=\"253:0\"\nNAME=\"vda1\" TYPE=\"part\" MAJ:MIN=\"253:1\"\n\
            NAME=\"vdb\" TYPE=\"disk\" MAJ:MIN=\"253:16\"\nNAME=\"yoda--pool0-yoda--vol1\" TYPE=\"lvm\" MAJ:MIN=\"252:0\"\n",
        vgs: "  yoda-pool0   1 /dev/vdb\n",
        lvs: "  yoda-vol1 yoda-pool0\n",
        findmnt: "TARGET=\"/\" SOURCE=\"/dev/vda1\"\nTARGET=\"/data\" SOURCE=\"/dev/mapper/yoda--pool0-yoda--vol1[/sub]\"\n\
            TARGET=\"/a\\x20b\" SOURCE=\"/dev/vdb\"\nTARGET=\"/proc\" SOURCE=\"proc\"\n",
    };

    #[test]
    fn devices_volume_groups_and_mounts_have_the_number_of_their_disk() {
        let disks = Disks::of_commands(RECORDED);
        let text = |number: Option<DeviceNumber>| number.map(|number| number.to_string()).unwrap_or_default();
        for (path, expected) in [
            ("/dev/vda", "253:0"),
            ("/dev/vda1", "253:0"),
            ("/dev/vdb", "253:16"),
            ("/dev/mapper/yoda--pool0-yoda--vol1", "253:16"),
            ("/dev/yoda-pool0/yoda-vol1", "253:16"),
            ("/dev/vdz", ""),
        ] {
            assert_eq!(text(disks.of_device(path)), expected, "{path}");
        }
        assert_eq!(disks.of_volume_group("yoda-pool0").map(|disk| text(Some(disk))).collect::<Vec<_>>(), ["253:16"]);
        for (folder, expected) in [("/", "253:0"), ("/data", "253:16"), ("/a b", "253:16"), ("/proc", ""), ("/x", "")] {
            assert_eq!(text(disks.of_mount_point(folder)), expected, "{folder}");
        }
    }

    #[test]
    fn partitions_belong_to_the_disk_that_they_are_named_for() {
        let lsblk = "NAME=\"nvme0n1\" TYPE=\"disk\" MAJ_MIN=\"259:3\"\nNAME=\"nvme0n1p17\" TYPE=\"part\" MAJ_MIN=\"259:40\"\n\
            NAME=\"other\" TYPE=\"part\" MAJ_MIN=\"8:17\"\nNAME=\"sdb\" TYPE=\"disk\" MAJ_MIN=\"8:16\"\n";
        let disks = Disks::of_commands(CommandOutput { lsblk, ..CommandOutput::default() });
        let number = |path: &str| disks.of_device(path).map(|number| number.to_string());
        assert_eq!(number("/dev/nvme0n1p17").as_deref(), Some("259:3"));
        assert_eq!(number("/dev/other").as_deref(), Some("8:16"));
    }

    #[test]
    fn lines_that_are_not_understood_are_ignored() {
        let lsblk = "NAME=\"vda\" TYPE=\"disk\"\nNAME=\"vdb\" TYPE=\"disk\" MAJ:MIN=\"x\"\nNAME=\"\n=\"\n\"\"=\n";
        let output = CommandOutput { lsblk, vgs: "a\n\n", lvs: "b\n", findmnt: "TARGET=\"/\"\n" };
        assert_eq!(Disks::of_commands(output), Disks::default());
    }
}
