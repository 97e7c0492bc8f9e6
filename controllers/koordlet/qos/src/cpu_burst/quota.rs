//! How the CFS quota of a container changes in a round.

use super::share_pool::SharePool;

/// What happens to a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOperation {
    /// It grows by a fifth.
    ScaleUp,
    /// It shrinks by a fifth.
    ScaleDown,
    Remain,
    /// It is its base again.
    Reset,
}

/// The quota that follows from the limit of a container, and the largest one that a burst makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaRange {
    pub base: i64,
    pub ceiling: i64,
}

impl QuotaOperation {
    /// What the container asks for, as far as the shared CPUs allow it.
    pub fn on(self, pool: SharePool) -> Self {
        match (self, pool) {
            (Self::ScaleUp | Self::Remain, SharePool::Overloaded) => Self::ScaleDown,
            (Self::ScaleUp, SharePool::Cooling | SharePool::Unknown) => Self::Remain,
            (operation, _) => operation,
        }
    }

    /// The word in formulas.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ScaleUp => "× 1.2 as it is throttled",
            Self::ScaleDown => "× 0.8",
            Self::Remain => "stays",
            Self::Reset => "reset",
        }
    }
}

impl QuotaRange {
    /// The range of a quota: up to `percent` of it, where that is more than 100.
    pub fn new(base: i64, percent: Option<i64>) -> Self {
        let percent = percent.unwrap_or(100).max(100);
        Self { base, ceiling: base.saturating_mul(percent) / 100 }
    }

    /// The quota after an operation; `None` as the current one means no limit, which becomes the base.
    pub fn after(&self, operation: QuotaOperation, current: Option<i64>) -> i64 {
        let Some(current) = current else { return self.base };
        let target = match operation {
            QuotaOperation::ScaleUp => current.saturating_mul(12) / 10,
            QuotaOperation::ScaleDown => current.saturating_mul(8) / 10,
            QuotaOperation::Remain => current,
            QuotaOperation::Reset => self.base,
        };
        target.clamp(self.base, self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_changes_by_a_fifth_between_its_base_and_its_ceiling() {
        let range = QuotaRange::new(200_000, Some(300));
        for (operation, current, target) in [
            (QuotaOperation::ScaleUp, Some(200_000), 240_000),
            (QuotaOperation::ScaleUp, Some(597_196), 600_000),
            (QuotaOperation::ScaleDown, Some(400_000), 320_000),
            (QuotaOperation::ScaleDown, Some(210_000), 200_000),
            (QuotaOperation::Remain, Some(100_000), 200_000),
            (QuotaOperation::Remain, Some(900_000), 600_000),
            (QuotaOperation::Reset, Some(300_000), 200_000),
            (QuotaOperation::Remain, None, 200_000),
        ] {
            assert_eq!(range.after(operation, current), target, "{operation:?} {current:?}");
        }
        for percent in [Some(100), Some(50), None] {
            assert_eq!(
                QuotaRange::new(200_000, percent).after(QuotaOperation::ScaleUp, Some(200_000)),
                200_000,
                "{percent:?}"
            );
        }
    }

    #[test]
    fn a_busy_node_keeps_quotas_from_growing() {
        use QuotaOperation::{Remain, Reset, ScaleDown, ScaleUp};
        for (pool, expected) in [
            (SharePool::Idle, [ScaleUp, ScaleDown, Remain, Reset]),
            (SharePool::Cooling, [Remain, ScaleDown, Remain, Reset]),
            (SharePool::Unknown, [Remain, ScaleDown, Remain, Reset]),
            (SharePool::Overloaded, [ScaleDown, ScaleDown, ScaleDown, Reset]),
        ] {
            assert_eq!([ScaleUp, ScaleDown, Remain, Reset].map(|operation| operation.on(pool)), expected);
        }
    }
}
