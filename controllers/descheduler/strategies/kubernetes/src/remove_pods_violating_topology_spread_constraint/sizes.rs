//! How many pods are to move between domains.

/// The sizes of domains while pods move from large ones to small ones.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Ascending at first.
    domains: Vec<i64>,
    total: i64,
    skew_max: i64,
    /// The domain that takes.
    to: usize,
    /// The domain that gives.
    from: usize,
}

/// Pods that are to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) count: i64,
}

impl Sizes {
    /// `sizes` ascend.
    pub(super) fn new(sizes: Vec<i64>, skew_max: i64) -> Self {
        let (total, from) = (sizes.iter().sum(), sizes.len().saturating_sub(1));
        Self { domains: sizes, total, skew_max, to: 0, from }
    }

    fn count(&self) -> i64 {
        i64::try_from(self.domains.len()).unwrap_or(i64::MAX).max(1)
    }

    /// Whether a size is below what domains have on average.
    pub(super) fn is_below_average(&self, size: i64) -> bool {
        size * self.count() < self.total
    }

    pub(super) fn is_above_average(&self, size: i64) -> bool {
        size * self.count() > self.total
    }

    /// What domains have on average.
    pub(super) fn average(&self) -> f64 {
        self.total as f64 / self.count() as f64
    }

    /// The next pods to move; `None` when domains differ no more than they may, as far as moves between them can help.
    pub(super) fn next(&mut self) -> Option<Move> {
        while self.to < self.from {
            if !self.is_above_average(self.domains[self.from]) {
                self.from -= 1;
                continue;
            }
            let (large, small) = (self.domains[self.from], self.domains[self.to]);
            let skew = large - small;
            if skew > self.skew_max {
                let above = large - self.total.div_euclid(self.count());
                let below = -(-self.total).div_euclid(self.count()) - small;
                let half = (skew - self.skew_max + 1).div_euclid(2);
                let count = above.min(below).min(half);
                if count > 0 {
                    return Some(Move { from: self.from, to: self.to, count });
                }
            }
            self.to += 1;
        }
        None
    }

    /// As many pods of the last move have moved. Where these are fewer, the large domain has no more to give.
    pub(super) fn moved(&mut self, wanted: Move, count: i64) {
        self.domains[wanted.from] -= count;
        self.domains[wanted.to] += count;
        if count < wanted.count {
            self.from = self.from.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pods move where all of them can.
    fn moves(mut sizes: Vec<i64>, skew_max: i64) -> i64 {
        sizes.sort_unstable();
        let mut sizes = Sizes::new(sizes, skew_max);
        let mut total = 0;
        while let Some(wanted) = sizes.next() {
            sizes.moved(wanted, wanted.count);
            total += wanted.count;
        }
        total
    }

    #[test]
    fn as_many_pods_move_as_the_original_moves() {
        for (sizes, skew_max, expected) in [
            (&[2, 1][..], 1, 0),
            (&[3, 1], 1, 1),
            (&[5, 2], 1, 1),
            (&[4, 0], 1, 2),
            (&[0, 1, 100], 1, 66),
            (&[0, 1, 3, 5], 1, 3),
            (&[2, 6], 2, 1),
            (&[8, 7, 0], 1, 5),
            (&[5, 5, 5], 1, 0),
            (&[4, 2], 2, 0),
            (&[5, 2], 2, 1),
            (&[6, 0, 0], 1, 4),
            (&[6, 2], 2, 1),
            (&[7], 1, 0),
            (&[], 1, 0),
        ] {
            assert_eq!(moves(sizes.to_vec(), skew_max), expected, "{sizes:?} {skew_max}");
        }
    }

    #[test]
    fn where_a_domain_has_no_more_to_give_the_next_one_gives() {
        let mut sizes = Sizes::new(vec![0, 6, 9], 1);
        let first = sizes.next().unwrap();
        assert_eq!(first, Move { from: 2, to: 0, count: 4 });
        sizes.moved(first, 1);
        assert_eq!(sizes.next(), Some(Move { from: 1, to: 0, count: 1 }));
    }
}
