//! Sets of NUMA nodes.

use std::{cmp::Ordering, fmt};

use smallvec::SmallVec;

/// A set of the NUMA nodes 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumaMask(u64);

/// Of so many NUMA nodes there are all subsets.
const NODES_MAX: usize = 16;

impl NumaMask {
    /// The largest number of a NUMA node.
    pub const NODE_MAX: u32 = 63;

    /// The set of some NUMA nodes; none where a number is too large.
    #[inline]
    pub fn of(nodes: impl IntoIterator<Item = u32>) -> Option<Self> {
        let bit = |node: u32| (node <= Self::NODE_MAX).then(|| 1_u64 << node);
        nodes.into_iter().try_fold(0, |bits, node| Some(bits | bit(node)?)).map(Self)
    }

    /// The bits; NUMA node 0 is the lowest.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// How many NUMA nodes are in the set.
    #[inline]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no NUMA node is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a NUMA node is in the set.
    #[inline]
    pub fn contains(self, node: u32) -> bool {
        node <= Self::NODE_MAX && self.0 >> node & 1 == 1
    }

    /// The NUMA nodes in both sets.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The NUMA nodes in either set.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The NUMA nodes in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let rests = std::iter::successors(Some(self.0), |rest| Some(rest & rest.wrapping_sub(1)));
        rests.take_while(|rest| *rest != 0).map(u64::trailing_zeros)
    }

    /// How narrow the set is: fewer NUMA nodes are narrower, of equally many the lower bits.
    #[inline]
    pub fn cmp_narrowness(self, other: Self) -> Ordering {
        (self.len(), self.0).cmp(&(other.len(), other.0))
    }

    /// The subsets of one NUMA node each, which are the first of [`Self::subsets`].
    #[inline]
    pub fn singles(self) -> impl Iterator<Item = Self> {
        self.iter().take(NODES_MAX).map(|node| Self(1 << node))
    }

    /// All subsets that are not empty: those of one NUMA node first, then those of two, each in the order of their
    /// first NUMA nodes. Of more than 16 NUMA nodes, the first 16 count.
    pub fn subsets(self) -> impl Iterator<Item = Self> {
        let nodes: SmallVec<[u32; NODES_MAX]> = self.iter().take(NODES_MAX).collect();
        let count = nodes.len();
        // The first NUMA node is the highest bit of a choice: among choices of equally many bits larger ones come first.
        let choices = (1..=count).flat_map(move |size| {
            let first = ((1_u32 << size) - 1) << (count - size);
            std::iter::successors(Some(first), |choice| next_smaller(*choice))
        });
        choices.map(move |choice| {
            let chosen = nodes.iter().rev().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
            Self(chosen.fold(0, |bits, (_, node)| bits | 1 << node))
        })
    }
}

/// The next smaller number with as many bits: of the lowest bit that has a 0 below it, it moves down by one, with all bits below
/// right after it.
fn next_smaller(number: u32) -> Option<u32> {
    let ones = number.trailing_ones();
    let zeros = (number >> ones).trailing_zeros();
    let moved = ones + zeros;
    let above = number.checked_shr(moved).filter(|above| *above != 0)? - 1;
    Some(above << moved | ((1 << (ones + 1)) - 1) << (zeros - 1))
}

/// In binary, with an even number of digits.
impl fmt::Display for NumaMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (64 - self.0.leading_zeros()).max(1);
        // QUIRK: a lone NUMA node of an even number from 2 on has no leading zero.
        let is_lone = bits > 1 && self.0.is_power_of_two();
        let digits = if is_lone { bits } else { bits.next_multiple_of(2) } as usize;
        write!(f, "{:0digits$b}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(nodes: &[u32]) -> NumaMask {
        NumaMask::of(nodes.iter().copied()).unwrap()
    }

    #[test]
    fn subsets_come_by_size_and_then_by_their_first_nodes() {
        let subsets: Vec<Vec<u32>> = mask(&[0, 1, 2]).subsets().map(|subset| subset.iter().collect()).collect();
        assert_eq!(subsets, [vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2], vec![0, 1, 2]]);
        assert_eq!(mask(&[]).subsets().count(), 0);
        assert_eq!(NumaMask(u64::MAX).subsets().count(), (1 << 16) - 1);
    }

    #[test]
    fn all_subsets_come_in_that_order_wherever_the_numa_nodes_are() {
        for nodes in [&[5][..], &[0, 63], &[1, 4, 7, 30], &[0, 1, 2, 3, 4, 5, 6, 7]] {
            let listed = |subset: NumaMask| subset.iter().collect::<Vec<u32>>();
            let mut sorted: Vec<Vec<u32>> = mask(nodes).subsets().map(listed).collect();
            let subsets = sorted.clone();
            sorted.sort_by_key(|subset| (subset.len(), subset.clone()));
            sorted.dedup();
            assert_eq!((&subsets, subsets.len()), (&sorted, (1 << nodes.len()) - 1), "{nodes:?}");
        }
    }

    #[test]
    fn masks_are_shown_in_pairs_of_binary_digits() {
        for (nodes, text) in [
            (&[0][..], "01"),
            (&[1], "10"),
            (&[0, 1], "11"),
            (&[], "00"),
            (&[2], "100"),
            (&[3], "1000"),
            (&[4], "10000"),
            (&[0, 2], "0101"),
            (&[63], &format!("1{}", "0".repeat(63))),
        ] {
            assert_eq!(mask(nodes).to_string(), text);
        }
    }

    #[test]
    fn fewer_nodes_are_narrower_and_lower_bits_decide_between_equals() {
        assert_eq!(mask(&[3]).cmp_narrowness(mask(&[0, 1])), Ordering::Less);
        assert_eq!(mask(&[0, 2]).cmp_narrowness(mask(&[0, 1])), Ordering::Greater);
        assert_eq!((mask(&[0, 1]).and(mask(&[1, 2])), mask(&[0]).or(mask(&[2]))), (mask(&[1]), mask(&[0, 2])));
        assert_eq!((NumaMask::of([64]), mask(&[5]).contains(5), mask(&[5]).contains(64)), (None, true, false));
    }
}
