//! Where a runtime listens.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Sockets of containerd below the run folder, in the order in which they are tried.
pub const CONTAINERD_SOCKETS: [&str; 2] = ["containerd/containerd.sock", "containerd.sock"];
/// Sockets of Docker.
pub const DOCKER_SOCKETS: [&str; 1] = ["docker.sock"];
/// Sockets of CRI-O.
pub const CRIO_SOCKETS: [&str; 2] = ["crio/crio.sock", "crio.sock"];
/// Sockets of pouch.
pub const POUCH_SOCKETS: [&str; 1] = ["pouchcri.sock"];

/// No socket of a runtime exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSocket {
    /// The paths that were tried.
    pub tried: Vec<PathBuf>,
}

impl std::error::Error for NoSocket {}

impl fmt::Display for NoSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried: Vec<_> = self.tried.iter().map(|path| path.display().to_string()).collect();
        write!(f, "the runtime has no socket at {}", tried.join(", "))
    }
}

/// The first socket that exists: well-known names below the run folder, then the configured one.
pub fn find_socket(run_folder: &Path, well_known: &[&str], configured: Option<&Path>) -> Result<PathBuf, NoSocket> {
    let mut tried: Vec<_> = well_known.iter().map(|name| run_folder.join(name)).collect();
    tried.extend(configured.filter(|path| !path.as_os_str().is_empty()).map(Path::to_path_buf));
    tried.iter().find(|path| path.exists()).cloned().ok_or(NoSocket { tried })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn well_known_sockets_come_before_the_configured_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let configured = run.join("mine.sock");
        let find = || find_socket(run, &CONTAINERD_SOCKETS, Some(&configured));
        assert_eq!(
            find().unwrap_err().tried,
            [run.join("containerd/containerd.sock"), run.join("containerd.sock"), configured.clone()]
        );
        fs::write(&configured, "").unwrap();
        assert_eq!(find(), Ok(configured.clone()));
        fs::write(run.join("containerd.sock"), "").unwrap();
        assert_eq!(find(), Ok(run.join("containerd.sock")));
        assert!(
            find_socket(run, &CRIO_SOCKETS, Some(Path::new(""))).unwrap_err().to_string().contains("crio/crio.sock")
        );
    }
}
