//! The best of many scores, where few of them change between two questions.

use crate::columns::Row;

/// A score per row, and the best of them at the root of a tree over the rows: to change one costs the depth of the tree.
#[derive(Clone, Debug, Default)]
pub struct Best {
    /// Leaves are the last `width` elements; a parent is at half the index of its children.
    tree: Vec<Top>,
    width: usize,
}

/// The best score of some rows, and how many of them have it. A row that cannot be chosen has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Top {
    score: Option<i64>,
    ties: u32,
    /// How many rows can be chosen at all.
    rows: u32,
}

impl Top {
    fn of(score: Option<i64>) -> Self {
        let one = u32::from(score.is_some());
        Self { score, ties: one, rows: one }
    }

    fn better(self, other: Self) -> Self {
        let rows = self.rows + other.rows;
        match self.score.cmp(&other.score) {
            std::cmp::Ordering::Greater => Self { rows, ..self },
            std::cmp::Ordering::Less => Self { rows, ..other },
            std::cmp::Ordering::Equal => Self { ties: self.ties + other.ties, rows, ..self },
        }
    }
}

impl Best {
    /// The scores of all rows.
    pub fn new(scores: &[Option<i64>]) -> Self {
        let width = scores.len().next_power_of_two();
        let mut tree = vec![Top::default(); 2 * width];
        for (leaf, score) in tree[width..].iter_mut().zip(scores) {
            *leaf = Top::of(*score);
        }
        let mut best = Self { tree, width };
        best.compare_all();
        best
    }

    fn compare_all(&mut self) {
        for parent in (1..self.width).rev() {
            self.tree[parent] = self.tree[2 * parent].better(self.tree[2 * parent + 1]);
        }
    }

    /// Adds to the score of each row that can be chosen.
    pub fn add(&mut self, of_row: impl Fn(Row) -> i64) {
        for (index, leaf) in self.tree.iter_mut().skip(self.width).enumerate() {
            if let (Some(score), Some(row)) = (&mut leaf.score, Row::at(index)) {
                *score += of_row(row);
            }
        }
        self.compare_all();
    }

    /// How many rows can be chosen.
    pub fn len(&self) -> usize {
        self.tree.get(1).map_or(0, |root| root.rows as usize)
    }

    /// Whether no row can be chosen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how many rows there is a place.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Changes the score of a row; none where it cannot be chosen any more.
    pub fn set(&mut self, row: Row, score: Option<i64>) {
        let mut at = self.width + row.index();
        if at >= self.tree.len() || self.tree[at] == Top::of(score) {
            return;
        }
        self.tree[at] = Top::of(score);
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at].better(self.tree[2 * at + 1]);
        }
    }

    /// The score of a row; none where it cannot be chosen.
    pub fn score(&self, row: Row) -> Option<i64> {
        self.tree.get(self.width + row.index())?.score
    }

    /// The best score, and how many rows have it.
    pub fn top(&self) -> Option<(i64, u32)> {
        let top = self.tree.get(1)?;
        top.score.map(|score| (score, top.ties))
    }

    /// The row that is number `nth` of those with the best score.
    pub fn choose(&self, mut nth: u32) -> Option<Row> {
        let (score, _) = self.top()?;
        let mut at = 1;
        while at < self.width {
            at *= 2;
            let left = self.tree[at];
            let ties = if left.score == Some(score) { left.ties } else { 0 };
            if nth >= ties {
                nth -= ties;
                at += 1;
            }
        }
        let is_best = self.tree.get(at)?.score == Some(score);
        Row::at(at - self.width).filter(|_| is_best)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_chosen_where_nothing_can_be() {
        assert_eq!((Best::default().top(), Best::new(&[]).choose(0)), (None, None));
        assert_eq!((Best::new(&[None, None]).top(), Best::new(&[None]).choose(0)), (None, None));
        assert_eq!(Best::new(&[None, Some(-1)]).choose(0), Row::at(1));
    }

    proptest! {
        #[test]
        fn the_root_is_the_best_of_the_leaves_whatever_changed(
            mut scores in proptest::collection::vec(proptest::option::of(0..4_i64), 1..20),
            changes in proptest::collection::vec((0..20_usize, proptest::option::of(0..4_i64)), 0..20),
        ) {
            let mut best = Best::new(&scores);
            for (index, score) in changes {
                let index = index % scores.len();
                scores[index] = score;
                best.set(Row::at(index).unwrap(), score);
                let added = |index: usize| i64::try_from(index % 3).unwrap();
                scores.iter_mut().enumerate().for_each(|(index, score)| *score = score.map(|score| score + added(index)));
                best.add(|row| added(row.index()));
                let highest = scores.iter().flatten().max().copied();
                let rows: Vec<usize> = (0..scores.len()).filter(|at| highest.is_some() && scores[*at] == highest).collect();
                prop_assert_eq!(best.top(), highest.map(|score| (score, rows.len() as u32)));
                for (nth, row) in rows.iter().enumerate() {
                    prop_assert_eq!(best.choose(nth as u32), Row::at(*row));
                }
            }
        }
    }
}
