//! Finds the first target with room for a pod without looking at all of them.

/// What each target has left of several amounts, as a tree: each inner node has the largest amounts of what is below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms {
    /// How many amounts each target has.
    width: usize,
    /// The number of leaves: a power of two.
    leaves: usize,
    /// The amounts of node `n` are at `n * width`. The root is node 1, below node `n` are `2n` and `2n + 1`, and target `t` is node `leaves + t`.
    amounts: Vec<i64>,
}

impl Rooms {
    pub(super) fn new(width: usize, rooms: &[Vec<i64>]) -> Self {
        let leaves = rooms.len().next_power_of_two();
        let mut tree = Self { width, leaves, amounts: vec![i64::MIN; 2 * leaves * width] };
        for (target, room) in rooms.iter().enumerate() {
            tree.write(leaves + target, room);
        }
        for node in (1..leaves).rev() {
            tree.update(node);
        }
        tree
    }

    /// What a target has left has changed.
    pub(super) fn set(&mut self, target: usize, room: &[i64]) {
        let mut node = self.leaves + target;
        self.write(node, room);
        while node > 1 {
            node /= 2;
            self.update(node);
        }
    }

    /// The first target that has room for a demand, and that a check accepts. Of what is not demanded nothing has to be left.
    pub(super) fn first(&self, demand: &[i64], accepts: &mut impl FnMut(usize) -> bool) -> Option<usize> {
        if self.amounts.is_empty() { None } else { self.search(1, demand, accepts) }
    }

    fn search(&self, node: usize, demand: &[i64], accepts: &mut impl FnMut(usize) -> bool) -> Option<usize> {
        let room = self.amounts(node);
        if room.first() == Some(&i64::MIN) || demand.iter().zip(room).any(|(demand, room)| *demand > 0 && demand > room)
        {
            return None;
        }
        if node >= self.leaves {
            let target = node - self.leaves;
            return accepts(target).then_some(target);
        }
        self.search(2 * node, demand, accepts).or_else(|| self.search(2 * node + 1, demand, accepts))
    }

    fn amounts(&self, node: usize) -> &[i64] {
        self.amounts.get(node * self.width..(node + 1) * self.width).unwrap_or_default()
    }

    fn write(&mut self, node: usize, room: &[i64]) {
        let (begin, end) = (node * self.width, (node + 1) * self.width);
        for (amount, room) in self.amounts.get_mut(begin..end).into_iter().flatten().zip(room) {
            // The smallest number marks leaves without target.
            *amount = (*room).max(i64::MIN + 1);
        }
    }

    fn update(&mut self, node: usize) {
        for index in 0..self.width {
            let [one, other] =
                [2 * node, 2 * node + 1].map(|below| self.amounts.get(below * self.width + index).copied());
            if let Some(amount) = self.amounts.get_mut(node * self.width + index) {
                *amount = one.max(other).unwrap_or(i64::MIN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_target_is_that_of_looking_at_each() {
        let mut rooms: Vec<Vec<i64>> = (0..37_i64).map(|n| vec![n * 7 % 11, n * 5 % 13 - 2, n % 3]).collect();
        let mut tree = Rooms::new(3, &rooms);
        for step in 0..500_usize {
            let demand = [step % 12, step % 9, step % 4].map(|amount| i64::try_from(amount).unwrap());
            let mut accepts = |target: usize| !(target + step).is_multiple_of(5);
            let has_room = |room: &[i64]| demand.iter().zip(room).all(|(demand, room)| *demand <= 0 || demand <= room);
            let expected = (0..rooms.len()).find(|target| has_room(&rooms[*target]) && accepts(*target));
            assert_eq!(tree.first(&demand, &mut accepts), expected, "step {step}");
            if let Some(target) = expected {
                rooms[target].iter_mut().zip(demand).for_each(|(room, demand)| *room -= demand);
                tree.set(target, &rooms[target]);
            } else {
                rooms[step % 37] = vec![11, 11, 3];
                tree.set(step % 37, &rooms[step % 37]);
            }
        }
    }

    #[test]
    fn without_targets_nothing_is_found() {
        for tree in [Rooms::default(), Rooms::new(2, &[])] {
            assert_eq!(tree.first(&[0, 0], &mut |_| true), None);
        }
    }
}
