use proptest::prelude::*;

use super::*;
use crate::{Child, redistribute, scaled_min};

fn child(weight: i64, request: i64, min: i64) -> ChildAmounts {
    ChildAmounts { request, min, guaranteed: 0, weight, lends: true }
}

fn runtimes(pool: &mut Pool, total: i64) -> Vec<i64> {
    (0..pool.children.len()).map(|place| pool.runtime(total, true, place)).collect()
}

#[test]
fn what_is_enough_is_what_is_requested_and_what_is_not_is_shared_by_weight() {
    let mut pool: Pool = [child(1, 50, 10), child(3, 90, 10), child(1, 5, 10)].into_iter().collect();
    assert_eq!(runtimes(&mut pool, 145), [50, 90, 5]);
    assert_eq!(runtimes(&mut pool, 67), [10 + 11, 10 + 31, 5], "of equal remainders the first gets the last one");
    assert_eq!(runtimes(&mut pool, 135), [40, 90, 5], "the second is satisfied, and the first gets the rest");
    assert_eq!(runtimes(&mut pool, 30), [10 + 1, 10 + 4, 5], "the larger remainder gets the last one");
    pool.set(1, child(3, 10, 10));
    assert_eq!(runtimes(&mut pool, 67), [50, 10, 5]);
}

#[test]
fn what_is_not_enough_is_shared_evenly_by_children_of_one_weight() {
    let mut pool: Pool = [child(2, 50, 10), child(2, 90, 10), child(2, 5, 10)].into_iter().collect();
    assert_eq!(runtimes(&mut pool, 46), [10 + 11, 10 + 10, 5], "the first gets what cannot be divided");
    assert_eq!(runtimes(&mut pool, 135), [50, 80, 5], "the first is satisfied, and the second gets the rest");
    assert_eq!(runtimes(&mut pool, 145), [50, 90, 5]);
}

#[test]
fn mins_beyond_the_total_shrink_where_they_are_scaled() {
    let mut pool: Pool = [child(1, 60, 60), child(1, 60, 60)].into_iter().collect();
    let mut of = |scales_min| [0, 1].map(|place| pool.runtime(100, scales_min, place));
    assert_eq!([of(true), of(false), of(true)], [[50, 50], [60, 60], [50, 50]]);
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![0..100_i64, 0..100_i64, 0..i64::MAX]
}

fn any_child() -> impl Strategy<Value = ChildAmounts> {
    // Weights that are alike, as those of most quotas are.
    let weight = prop_oneof![Just(0), Just(1), Just(5), 1..10_i64, amount()];
    let guaranteed = prop_oneof![Just(0), 0..50_i64];
    (amount(), prop_oneof![0..40_i64, amount()], guaranteed, weight, any::<bool>())
        .prop_map(|(request, min, guaranteed, weight, lends)| ChildAmounts { request, min, guaranteed, weight, lends })
}

/// As the whole is divided.
fn anew(children: &[ChildAmounts], total: i64, scales_min: bool) -> Vec<i64> {
    let names: Vec<String> = (0..children.len()).map(|place| format!("q{place:03}")).collect();
    let mins = children.iter().fold(0_i64, |sum, child| sum.saturating_add(child.min));
    let child = |(name, child): (_, &ChildAmounts)| {
        let ChildAmounts { request, min, guaranteed, weight, lends } = *child;
        let min = if scales_min { scaled_min(min, total, mins, 0) } else { min };
        Child { name, request, min, guaranteed, weight, lends }
    };
    let children: Vec<Child<'_>> = names.iter().map(String::as_str).zip(children).map(child).collect();
    redistribute(total, &children)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn after_any_changes_everybody_may_use_what_a_division_of_the_whole_gives(
        mut children in proptest::collection::vec(any_child(), 1..12),
        steps in proptest::collection::vec(
            (0..12_usize, proptest::option::of(any_child()), prop_oneof![Just(100_i64), -10..1500_i64, amount()], any::<bool>()),
            1..12,
        ),
    ) {
        let mut pool: Pool = children.iter().copied().collect();
        for (place, changed, total, scales_min) in steps {
            if let Some((child, known)) = changed.zip(children.get_mut(place)) {
                *known = child;
                pool.set(place, child);
            }
            let expected = anew(&children, total, scales_min);
            for (place, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(pool.runtime(total, scales_min, place), expected, "{} of {:?}", place, children);
            }
        }
    }
}
