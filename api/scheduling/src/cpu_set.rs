//! Sets of CPU numbers as the kernel writes them: `0-3,8,10-11`.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// The largest CPU number that is understood. Larger ones are mistakes, and ranges up to them would fill the memory.
pub const CPU_MAX: u32 = 65_535;

/// A set of CPU numbers.
///
/// ```
/// use koord_scheduling::CpuSet;
/// let cpus: CpuSet = "8,0-1,2,10-11".parse()?;
/// assert_eq!(cpus.to_string(), "0-2,8,10-11");
/// # Ok::<(), koord_scheduling::ParseCpuSetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<u32>);

/// Why a text is no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseCpuSetError {
    /// Something else than a number stands there.
    #[error("{0:?} is no CPU number from 0 to {CPU_MAX}")]
    Number(String),
    /// A range that ends before it begins.
    #[error("the range {0:?} ends before it begins")]
    Backwards(String),
}

impl CpuSet {
    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// The CPUs in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// The CPUs that are not in the other set.
    pub fn difference(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// Whether all CPUs are in the other set too.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// The CPUs with the lowest numbers, at most `count`.
    pub fn first(&self, count: usize) -> Self {
        self.iter().take(count).collect()
    }

    /// The CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(cpu) if cpu <= CPU_MAX && !text.starts_with('+') => Ok(cpu),
            _ => Err(ParseCpuSetError::Number(text.to_owned())),
        };
        let mut cpus = BTreeSet::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(ParseCpuSetError::Backwards(range.to_owned()));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last += 1;
                cpus.next();
            }
            if last == first {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9, +a]{0,20}") {
            if let Ok(cpus) = text.parse::<CpuSet>() {
                prop_assert_eq!(cpus.to_string().parse::<CpuSet>(), Ok(cpus));
            }
        }

        #[test]
        fn any_set_survives(cpus in proptest::collection::btree_set(0..2000_u32, 0..50)) {
            let cpus = CpuSet(cpus);
            prop_assert_eq!(cpus.to_string().parse::<CpuSet>(), Ok(cpus));
        }
    }

    #[test]
    fn the_first_cpus_are_those_with_the_lowest_numbers() {
        let cpus: CpuSet = "8,0-2,10-11".parse().unwrap();
        assert_eq!([0, 2, 4, 9].map(|count| cpus.first(count).to_string()), ["", "0-1", "0-2,8", "0-2,8,10-11"]);
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_membership(
            one in proptest::collection::btree_set(0..40_u32, 0..30),
            other in proptest::collection::btree_set(0..40_u32, 0..30),
        ) {
            let (one, other) = (CpuSet(one), CpuSet(other));
            for cpu in 0..40 {
                let (a, b) = (one.contains(cpu), other.contains(cpu));
                prop_assert_eq!(one.union(&other).contains(cpu), a || b);
                prop_assert_eq!(one.intersection(&other).contains(cpu), a && b);
                prop_assert_eq!(one.difference(&other).contains(cpu), a && !b);
            }
            prop_assert_eq!(one.is_subset(&other), one.difference(&other).is_empty());
            prop_assert_eq!(one.union(&other).len() + one.intersection(&other).len(), one.len() + other.len());
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for (text, error) in [
            ("a", "\"a\" is no CPU number from 0 to 65535"),
            ("1,", "\"\" is no CPU number from 0 to 65535"),
            ("3-1", "the range \"3-1\" ends before it begins"),
            ("0-4294967295", "\"4294967295\" is no CPU number from 0 to 65535"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().to_string(), error);
        }
    }
}
