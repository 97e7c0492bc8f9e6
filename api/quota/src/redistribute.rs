//! How one resource of a quota is divided among its children (`spec/scheduler.md` 3D.4).

use crate::scaled_min;

/// A child of a quota, in amounts of one resource: thousandths of cores for CPU, whole units for everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child<'a> {
    /// Decides where remainders are equal.
    pub name: &'a str,
    /// What it requests, at most its `max`.
    pub request: i64,
    /// What it gets in any case.
    pub min: i64,
    /// What it is guaranteed beyond that.
    pub guaranteed: i64,
    /// Its share of what is left.
    pub weight: i64,
    /// Whether others may use what it does not request of its `min`.
    pub lends: bool,
}

/// What each child may use of a total, in the order of the children.
///
/// Every child gets what it requests up to its `min` or what it is guaranteed, whichever is larger; a child that does
/// not lend gets that in any case. These amounts are given even when their sum exceeds the total. What is left is
/// divided among the children that request more, by weight, until they have what they request or nothing is left.
/// Children without a weight get nothing of it. Rounding loses nothing: a division hands out the exact amount.
pub fn redistribute(total: i64, children: &[Child<'_>]) -> Vec<i64> {
    let amounts: Vec<ChildAmounts> = children.iter().map(Child::amounts).collect();
    in_rounds(total, &amounts, |index| children[index].name)
}

/// What a child is given, without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildAmounts {
    /// What it requests, at most its `max`.
    pub request: i64,
    /// What it gets in any case.
    pub min: i64,
    /// What it is guaranteed beyond that.
    pub guaranteed: i64,
    /// Its share of what is left.
    pub weight: i64,
    /// Whether others may use what it does not request of its `min`.
    pub lends: bool,
}

impl Child<'_> {
    fn amounts(&self) -> ChildAmounts {
        let Self { request, min, guaranteed, weight, lends, .. } = *self;
        ChildAmounts { request, min, guaranteed, weight, lends }
    }
}

impl ChildAmounts {
    fn promised(&self) -> i64 {
        self.min.max(self.guaranteed)
    }

    /// The weight by which it gets a part of what is left; none where it gets none.
    pub(crate) fn divides(&self) -> Option<i64> {
        (self.is_needy() && self.weight > 0).then_some(self.weight)
    }

    /// Whether it requests more than it is promised.
    fn is_needy(&self) -> bool {
        self.request > self.promised()
    }

    /// The same with the min that is left of it where the sum of mins exceeds a total.
    pub(crate) fn scaled(self, total: i64, mins: i64) -> Self {
        Self { min: scaled_min(self.min, total, mins, 0), ..self }
    }

    /// What it gets before anything is divided.
    pub(crate) fn own(&self) -> i64 {
        if self.is_needy() || !self.lends { self.promised() } else { self.request }
    }

    /// What it requests beyond that.
    pub(crate) fn need(&self) -> i128 {
        i128::from(self.request) - i128::from(self.own())
    }
}

/// What each child may use of a total, round by round; `name` decides where remainders are equal.
pub(crate) fn in_rounds<N: Ord>(total: i64, children: &[ChildAmounts], name: impl Fn(usize) -> N) -> Vec<i64> {
    let mut runtime: Vec<i64> = children.iter().map(ChildAmounts::own).collect();
    let mut left = left_of(total, runtime.iter().map(|own| i128::from(*own)).sum());
    let mut needy: Vec<usize> = (0..children.len()).filter(|index| children[*index].is_needy()).collect();
    // Every round either satisfies a child or is the last one.
    while left > 0 {
        let shares = shares(left, children, &needy, &name);
        if shares.is_empty() {
            break;
        }
        let mut surplus = 0;
        needy.clear();
        for (index, share) in shares {
            let wanted = i128::from(children[index].request);
            let sum = i128::from(runtime[index]) + share;
            if sum >= wanted {
                surplus += sum - wanted;
            } else {
                needy.push(index);
            }
            // At most the request, which is an i64.
            runtime[index] = i64::try_from(sum.min(wanted)).unwrap_or(children[index].request);
        }
        left = surplus;
    }
    runtime
}

/// What is left of a total beside what its children have in any case. Where they have less than nothing it is as much as can be
/// written, so that its product with a weight is a number too.
pub(crate) fn left_of(total: i64, own: i128) -> i128 {
    (i128::from(total) - own).min(i128::from(i64::MAX))
}

