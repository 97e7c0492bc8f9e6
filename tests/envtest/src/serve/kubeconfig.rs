//! The file that leads clients to the server.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use base64::Engine;
use serde_json::json;

/// What a kubeconfig of one cluster and one user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Name of cluster and context.
    pub name: String,
    /// `https://host:port`.
    pub server: String,
    /// The authority's certificate, PEM.
    pub authority_pem: String,
    /// Name of the user.
    pub user: String,
    /// The user's bearer token.
    pub token: String,
}

/// Why a kubeconfig is not written.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// There is a file already.
    #[error("{} exists already and may lead to another cluster; name another file with --kubeconfig, or overwrite it with --force", .0.display())]
    Exists(PathBuf),
    /// There is a folder where the file should be.
    #[error("{} is a folder; name a file in it with --kubeconfig", .0.display())]
    Folder(PathBuf),
    /// The file system refuses.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Where the file should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// The text of the file. JSON is YAML, and every client reads it.
    pub fn to_text(&self) -> String {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority_pem);
        let value = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": {"server": self.server, "certificate-authority-data": authority}}],
            "users": [{"name": self.user, "user": {"token": self.token}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.user}}],
        });
        crate::yaml::to_text(&value)
    }

    /// Refuses early where [`Kubeconfig::write`] would refuse at the end, also because nothing can be written there.
    pub fn check(path: &Path, force: bool) -> Result<(), KubeconfigError> {
        if path.is_dir() {
            return Err(KubeconfigError::Folder(path.to_owned()));
        }
        if !force && fs::symlink_metadata(path).is_ok() {
            return Err(KubeconfigError::Exists(path.to_owned()));
        }
        let (part, written) = write_beside(path, "");
        let _ = fs::remove_file(part);
        written.map_err(|source| KubeconfigError::Write { path: path.to_owned(), source })
    }

    /// Writes the file in one step, readable by its owner only; never over another one without `force`.
    pub fn write(&self, path: &Path, force: bool) -> Result<(), KubeconfigError> {
        let (part, written) = write_beside(path, &self.to_text());
        let result = written.and_then(|()| {
            // A hard link, unlike a rename, fails where there is a file already.
            if force { fs::rename(&part, path) } else { fs::hard_link(&part, path) }
        });
        let _ = fs::remove_file(&part);
        result.map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => KubeconfigError::Exists(path.to_owned()),
            _ => KubeconfigError::Write { path: path.to_owned(), source },
        })
    }
}

/// Writes a text into a file beside `path` that nobody else uses; gives its name.
fn write_beside(path: &Path, text: &str) -> (PathBuf, io::Result<()>) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let part = folder.join(format!(".{name}.{}.part", process::id()));
    let written = fs::create_dir_all(folder).and_then(|()| write_private(&part, text));
    (part, written)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(token: &str) -> Kubeconfig {
        Kubeconfig {
            name: "envtest".to_owned(),
            server: "https://127.0.0.1:1".to_owned(),
            authority_pem: "PEM".to_owned(),
            user: "admin".to_owned(),
            token: token.to_owned(),
        }
    }

    #[test]
    fn a_kubeconfig_is_never_written_over_another_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config");
        config("one").write(&path, false).unwrap();
        let error = config("two").write(&path, false).unwrap_err();
        assert!(matches!(error, KubeconfigError::Exists(_)), "{error}");
        assert!(fs::read_to_string(&path).unwrap().contains("one"));
        config("two").write(&path, true).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("two"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }
}
