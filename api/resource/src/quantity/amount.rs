//! The number inside a quantity: 64 bits with a decimal scale while they suffice, a big decimal beyond.
//!
//! Which of the two a number is kept as can be seen from outside (overflow answers differ), so the transitions are Go's.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

/// Numbers whose exponents are further apart than this are not written out side by side: the smaller one is lost.
const DIGITS_MAX: i64 = 4096;

#[derive(Clone, Debug)]
pub(super) enum Amount {
    /// `value * 10^scale`.
    Small { value: i64, scale: i32 },
    /// More than 64 bits, or below the reach of the fast path.
    Big(Box<Decimal>),
}

/// `unscaled * 10^-places`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub(super) unscaled: BigInt,
    pub(super) places: i64,
}

impl Default for Amount {
    fn default() -> Self {
        Amount::Small { value: 0, scale: 0 }
    }
}

impl Amount {
    pub(super) fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    pub(super) fn signum(&self) -> i32 {
        match self {
            Amount::Small { value, .. } => value.signum() as i32,
            Amount::Big(decimal) => match decimal.unscaled.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        match *self {
            Amount::Small { value, scale: 0 } => Some(value),
            Amount::Small { value, scale } if scale > 0 => match times_power_of_ten(value, scale) {
                (product, true) => Some(product),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn as_f64(&self) -> f64 {
        let (base, exponent) = match self {
            Amount::Small { value, scale } => (*value as f64, i64::from(*scale)),
            Amount::Big(decimal) => (decimal.unscaled.to_f64().unwrap_or(f64::INFINITY), -decimal.places),
        };
        if exponent == 0 { base } else { base * power_of_ten_f64(exponent) }
    }

    /// The number in units of `10^scale`, rounded up; what overflows is Go's answer.
    pub(super) fn scaled(&self, scale: i32) -> i64 {
        match self {
            Amount::Small { value, scale: own } if *own < scale => over_power_of_ten(*value, scale - own).0,
            Amount::Small { value, scale: own } => times_power_of_ten(*value, own.saturating_sub(scale)).0,
            Amount::Big(decimal) => decimal.scaled(-i64::from(scale)),
        }
    }

    /// The number in billionths, rounded up; what overflows is the largest or the smallest number.
    pub(super) fn billionths(&self) -> i128 {
        const PLACES: i64 = 9;
        let decimal = self.decimal();
        let limit = if decimal.unscaled.is_negative() { i128::MIN } else { i128::MAX };
        let surplus = decimal.places - PLACES;
        if decimal.unscaled.is_zero() {
            return 0;
        }
        if surplus > 0 {
            // Parsing rounds to billionths, so that only products get here.
            let rounded = decimal.rounded_up(PLACES);
            return rounded.unscaled.to_i128().unwrap_or(limit);
        }
        let power = u32::try_from(-surplus).ok().and_then(|power| 10_i128.checked_pow(power));
        let product = power.and_then(|power| decimal.unscaled.to_i128()?.checked_mul(power));
        product.unwrap_or(limit)
    }

    /// Rounded away from zero to a multiple of `10^scale`, and whether that changed nothing.
    pub(super) fn rounded_up(&self, scale: i32) -> (Amount, bool) {
        match self {
            Amount::Small { scale: own, .. } if *own >= scale => (self.clone(), true),
            Amount::Small { value, scale: own } => {
                let (value, exact) = over_power_of_ten(*value, scale - own);
                (Amount::Small { value, scale }, exact)
            }
            Amount::Big(decimal) => {
                let rounded = decimal.rounded_up(-i64::from(scale));
                let exact = rounded.compare(decimal).is_eq();
                (Amount::Big(Box::new(rounded)), exact)
            }
        }
    }

    pub(super) fn add(&mut self, other: &Amount) {
        if let (Amount::Small { value: a, scale: a_scale }, Amount::Small { value: b, scale: b_scale }) =
            (&*self, other)
            && let Some(sum) = small_sum((*a, *a_scale), (*b, *b_scale))
        {
            *self = sum;
            return;
        }
        *self = Amount::Big(Box::new(self.decimal().plus(other.decimal())));
    }

    pub(super) fn subtract(&mut self, other: &Amount) {
        if let (Amount::Small { value: a, scale: a_scale }, Amount::Small { value: b, scale: b_scale }) =
            (&*self, other)
            && let Some(difference) = small_sum((*a, *a_scale), (b.wrapping_neg(), *b_scale))
        {
            *self = difference;
            return;
        }
        let mut other = other.decimal();
        other.unscaled = -other.unscaled;
        *self = Amount::Big(Box::new(self.decimal().plus(other)));
    }

    pub(super) fn multiply(&mut self, factor: i64) -> bool {
        if let Amount::Small { value, scale } = *self {
            if value == 0 {
                return true;
            }
            if factor == 0 {
                *self = Amount::default();
                return true;
            }
            let fits = value.checked_mul(factor).filter(|product| match scale {
                0 => true,
                1.. => times_power_of_ten(*product, scale).1,
                ..=-1 => over_power_of_ten(*product, -scale).1,
            });
            if let Some(value) = fits {
                *self = Amount::Small { value, scale };
                return true;
            }
        }
        let mut decimal = self.decimal();
        decimal.unscaled *= factor;
        let fits = decimal.unscaled.to_i64().is_some();
        *self = Amount::Big(Box::new(decimal));
        fits
    }

    pub(super) fn negated(self) -> Amount {
        match self {
            Amount::Small { value, scale } => Amount::Small { value: value.wrapping_neg(), scale },
            Amount::Big(decimal) => {
                Amount::Big(Box::new(Decimal { unscaled: -decimal.unscaled, places: decimal.places }))
            }
        }
    }

    pub(super) fn compare(&self, other: &Amount) -> Ordering {
        match (self.narrow(), other.narrow()) {
            (Some(one), Some(other)) => compare(one, other),
            _ => self.decimal().compare(&other.decimal()),
        }
    }

    /// Digits and decimal places, where 128 bits are enough for the digits.
    fn narrow(&self) -> Option<(i128, i64)> {
        match self {
            Amount::Small { value, scale } => Some((i128::from(*value), -i64::from(*scale))),
            Amount::Big(decimal) => Some((decimal.unscaled.to_i128()?, decimal.places)),
        }
    }

    /// Whether both are kept alike: equal numbers may have other digits and scales.
    pub(super) fn has_form_of(&self, other: &Amount) -> bool {
        match (self, other) {
            (Amount::Small { value: a, scale: x }, Amount::Small { value: b, scale: y }) => (a, x) == (b, y),
            (Amount::Big(a), Amount::Big(b)) => (&a.unscaled, a.places) == (&b.unscaled, b.places),
            _ => false,
        }
    }

    pub(super) fn decimal(&self) -> Decimal {
        match self {
            Amount::Small { value, scale } => Decimal { unscaled: BigInt::from(*value), places: -i64::from(*scale) },
            Amount::Big(decimal) => (**decimal).clone(),
        }
    }

    /// Digits and exponent without trailing zeros: equal for equal amounts.
    pub(super) fn canonical_decimal(&self) -> (BigInt, i64) {
        let decimal = self.decimal();
        let (unscaled, zeros) = without_factors(decimal.unscaled, 10);
        (unscaled, zeros - decimal.places)
    }
}

impl Decimal {
    /// Away from zero to `places` decimal places.
    pub(super) fn rounded_up(&self, places: i64) -> Decimal {
        let surplus = self.places - places;
        if surplus <= 0 {
            return self.with_places(places);
        }
        if surplus > self.digits() + 1 {
            let away = BigInt::from(match self.unscaled.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            });
            return Decimal { unscaled: away, places };
        }
        let divisor = power_of_ten(surplus);
        let mut quotient = &self.unscaled / &divisor;
        if !(&self.unscaled % &divisor).is_zero() {
            quotient += if self.unscaled.is_negative() { -1 } else { 1 };
        }
        Decimal { unscaled: quotient, places }
    }

    /// The same number with more decimal places, while that is affordable.
    fn with_places(&self, places: i64) -> Decimal {
        let more = places - self.places;
        if self.unscaled.is_zero() {
            return Decimal { unscaled: BigInt::ZERO, places };
        }
        if !(1..=DIGITS_MAX).contains(&more) {
            return self.clone();
        }
        Decimal { unscaled: &self.unscaled * power_of_ten(more), places }
    }

    fn plus(self, other: Decimal) -> Decimal {
        if (self.places - other.places).abs() > DIGITS_MAX {
            return if self.compare_magnitude(&other).is_ge() { self } else { other };
        }
        let places = self.places.max(other.places);
        Decimal { unscaled: self.with_places(places).unscaled + other.with_places(places).unscaled, places }
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let (a, b) = (self.unscaled.sign(), other.unscaled.sign());
        if a != b || a == Sign::NoSign {
            return a.cmp(&b);
        }
        let magnitude = self.compare_magnitude(other);
        if a == Sign::Minus { magnitude.reverse() } else { magnitude }
    }

    fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        match (self.unscaled.is_zero(), other.unscaled.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        // With the same number of digits before the decimal point both are short enough to be written side by side.
        let (a, b) = (self.digits() - self.places, other.digits() - other.places);
        if a != b {
            return a.cmp(&b);
        }
        let places = self.places.max(other.places);
        let shifted = |decimal: &Decimal| decimal.unscaled.abs() * power_of_ten(places - decimal.places);
        shifted(self).cmp(&shifted(other))
    }

    /// How many decimal digits the unscaled number has.
    fn digits(&self) -> i64 {
        i64::try_from(self.unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX)
    }

    /// In units of `10^-places`, with Go's roundings and overflows.
    fn scaled(&self, places: i64) -> i64 {
        let surplus = self.places - places;
        if surplus == 0 {
            return low_bits(&self.unscaled);
        }
        if surplus < 0 {
            return low_bits(&self.unscaled).wrapping_mul(power_of_ten_i64(-surplus));
        }
        if self.unscaled < BigInt::from(i64::MAX) && surplus < 19 {
            // QUIRK: one is added to a negative quotient as well, so -1.5 gives 0 (quantity.tsv has such rows).
            let (unscaled, divisor) = (low_bits(&self.unscaled), power_of_ten_i64(surplus));
            let up = i64::from(unscaled % divisor != 0);
            return unscaled / divisor + up;
        }
        let narrow = self.unscaled.to_i128();
        let divisor = u32::try_from(surplus).ok().and_then(|surplus| 10_i128.checked_pow(surplus));
        if let (Some(unscaled), Some(divisor)) = (narrow, divisor) {
            let up = i64::from(unscaled % divisor > 0);
            // Of a number that is too large, Go takes the low bits.
            return ((unscaled / divisor) as i64).wrapping_add(up);
        }
        if surplus > self.digits() + 1 {
            return i64::from(self.unscaled.is_positive());
        }
        let divisor = power_of_ten(surplus);
        let (quotient, remainder) = (&self.unscaled / &divisor, &self.unscaled % &divisor);
        low_bits(&quotient).wrapping_add(i64::from(remainder.is_positive()))
    }
}

/// Compares `a * 10^-x` with `b * 10^-y`.
fn compare((a, x): (i128, i64), (b, y): (i128, i64)) -> Ordering {
    if x == y {
        return a.cmp(&b);
    }
    if x < y {
        return compare((b, y), (a, x)).reverse();
    }
    // The second in the smaller units of the first: where 128 bits are too few for it, its sign decides.
    let power = u32::try_from(x - y).ok().and_then(|places| 10_i128.checked_pow(places));
    match power.and_then(|power| b.checked_mul(power)) {
        Some(b) => a.cmp(&b),
        None if b == 0 => a.cmp(&0),
        None => 0.cmp(&b),
    }
}

/// Moves factors into an exponent: `number == result * base^times`.
pub(super) fn without_factors(mut number: BigInt, base: u32) -> (BigInt, i64) {
    let mut times = 0;
    while !number.is_zero() {
        let quotient = &number / base;
        if &quotient * base != number {
            break;
        }
        number = quotient;
        times += 1;
    }
    (number, times)
}

/// None when the sum needs more than 64 bits.
fn small_sum((a, a_scale): (i64, i32), (b, b_scale): (i64, i32)) -> Option<Amount> {
    if b == 0 {
        return Some(Amount::Small { value: a, scale: a_scale });
    }
    if a == 0 {
        return Some(Amount::Small { value: b, scale: b_scale });
    }
    let scale = a_scale.min(b_scale);
    let aligned = |value: i64, own: i32| match times_power_of_ten(value, own - scale) {
        (product, true) => Some(product),
        _ => None,
    };
    let value = aligned(a, a_scale)?.checked_add(aligned(b, b_scale)?)?;
    Some(Amount::Small { value, scale })
}

/// `value * 10^power`, and whether it fits; what does not fit is the wrapped product for the powers
/// that Go computes in one step, 0 for the others.
pub(super) fn times_power_of_ten(value: i64, power: i32) -> (i64, bool) {
    if value == 0 || power == 0 {
        return (value, true);
    }
    if value == i64::MIN {
        return (0, false);
    }
    if power > 18 {
        return (0, false);
    }
    let factor = power_of_ten_i64(i64::from(power));
    match value.checked_mul(factor) {
        Some(product) => (product, true),
        None if matches!(power, 1 | 2 | 3 | 6 | 9) => (value.wrapping_mul(factor), false),
        None => (0, false),
    }
}

/// `value / 10^power` away from zero, and whether nothing was lost.
fn over_power_of_ten(value: i64, power: i32) -> (i64, bool) {
    if power > 18 {
        return (value.signum(), value == 0);
    }
    let divisor = power_of_ten_i64(i64::from(power));
    let lost = value % divisor != 0;
    (value / divisor + if lost { value.signum() } else { 0 }, !lost)
}

fn power_of_ten(power: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power).unwrap_or(0))
}

/// Beyond 18 the answer is that of converting a floating-point number that does not fit.
fn power_of_ten_i64(power: i64) -> i64 {
    u32::try_from(power).ok().and_then(|power| 10_i64.checked_pow(power)).unwrap_or(i64::MIN)
}

fn power_of_ten_f64(power: i64) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::INFINITY)
}

