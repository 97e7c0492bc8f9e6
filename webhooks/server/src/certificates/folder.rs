//! Certificates in a folder: replaced all at once, as the kubelet replaces a mounted Secret.
//!
//! The files are links into `..data`, which is itself a link to a folder with the time in its name. One rename of
//! that link replaces all files, so that no reader sees a key of one set beside a certificate of another.
//!
//! Keys of certificate authorities are never written. What this writer did not make is neither replaced, removed nor followed: a pair that
//! an administrator put there stays, whatever is wrong with it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::CertificateSet;

/// A folder with certificates.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why the folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system does not let the program do it.
    #[error("cannot {verb} {path}: {source}; WEBHOOK_CERT_DIR must name a folder that this program may write")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A file stands in the way that somebody else put there.
    #[error(
        "{path} was not written by this program and is not replaced; repair the files there, or remove them to have new ones made"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

const DATA: &str = "..data";

impl Folder {
    /// The folder of a path. It is made when something is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is stored; none when there is nothing yet.
    pub fn read(&self) -> Result<Option<CertificateSet>, FolderError> {
        let mut entries = BTreeMap::new();
        for name in CertificateSet::all_names() {
            let file = self.path.join(name);
            match fs::read(&file) {
                Ok(bytes) => drop(entries.insert(name.to_owned(), bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(FolderError::Io { verb: "read", path: file, source }),
            }
        }
        Ok((!entries.is_empty()).then(|| CertificateSet::of_entries(&entries)))
    }

    /// Replaces everything at once. `now` names the new version. Nothing is written where that would replace a file of others.
    pub fn write(&self, set: &CertificateSet, now: Timestamp) -> Result<(), FolderError> {
        let failed = |verb, path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Io { verb, path, source }
        };
        let mut private = fs::DirBuilder::new();
        private.mode(0o700);
        private.recursive(true).create(&self.path).map_err(failed("make", &self.path))?;
        let entries = set.public_entries();
        if let Some(path) = self.foreign(entries.keys()) {
            return Err(FolderError::Foreign { path });
        }
        let before = fs::read_link(self.path.join(DATA)).ok();

        let version = format!("..{}-{}", now.as_nanosecond(), std::process::id());
        let folder = self.path.join(&version);
        private.create(&folder).map_err(failed("make", &folder))?;
        for (name, bytes) in &entries {
            write_private(&folder.join(name), bytes).map_err(failed("write", &folder.join(name)))?;
        }
        self.link(Path::new(&version), DATA)?;
        for name in entries.keys() {
            let target = Path::new(DATA).join(name);
            let file = self.path.join(name);
            if fs::read_link(&file).ok().as_deref() != Some(&target) {
                self.link(&target, name)?;
            }
        }
        for name in CertificateSet::all_names().filter(|name| !entries.contains_key(*name)) {
            let file = self.path.join(name);
            if fs::read_link(&file).is_ok_and(|target| target == Path::new(DATA).join(name)) {
                remove(&file).map_err(failed("remove", &file))?;
            }
        }
        if let Some(before) = before.filter(|before| before != Path::new(&version) && is_version(before)) {
            let before = self.path.join(before);
            remove_version(&before).map_err(failed("remove", &before))?;
        }
        Ok(())
    }

    /// The first of these files that somebody else put there. This writer's are links to its newest version.
    fn foreign<'a>(&self, names: impl Iterator<Item = &'a String>) -> Option<PathBuf> {
        let there = |path: &Path| fs::symlink_metadata(path).is_ok();
        let data = self.path.join(DATA);
        if there(&data) && !fs::read_link(&data).is_ok_and(|target| is_version(&target)) {
            return Some(data);
        }
        let is_ours = |name: &str, path: &Path| fs::read_link(path).is_ok_and(|to| to == Path::new(DATA).join(name));
        names
            .map(|name| (name, self.path.join(name)))
            .find(|(name, path)| there(path) && !is_ours(name, path))
            .map(|(_, path)| path)
    }

    /// Puts a link in place by one rename.
    fn link(&self, target: &Path, name: &str) -> Result<(), FolderError> {
        let (file, temporary) = (self.path.join(name), self.path.join(format!("..{name}.new")));
        let failed = |source| FolderError::Io { verb: "replace", path: file.clone(), source };
        remove(&temporary).map_err(failed)?;
        symlink(target, &temporary).map_err(failed)?;
        fs::rename(&temporary, &file).map_err(failed)
    }
}

/// Whether a link leads to a version that this writer made: a name in the same folder, of the form `..TIME-PROCESS`.
fn is_version(target: &Path) -> bool {
    let name = target.to_str().and_then(|name| name.strip_prefix("..")).unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(time, process)| is_number(time) && is_number(process))
}

