//! How `min` shrinks when the children of a quota are promised more than there is (`spec/scheduler.md` 3D.5).

/// The `min` of a child when its parent has `total`: as it is while the sum of all mins fits, else its part of what the
/// children that are not scaled leave, cut towards zero.
///
/// `scaled` and `unscaled` are the sums of the mins of the children that take part, this one included, and of those
/// that do not. Products are floating point, as in the original.
pub fn scaled_min(min: i64, total: i64, scaled: i64, unscaled: i64) -> i64 {
    if i128::from(total) >= i128::from(scaled) + i128::from(unscaled) {
        return min;
    }
    let rest = total.saturating_sub(unscaled);
    if rest <= 0 || scaled <= 0 {
        return 0;
    }
    (rest as f64 * min as f64 / scaled as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mins_shrink_only_when_their_sum_does_not_fit() {
        // Two children of 50 take part, one of 50 does not.
        let min = |total| scaled_min(50, total, 100, 50);
        assert_eq!([200, 150, 100, 50, 0, -10].map(min), [50, 50, 25, 0, 0, 0]);
        assert_eq!(scaled_min(0, 10, 0, 50), 0);
        assert_eq!(scaled_min(7, 10, 21, 0), 3);
        assert_eq!(scaled_min(i64::MAX, i64::MAX, i64::MAX, i64::MAX), 0);
    }
}
