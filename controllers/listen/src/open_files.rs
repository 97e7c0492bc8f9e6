//! How many files, sockets among them, the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What most systems allow unless they are configured, and too little for a server of many connections.
const FEW: u64 = 4096;

/// Raises the limit on open files to the highest that the process may set for itself. Logs a warning if it stays low.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, ?current, ?maximum, "the limit on open files cannot be raised");
    }
    if let Some(files) = open_files_max()
        && files < FEW
    {
        tracing::warn!(
            files,
            "few files may be open at once, which limits connections; raise the hard limit (ulimit -Hn, LimitNOFILE=)"
        );
    }
}

/// The limit that applies; none where there is none.
pub(crate) fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_hard_one_afterwards() {
        raise_open_files();
        assert_eq!(open_files_max(), getrlimit(Resource::Nofile).maximum);
    }
}
