//! Values of cgroup files: what is meant, apart from how either version of the interface writes it.

use std::fmt;

use koord_scheduling::CpuSet;

/// What a file of a cgroup says, or shall say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An amount in the unit of the resource.
    Amount(i64),
    /// No limit: `-1` or `max`.
    Unlimited,
    /// CPUs.
    Cpus(CpuSet),
    /// A line for one disk, such as `8:0 1048576`: the disk, then what follows.
    Disk {
        /// `MAJOR:MINOR`.
        disk: Box<str>,
        /// What stands after the disk, without a blank before it.
        text: Box<str>,
    },
}

impl Value {
    /// The amount with `i64::MAX` for no limit; `None` of other values.
    pub fn amount(&self) -> Option<i64> {
        match self {
            Self::Amount(amount) => Some(*amount),
            Self::Unlimited => Some(i64::MAX),
            Self::Cpus(_) | Self::Disk { .. } => None,
        }
    }

    /// The CPUs; `None` of other values.
    pub fn cpus(&self) -> Option<&CpuSet> {
        match self {
            Self::Cpus(cpus) => Some(cpus),
            _ => None,
        }
    }

    /// An amount, where a negative one means no limit.
    pub fn limit(amount: i64) -> Self {
        if amount < 0 { Self::Unlimited } else { Self::Amount(amount) }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(amount) => write!(f, "{amount}"),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Cpus(cpus) => write!(f, "{cpus}"),
            Self::Disk { disk, text } => write!(f, "{disk} {text}"),
        }
    }
}

/// The period of CFS quotas that Kubernetes uses, in microseconds.
pub const CFS_PERIOD_US: i64 = 100_000;
/// The shares that the kernel takes.
pub const SHARES: std::ops::RangeInclusive<i64> = 2..=262_144;
/// The weights that the kernel takes.
pub const WEIGHTS: std::ops::RangeInclusive<i64> = 1..=10_000;
/// Smallest CFS quota, in microseconds.
const QUOTA_US_MIN: i64 = 1_000;

/// The quota of this many thousandths of a CPU, in microseconds of each period.
pub fn quota_of_milli_cpu(milli: i64) -> Value {
    if milli <= 0 {
        return Value::Unlimited;
    }
    Value::Amount((milli.saturating_mul(CFS_PERIOD_US) / 1000).max(QUOTA_US_MIN))
}

/// The shares of this many thousandths of a CPU.
pub fn shares_of_milli_cpu(milli: i64) -> Value {
    if milli <= 0 {
        return Value::Amount(*SHARES.start());
    }
    Value::Amount((milli.saturating_mul(1024) / 1000).clamp(*SHARES.start(), *SHARES.end()))
}

/// The weight (v2) of shares (v1), as container runtimes convert them. 1024 shares are weight 39.
pub fn weight_of_shares(shares: i64) -> Option<i64> {
    SHARES.contains(&shares).then(|| 1 + ((shares - 2) * 9999) / 262_142)
}

/// The shares (v1) of a weight (v2). The way there and back loses: 1024 → 39 → 998.
pub fn shares_of_weight(weight: i64) -> Option<i64> {
    WEIGHTS.contains(&weight).then(|| (weight - 1) * 262_142 / 9999 + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_of_a_cpu_become_quota_and_shares() {
        for (milli, quota, shares) in [
            (-1, Value::Unlimited, 2),
            (0, Value::Unlimited, 2),
            (1, Value::Amount(1000), 2),
            (10, Value::Amount(1000), 10),
            (1500, Value::Amount(150_000), 1536),
            (300_000, Value::Amount(30_000_000), 262_144),
            (i64::MAX, Value::Amount(i64::MAX / 1000), 262_144),
        ] {
            assert_eq!(quota_of_milli_cpu(milli), quota, "{milli}");
            assert_eq!(shares_of_milli_cpu(milli), Value::Amount(shares), "{milli}");
        }
    }

    #[test]
    fn shares_and_weights_are_converted_within_their_ranges() {
        for (shares, weight) in [(2, Some(1)), (1024, Some(39)), (262_144, Some(10_000)), (1, None), (262_145, None)] {
            assert_eq!(weight_of_shares(shares), weight);
        }
        for (weight, shares) in [(1, Some(2)), (39, Some(998)), (10_000, Some(262_144)), (0, None), (10_001, None)] {
            assert_eq!(shares_of_weight(weight), shares);
        }
    }
}
