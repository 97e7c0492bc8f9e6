//! What the integration suite and the bench drivers stand on: the real kubectl and helm, and a real kube-apiserver when one was built.

pub mod helm;
pub mod installed;
pub mod kubectl;
pub mod load;
pub mod real_server;

pub use helm::Helm;
pub use installed::Installed;
pub use kubectl::Kubectl;
pub use real_server::RealServer;