fn low_bits(number: &BigInt) -> i64 {
    let low = number.magnitude().iter_u64_digits().next().unwrap_or(0).cast_signed();
    if number.is_negative() { low.wrapping_neg() } else { low }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> impl Strategy<Value = Amount> {
        let value = prop_oneof![-20..20_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
        let scale = prop_oneof![-9..20_i32, -60..60_i32];
        (value, scale).prop_map(|(value, scale)| Amount::Small { value, scale })
    }

    fn big() -> impl Strategy<Value = Amount> {
        let unscaled = prop_oneof![
            -20..20_i128,
            any::<i64>().prop_map(i128::from),
            any::<i128>(),
            Just(i128::MIN),
            Just(i128::MAX)
        ];
        let unscaled =
            (unscaled, prop_oneof![Just(1_u8), any::<u8>()]).prop_map(|(digits, more)| BigInt::from(digits) * more);
        let places = prop_oneof![-9..20_i64, -60..60_i64];
        (unscaled, places).prop_map(|(unscaled, places)| Amount::Big(Box::new(Decimal { unscaled, places })))
    }

    fn amount() -> impl Strategy<Value = Amount> {
        prop_oneof![small(), big()]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

        #[test]
        fn short_numbers_compare_as_long_ones_do(a in amount(), b in amount(), more in 0..4_i64) {
            // The same number with other digits too.
            let of_a = a.decimal();
            let same = Decimal { unscaled: &of_a.unscaled * power_of_ten(more), places: of_a.places + more };
            for b in [b, Amount::Big(Box::new(same))] {
                prop_assert_eq!(a.compare(&b), of_a.compare(&b.decimal()), "{:?} and {:?}", a, b);
            }
        }

        #[test]
        fn numbers_in_units_are_rounded_up_alike_in_128_bits_and_beyond(a in big(), scale in -20..20_i32) {
            let Amount::Big(decimal) = &a else { unreachable!() };
            let surplus = decimal.places + i64::from(scale);
            if surplus <= 0 || surplus < 19 && decimal.unscaled < BigInt::from(i64::MAX) {
                return Ok(());
            }
            let divisor = power_of_ten(surplus);
            let up = i64::from((&decimal.unscaled % &divisor).is_positive());
            prop_assert_eq!(a.scaled(scale), low_bits(&(&decimal.unscaled / &divisor)).wrapping_add(up));
        }
    }
}
