//! Which program this is, to users and to the API server.

use koord_program::Build;
use koord_runtime::metrics::{Description, Unit};

use crate::gates::GATES;

/// The name of the program.
pub const NAME: &str = "koordlet";

/// Which build runs.
pub(crate) const BUILD_INFO: Description =
    Description::gauge("koord_koordlet_build_info", &["version", "language"], "Always 1; the labels say what runs.")
        .unit(Unit::YesNo);

/// Which program this is.
pub const BUILD: Build = Build {
    program: NAME,
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: "koordinator-system",
    gates: GATES,
    info: BUILD_INFO,
};
