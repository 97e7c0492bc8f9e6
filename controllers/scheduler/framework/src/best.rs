//! The best of many scores, where few of them change between two questions.

use std::cmp::Ordering;

use crate::columns::Row;

/// A score per row. Rows that follow each other are a block, and the best score of a block is looked for again only where it may have
/// changed: the best of all is one of the best of the blocks.
#[derive(Clone, Debug, Default)]
pub struct Best {
    /// By row; [`NONE`] where it cannot be chosen.
    scores: Vec<i64>,
    /// By block; none where it is to be looked for.
    blocks: Vec<Option<Top>>,
    /// How many rows can be chosen.
    rows: usize,
}

/// No score: less than all scores.
const NONE: i64 = i64::MIN;

/// The rows of a block: to look at all of them costs about as much as to look at the blocks of a few thousand rows.
const BLOCK: usize = 64;

/// The best score of some rows, and how many of them have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Top {
    score: i64,
    ties: u32,
}

impl Top {
    fn of(scores: &[i64]) -> Self {
        scores.iter().fold(Self { score: NONE, ties: 0 }, |top, score| match score.cmp(&top.score) {
            Ordering::Greater => Self { score: *score, ties: 1 },
            Ordering::Equal => Self { ties: top.ties + 1, ..top },
            Ordering::Less => top,
        })
    }

    /// The same after a score has changed; none where it is to be looked for.
    fn changed(self, old: i64, new: i64) -> Option<Self> {
        let ties = self.ties - u32::from(old == self.score);
        match new.cmp(&self.score) {
            Ordering::Greater => Some(Self { score: new, ties: 1 }),
            Ordering::Equal => Some(Self { ties: ties + 1, ..self }),
            Ordering::Less => (ties > 0).then_some(Self { ties, ..self }),
        }
    }

    fn better(self, other: Self) -> Self {
        match self.score.cmp(&other.score) {
            Ordering::Greater => self,
            Ordering::Less => other,
            Ordering::Equal => Self { ties: self.ties + other.ties, ..self },
        }
    }
}

impl Best {
    /// The scores of these of so many rows, each named once; the others cannot be chosen.
    pub fn new(width: usize, rows: &[Row], of_rows: &[i64]) -> Self {
        let mut scores = vec![NONE; width];
        rows.iter().zip(of_rows).for_each(|(row, score)| scores[row.index()] = *score);
        Self { scores, blocks: vec![None; width.div_ceil(BLOCK)], rows: rows.len() }
    }

    /// The rows that can be chosen.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let rows = self.scores.iter().enumerate().filter(|(_, score)| **score != NONE);
        rows.filter_map(|(index, _)| Row::at(index))
    }

    /// Adds to the score of each row that can be chosen what its number gives, where it has one.
    pub fn add(&mut self, numbers: &[Option<i64>], mut of: impl FnMut(i64) -> i64) {
        for (score, number) in self.scores.iter_mut().zip(numbers) {
            if let Some(number) = number.filter(|_| *score != NONE) {
                *score += of(number);
            }
        }
        self.blocks.fill(None);
    }

    /// How many rows can be chosen.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether no row can be chosen.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Changes the score of a row; none where it cannot be chosen any more.
    pub fn set(&mut self, row: Row, score: Option<i64>) {
        let Some(known) = self.scores.get_mut(row.index()) else { return };
        let (old, new) = (*known, score.unwrap_or(NONE));
        if old == new {
            return;
        }
        *known = new;
        self.rows = self.rows + usize::from(new != NONE) - usize::from(old != NONE);
        let block = &mut self.blocks[row.index() / BLOCK];
        *block = block.and_then(|top| top.changed(old, new));
    }

    /// The score of a row; none where it cannot be chosen.
    pub fn score(&self, row: Row) -> Option<i64> {
        self.scores.get(row.index()).copied().filter(|score| *score != NONE)
    }

    /// The best score, and how many rows have it.
    pub fn top(&mut self) -> Option<(i64, u32)> {
        let blocks = self.blocks.iter_mut().zip(self.scores.chunks(BLOCK));
        let tops = blocks.map(|(block, scores)| *block.get_or_insert_with(|| Top::of(scores)));
        let top = tops.reduce(Top::better)?;
        (top.score != NONE).then_some((top.score, top.ties))
    }

    /// The row that is number `nth` of those with the best score.
    pub fn choose(&mut self, mut nth: u32) -> Option<Row> {
        let (score, _) = self.top()?;
        for (number, top) in self.blocks.iter().enumerate() {
            let ties = top.filter(|top| top.score == score).map_or(0, |top| top.ties);
            if nth < ties {
                let rows = self.scores.iter().enumerate().skip(number * BLOCK);
                let mut tied = rows.filter(|(_, one)| **one == score).map(|(index, _)| index);
                return tied.nth(nth as usize).and_then(Row::at);
            }
            nth -= ties;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best(scores: &[Option<i64>]) -> Best {
        let scored = scores.iter().enumerate().filter_map(|(index, score)| Some((Row::at(index)?, (*score)?)));
        let (rows, of_rows): (Vec<Row>, Vec<i64>) = scored.unzip();
        Best::new(scores.len(), &rows, &of_rows)
    }

    #[test]
    fn nothing_is_chosen_where_nothing_can_be() {
        assert_eq!((Best::default().top(), best(&[]).choose(0)), (None, None));
        assert_eq!((best(&[None, None]).top(), best(&[None]).choose(0)), (None, None));
        assert_eq!(best(&[None, Some(-1)]).choose(0), Row::at(1));
    }

    proptest! {
        #[test]
        fn the_best_of_the_blocks_is_the_best_of_the_rows_whatever_changed(
            mut scores in proptest::collection::vec(proptest::option::of(0..4_i64), 1..200),
            changes in proptest::collection::vec((0..200_usize, proptest::option::of(0..4_i64), any::<bool>()), 0..40),
        ) {
            let mut best = best(&scores);
            for (index, score, adds) in changes {
                let index = index % scores.len();
                scores[index] = score;
                best.set(Row::at(index).unwrap(), score);
                if adds {
                    let numbers: Vec<Option<i64>> = (0..200).map(|index| [None, Some(1), Some(2)][index % 3]).collect();
                    let doubled = |number: &Option<i64>| number.map_or(0, |number| 2 * number);
                    scores.iter_mut().zip(&numbers).for_each(|(score, number)| *score = score.map(|score| score + doubled(number)));
                    best.add(&numbers, |number| 2 * number);
                }
                let highest = scores.iter().flatten().max().copied();
                let rows: Vec<usize> = (0..scores.len()).filter(|at| highest.is_some() && scores[*at] == highest).collect();
                prop_assert_eq!(best.len(), scores.iter().flatten().count());
                let chosen = (0..scores.len()).filter(|at| scores[*at].is_some()).filter_map(Row::at);
                prop_assert!(best.rows().eq(chosen));
                prop_assert_eq!(best.top(), highest.map(|score| (score, rows.len() as u32)));
                for (nth, row) in rows.iter().enumerate() {
                    prop_assert_eq!(best.choose(nth as u32), Row::at(*row));
                }
            }
        }
    }
}
