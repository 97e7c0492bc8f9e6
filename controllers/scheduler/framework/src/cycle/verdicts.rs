//! Which local filter refuses which row first.

use std::collections::BTreeMap;

use crate::{Alike, Refusals, Verdict, columns::Row};

/// A verdict per row. There are few of them, so that each row has a number for it.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// By row: one more than the index of its verdict; 0 where no filter refuses it.
    rows: Vec<u32>,
    known: Vec<Verdict>,
    numbers: BTreeMap<Verdict, u32>,
}

impl Verdicts {
    /// No filter refuses any of so many rows.
    pub(super) fn none(rows: usize) -> Self {
        Self { rows: vec![0; rows], ..Self::default() }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Why a row is refused.
    pub(super) fn get(&self, row: Row) -> Option<Verdict> {
        self.of(*self.rows.get(row.index())?)
    }

    fn of(&self, number: u32) -> Option<Verdict> {
        self.known.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }

    /// Changes why a row is refused. Says whether that is something else than before.
    pub(super) fn set(&mut self, row: Row, verdict: Option<Verdict>) -> bool {
        let Some(known) = self.rows.get(row.index()) else { return false };
        if self.of(*known) == verdict {
            return false;
        }
        // What was said of rows long ago is not kept for ever.
        if self.known.len() > 2 * self.rows.len() {
            self.number_again();
        }
        self.rows[row.index()] = verdict.map_or(0, |verdict| self.number(verdict));
        true
    }

    fn number(&mut self, verdict: Verdict) -> u32 {
        let Self { known, numbers, .. } = self;
        *numbers.entry(verdict).or_insert_with(|| {
            known.push(verdict);
            // Twice as many as there are rows, of which there are fewer than 2³².
            u32::try_from(known.len()).unwrap_or(u32::MAX)
        })
    }

    fn number_again(&mut self) {
        let verdicts: Vec<Option<Verdict>> = self.rows.iter().map(|number| self.of(*number)).collect();
        *self = Self::none(verdicts.len());
        for (index, verdict) in verdicts.into_iter().enumerate() {
            self.rows[index] = verdict.map_or(0, |verdict| self.number(verdict));
        }
    }

    /// How many rows each verdict refuses.
    pub(super) fn refusals(&self) -> Refusals {
        let mut alike: Vec<Option<Alike>> = vec![None; self.known.len() + 1];
        for (index, number) in self.rows.iter().enumerate().filter(|(_, number)| **number != 0) {
            match &mut alike[*number as usize] {
                Some(alike) => alike.nodes += 1,
                first => *first = Row::at(index).map(|example| Alike { nodes: 1, example }),
            }
        }
        self.known.iter().zip(alike.iter().skip(1)).filter_map(|(verdict, alike)| Some((*verdict, (*alike)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Refusal;

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_said_last(
            changes in proptest::collection::vec((0..9_usize, proptest::option::of(0..60_u64)), 0..200),
        ) {
            let verdict = |operand| Verdict { plugin: 1, refusal: Refusal::resolvable(0, operand) };
            let (mut plain, mut verdicts) = ([None; 9], Verdicts::none(9));
            for (row, operand) in changes {
                let said = operand.map(verdict);
                prop_assert_eq!(verdicts.set(Row::at(row).unwrap(), said), plain[row] != said);
                plain[row] = said;
                let mut expected = Refusals::default();
                for (row, said) in plain.iter().enumerate() {
                    prop_assert_eq!(verdicts.get(Row::at(row).unwrap()), *said);
                    if let Some(said) = said {
                        expected.add(*said, Row::at(row).unwrap());
                    }
                }
                prop_assert_eq!(verdicts.refusals(), expected);
                prop_assert!(verdicts.known.len() <= 2 * 9 + 1);
            }
        }
    }
}
