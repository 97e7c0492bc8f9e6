//! Amounts of resources as columns: one column per resource, one row per node.

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
///
/// The amounts of a row lie side by side: most questions are about several resources of one node. Who adds amounts of a resource adds
/// a column to all rows, so the names of resources must not be any that a user can write.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    amounts: Vec<i64>,
    /// How many resources a row can hold.
    width: usize,
    rows: usize,
}

/// The amounts of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowAmounts<'c>(&'c [i64]);

impl RowAmounts<'_> {
    /// The amount of a resource.
    #[inline]
    pub fn get(self, resource: ResourceId) -> i64 {
        self.0.get(resource.index()).copied().unwrap_or(0)
    }
}

impl Columns {
    /// Adds rows until there are so many.
    pub fn grow(&mut self, rows: usize) {
        self.rows = self.rows.max(rows);
        self.amounts.resize(self.rows * self.width, 0);
    }

    /// The amounts of a row.
    #[inline]
    pub fn of(&self, row: Row) -> RowAmounts<'_> {
        let begin = row.index() * self.width;
        RowAmounts(self.amounts.get(begin..begin + self.width).unwrap_or_default())
    }

    #[inline]
    pub fn get(&self, resource: ResourceId, row: Row) -> i64 {
        self.of(row).get(resource)
    }

    /// Sets all amounts of a row.
    pub fn set_row(&mut self, row: Row, amounts: &ResourceVector) {
        self.widen(amounts);
        let begin = row.index() * self.width;
        self.amounts[begin..begin + self.width].fill(0);
        for (resource, amount) in amounts.iter() {
            *self.cell(resource, row) = amount;
        }
    }

    /// Adds amounts to a row.
    pub fn add(&mut self, row: Row, amounts: &ResourceVector) {
        self.widen(amounts);
        for (resource, amount) in amounts.iter() {
            let cell = self.cell(resource, row);
            *cell = cell.saturating_add(amount);
        }
    }

    /// Subtracts amounts from a row. Says whether the rest is exact, which it is not where the sum was too large to be kept.
    pub fn subtract(&mut self, row: Row, amounts: &ResourceVector) -> bool {
        self.widen(amounts);
        let mut is_exact = true;
        for (resource, amount) in amounts.iter() {
            let cell = self.cell(resource, row);
            is_exact &= *cell < i64::MAX;
            *cell = cell.saturating_sub(amount);
        }
        is_exact
    }

    /// The amounts of a row, by resource.
    pub fn row(&self, row: Row) -> impl Iterator<Item = i64> + '_ {
        self.of(row).0.iter().copied()
    }

    fn cell(&mut self, resource: ResourceId, row: Row) -> &mut i64 {
        &mut self.amounts[row.index() * self.width + resource.index()]
    }

    /// Widens the rows for the resources of these amounts. All rows are copied then: once for all of the amounts, and so much wider that
    /// resources which come one by one cost a constant time each.
    fn widen(&mut self, amounts: &ResourceVector) {
        let width = amounts.width();
        if width <= self.width {
            return;
        }
        let width = width.max(self.width + self.width / 2);
        let mut amounts = vec![0; self.rows * width];
        if self.width > 0 {
            let rows = amounts.chunks_exact_mut(width).zip(self.amounts.chunks_exact(self.width));
            rows.for_each(|(new, old)| new[..old.len()].copy_from_slice(old));
        }
        (self.amounts, self.width) = (amounts, width);
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduling::ResourceNames;

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

    #[test]
    fn columns_are_copied_a_few_times_however_many_resources_there_are() {
        let (mut names, mut columns, mut copies) = (ResourceNames::default(), Columns::default(), 0);
        columns.grow(2);
        let row = Row::at(1).unwrap();
        for number in 0..2000_i64 {
            let mut amounts = ResourceVector::default();
            amounts.set(names.intern(&format!("example.com/{number}")).unwrap(), number);
            let before = columns.width;
            columns.add(row, &amounts);
            copies += u32::from(columns.width != before);
        }
        assert!(copies < 20, "{copies}");
        assert_eq!(columns.row(row).sum::<i64>(), 1999 * 1000);
        let (mut all, mut several) = (ResourceVector::default(), Columns::default());
        names.names().for_each(|name| all.set(names.get(name).unwrap(), 1));
        several.grow(2);
        several.add(row, &all);
        assert_eq!(several.width, names.len(), "once for all");
    }
}
