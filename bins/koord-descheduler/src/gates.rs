//! The feature gates of the descheduler.

use koord_program::gates::Gate;

/// Every gate that `--feature-gates` takes (`spec/descheduler.md` 1.6).
pub const GATES: &[Gate] = &[Gate::beta("DisablePVCReservation", false)];
