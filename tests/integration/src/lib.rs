//! What the integration suite and the bench drivers stand on: the real kubectl and helm, and a real kube-apiserver when one was built.
//!
//! It knows how programs are started and asked, not what they must answer: that is in the suite itself. Read first: [`Kubectl`],
//! [`Installed`] (koord-manager as its installation describes it), [`process`] (programs and the cluster around them).

pub mod helm;
pub mod installed;
pub mod kubectl;
pub mod load;
pub mod objects;
pub mod process;

pub use helm::Helm;
pub use installed::Installed;
pub use kubectl::Kubectl;
pub use parity::RealServer;
pub use programs::skipped;
