//! Where a server listens: a unix socket, or a port.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, UnixListener};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A socket file. One that an earlier run left is removed.
    Unix(PathBuf),
    /// An address of TCP.
    Tcp(SocketAddr),
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The folder of the socket does not exist.
    #[error("{} cannot be opened: its folder {} does not exist", .socket.display(), .folder.display())]
    FolderMissing {
        /// The socket asked for.
        socket: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// A file that is no socket stands in its place.
    #[error("{} is not a socket and is left alone; remove it or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The socket of an earlier run cannot be removed.
    #[error("the socket {} of an earlier run cannot be removed: {source}", .socket.display())]
    Remove {
        /// The socket asked for.
        socket: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot listen on {}: {source}", .socket.display())]
    Socket {
        /// The socket asked for.
        socket: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The port cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Port {
        /// The address asked for.
        address: SocketAddr,
        /// What the system answered.
        source: io::Error,
    },
}

#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Opens the address. Must be called within a tokio runtime. The socket file can be used by its owner alone.
    pub(crate) async fn bind(address: &ListenAddress) -> Result<Self, ListenError> {
        match address {
            ListenAddress::Unix(socket) => bind_unix(socket).map(Self::Unix),
            ListenAddress::Tcp(address) => {
                let opened = TcpListener::bind(address).await;
                opened.map(Self::Tcp).map_err(|source| ListenError::Port { address: *address, source })
            }
        }
    }
}

fn bind_unix(socket: &Path) -> Result<UnixListener, ListenError> {
    if let Some(folder) = socket.parent()
        && !folder.is_dir()
    {
        return Err(ListenError::FolderMissing { socket: socket.into(), folder: folder.into() });
    }
    match fs::symlink_metadata(socket) {
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NotASocket(socket.into())),
        Ok(_) => fs::remove_file(socket).map_err(|source| ListenError::Remove { socket: socket.into(), source })?,
        Err(_) => {}
    }
    let failed = |source| ListenError::Socket { socket: socket.into(), source };
    let listener = UnixListener::bind(socket).map_err(failed)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_of_an_earlier_run_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let address = ListenAddress::Unix(folder.path().join("a.sock"));
        drop(Listener::bind(&address).await.unwrap());
        assert!(folder.path().join("a.sock").exists(), "a socket outlives its listener");
        Listener::bind(&address).await.unwrap();
    }

    #[tokio::test]
    async fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("none/a.sock");
        let error = Listener::bind(&ListenAddress::Unix(socket)).await.unwrap_err();
        assert!(
            matches!(&error, ListenError::FolderMissing { folder: missing, .. } if *missing == folder.path().join("none")),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs::write(&path, "data").unwrap();
        let error = Listener::bind(&ListenAddress::Unix(path.clone())).await.unwrap_err();
        assert!(matches!(error, ListenError::NotASocket(_)), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), "data");
    }

    #[tokio::test]
    async fn a_port_in_use_is_an_error() {
        let Listener::Tcp(first) = Listener::bind(&ListenAddress::Tcp(([127, 0, 0, 1], 0).into())).await.unwrap()
        else {
            panic!()
        };
        let error = Listener::bind(&ListenAddress::Tcp(first.local_addr().unwrap())).await.unwrap_err();
        assert!(matches!(error, ListenError::Port { .. }), "{error}");
    }
}
