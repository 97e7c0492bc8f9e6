//! One resource that is divided again and again, while few of the children change in between (`spec/scheduler.md` 3D.4).

#[cfg(test)]
mod tests;

use std::{cmp::Ordering, collections::BTreeMap};

use crate::{
    ChildAmounts,
    redistribute::{divided, in_rounds, left_of},
};

/// The children of a quota, in the order of their names, with the sums that decide what each of them may use.
///
/// Where the total is enough for all requests, a child may use what it requests; where it is not, but nobody is satisfied by the
/// first division, its part of that follows from its weight and its place. Only in between everything is divided round by round.
#[derive(Debug, Default)]
pub struct Pool {
    children: Vec<ChildAmounts>,
    /// What all of them get before anything is divided.
    own: i128,
    /// What those that have a weight request beyond that.
    need: i128,
    mins: i128,
    /// Those that have a weight and request more than they get before, by weight.
    needy: BTreeMap<i64, Group>,
    /// What was found about the total that was divided last; none where a child has changed since.
    last: Option<(i64, Contested)>,
    /// The same children with smaller mins, for a total that is less than the sum of mins.
    scaled: Option<Box<Scaled>>,
}

/// Children whose mins shrink together.
#[derive(Debug)]
struct Scaled {
    /// What is divided, and the sum of the mins.
    total: i64,
    mins: i64,
    pool: Pool,
}

/// Needy children of one weight.
#[derive(Debug, Default)]
struct Group {
    /// Their places, in order.
    places: Vec<usize>,
    /// The least that one of them needs, and how many need that; none where it is to be found again.
    least: Option<(i128, usize)>,
}

/// How a total is divided that is not enough.
#[derive(Debug)]
enum Contested {
    /// Once, among children of one weight, as many mostly have: what each of them gets, and how many get one more.
    Evenly { share: i128, residual: usize },
    /// Once: the parts of each weight, in the order of weights, and how many children get one more.
    Once { parts: Vec<Part>, residual: usize },
    /// Round by round: what each child may use.
    InRounds(Vec<i64>),
}

/// What the children of one weight get.
#[derive(Clone, Copy, Debug)]
struct Part {
    weight: i64,
    share: i128,
    remainder: i128,
    /// How many children there are.
    count: usize,
    /// How many others have a larger remainder.
    before: usize,
}

impl FromIterator<ChildAmounts> for Pool {
    fn from_iter<I: IntoIterator<Item = ChildAmounts>>(amounts: I) -> Self {
        let children: Vec<ChildAmounts> = amounts.into_iter().collect();
        let (mut own, mut mins, mut need) = (0, 0, 0);
        let mut needy: BTreeMap<i64, Group> = BTreeMap::new();
        // Siblings mostly have the weight of the one before.
        let mut last = (0, Group::default());
        for (place, child) in children.iter().enumerate() {
            own += i128::from(child.own());
            mins += i128::from(child.min);
            let Some(weight) = child.divides() else { continue };
            let of_child = child.need();
            need += of_child;
            if weight != last.0 {
                let group = needy.remove(&weight).unwrap_or_default();
                let (weight, group) = std::mem::replace(&mut last, (weight, group));
                needy.insert(weight, group);
            }
            last.1.add(place, of_child);
        }
        needy.insert(last.0, last.1);
        needy.retain(|_, group| !group.places.is_empty());
        Self { children, own, need, mins, needy, last: None, scaled: None }
    }
}

impl Pool {
    pub fn child(&self, place: usize) -> Option<ChildAmounts> {
        self.children.get(place).copied()
    }

    /// A child is another from now on.
    pub fn set(&mut self, place: usize, amounts: ChildAmounts) {
        let Some(known) = self.children.get_mut(place).filter(|known| **known != amounts) else { return };
        let old = std::mem::replace(known, amounts);
        self.last = None;
        self.count(old, -1);
        self.count(amounts, 1);
        if let Some(Scaled { total, mins, pool }) = self.scaled.as_deref_mut() {
            // Where the sum of the mins is another now, it is scaled anew.
            pool.set(place, amounts.scaled(*total, *mins));
        }
        let (left, joined) = (old.divides(), amounts.divides());
        if let Some(group) = left.and_then(|weight| self.needy.get_mut(&weight)) {
            group.forget(old.need());
            if left == joined {
                group.heed(amounts.need());
                return;
            }
            group.remove(place);
        }
        if let Some(weight) = left.filter(|weight| self.needy.get(weight).is_some_and(|group| group.places.is_empty()))
        {
            self.needy.remove(&weight);
        }
        if let Some(weight) = joined {
            self.needy.entry(weight).or_default().add(place, amounts.need());
        }
    }

    /// What a child may use of a total. Where mins are scaled, they shrink together when their sum exceeds the total.
    pub fn runtime(&mut self, total: i64, scales_min: bool, place: usize) -> i64 {
        if scales_min && let Some(mins) = self.too_many_mins(total) {
            return self.scaled(total, mins).runtime(total, false, place);
        }
        self.scaled = None;
        let Some(child) = self.children.get(place).copied() else { return 0 };
        let left = left_of(total, self.own);
        if child.divides().is_none() || left <= 0 {
            return child.own();
        }
        if left >= self.need {
            return child.request;
        }
        if self.last.as_ref().is_none_or(|(divided, _)| *divided != total) {
            self.last = Some((total, self.contested(total)));
        }
        // Less than the request, which is an i64.
        let with = |share: i128| i64::try_from(i128::from(child.own()) + share).unwrap_or(child.request);
        match &self.last {
            Some((_, Contested::InRounds(runtimes))) => runtimes.get(place).copied().unwrap_or(0),
            Some((_, Contested::Evenly { share, residual })) => {
                let rank: usize = self.needy.values().map(|group| group.rank(place)).sum();
                with(*share + i128::from(rank < *residual))
            }
            Some((_, Contested::Once { parts, residual })) => with(self.share(parts, *residual, place, child.weight)),
            None => 0,
        }
    }

