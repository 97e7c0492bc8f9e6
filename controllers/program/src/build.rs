//! What a program is called.

use koord_runtime::metrics::Description;

use crate::gates::Gate;

/// Which program runs, and the names by which a cluster knows it.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The program, in messages and traces.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The name of its field manager and of the Lease that its replicas share.
    pub field_manager: &'static str,
    /// The namespace that it is usually installed in.
    pub namespace: &'static str,
    /// The feature gates that it knows.
    pub gates: &'static [Gate],
    /// The metric that shows its version: a gauge with the labels `version` and `language`.
    pub info: Description,
}
