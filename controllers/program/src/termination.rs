//! The termination message: what Kubernetes shows of a container that has ended, as in `kubectl describe pod`.

use std::{fs::OpenOptions, io::Write as _, path::Path};

/// Where the kubelet mounts the file of a container whose specification names no other.
const FILE: &str = "/dev/termination-log";
/// What the kubelet reads of it, in bytes.
const BYTES_MAX: usize = 4096;

/// Leaves a message in the file of the container; outside of a container there is none.
pub(crate) fn leave_message(message: &str) {
    leave_message_in(Path::new(FILE), message);
}

fn leave_message_in(file: &Path, message: &str) {
    let message = &message.as_bytes()[..message.len().min(BYTES_MAX)];
    // The kubelet creates the file. Where it cannot be written, the same message is on the standard error.
    let opened = OpenOptions::new().write(true).truncate(true).open(file);
    let _ = opened.and_then(|mut file| file.write_all(message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_left_where_the_kubelet_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("termination-log");
        leave_message_in(&file, "outside of a container");
        assert!(!file.exists());
        std::fs::write(&file, "what was here before, and longer").unwrap();
        leave_message_in(&file, "koord-manager: no API server");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "koord-manager: no API server");
        leave_message_in(&file, &"x".repeat(5000));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 4096);
    }
}