    /// The min by which a child's part of a total is found: less than its own where mins shrink.
    pub fn min(&mut self, total: i64, scales_min: bool, place: usize) -> i64 {
        if scales_min && let Some(mins) = self.too_many_mins(total) {
            return self.scaled(total, mins).min(total, false, place);
        }
        self.children.get(place).map_or(0, |child| child.min)
    }

    /// The sum of the mins, where a total is not enough for them.
    fn too_many_mins(&self, total: i64) -> Option<i64> {
        let mins = i64::try_from(self.mins.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or(i64::MAX);
        (total < mins).then_some(mins)
    }

    /// The children with smaller mins.
    fn scaled(&mut self, total: i64, mins: i64) -> &mut Self {
        let children = &self.children;
        let anew = || {
            let pool = children.iter().map(|amounts| amounts.scaled(total, mins)).collect();
            Box::new(Scaled { total, mins, pool })
        };
        self.scaled = self.scaled.take().filter(|known| (known.total, known.mins) == (total, mins));
        &mut self.scaled.get_or_insert_with(anew).pool
    }

    /// Adds a child to the sums, or takes it out.
    fn count(&mut self, child: ChildAmounts, sign: i128) {
        self.own += sign * i128::from(child.own());
        self.mins += sign * i128::from(child.min);
        if child.divides().is_some() {
            self.need += sign * child.need();
        }
    }

    /// How a total is divided that is not enough.
    fn contested(&mut self, total: i64) -> Contested {
        let left = left_of(total, self.own);
        if self.needy.len() == 1
            && let Some((_, group)) = self.needy.iter_mut().next()
        {
            let count = group.places.len() as i128;
            let share = left / count;
            if group.least(&self.children) <= share {
                return Contested::InRounds(in_rounds(total, &self.children, |place| place));
            }
            let residual = usize::try_from(left - share * count).unwrap_or(usize::MAX);
            return Contested::Evenly { share, residual };
        }
        let divided = divided(left, || self.needy.iter().map(|(weight, group)| (*weight, group.places.len())));
        let mut parts: Vec<Part> = Vec::with_capacity(divided.len());
        let mut given = 0;
        for ((weight, group), (share, remainder)) in self.needy.iter_mut().zip(divided) {
            if group.least(&self.children) <= share {
                return Contested::InRounds(in_rounds(total, &self.children, |place| place));
            }
            given += share * group.places.len() as i128;
            parts.push(Part { weight: *weight, share, remainder, count: group.places.len(), before: 0 });
        }
        parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.remainder));
        let mut before = 0;
        for equal in parts.chunk_by_mut(|one, other| one.remainder == other.remainder) {
            let count: usize = equal.iter().map(|part| part.count).sum();
            for part in equal {
                part.before = before;
            }
            before += count;
        }
        parts.sort_unstable_by_key(|part| part.weight);
        Contested::Once { parts, residual: usize::try_from(left - given).unwrap_or(usize::MAX) }
    }

    /// What a needy child gets of one division.
    fn share(&self, parts: &[Part], residual: usize, place: usize, weight: i64) -> i128 {
        let Ok(at) = parts.binary_search_by_key(&weight, |part| part.weight) else { return 0 };
        let Part { share, remainder, before, .. } = parts[at];
        let more = residual.saturating_sub(before);
        if more == 0 {
            return share;
        }
        // Of equal remainders the first places get one more.
        let equal = parts.iter().filter(|part| part.remainder == remainder);
        let groups = equal.filter_map(|part| self.needy.get(&part.weight));
        let rank: usize = groups.map(|group| group.rank(place)).sum();
        share + i128::from(rank < more)
    }
}

impl Group {
    fn add(&mut self, place: usize, need: i128) {
        if self.places.is_empty() {
            self.least = Some((need, 0));
        }
        // All children come in the order of their places at first.
        if self.places.last().is_none_or(|last| *last < place) {
            self.places.push(place);
        } else if let Err(at) = self.places.binary_search(&place) {
            self.places.insert(at, place);
        }
        self.heed(need);
    }

    /// How many of them come before a place.
    fn rank(&self, place: usize) -> usize {
        self.places.partition_point(|known| *known < place)
    }

    fn remove(&mut self, place: usize) {
        if let Ok(at) = self.places.binary_search(&place) {
            self.places.remove(at);
        }
    }

    /// One of them needs so much from now on.
    fn heed(&mut self, need: i128) {
        self.least = self.least.map(|(least, count)| match need.cmp(&least) {
            Ordering::Less => (need, 1),
            Ordering::Equal => (least, count + 1),
            Ordering::Greater => (least, count),
        });
    }

    /// One of them does not need so much any more.
    fn forget(&mut self, need: i128) {
        let left = |(least, count)| (least, count - usize::from(least == need));
        self.least = self.least.map(left).filter(|(_, count)| *count > 0);
    }

    fn least(&mut self, children: &[ChildAmounts]) -> i128 {
        if let Some((least, _)) = self.least {
            return least;
        }
        let needs = || self.places.iter().map(|place| children[*place].need());
        let least = needs().min().unwrap_or(i128::MAX);
        self.least = Some((least, needs().filter(|need| *need == least).count()));
        least
    }
}
