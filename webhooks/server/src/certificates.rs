//! The certificates of the server: made, checked, replaced with overlap, and swapped while connections run.
//!
//! They live in a Secret (or a folder) under the six names of Koordinator's Go programs, so that either implementation can take over
//! from the other. What is to be done next is decided by [`decide`], a pure function of what is stored and the time.

mod check;
mod decide;
mod folder;
mod issue;
mod set;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
pub use check::{Unusable, ends_at, usable_at, verifies};
pub use decide::{Decision, OVERLAP, PROPAGATION, decide};
pub use folder::{Folder, FolderError};
pub use issue::IssueError;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
pub use set::CertificateSet;

/// The certificate that is presented to new connections; replaced without touching those that run.
#[derive(Debug, Default)]
pub struct HotCertificate {
    current: ArcSwapOption<CertifiedKey>,
}

impl HotCertificate {
    /// Presents the certificate of a set from now on.
    pub fn swap(&self, set: &CertificateSet) -> Result<(), Unusable> {
        self.current.store(Some(Arc::new(check::certified_key(set)?)));
        Ok(())
    }

    /// The certificate that is presented, in DER.
    pub fn presented(&self) -> Option<Vec<u8>> {
        self.current.load().as_ref().and_then(|key| key.cert.first().map(|cert| cert.as_ref().to_vec()))
    }
}

impl ResolvesServerCert for HotCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}
