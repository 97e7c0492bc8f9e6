//! Certificates in a folder: replaced all at once, as the kubelet replaces a mounted Secret.
//!
//! The files are links into `..data`, which is itself a link to a folder with the time in its name. One rename of
//! that link replaces all files, so that no reader sees a key of one set beside a certificate of another.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{OpenOptionsExt, symlink},
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
#[error("cannot {verb} {path}: {source}; WEBHOOK_CERT_DIR must name a folder that this program may write")]
pub struct FolderError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
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
        for name in CertificateSet::default().entries().keys().map(String::as_str).chain(CertificateSet::OTHER_ENTRIES)
        {
            let file = self.path.join(name);
            match fs::read(&file) {
                Ok(bytes) => drop(entries.insert(name.to_owned(), bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(FolderError { verb: "read", path: file, source }),
            }
        }
        Ok((!entries.is_empty()).then(|| CertificateSet::of_entries(&entries)))
    }

    /// Replaces everything at once. `now` names the new version.
    pub fn write(&self, set: &CertificateSet, now: Timestamp) -> Result<(), FolderError> {
        let failed = |verb, path: &Path| {
            let path = path.to_owned();
            move |source| FolderError { verb, path, source }
        };
        fs::create_dir_all(&self.path).map_err(failed("make", &self.path))?;
        let before = fs::read_link(self.path.join(DATA)).ok();

        let version = format!("..{}-{}", now.as_nanosecond(), std::process::id());
        let folder = self.path.join(&version);
        fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        let entries = set.entries();
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
        for name in CertificateSet::OTHER_ENTRIES.iter().filter(|name| !entries.contains_key(**name)) {
            remove(&self.path.join(name)).map_err(failed("remove", &self.path.join(name)))?;
        }
        // Only a version that this writer made is removed: the name begins with two dots and holds nothing else.
        if let Some(before) = before.filter(|before| before.to_string_lossy().starts_with("..")) {
            let before = self.path.join(before);
            if before != folder {
                fs::remove_dir_all(&before).map_err(failed("remove", &before))?;
            }
        }
        Ok(())
    }

    /// Puts a link in place by one rename.
    fn link(&self, target: &Path, name: &str) -> Result<(), FolderError> {
        let (file, temporary) = (self.path.join(name), self.path.join(format!("..{name}.new")));
        let failed = |source| FolderError { verb: "replace", path: file.clone(), source };
        remove(&temporary).map_err(failed)?;
        symlink(target, &temporary).map_err(failed)?;
        fs::rename(&temporary, &file).map_err(failed)
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

    fn set(text: &str) -> CertificateSet {
        CertificateSet {
            ca_key: text.into(),
            ca_certs: text.into(),
            key: text.into(),
            cert: text.into(),
            ..CertificateSet::default()
        }
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
    fn plain_files_of_somebody_else_are_read_and_replaced() {
        let home = tempfile::tempdir().unwrap();
        for name in ["ca-key.pem", "ca-cert.pem", "key.pem", "tls.key", "cert.pem", "tls.crt"] {
            fs::write(home.path().join(name), "old").unwrap();
        }
        let folder = Folder::new(home.path());
        assert_eq!(folder.read().unwrap(), Some(set("old")));
        folder.write(&set("new"), now(1)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(set("new")));
    }

    #[test]
    fn entries_of_a_finished_change_of_authority_disappear() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let during = CertificateSet { next: Some(("k".into(), "c".into())), changed_at: Some(now(0)), ..set("x") };
        folder.write(&during, now(1)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(during));
        folder.write(&set("x"), now(2)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(set("x")));
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_which_setting_to_change() {
        let error = Folder::new("/proc/nowhere").write(&set("x"), now(1)).unwrap_err();
        assert!(error.to_string().contains("WEBHOOK_CERT_DIR"), "{error}");
    }
}
