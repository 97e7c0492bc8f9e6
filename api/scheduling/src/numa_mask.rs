//! Sets of NUMA nodes.

use std::{cmp::Ordering, fmt};

/// A set of the NUMA nodes 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumaMask(u64);

impl NumaMask {
    /// The largest number of a NUMA node.
    pub const NODE_MAX: u32 = 63;

    /// The set of some NUMA nodes; none where a number is too large.
    pub fn of(nodes: impl IntoIterator<Item = u32>) -> Option<Self> {
        let bit = |node: u32| (node <= Self::NODE_MAX).then(|| 1_u64 << node);
        nodes.into_iter().try_fold(0, |bits, node| Some(bits | bit(node)?)).map(Self)
    }

    /// The bits; NUMA node 0 is the lowest.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// How many NUMA nodes are in the set.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no NUMA node is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a NUMA node is in the set.
    pub fn contains(self, node: u32) -> bool {
        node <= Self::NODE_MAX && self.0 >> node & 1 == 1
    }

    /// The NUMA nodes in both sets.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The NUMA nodes in either set.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The NUMA nodes in order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..=Self::NODE_MAX).filter(move |node| self.contains(*node))
    }

    /// How narrow the set is: fewer NUMA nodes are narrower, of equally many the lower bits.
    pub fn cmp_narrowness(self, other: Self) -> Ordering {
        (self.len(), self.0).cmp(&(other.len(), other.0))
    }

    /// All subsets that are not empty: those of one NUMA node first, then those of two, each in the order of their
    /// first NUMA nodes. Of more than 16 NUMA nodes, the first 16 count.
    pub fn subsets(self) -> Vec<Self> {
        const NODES_MAX: usize = 16;
        let nodes: Vec<u32> = self.iter().take(NODES_MAX).collect();
        let subset = |choice: u64| {
            let chosen = nodes.iter().enumerate().filter(move |(at, _)| choice >> at & 1 == 1);
            chosen.map(|(_, node)| *node).collect::<Vec<u32>>()
        };
        let mut subsets: Vec<Vec<u32>> = (1..1_u64 << nodes.len()).map(subset).collect();
        subsets.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        subsets.into_iter().filter_map(Self::of).collect()
    }
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
        let subsets: Vec<Vec<u32>> =
            mask(&[0, 1, 2]).subsets().into_iter().map(|subset| subset.iter().collect()).collect();
        assert_eq!(subsets, [vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2], vec![0, 1, 2]]);
        assert_eq!(mask(&[]).subsets(), []);
        assert_eq!(NumaMask(u64::MAX).subsets().len(), (1 << 16) - 1);
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
