//! Certificates in a folder: replaced all at once, as the kubelet replaces a mounted Secret.
//!
//! The files are links into `..data`, which is itself a link to a folder with the time in its name. One rename of
//! that link replaces all files, so that no reader sees a key of one set beside a certificate of another.
//!
//! Keys of certificate authorities are never written. What this writer did not make is neither removed nor followed.

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
        for name in CertificateSet::all_names() {
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
        let mut private = fs::DirBuilder::new();
        private.mode(0o700);
        private.recursive(true).create(&self.path).map_err(failed("make", &self.path))?;
        let before = fs::read_link(self.path.join(DATA)).ok();

        let version = format!("..{}-{}", now.as_nanosecond(), std::process::id());
        let folder = self.path.join(&version);
        private.create(&folder).map_err(failed("make", &folder))?;
        let entries = set.public_entries();
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

    /// Puts a link in place by one rename.
    fn link(&self, target: &Path, name: &str) -> Result<(), FolderError> {
        let (file, temporary) = (self.path.join(name), self.path.join(format!("..{name}.new")));
        let failed = |source| FolderError { verb: "replace", path: file.clone(), source };
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
    fn plain_files_of_another_program_are_read_and_replaced_but_its_authority_is_left() {
        let home = tempfile::tempdir().unwrap();
        for name in ["ca-key.pem", "ca-cert.pem", "key.pem", "tls.key", "cert.pem", "tls.crt"] {
            fs::write(home.path().join(name), "old").unwrap();
        }
        let folder = Folder::new(home.path());
        assert_eq!(folder.read().unwrap(), Some(CertificateSet { ca_key: "old".into(), ..set("old") }));
        folder.write(&set("new"), now(1)).unwrap();
        assert_eq!(folder.read().unwrap(), Some(CertificateSet { ca_key: "old".into(), ..set("new") }));
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
        for (number, target) in
            ["../victim", "..", "..1-1/../../victim", "..1-1", "..mine", absolute].iter().enumerate()
        {
            remove(&certificates.join(DATA)).unwrap();
            symlink(target, certificates.join(DATA)).unwrap();
            folder.write(&set("x"), now(number as i128 + 1)).unwrap();
            for name in ["precious", "tls.key"] {
                assert_eq!(fs::read_to_string(victim.join(name)).unwrap(), "kept", "{target}");
            }
        }
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
