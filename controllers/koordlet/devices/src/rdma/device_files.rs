//! The device files by which a container uses RDMA cards.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use koord_koordlet_system::FileTree;

use crate::pci::PciAddress;

/// A character device for a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterDevice {
    /// On the node and in the container alike.
    pub path: String,
    pub major: u32,
    pub minor: u32,
    /// Everybody reads and writes.
    pub mode: u32,
}

/// Why a container does not get an RDMA card.
#[derive(Debug, thiserror::Error)]
pub enum CharacterDeviceError {
    /// The address of the card, as it was allocated, is none.
    #[error("{0:?} is not a PCI address")]
    Address(String),
    /// The card has no driver for programs.
    #[error("{}: the card has no verbs device; load the kernel module ib_uverbs", path.display())]
    NoVerbs {
        /// The folder in which it would be.
        path: PathBuf,
    },
    /// The device file is not there.
    #[error("{}: {source}", path.display())]
    File {
        /// The device file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is no character device.
    #[error("{}: not a character device", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
}

const FOLDER: &str = "/dev/infiniband";
/// Opens connections; all cards share it.
const CONNECTION_MANAGER: &str = "rdma_cm";
const MODE: u32 = 0o666;

/// The paths of the device files for cards, or virtual functions of cards, by their PCI addresses: the one of the connection manager first, then the first
/// `infiniband_verbs` device of each.
///
/// # Errors
///
/// An address is none, or its card has no verbs device.
pub fn rdma_device_paths<'a>(
    tree: &dyn FileTree,
    sys: &Path,
    addresses: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, CharacterDeviceError> {
    let mut paths = vec![format!("{FOLDER}/{CONNECTION_MANAGER}")];
    for text in addresses {
        let address = PciAddress::parse(text).ok_or_else(|| CharacterDeviceError::Address(text.to_owned()))?;
        let path = address.folder(sys).join("infiniband_verbs");
        let name = tree.names(&path).unwrap_or_default().into_iter().next();
        paths.push(format!("{FOLDER}/{}", name.ok_or(CharacterDeviceError::NoVerbs { path })?));
    }
    Ok(paths)
}

/// The numbers of device files, read below a root under which `/dev` of the node is mounted.
///
/// # Errors
///
/// A file is not there, or is no character device.
pub fn rdma_device_files(root: &Path, paths: Vec<String>) -> Result<Vec<CharacterDevice>, CharacterDeviceError> {
    let device = |path: String| {
        let file = root.join(path.trim_start_matches('/'));
        let metadata = match fs::metadata(&file) {
            Ok(metadata) if metadata.file_type().is_char_device() => metadata,
            Ok(_) => return Err(CharacterDeviceError::Kind { path: file }),
            Err(source) => return Err(CharacterDeviceError::File { path: file, source }),
        };
        let number = metadata.rdev();
        Ok(CharacterDevice { path, major: rustix::fs::major(number), minor: rustix::fs::minor(number), mode: MODE })
    };
    paths.into_iter().map(device).collect()
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::RecordedTree;

    use super::*;

    #[test]
    fn a_container_gets_the_connection_manager_and_the_first_verbs_device_of_each_card() {
        let tree: RecordedTree = [
            ("/sys/bus/pci/devices/0000:1b:00.2/infiniband_verbs/uverbs4/dev", "231:196"),
            ("/sys/bus/pci/devices/0000:1b:00.2/infiniband_verbs/uverbs3/dev", "231:195"),
            ("/sys/bus/pci/devices/0000:1b:00.0/class", "0x020000"),
        ]
        .into_iter()
        .collect();
        let paths = |addresses: &[&str]| {
            rdma_device_paths(&tree, Path::new("/sys"), addresses.iter().copied()).map_err(|error| error.to_string())
        };
        assert_eq!(paths(&["0000:1b:00.2"]).unwrap(), ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs3"]);
        assert_eq!(
            paths(&["0000:1b:00.0"]).unwrap_err(),
            "/sys/bus/pci/devices/0000:1b:00.0/infiniband_verbs: the card has no verbs device; load the kernel module ib_uverbs"
        );
        assert_eq!(paths(&["../../etc"]).unwrap_err(), r#""../../etc" is not a PCI address"#);
    }

    #[test]
    fn device_files_have_the_numbers_of_the_node() {
        let found = rdma_device_files(Path::new("/"), vec!["/dev/null".to_owned()]).unwrap();
        assert_eq!(found, [CharacterDevice { path: "/dev/null".into(), major: 1, minor: 3, mode: 0o666 }]);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("plain"), "").unwrap();
        let error = |path: &str| rdma_device_files(folder.path(), vec![path.to_owned()]).unwrap_err().to_string();
        assert!(error("/plain").ends_with("plain: not a character device"));
        assert!(error("/dev/infiniband/rdma_cm").contains("No such file"));
    }
}
