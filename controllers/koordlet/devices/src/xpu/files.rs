//! The folder of device files, from round to round.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use koord_koordlet_system::FileTree;
use serde_json::Value;

use super::XpuDevice;

/// The devices of all files of a folder.
///
/// A file that is no JSON array keeps the devices that it had last; an element of one that is not understood keeps what it was before, by its uuid, and is
/// left out otherwise. Either is named, and harms no other. A file that is gone takes its devices with it.
#[derive(Clone, Debug, Default)]
pub struct DeviceFiles {
    files: BTreeMap<String, File>,
    /// Why the folder cannot be read.
    folder_error: Option<DeviceFileError>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// What was read last: it is not read again while it stays the same.
    content: Option<Vec<u8>>,
    devices: Vec<XpuDevice>,
    errors: Vec<DeviceFileError>,
}

/// A device file, or a device of one, that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceFileError {
    /// The file or the folder cannot be read.
    #[error("{}: {reason}; it counts as it was last", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file is no list of devices.
    #[error("{}: {reason}; its devices stay as they were", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the place.
        reason: String,
    },
    /// One of its devices.
    #[error("{}: device {index}: {reason}", path.display())]
    Device {
        /// The file.
        path: PathBuf,
        /// The place in the list, from 0.
        index: usize,
        /// What is wrong, with the field.
        reason: String,
    },
    /// Two devices have one number.
    #[error("{}: device {uuid:?} has minor {minor} as another has; it is left out", path.display())]
    DuplicateMinor {
        /// The file of the second.
        path: PathBuf,
        /// The second.
        uuid: String,
        /// The number.
        minor: i32,
    },
}

impl DeviceFiles {
    /// Reads what has changed in the folder. One that is not there has no files.
    pub fn refresh(&mut self, tree: &dyn FileTree, folder: &Path) {
        self.folder_error = None;
        let names = match tree.names(folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.folder_error = Some(DeviceFileError::Read { path: folder.to_owned(), reason: error.to_string() });
                return;
            }
        };
        self.files.retain(|name, _| names.contains(name));
        for name in names {
            let path = folder.join(&name);
            match tree.read(&path) {
                Ok(content) => self.files.entry(name).or_default().take(&path, content),
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => {
                    self.files.remove(&name);
                }
                Err(error) => self.files.entry(name).or_default().refuse(&path, &error),
            }
        }
        self.name_duplicates(folder);
    }

    /// The devices, sorted by uuid.
    pub fn devices(&self) -> Vec<&XpuDevice> {
        let mut minors = BTreeSet::new();
        let devices = self.files.values().flat_map(|file| &file.devices);
        let mut devices: Vec<_> = devices.filter(|device| minors.insert(device.minor)).collect();
        devices.sort_by(|one, other| one.uuid.cmp(&other.uuid));
        devices
    }

    /// What is not understood now.
    pub fn errors(&self) -> impl Iterator<Item = &DeviceFileError> {
        self.folder_error.iter().chain(self.files.values().flat_map(|file| &file.errors))
    }

    /// The first device of a number counts, in the order of names of files.
    fn name_duplicates(&mut self, folder: &Path) {
        let mut minors = BTreeSet::new();
        for (name, file) in &mut self.files {
            file.errors.retain(|error| !matches!(error, DeviceFileError::DuplicateMinor { .. }));
            for XpuDevice { uuid, minor, .. } in file.devices.iter().filter(|device| !minors.insert(device.minor)) {
                let (path, uuid, minor) = (folder.join(name), uuid.clone(), *minor);
                file.errors.push(DeviceFileError::DuplicateMinor { path, uuid, minor });
            }
        }
    }
}

impl File {
    fn take(&mut self, path: &Path, content: Vec<u8>) {
        if self.content.as_ref() == Some(&content) {
            return;
        }
        self.errors.clear();
        let path = path.to_owned();
        match serde_json::from_slice::<Option<Vec<Value>>>(&content) {
            Ok(elements) => {
                let before = std::mem::take(&mut self.devices);
                for (index, element) in elements.unwrap_or_default().iter().enumerate() {
                    match XpuDevice::read(&element.to_string()) {
                        Ok(device) => self.devices.push(device),
                        Err(reason) => {
                            let uuid = element.get("uuid").and_then(Value::as_str).unwrap_or_default();
                            let same = before.iter().find(|device| device.uuid == uuid && !uuid.is_empty());
                            self.devices.extend(same.cloned());
                            self.errors.push(DeviceFileError::Device { path: path.clone(), index, reason });
                        }
                    }
                }
            }
            Err(error) => self.errors.push(DeviceFileError::Malformed { path, reason: error.to_string() }),
        }
        self.content = Some(content);
    }

