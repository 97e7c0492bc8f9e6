//! Amounts of resources as columns: one array per resource, one row per node.

use koord_scheduling::{ResourceId, ResourceVector};

/// A row of all columns: the place of a node while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(u32);

impl Row {
    /// The position in an array with one element per row.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The row at a position; none where there are too many.
    pub fn at(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }
}

/// Amounts by resource and row; what was never set is 0. Arithmetic saturates.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    columns: Vec<Vec<i64>>,
    rows: usize,
}

impl Columns {
    /// Adds rows until there are so many.
    pub fn grow(&mut self, rows: usize) {
        self.rows = self.rows.max(rows);
        self.columns.iter_mut().for_each(|column| column.resize(self.rows, 0));
    }

    /// An amount.
    #[inline]
    pub fn get(&self, resource: ResourceId, row: Row) -> i64 {
        self.columns.get(resource.index()).and_then(|column| column.get(row.index())).copied().unwrap_or(0)
    }

    /// Sets all amounts of a row.
    pub fn set_row(&mut self, row: Row, amounts: &ResourceVector) {
        self.columns.iter_mut().for_each(|column| column[row.index()] = 0);
        for (resource, amount) in amounts.iter() {
            *self.cell(resource, row) = amount;
        }
    }

    /// Adds amounts to a row.
    pub fn add(&mut self, row: Row, amounts: &ResourceVector) {
        for (resource, amount) in amounts.iter() {
            let cell = self.cell(resource, row);
            *cell = cell.saturating_add(amount);
        }
    }

    /// Subtracts amounts from a row. Says whether the rest is exact, which it is not where the sum was too large to be kept.
    pub fn subtract(&mut self, row: Row, amounts: &ResourceVector) -> bool {
        let mut is_exact = true;
        for (resource, amount) in amounts.iter() {
            let cell = self.cell(resource, row);
            is_exact &= *cell < i64::MAX;
            *cell = cell.saturating_sub(amount);
        }
        is_exact
    }

    /// The amounts of a row.
    pub fn row(&self, row: Row) -> impl Iterator<Item = i64> + '_ {
        self.columns.iter().map(move |column| column[row.index()])
    }

    fn cell(&mut self, resource: ResourceId, row: Row) -> &mut i64 {
        if resource.index() >= self.columns.len() {
            self.columns.resize(resource.index() + 1, vec![0; self.rows]);
        }
        &mut self.columns[resource.index()][row.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_appears_with_the_first_amount_of_its_resource() {
        let (mut columns, mut amounts) = (Columns::default(), ResourceVector::default());
        columns.grow(2);
        amounts.set(ResourceId::PODS, 3);
        let [first, second] = [0, 1].map(|index| Row::at(index).unwrap());
        columns.add(second, &amounts);
        assert_eq!([first, second].map(|row| columns.get(ResourceId::PODS, row)), [0, 3]);
        assert_eq!(columns.get(ResourceId::CPU, second), 0);
        columns.grow(3);
        columns.subtract(second, &amounts);
        columns.set_row(first, &amounts);
        assert_eq!(columns.row(first).collect::<Vec<_>>(), [0, 0, 0, 3]);
        assert_eq!(columns.row(second).sum::<i64>(), 0);
    }
}
