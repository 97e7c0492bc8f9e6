//! `/proc/<pid>/mountinfo`: what is mounted where.

use std::collections::BTreeMap;

use super::{DeviceNumber, Mount};
use crate::text::{fields, lines};

/// The devices that are mounted, by their folder; the last one of several on one folder. File systems without a device are left out, and lines of
/// other forms are ignored.
pub(super) fn parse_mountinfo(text: &[u8]) -> BTreeMap<String, Mount> {
    lines(text).filter_map(mount).collect()
}

/// Reads `27 1 253:1 / /mnt rw,relatime shared:1 - ext4 /dev/vda1 rw`: any number of optional fields stand before the dash.
fn mount(line: &[u8]) -> Option<(String, Mount)> {
    let mut fields = fields(line);
    let device: DeviceNumber = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
    let folder = unescaped(fields.nth(1)?)?;
    fields.find(|field| *field == b"-")?;
    let source = unescaped(fields.nth(1)?)?;
    // File systems of several devices, such as btrfs, make up a number of the major 0.
    let device = Some(device).filter(|device| device.major != 0);
    (device.is_some() || source.starts_with("/dev/")).then_some((folder, Mount { source, device }))
}

/// The kernel writes blanks, newlines and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let digits =
            behind.get(..3).filter(|digits| *byte == b'\\' && digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        let code = digits.and_then(|digits| {
            digits.iter().try_fold(0_u8, |code, digit| code.checked_mul(8)?.checked_add(digit - b'0'))
        });
        bytes.push(code.unwrap_or(*byte));
        rest = if code.is_some() { behind.get(3..)? } else { behind };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_escaped_bytes_are_read() {
        let text = "27 1 253:1 / / rw,relatime - ext4 /dev/vda1 rw\n\
            40 27 253:17 / /mnt/a\\040b\\134c rw shared:1 master:2 - xfs /dev/vdb1 rw\n\
            41 27 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            45 27 0:40 /sub /var rw - btrfs /dev/vdd rw\n\
            42 27 253:33 / /mnt/a\\040b\\134c rw - xfs /dev/vdc1 rw\n\
            short\n43 1 253:1 / /no-dash rw ext4 /dev/vda1 rw\n44 1 x / /y rw - ext4 /dev/vda1 rw\n";
        let mounts: Vec<_> = parse_mountinfo(text.as_bytes())
            .into_iter()
            .map(|(folder, mount)| (folder, mount.source, mount.device.map(|device| device.to_string())))
            .collect();
        let mount = |folder: &str, source: &str, device: Option<&str>| {
            (folder.to_owned(), source.to_owned(), device.map(ToOwned::to_owned))
        };
        assert_eq!(
            mounts,
            [
                mount("/", "/dev/vda1", Some("253:1")),
                mount("/mnt/a b\\c", "/dev/vdc1", Some("253:33")),
                mount("/var", "/dev/vdd", None),
            ]
        );
    }

    #[test]
    fn a_backslash_without_digits_stays() {
        for (text, expected) in
            [("\\", "\\"), ("\\04", "\\04"), ("\\999", "\\999"), ("\\777", "\\777"), ("a\\011", "a\t")]
        {
            assert_eq!(unescaped(text.as_bytes()).as_deref(), Some(expected));
        }
        assert_eq!(unescaped(b"\\377"), None, "no UTF-8");
    }
}