    fn refuse(&mut self, path: &Path, error: &io::Error) {
        self.content = None;
        self.errors = vec![DeviceFileError::Read { path: path.to_owned(), reason: error.to_string() }];
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use koord_koordlet_system::HostTree;
    use proptest::prelude::*;

    use super::*;

    struct Folder(tempfile::TempDir, DeviceFiles);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap(), DeviceFiles::default())
        }

        /// Writes or removes files, and gives the minors of the devices and what is wrong.
        fn after(&mut self, files: &[(&str, Option<&str>)]) -> (Vec<i32>, Vec<String>) {
            for (name, content) in files {
                match content {
                    Some(content) => fs::write(self.0.path().join(name), content).unwrap(),
                    None => fs::remove_file(self.0.path().join(name)).unwrap(),
                }
            }
            self.1.refresh(&HostTree, self.0.path());
            let text =
                |error: &DeviceFileError| error.to_string().replace(&format!("{}/", self.0.path().display()), "");
            (self.1.devices().iter().map(|device| device.minor).collect(), self.1.errors().map(text).collect())
        }
    }

    fn device(uuid: &str, minor: &str) -> String {
        format!(r#"{{"uuid":"{uuid}","minor":{minor}}}"#)
    }

    fn list(devices: &[String]) -> String {
        format!("[{}]", devices.join(","))
    }

    #[test]
    fn a_malformed_file_harms_itself_alone_and_keeps_its_last_devices() {
        let mut folder = Folder::new();
        let good = list(&[device("b", "\"1\"")]);
        let other = list(&[device("a", "\"0\"")]);
        assert_eq!(folder.after(&[("a", Some("{")), ("b", Some(&good))]).0, [1]);
        assert_eq!(folder.after(&[("a", Some(&other))]), (vec![0, 1], vec![]));
        let malformed = folder.after(&[("a", Some("[{"))]);
        let error = "a: EOF while parsing an object at line 1 column 2; its devices stay as they were".to_owned();
        assert_eq!(malformed, (vec![0, 1], vec![error.clone()]));
        assert_eq!(folder.after(&[]), (vec![0, 1], vec![error]), "it is named as long as it is so");
        assert_eq!(folder.after(&[("a", Some("[]"))]), (vec![1], vec![]));
        assert_eq!(folder.after(&[("b", None)]), (vec![], vec![]));
    }

    #[test]
    fn a_malformed_device_keeps_what_it_was_and_leaves_the_others_alone() {
        let mut folder = Folder::new();
        let files = |minor: &str| list(&[device("a", minor), device("b", "\"1\"")]);
        let error = "a: device 0: minor cannot be a JSON number".to_owned();
        assert_eq!(folder.after(&[("a", Some(&files("0")))]), (vec![1], vec![error.clone()]));
        assert_eq!(folder.after(&[("a", Some(&files("\"0\"")))]), (vec![0, 1], vec![]));
        assert_eq!(folder.after(&[("a", Some(&files("3")))]), (vec![0, 1], vec![error]));
    }

    #[test]
    fn of_two_devices_with_one_number_the_first_counts() {
        let mut folder = Folder::new();
        let (first, second) = (list(&[device("z", "\"0\"")]), list(&[device("a", "\"0\""), device("b", "\"1\"")]));
        let found = folder.after(&[("1", Some(&first)), ("2", Some(&second))]);
        let error = r#"2: device "a" has minor 0 as another has; it is left out"#.to_owned();
        assert_eq!(found, (vec![1, 0], vec![error]));
        assert_eq!(folder.after(&[("1", None)]), (vec![0, 1], vec![]));
    }

    #[test]
    fn folders_and_missing_folders_are_no_files() {
        let mut folder = Folder::new();
        fs::create_dir(folder.0.path().join("ic-device-tmp")).unwrap();
        assert_eq!(folder.after(&[("a", Some("null"))]), (vec![], vec![]));
        let mut files = DeviceFiles::default();
        files.refresh(&HostTree, Path::new("/nowhere"));
        assert_eq!((files.devices().len(), files.errors().count()), (0, 0));
    }

    #[test]
    fn a_folder_that_cannot_be_read_keeps_its_devices() {
        let mut folder = Folder::new();
        folder.after(&[("a", Some(&list(&[device("a", "\"0\"")])))]);
        let file = folder.0.path().join("a");
        folder.1.refresh(&HostTree, &file);
        assert_eq!(folder.1.devices().len(), 1);
        assert!(folder.1.errors().next().unwrap().to_string().ends_with("(os error 20); it counts as it was last"));
    }

    proptest! {
        #[test]
        fn no_content_makes_it_panic(content in "[\\[\\]{}\":,a-z0-9\\-]{0,60}") {
            File::default().take(Path::new("a"), content.into_bytes());
        }

        #[test]
        fn no_field_makes_it_panic(minor in any::<String>(), peers in any::<String>(), amount in any::<String>()) {
            let element = serde_json::json!({"minor": minor, "resources": {"gpu-core": amount}, "topology": {"nodeID": minor,
                "p2pLinks": [{"peerMinor": peers, "type": "x"}]}});
            let _ = XpuDevice::read(&element.to_string());
        }
    }
}