/// An amount divided by weight among some of the children: whole shares first, then one more for the largest
/// remainders, by name where they are equal.
fn shares<N: Ord>(
    amount: i128,
    children: &[ChildAmounts],
    among: &[usize],
    name: impl Fn(usize) -> N,
) -> Vec<(usize, i128)> {
    let weighted: Vec<usize> = among.iter().copied().filter(|index| children[*index].weight > 0).collect();
    let weights = || weighted.iter().map(|index| (children[*index].weight, 1));
    let divided = divided(amount, weights);
    let mut shares: Vec<(usize, i128)> =
        weighted.iter().zip(&divided).map(|(index, (share, _))| (*index, *share)).collect();
    let given: i128 = divided.iter().map(|(share, _)| share).sum();
    let residual = usize::try_from(amount - given).unwrap_or(usize::MAX);
    if residual > 0 {
        let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
        by_remainder.sort_by_key(|at| (std::cmp::Reverse(divided[*at].1), name(shares[*at].0)));
        for at in by_remainder.into_iter().take(residual) {
            shares[at].1 += 1;
        }
    }
    shares
}

/// An amount divided by weights, each of which so many children have: the whole share of one of them, and its remainder, by which
/// those can be compared that are divided together.
pub(crate) fn divided<W: Iterator<Item = (i64, usize)>>(amount: i128, weights: impl Fn() -> W) -> Vec<(i128, i128)> {
    // The same division in smaller numbers: weights are mostly amounts of bytes, and alike.
    let divisor = weights().fold(0, |divisor, (weight, _)| common_divisor(divisor, weight)).max(1);
    let small = || weights().map(|(weight, count)| (weight / divisor, count));
    let sum: i128 = small().map(|(weight, count)| i128::from(weight) * count as i128).sum();
    let heaviest = small().map(|(weight, _)| weight).max().unwrap_or(0);
    let in_words = i64::try_from(amount).ok().zip(i64::try_from(sum).ok());
    let in_words = in_words.filter(|(amount, _)| heaviest.checked_mul(*amount).is_some());
    // Of i128, both factors have at most 63 bits, so the product fits.
    let divide = |weight: i64| match in_words {
        Some((amount, sum)) => (i128::from(weight * amount / sum), i128::from(weight * amount % sum)),
        None => (i128::from(weight) * amount / sum, i128::from(weight) * amount % sum),
    };
    small().map(|(weight, _)| divide(weight)).collect()
}

