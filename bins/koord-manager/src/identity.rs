//! Which program this is, to users and to the API server.

use koord_program::Build;

use crate::{gates::GATES, metrics::BUILD_INFO};

/// The field manager of its writes, and the name of the Lease that its replicas share.
pub const NAME: &str = "koordinator-manager";

/// Which program this is.
pub const BUILD: Build = Build {
    program: "koord-manager",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: "koordinator-system",
    gates: GATES,
    info: BUILD_INFO,
};