/// Removes the files of a version, and the folder if nothing else is in it.
fn remove_version(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => {}
        _ => return Ok(()),
    }
    for name in CertificateSet::all_names() {
        remove(&folder.join(name))?;
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            tracing::warn!(folder = %folder.display(), "an old version holds other files and is left there");
            Ok(())
        }
        removed => removed,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read again: everything but the key of the authority.
    fn set(text: &str) -> CertificateSet {
        CertificateSet { ca_certs: text.into(), key: text.into(), cert: text.into(), ..CertificateSet::default() }
    }

    fn now(nanosecond: i128) -> Timestamp {
        Timestamp::from_nanosecond(nanosecond).unwrap()
    }

    #[test]
    fn a_written_set_is_read_again_and_old_versions_are_gone() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().join("a/b"));
        assert_eq!(folder.read().unwrap(), None);
        for (round, text) in ["one", "two", "three"].iter().enumerate() {
            folder.write(&set(text), now(round as i128 + 1)).unwrap();
            assert_eq!(folder.read().unwrap(), Some(set(text)));
        }
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("..")).count(), 2, "..data and one version");
    }

    #[test]
    fn files_of_others_are_read_and_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let names = ["ca-key.pem", "ca-cert.pem", "key.pem", "tls.key", "cert.pem", "tls.crt"];
        for name in names {
            fs::write(home.path().join(name), "theirs").unwrap();
        }
        let (folder, theirs) = (Folder::new(home.path()), CertificateSet { ca_key: "theirs".into(), ..set("theirs") });
        let stands = |name: &str| {
            let error = folder.write(&set("new"), now(1)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} was not written", home.path().join(name).display())), "{error}");
        };
        assert_eq!(folder.read().unwrap(), Some(theirs.clone()));
        stands("ca-cert.pem");
        assert_eq!(folder.read().unwrap(), Some(theirs));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), names.len(), "and nothing is put beside them");
        // One that is left is enough, also where the others are links as the kubelet or this writer makes them.
        names[1..]
            .iter()
            .filter(|name| **name != "tls.crt")
            .for_each(|name| fs::remove_file(home.path().join(name)).unwrap());
        stands("tls.crt");
        fs::remove_file(home.path().join("tls.crt")).unwrap();
        folder.write(&set("new"), now(1)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(CertificateSet { ca_key: "theirs".into(), ..set("new") }));
        fs::remove_file(home.path().join("tls.crt")).unwrap();
        fs::write(home.path().join("tls.crt"), "theirs").unwrap();
        stands("tls.crt");
        assert_eq!(fs::read_to_string(home.path().join("tls.crt")).unwrap(), "theirs");
    }

    #[test]
    fn keys_of_authorities_are_never_written_and_those_of_an_earlier_version_go() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let earlier = home.path().join("..1-1");
        fs::create_dir(&earlier).unwrap();
        fs::write(earlier.join("ca-key.pem"), "SECRET").unwrap();
        symlink("..1-1", home.path().join(DATA)).unwrap();
        symlink("..data/ca-key.pem", home.path().join("ca-key.pem")).unwrap();
        let during = CertificateSet {
            ca_key: "SECRET".into(),
            next: Some(("SECRET".into(), "next".into())),
            changed_at: Some(now(0)),
            ..set("x")
        };
        folder.write(&during, now(2)).unwrap();
        assert!(!earlier.exists());
        let mut names = Vec::new();
        for entry in fs::read_dir(home.path()).unwrap().map(Result::unwrap) {
            names.push(entry.file_name().into_string().unwrap());
            for file in fs::read_dir(home.path().join(DATA)).unwrap().map(Result::unwrap) {
                assert!(!fs::read_to_string(file.path()).unwrap().contains("SECRET"), "{file:?}");
            }
        }
        names.retain(|name| !name.starts_with(".."));
        names.sort();
        assert_eq!(names, ["ca-cert.pem", "ca-changed-at", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
        folder.write(&set("x"), now(3)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(set("x")), "the time of a finished change is gone");
    }

    #[test]
    fn only_what_this_writer_made_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        fs::create_dir(&victim).unwrap();
        for name in ["precious", "tls.key"] {
            fs::write(victim.join(name), "kept").unwrap();
        }
        let certificates = home.path().join("certificates");
        fs::create_dir(&certificates).unwrap();
        symlink("../victim", certificates.join("..1-1")).unwrap();
        let folder = Folder::new(&certificates);
        let absolute = victim.to_str().unwrap();
        let links = ["../victim", "..", "..1-1/../../victim", "..1-1", "..mine", absolute];
        for (number, target) in links.iter().enumerate() {
            remove(&certificates.join(DATA)).unwrap();
            symlink(target, certificates.join(DATA)).unwrap();
            let written = folder.write(&set("x"), now(number as i128 + 1));
            assert_eq!(written.is_ok(), *target == "..1-1", "{target}");
            for name in ["precious", "tls.key"] {
                assert_eq!(fs::read_to_string(victim.join(name)).unwrap(), "kept", "{target}");
            }
        }
        remove(&certificates.join(DATA)).unwrap();
        folder.write(&set("x"), now(99)).unwrap();
        // A version with a file of another program keeps it.
        let version = certificates.join(fs::read_link(certificates.join(DATA)).unwrap());
        fs::write(version.join("notes"), "kept").unwrap();
        folder.write(&set("y"), now(100)).unwrap();
        assert_eq!(fs::read_dir(&version).unwrap().count(), 1);
    }

    #[test]
    fn folder_and_files_are_their_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().join("new"));
        folder.write(&set("x"), now(1)).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path().to_owned()), 0o700);
        assert_eq!(mode(folder.path().join(DATA)), 0o700);
        assert_eq!(mode(folder.path().join("tls.key")), 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_which_setting_to_change() {
        let error = Folder::new("/proc/nowhere").write(&set("x"), now(1)).unwrap_err();
        assert!(error.to_string().contains("WEBHOOK_CERT_DIR"), "{error}");
    }
}
