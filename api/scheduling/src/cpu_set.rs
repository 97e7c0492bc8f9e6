//! Sets of CPU numbers as the kernel writes them: `0-3,8,10-11`. They are read as Koordinator's `cpuset.Parse` reads them.

use std::{fmt, str::FromStr};

use smallvec::SmallVec;

/// The largest CPU number that is understood. Larger ones are mistakes, and ranges up to them would fill the memory.
pub const CPU_MAX: u32 = 65_535;

/// A range may not end with a larger number.
const RANGE_END_MAX: u32 = 4096;

/// The largest number that is read at all.
const INT32_MAX: u32 = i32::MAX.unsigned_abs();

/// A set of CPU numbers.
///
/// ```
/// use koord_scheduling::CpuSet;
/// let cpus: CpuSet = "8,0-1,2,10-11".parse()?;
/// assert_eq!(cpus.to_string(), "0-2,8,10-11");
/// # Ok::<(), koord_scheduling::ParseCpuSetError>(())
/// ```
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet(
    /// A bit for each CPU. The last word is not 0, so that equal sets have equal words.
    SmallVec<[u64; INLINE_WORDS]>,
);

/// The words of most machines, for which no memory is allocated.
const INLINE_WORDS: usize = 4;

/// Why a text is no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseCpuSetError {
    /// Something else than a number stands there.
    #[error("{0:?} is no CPU number from 0 to {CPU_MAX}")]
    Number(String),
    /// A range of more than two numbers.
    #[error("{0:?} is no range of CPU numbers such as 0-3")]
    Range(String),
    /// A range that ends with too large a number.
    #[error("the range {0:?} ends after CPU {RANGE_END_MAX}")]
    End(String),
}

impl CpuSet {
    /// How many CPUs are in the set.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is in the set.
    #[inline]
    pub fn contains(&self, cpu: u32) -> bool {
        let (word, bit) = place(cpu);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds a CPU, unless its number is above [`CPU_MAX`].
    pub fn insert(&mut self, cpu: u32) {
        let (word, bit) = place(cpu);
        if cpu <= CPU_MAX {
            if word >= self.0.len() {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= bit;
        }
    }

    /// Adds the CPUs of another set.
    #[inline]
    pub fn insert_all(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// Removes the CPUs of another set.
    #[inline]
    pub fn remove_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= !other);
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The CPUs in either set.
    #[inline]
    pub fn union(&self, other: &Self) -> Self {
        self.combined(other, |one, other| one | other)
    }

    /// The CPUs in both sets.
    #[inline]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |one, other| one & other)
    }

    /// How many CPUs are in both sets.
    #[inline]
    pub fn common(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).map(|(one, other)| (one & other).count_ones() as usize).sum()
    }

    /// The CPUs that are not in the other set.
    #[inline]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, |one, other| one & !other)
    }

    /// Whether all CPUs are in the other set too.
    #[inline]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| one & !other == 0)
    }

    /// The CPUs with the lowest numbers, at most `count`.
    pub fn first(&self, count: usize) -> Self {
        let mut left = count;
        Self::of_words(self.0.len(), |at| {
            let mut rest = self.word(at);
            while left > 0 && rest != 0 {
                rest &= rest - 1;
                left -= 1;
            }
            self.word(at) & !rest
        })
    }

    /// The CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0_u32..).step_by(64).zip(&self.0).flat_map(|(first, word)| {
            let bits = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
            bits.take_while(|rest| *rest != 0).map(move |rest| first + rest.trailing_zeros())
        })
    }

    #[inline]
    fn combined(&self, other: &Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        Self::of_words(self.words().max(other.words()), |at| operation(self.word(at), other.word(at)))
    }

    /// How many words the set has.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.0.len()
    }

    /// The CPUs from 64 times `at` on, the first of which is the lowest bit; none behind the last word.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    /// The set of these words.
    #[inline]
    pub(crate) fn of_words(count: usize, mut word: impl FnMut(usize) -> u64) -> Self {
        let mut words = if count <= INLINE_WORDS {
            SmallVec::from_buf_and_len([0; INLINE_WORDS], count)
        } else {
            SmallVec::from_elem(0, count)
        };
        words.iter_mut().enumerate().for_each(|(at, place)| *place = word(at));
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }
}

impl Clone for CpuSet {
    #[inline]
    fn clone(&self) -> Self {
        Self::of_words(self.words(), |at| self.word(at))
    }
}

/// The word of a CPU, and its bit there.
fn place(cpu: u32) -> (usize, u64) {
    ((cpu / 64) as usize, 1 << (cpu % 64))
}

