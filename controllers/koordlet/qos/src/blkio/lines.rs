//! What a file says of disks: a line for each of them.

use koord_koordlet_system::{CgroupPath, DeviceNumber, Kernel, Resource};

/// The lines of a file, with what stands after the number of the disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lines(Vec<(DeviceNumber, String)>);

impl Lines {
    /// The lines of a file; none where it cannot be read.
    pub(super) fn of(kernel: &dyn Kernel, cgroup: &CgroupPath, resource: Resource) -> Self {
        Self::parse(&kernel.text(cgroup, resource).unwrap_or_default())
    }

    /// Reads lines that begin with the number of a disk; `default 100` and others are left out.
    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (disk, rest) = line.trim().split_once(' ')?;
            Some((disk.parse().ok()?, rest.trim().to_owned()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    pub(super) fn disks(&self) -> impl Iterator<Item = DeviceNumber> {
        self.0.iter().map(|(disk, _)| *disk)
    }

    pub(super) fn has(&self, disk: DeviceNumber) -> bool {
        self.disks().any(|known| known == disk)
    }

    /// Whether the line of a disk has all parameters of a text such as `enable=1 rpct=95`, compared as numbers where they are some.
    pub(super) fn has_parameters(&self, disk: DeviceNumber, text: &str) -> bool {
        let Some((_, line)) = self.0.iter().find(|(known, _)| *known == disk) else { return false };
        parameters(text)
            .all(|(name, wanted)| parameters(line).any(|(known, value)| known == name && is_equal(value, wanted)))
    }
}

fn parameters(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().filter_map(|parameter| parameter.split_once('='))
}

#[expect(clippy::float_cmp, reason = "both are written by the same rules")]
fn is_equal(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared_by_their_parameters() {
        let lines = Lines::parse("default 100\n253:0 enable=1 ctrl=user rpct=95.00 rlat=3000 min=1.00\n253:16 50\n");
        let [vda, vdb] = [DeviceNumber { major: 253, minor: 0 }, DeviceNumber { major: 253, minor: 16 }];
        assert_eq!(lines.disks().collect::<Vec<_>>(), [vda, vdb]);
        assert!(lines.has_parameters(vda, "enable=1 rpct=95 rlat=3000"));
        assert!(!lines.has_parameters(vda, "enable=0") && !lines.has_parameters(vdb, "enable=0"));
    }
}
