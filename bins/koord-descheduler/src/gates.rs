//! The feature gates of the descheduler.

use koord_program::gates::Gate;

/// Every gate that `--feature-gates` takes (`spec/descheduler.md` 1.6).
pub const GATES: &[Gate] = &[
    Gate::beta("DisablePVCReservation", false),
    // Of kubernetes-sigs/descheduler.
    Gate::alpha("EvictionsInBackground")
        .without_effect("an eviction that another controller carries out is one that failed, and is tried again"),
];
