//! The file that leads clients to the server.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, process};

use base64::Engine;
use serde_json::{Value, json};

/// Name of the entry that says who wrote a kubeconfig.
const EXTENSION: &str = "koordinator.sh/written-by";
/// How long a server may take to be noticed.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Who writes a kubeconfig. It stands in the file, so that the next run may replace what a killed one left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of cluster and context.
    pub name: String,
    /// The port asked for; 0 for any.
    pub port: u16,
    /// Where objects are kept.
    pub data_dir: Option<PathBuf>,
}

/// What a kubeconfig of one cluster and one user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Who writes it.
    pub owner: Owner,
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
    /// The server that it would lead to does not answer.
    #[error(transparent)]
    NotReady(#[from] super::NotReady),
    /// The file system refuses.
    #[error("cannot write {}: {source}; name a file that can be written with --kubeconfig", path.display())]
    Write {
        /// Where the file should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

// === impl Owner ===

impl Owner {
    /// An owner whose file no later run may replace.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), port: 0, data_dir: None }
    }

    fn to_value(&self) -> Value {
        let data_dir = self.data_dir.as_deref().map(|folder| absolute(folder).to_string_lossy().into_owned());
        json!({"name": self.name, "port": self.port, "dataDir": data_dir})
    }

    /// Whether a file is what an earlier run of the same server left when it was killed: same program, same port or same
    /// data directory, and nobody listens where it leads to.
    fn left(&self, path: &Path) -> bool {
        let Ok(text) = fs::read_to_string(path) else { return false };
        let Ok(file) = crate::yaml::parse(&text) else { return false };
        let cluster = &file["clusters"][0]["cluster"];
        let extensions = cluster["extensions"].as_array().into_iter().flatten();
        let Some(written_by) = extensions.into_iter().find(|extension| extension["name"] == EXTENSION) else {
            return false;
        };
        let (then, now) = (&written_by["extension"], self.to_value());
        let same_port = self.port != 0 && then["port"] == now["port"];
        let same_folder = self.data_dir.is_some() && then["dataDir"] == now["dataDir"];
        let server = cluster["server"].as_str().unwrap_or_default().trim_start_matches("https://");
        then["name"] == now["name"] && (same_port || same_folder) && !is_listening(server)
    }
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Whether somebody accepts connections there; an address that is none is somebody else's.
fn is_listening(server: &str) -> bool {
    server.parse::<SocketAddr>().is_ok_and(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok())
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// The text of the file. JSON is YAML, and every client reads it.
    pub fn to_text(&self) -> String {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority_pem);
        let name = &self.owner.name;
        let cluster = json!({
            "server": self.server, "certificate-authority-data": authority,
            "extensions": [{"name": EXTENSION, "extension": self.owner.to_value()}],
        });
        let value = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": self.user, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": self.user}}],
        });
        crate::yaml::to_text(&value)
    }

    /// Refuses early where [`Kubeconfig::write`] would refuse at the end, also because nothing can be written there. Call
    /// it before the port is bound. Gives whether a file that is there may be replaced: with `force`, or because a
    /// killed run of `owner` left it.
    pub fn check(path: &Path, force: bool, owner: &Owner) -> Result<bool, KubeconfigError> {
        if path.is_dir() {
            return Err(KubeconfigError::Folder(path.to_owned()));
        }
        let is_there = fs::symlink_metadata(path).is_ok();
        let may_replace = force || (is_there && owner.left(path));
        if is_there && !may_replace {
            return Err(KubeconfigError::Exists(path.to_owned()));
        }
        let (part, written) = write_beside(path, "");
        let _ = fs::remove_file(part);
        written.map_err(|source| KubeconfigError::Write { path: path.to_owned(), source })?;
        Ok(may_replace)
    }

    /// Writes the file when the server answers as ready over TLS, in one step.
    pub async fn write_when_ready(&self, path: &Path, may_replace: bool) -> Result<(), KubeconfigError> {
        super::until_ready(self).await?;
        self.write(path, may_replace)
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

pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
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

    fn owner(port: u16, data_dir: Option<&str>) -> Owner {
        Owner { name: "envtest".to_owned(), port, data_dir: data_dir.map(PathBuf::from) }
    }

    fn config(token: &str) -> Kubeconfig {
        Kubeconfig {
            owner: owner(6443, None),
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

    #[test]
    fn what_a_killed_run_left_may_be_replaced_by_the_next_run_of_the_same_server_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let may_replace = |owner: &Owner| Kubeconfig::check(&path, false, owner);
        let mut left = config("one");
        left.owner = owner(0, Some("data"));
        left.write(&path, false).unwrap();
        assert!(may_replace(&owner(0, Some("data"))).unwrap());
        assert!(may_replace(&owner(7000, Some("data"))).unwrap());
        for other in [owner(0, Some("other")), owner(0, None), owner(6443, None)] {
            assert!(matches!(may_replace(&other), Err(KubeconfigError::Exists(_))), "{other:?}");
        }
        config("one").write(&path, true).unwrap();
        assert!(may_replace(&owner(6443, None)).unwrap());
        assert!(may_replace(&Owner { name: "another".to_owned(), ..owner(6443, None) }).is_err());

        // Somebody listens there: the run lives.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut alive = config("one");
        alive.server = format!("https://{}", listener.local_addr().unwrap());
        alive.write(&path, true).unwrap();
        assert!(may_replace(&owner(6443, None)).is_err());

        fs::write(&path, "apiVersion: v1\nkind: Config\nclusters: []\n").unwrap();
        assert!(may_replace(&owner(6443, None)).is_err());
        assert!(Kubeconfig::check(&path, true, &owner(6443, None)).unwrap());
    }

    #[tokio::test]
    async fn a_kubeconfig_is_written_only_when_the_server_answers_over_tls() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = crate::cluster::Cluster::bind(crate::cluster::Options::default()).await.unwrap();
        let mut kubeconfig = cluster.kubeconfig(owner(0, None));
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        kubeconfig.write_when_ready(&folder.path().join("good"), false).await.unwrap();
        assert!(folder.path().join("good").exists());
        // Another authority vouches for nothing here.
        crate::serve::Authority::new().unwrap().pem().clone_into(&mut kubeconfig.authority_pem);
        tokio::time::pause();
        let error = kubeconfig.write_when_ready(&folder.path().join("bad"), false).await.unwrap_err();
        assert!(error.to_string().contains("/readyz"), "{error}");
        assert!(!folder.path().join("bad").exists());
        stop.send_replace(true);
        serving.await.unwrap();
    }
}