impl FromIterator<u32> for CpuSet {
    /// Numbers above [`CPU_MAX`] are left out.
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

/// A number without a minus sign, which separates the numbers of a range.
fn number(text: &str, most: u32) -> Result<u32, ParseCpuSetError> {
    let number = text.parse::<u32>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| ParseCpuSetError::Number(text.to_owned()))
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    /// QUIRK: a plus sign is taken and a space is not, and a range that ends before it begins holds no CPU
    /// (`tests::texts_are_read_as_the_original_reads_them`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cpus = Self::default();
        if text.is_empty() {
            return Ok(cpus);
        }
        for range in text.split(',') {
            match range.split_once('-') {
                None => cpus.insert(number(range, CPU_MAX)?),
                Some((_, last)) if last.contains('-') => return Err(ParseCpuSetError::Range(range.to_owned())),
                Some((first, last)) => {
                    let (first, last) = (number(first, INT32_MAX)?, number(last, INT32_MAX)?);
                    if last > RANGE_END_MAX {
                        return Err(ParseCpuSetError::End(range.to_owned()));
                    }
                    (first..=last).for_each(|cpu| cpus.insert(cpu));
                }
            }
        }
        Ok(cpus)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
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
            // Of larger numbers a range would be written that is not read.
            if let Ok(cpus) = text.parse::<CpuSet>()
                && cpus.iter().all(|cpu| cpu <= RANGE_END_MAX)
            {
                prop_assert_eq!(cpus.to_string().parse::<CpuSet>(), Ok(cpus));
            }
        }

        #[test]
        fn any_set_survives(cpus in proptest::collection::btree_set(0..2000_u32, 0..50)) {
            let cpus: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(cpus.to_string().parse::<CpuSet>(), Ok(cpus));
        }
    }

    #[test]
    fn the_first_cpus_are_those_with_the_lowest_numbers() {
        let cpus: CpuSet = "8,0-2,10-11".parse().unwrap();
        assert_eq!([0, 2, 4, 9].map(|count| cpus.first(count).to_string()), ["", "0-1", "0-2,8", "0-2,8,10-11"]);
        let cpus: CpuSet = "60-70,500".parse().unwrap();
        assert_eq!([4, 6, 12].map(|count| cpus.first(count).to_string()), ["60-63", "60-65", "60-70,500"]);
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_membership(
            one in proptest::collection::btree_set(0..40_u32, 0..30),
            other in proptest::collection::btree_set(0..40_u32, 0..30),
        ) {
            let [one, other] = [one, other].map(|cpus| cpus.into_iter().collect::<CpuSet>());
            prop_assert_eq!(one.common(&other), one.intersection(&other).len());
            for cpu in 0..40 {
                let (a, b) = (one.contains(cpu), other.contains(cpu));
                prop_assert_eq!(one.union(&other).contains(cpu), a || b);
                prop_assert_eq!(one.intersection(&other).contains(cpu), a && b);
                prop_assert_eq!(one.difference(&other).contains(cpu), a && !b);
            }
            prop_assert_eq!(one.is_subset(&other), one.difference(&other).is_empty());
            let mut sum = one.clone();
            sum.insert_all(&other);
            prop_assert_eq!(&sum, &one.union(&other));
            sum.remove_all(&other);
            prop_assert_eq!(sum, one.difference(&other));
            prop_assert_eq!(one.union(&other).len() + one.intersection(&other).len(), one.len() + other.len());
        }
    }

    #[test]
    fn numbers_that_no_machine_has_take_no_memory() {
        let cpus: CpuSet = [1, u32::MAX, CPU_MAX, CPU_MAX + 1].into_iter().collect();
        assert_eq!((cpus.to_string(), cpus.contains(u32::MAX)), ("1,65535".to_owned(), false));
    }

    #[test]
    fn texts_are_read_as_the_original_reads_them() {
        for (text, cpus) in [
            ("", ""),
            ("+3,+5-+6", "3,5-6"),
            ("3-1", ""),
            ("8,2147483647-5", "8"),
            ("4095-4096", "4095-4096"),
            ("4097,65535", "4097,65535"),
            ("007", "7"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), cpus, "{text}");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for (text, error) in [
            ("a", "\"a\" is no CPU number from 0 to 65535"),
            ("1,", "\"\" is no CPU number from 0 to 65535"),
            (" 1", "\" 1\" is no CPU number from 0 to 65535"),
            (" ", "\" \" is no CPU number from 0 to 65535"),
            ("0-3, 8", "\" 8\" is no CPU number from 0 to 65535"),
            ("-3", "\"\" is no CPU number from 0 to 65535"),
            ("65536", "\"65536\" is no CPU number from 0 to 65535"),
            ("0-2147483648", "\"2147483648\" is no CPU number from 0 to 65535"),
            ("1-2-3", "\"1-2-3\" is no range of CPU numbers such as 0-3"),
            ("0-4097", "the range \"0-4097\" ends after CPU 4096"),
            ("5000-4097", "the range \"5000-4097\" ends after CPU 4096"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().to_string(), error);
        }
    }
}
