//! Exact amounts of CPU and memory, small enough to keep for every container of a cluster.

use std::{
    iter::Sum,
    ops::{Add, Sub},
};

use koord_resource::{Quantity, quantity::Format};
use koord_scheduling::Amounts;
use serde::{Deserialize, Deserializer};

const NANO: i128 = 1_000_000_000;
const NANO_OF_MILLI: i128 = 1_000_000;

/// An exact amount in billionths of a core or byte, the finest that a quantity can say. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Thousandths.
    pub fn from_milli(milli: i64) -> Self {
        Self(i128::from(milli) * NANO_OF_MILLI)
    }

    /// Whole units.
    pub fn from_units(units: i64) -> Self {
        Self(i128::from(units) * NANO)
    }

    /// Billionths.
    pub fn from_nano(nano: i128) -> Self {
        Self(nano)
    }

    /// Billionths, as exact as it is.
    pub fn nano(self) -> i128 {
        self.0
    }

    /// Thousandths, rounded up.
    pub fn milli(self) -> i64 {
        rounded_up(self.0, NANO_OF_MILLI)
    }

    /// Whole units, rounded up.
    pub fn units(self) -> i64 {
        rounded_up(self.0, NANO)
    }

    /// One of `parts` equal parts, rounded up to thousandths; nothing of no parts.
    pub fn part_of(self, parts: usize) -> Self {
        match i128::try_from(parts) {
            Ok(parts) if parts > 0 => Self::from_milli(rounded_up(self.0, NANO_OF_MILLI.saturating_mul(parts))),
            _ => Self::ZERO,
        }
    }
}

fn rounded_up(nano: i128, unit: i128) -> i64 {
    let floor = nano.div_euclid(unit);
    let units = if nano.rem_euclid(unit) == 0 { floor } else { floor + 1 };
    i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
}

impl From<&Quantity> for Amount {
    fn from(quantity: &Quantity) -> Self {
        Self(quantity.nano_value())
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Quantity::deserialize(deserializer).map(|quantity| Self::from(&quantity))
    }
}

/// One of the two resources that colocation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Native {
    /// CPU, in cores; what is derived from it is counted in thousandths.
    Cpu,
    /// Memory, in bytes.
    Memory,
}

impl Native {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// The name in a list of resources.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    /// An amount times a factor, cut towards zero: CPU to thousandths, memory to bytes.
    pub fn times(self, amount: Amount, factor: f64) -> Amount {
        match self {
            Self::Cpu => Amount::from_milli((amount.milli() as f64 * factor) as i64),
            Self::Memory => Amount::from_units((amount.units() as f64 * factor) as i64),
        }
    }

    /// The number by which derived resources are counted: thousandths of cores, or bytes.
    pub fn count(self, amount: Amount) -> i64 {
        match self {
            Self::Cpu => amount.milli(),
            Self::Memory => amount.units(),
        }
    }

    /// The amount as a quantity of the resource itself, for people.
    pub fn quantity(self, amount: Amount) -> Quantity {
        match self {
            Self::Cpu => Quantity::cpu_milli(amount.milli()),
            Self::Memory => Quantity::new(amount.units(), Format::DecimalSI),
        }
    }
}

/// CPU and memory. What is not said is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CpuMemory {
    /// In cores.
    pub cpu: Amount,
    /// In bytes.
    pub memory: Amount,
}

impl CpuMemory {
    /// One of both.
    pub fn of(&self, native: Native) -> Amount {
        match native {
            Native::Cpu => self.cpu,
            Native::Memory => self.memory,
        }
    }

    /// Changes both.
    pub fn map(mut self, mut change: impl FnMut(Native, Amount) -> Amount) -> Self {
        self.cpu = change(Native::Cpu, self.cpu);
        self.memory = change(Native::Memory, self.memory);
        self
    }

    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        self.map(|native, amount| amount.max(other.of(native)))
    }
}

impl Amounts for CpuMemory {
    fn add(&mut self, other: &Self) {
        *self = *self + *other;
    }

    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Add for CpuMemory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.map(|native, amount| amount + other.of(native))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::from(&text.parse::<Quantity>().unwrap())
    }

    #[test]
    fn counts_are_rounded_up_and_products_are_cut() {
        assert_eq!((amount("1500u").milli(), amount("1500m").units(), amount("-1500m").units()), (2, 2, -1));
        assert_eq!(Native::Cpu.times(amount("7910m"), 0.35), amount("2768m"));
        assert_eq!(Native::Memory.times(amount("270582939648"), 0.35), amount("94704028876"));
        assert_eq!(amount("10").part_of(3), amount("3334m"));
        assert_eq!(amount("10").part_of(0), Amount::ZERO);
    }

    #[test]
    fn what_is_too_large_stays_the_largest() {
        let large = amount("1e300");
        assert_eq!((large + large, (large + large).milli()), (large, i64::MAX));
        assert_eq!((Amount::ZERO - large - large).units(), i64::MIN);
    }
}