/// The greatest number that divides both; the other where one is 0.
fn common_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn child(name: &str, weight: i64, request: i64, min: i64) -> Child<'_> {
        Child { name, request, min, guaranteed: 0, weight, lends: true }
    }

    #[test]
    fn what_is_left_is_shared_by_weight() {
        let d = |weight, guaranteed| Child { guaranteed, ..child("d", weight, 70, 15) };
        let with = |d| [child("a", 40, 5, 10), child("b", 60, 20, 15), child("c", 50, 40, 20), d];
        assert_eq!(redistribute(100, &with(d(80, 0))), [5, 20, 35, 40]);
        assert_eq!(redistribute(100, &with(d(0, 0))), [5, 20, 40, 15]);
        assert_eq!(redistribute(100, &with(d(0, 45))), [5, 20, 30, 45]);
    }

    #[test]
    fn rounding_is_exact_and_prefers_the_first_names() {
        let names: Vec<String> = (0..10).map(|index| format!("borrower-{index:02}")).collect();
        let mut children = vec![child("donor", 1, 0, 3)];
        children
            .extend(names.iter().enumerate().map(|(index, name)| child(name, 1, 100, if index < 8 { 8 } else { 7 })));
        let runtime = redistribute(81, &children);
        assert_eq!(runtime, [0, 9, 9, 9, 8, 8, 8, 8, 8, 7, 7]);
        assert_eq!(runtime.iter().sum::<i64>(), 81);
    }

    #[test]
    fn amounts_may_be_as_large_or_small_as_can_be_written() {
        const EXTREMES: [i64; 4] = [i64::MIN, -1, 0, i64::MAX];
        let of = |request, min, weight, lends| Child { lends, ..child("c", weight, request, min) };
        let each = EXTREMES.into_iter().flat_map(|request| {
            let weights = move |min| [i64::MIN, 1, i64::MAX].map(|weight| (request, min, weight));
            EXTREMES.into_iter().flat_map(weights)
        });
        let each: Vec<(i64, i64, i64)> = each.collect();
        for (one, lends) in each.iter().flat_map(|one| [(one, true), (one, false)]) {
            for other in &each {
                for total in EXTREMES {
                    let mut children =
                        [*one, *other, *other].map(|(request, min, weight)| of(request, min, weight, lends));
                    children.iter_mut().zip(["a", "b", "c"]).for_each(|(child, name)| child.name = name);
                    children[2].guaranteed = i64::MIN;
                    let runtime = redistribute(total, &children);
                    let mut pool: crate::Pool = children.iter().map(Child::amounts).collect();
                    for (place, runtime) in runtime.into_iter().enumerate() {
                        assert_eq!(pool.runtime(total, false, place), runtime, "{total} {children:?}");
                        pool.runtime(total, true, place);
                    }
                }
            }
        }
    }

    #[test]
    fn a_child_that_does_not_lend_keeps_its_min() {
        let keeper = Child { lends: false, ..child("q2", 1, 0, 40) };
        assert_eq!(redistribute(100, &[child("q1", 96, 96, 60), keeper]), [60, 40]);
    }

    #[test]
    fn two_peers_share_what_the_other_does_not_request() {
        let peers = |first, second| redistribute(100, &[child("a", 1, first, 60), child("b", 1, second, 50)]);
        assert_eq!(peers(0, 90), [0, 90]);
        assert_eq!(peers(30, 90), [30, 70]);
        assert_eq!(peers(60, 90), [60, 50], "mins are honoured even beyond the total");
        let both = [child("a", 1, 80, 50), child("b", 1, 100, 50)];
        assert_eq!(redistribute(120, &both), [60, 60]);
        assert_eq!(redistribute(120, &both[..1]), [80]);
    }

    #[test]
    fn amounts_of_bytes_need_products_of_more_than_64_bits() {
        let request = i64::MAX / 2;
        let children =
            [child("a", i64::MAX, request, 0), child("b", i64::MAX, request, 0), child("c", i64::MAX, request, 0)];
        let third = (1_i64 << 60) / 3;
        assert_eq!(redistribute(1 << 60, &children), [third + 1, third, third]);
        assert_eq!(redistribute(i64::MAX, &[]), [0; 0]);
    }

    fn any_children() -> impl Strategy<Value = Vec<(i64, i64, i64, i64, bool)>> {
        let amount = || prop_oneof![0..100_i64, 0..i64::MAX];
        proptest::collection::vec(
            (amount(), amount(), 0..50_i64, prop_oneof![Just(0), 1..10_i64, amount()], any::<bool>()),
            0..12,
        )
    }

    proptest! {
        #[test]
        fn nobody_gets_less_than_promised_or_more_than_requested(children in any_children(), total in prop_oneof![-10..1000_i64, 0..i64::MAX]) {
            let names: Vec<String> = (0..children.len()).map(|index| format!("q{index:02}")).collect();
            let children: Vec<Child<'_>> = children.iter().zip(&names)
                .map(|((request, min, guaranteed, weight, lends), name)| Child {
                    name, request: *request, min: *min, guaranteed: *guaranteed, weight: *weight, lends: *lends,
                })
                .collect();
            let runtime = redistribute(total, &children);
            let (mut promised_sum, mut satisfied) = (0_i128, true);
            for (child, runtime) in children.iter().zip(&runtime) {
                let promised = child.min.max(child.guaranteed);
                let least = if child.lends { promised.min(child.request) } else { promised };
                prop_assert!(*runtime >= least);
                prop_assert!(*runtime <= least.max(child.request));
                prop_assert!(child.weight > 0 || *runtime == least);
                promised_sum += i128::from(least);
                satisfied &= child.weight == 0 || *runtime >= child.request;
            }
            let sum: i128 = runtime.iter().map(|runtime| i128::from(*runtime)).sum();
            prop_assert!(sum <= i128::from(total).max(promised_sum));
            // Either everybody who has a weight is satisfied, or nothing is left.
            prop_assert!(satisfied || sum == i128::from(total).max(promised_sum));
        }

        #[test]
        fn the_order_of_the_children_does_not_matter(children in any_children(), total in 0..1000_i64) {
            let names: Vec<String> = (0..children.len()).map(|index| format!("q{index:02}")).collect();
            let mut children: Vec<Child<'_>> = children.iter().zip(&names)
                .map(|((request, min, guaranteed, weight, lends), name)| Child {
                    name, request: *request, min: *min, guaranteed: *guaranteed, weight: *weight, lends: *lends,
                })
                .collect();
            let mut forwards = redistribute(total, &children);
            children.reverse();
            forwards.reverse();
            prop_assert_eq!(redistribute(total, &children), forwards);
        }
    }
}
