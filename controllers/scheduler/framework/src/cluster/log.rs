//! Which rows have changed lately.

use std::collections::VecDeque;

use crate::columns::Row;

/// A point in the history of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

/// The last changes, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    rows: VecDeque<Row>,
    /// The position of the first of them.
    start: u64,
    /// By row: the position of its last change.
    last: Vec<u64>,
}

impl ChangeLog {
    /// Who is further behind looks at every node again, which is not much more work.
    const ROWS_MAX: usize = 4096;

    pub(super) fn note(&mut self, row: Row) {
        if self.rows.len() == Self::ROWS_MAX {
            self.rows.pop_front();
            self.start += 1;
        }
        if row.index() >= self.last.len() {
            self.last.resize(row.index() + 1, 0);
        }
        self.last[row.index()] = self.end().0;
        self.rows.push_back(row);
    }

    pub(super) fn end(&self) -> Position {
        Position(self.start + self.rows.len() as u64)
    }

    /// Another with every change of a row, and a higher one; 0 before the first.
    pub(super) fn generation(&self, row: Row) -> u64 {
        self.last.get(row.index()).map_or(0, |last| last + 1)
    }

    /// The rows that have changed since, each once, in the order of their last changes.
    pub(super) fn since(&self, position: Position) -> Option<impl Iterator<Item = Row> + '_> {
        let skipped = usize::try_from(position.0.checked_sub(self.start)?).ok()?;
        let changes = (position.0..).zip(self.rows.range(skipped.min(self.rows.len())..));
        Some(changes.filter(|(at, row)| self.last[row.index()] == *at).map(|(_, row)| *row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_what_has_changed_since_or_learns_that_it_is_too_late() {
        let mut log = ChangeLog::default();
        let row = |index| Row::at(index).unwrap();
        let begin = log.end();
        log.note(row(1));
        let middle = log.end();
        log.note(row(2));
        let since = |log: &ChangeLog, position| log.since(position).map(Iterator::collect::<Vec<_>>);
        assert_eq!(since(&log, begin), Some(vec![row(1), row(2)]));
        assert_eq!((since(&log, middle), since(&log, log.end())), (Some(vec![row(2)]), Some(vec![])));
        log.note(row(1));
        assert_eq!(since(&log, begin), Some(vec![row(2), row(1)]), "each once");
        assert_eq!([1, 2, 9].map(|at| log.generation(row(at))), [3, 2, 0]);
        (0..ChangeLog::ROWS_MAX).for_each(|_| log.note(row(3)));
        assert_eq!((since(&log, middle), since(&log, log.end())), (None, Some(vec![])));
    }
}
