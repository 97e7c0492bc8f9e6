//! Amounts of resources, exactly as Kubernetes reads, computes and prints them.
//!
//! The arithmetic never goes through floating point. Where Go's `resource.Quantity` answers oddly (overflow of
//! [`Quantity::value`], amounts beyond the suffix `E`), the answer is the same: objects and recordings carry it.

mod amount;
mod json;
mod list;
mod text;

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::{Add, AddAssign, Neg, Sub, SubAssign},
    str::FromStr,
};

use amount::Amount;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as TextQuantity;
pub use list::ResourceList;

/// An exact amount of a resource: `500m`, `2Gi`, `1e3`.
///
/// Two quantities are equal when their amounts are, whatever their [`Format`]: `1` equals `1000m`.
///
/// ```
/// use koord_resource::quantity::Quantity;
/// let mut cpu: Quantity = "1500m".parse()?;
/// cpu += &"1".parse()?;
/// assert_eq!((cpu.to_string().as_str(), cpu.value(), cpu.milli_value()), ("2500m", 3, 2500));
/// # Ok::<(), koord_resource::quantity::ParseQuantityError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// What the user wrote, where the canonical text differs and Go keeps the user's: `1.500`, `+5`, `0001`.
    written: Option<Box<str>>,
    /// Whether Go keeps the text that it was read from, which may be the canonical one.
    keeps_text: bool,
}

/// The family of suffixes that a quantity is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Powers of ten with the suffixes `n u m k M G T P E`.
    #[default]
    DecimalSI,
    /// Powers of 1024 with the suffixes `Ki Mi Gi Ti Pi Ei`.
    BinarySI,
    /// Powers of ten as exponents: `12e6`.
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text has another form than a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The digits do not make a number.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is none of those that exist.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self::new(0, Format::DecimalSI);

    /// `value` whole units.
    pub const fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::Small { value, scale: 0 }, format, written: None, keeps_text: false }
    }

    /// `milli` thousandths of a unit.
    pub const fn from_milli(milli: i64, format: Format) -> Self {
        Self { amount: Amount::Small { value: milli, scale: -3 }, format, written: None, keeps_text: false }
    }

    /// `milli` thousandths of a CPU core.
    pub const fn cpu_milli(milli: i64) -> Self {
        Self::from_milli(milli, Format::DecimalSI)
    }

    /// `bytes` of memory or storage.
    pub const fn bytes(bytes: i64) -> Self {
        Self::new(bytes, Format::BinarySI)
    }

    /// Whether a text is the canonical text of its quantity at first sight, as nearly all texts are. A `false` says
    /// nothing; a `true` costs no allocation.
    pub fn is_plainly_canonical(text: &str) -> bool {
        text::is_plain_text(text)
    }

    /// Whole units, rounded up. Beyond 64 bits the answer is Go's: 0 or the low bits.
    pub fn value(&self) -> i64 {
        self.amount.scaled(0)
    }

    /// Thousandths, rounded up. Beyond 64 bits the answer is Go's: 0 or the low bits.
    pub fn milli_value(&self) -> i64 {
        self.amount.scaled(-3)
    }

    /// Billionths, the finest that texts can say. What is too large is the largest number.
    pub fn nano_value(&self) -> i128 {
        self.amount.billionths()
    }

    /// Whole units, when the amount is whole and was never too large for 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        self.amount.as_i64()
    }

    /// The nearest floating-point number.
    pub fn as_f64(&self) -> f64 {
        self.amount.as_f64()
    }

    /// The suffixes that it is printed with.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.amount.signum() < 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        self.amount.signum()
    }

    /// Whether Go's `reflect.DeepEqual` finds both equal: by the digits, the scale, the format, and the text where Go keeps
    /// it. Equal amounts may differ (`1` and `1000m`, `500m` and `0.500`), and so may an amount that was read and one that
    /// was computed.
    ///
    /// ```
    /// use koord_resource::quantity::{Format, Quantity};
    /// let thousand: Quantity = "1000".parse()?;
    /// assert!(thousand.has_form_of(&Quantity::new(1000, Format::DecimalSI)));
    /// assert!(!thousand.has_form_of(&"1k".parse()?));
    /// # Ok::<(), koord_resource::quantity::ParseQuantityError>(())
    /// ```
    pub fn has_form_of(&self, other: &Self) -> bool {
        // With the same digits, scale and format the canonical texts are the same.
        let texts = (self.keeps_text, &self.written) == (other.keeps_text, &other.written);
        texts && self.format == other.format && self.amount.has_form_of(&other.amount)
    }

    fn forget_text(&mut self) {
        self.written = None;
        self.keeps_text = false;
    }

    /// Rounds away from zero to a multiple of 10 to the power of `scale`; returns whether nothing was lost.
    pub fn round_up(&mut self, scale: i32) -> bool {
        if matches!(self.amount, Amount::Small { scale: own, .. } if own >= scale) {
            return true;
        }
        self.forget_text();
        let (rounded, exact) = self.amount.rounded_up(scale);
        self.amount = rounded;
        exact
    }

    /// Multiplies; returns whether the product stayed within 64 bits.
    pub fn multiply(&mut self, factor: i64) -> bool {
        self.forget_text();
        self.amount.multiply(factor)
    }

    /// The whole units times `ratio`, cut towards zero; the format stays. Percentages of memory are computed so.
    pub fn scaled_by(&self, ratio: f64) -> Self {
        Self::new((self.value() as f64 * ratio) as i64, self.format)
    }

    /// The thousandths times `ratio`, cut towards zero; the format stays. Percentages of CPU are computed so.
    pub fn milli_scaled_by(&self, ratio: f64) -> Self {
        Self::from_milli((self.milli_value() as f64 * ratio) as i64, self.format)
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Some(written) => f.pad(written),
            None => f.pad(&text::canonical(&self.amount, self.format)),
        }
    }
}

/// Zero plus a quantity takes over that quantity's format, as in Go.
impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        self.forget_text();
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount.add(&other.amount);
    }
}

/// Zero minus a quantity takes over that quantity's format, as in Go.
impl SubAssign<&Quantity> for Quantity {
    fn sub_assign(&mut self, other: &Quantity) {
        self.forget_text();
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount.subtract(&other.amount);
    }
}

impl Add<&Quantity> for Quantity {
    type Output = Quantity;

    fn add(mut self, other: &Quantity) -> Quantity {
        self += other;
        self
    }
}

impl Sub<&Quantity> for Quantity {
    type Output = Quantity;

    fn sub(mut self, other: &Quantity) -> Quantity {
        self -= other;
        self
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity { amount: self.amount.negated(), format: self.format, written: None, keeps_text: false }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.compare(&other.amount)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.amount.canonical_decimal().hash(state);
    }
}

impl From<&Quantity> for TextQuantity {
    fn from(quantity: &Quantity) -> Self {
        TextQuantity(quantity.to_string())
    }
}

impl TryFrom<&TextQuantity> for Quantity {
    type Error = ParseQuantityError;

    fn try_from(quantity: &TextQuantity) -> Result<Self, Self::Error> {
        quantity.0.trim().parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap()
    }

    #[test]
    fn equality_and_order_are_those_of_amounts() {
        assert_eq!(quantity("1"), quantity("1000m"));
        assert_eq!(quantity("1Ki"), quantity("1024"));
        assert!(quantity("1Ki") > quantity("1k"));
        assert!(quantity("-1") < quantity("1n"));
        assert!(quantity("1e1000000000") > quantity("123456789012345678901234567890"));
    }

    #[test]
    fn billionths_are_exact() {
        for (text, nano) in [
            ("0", 0),
            ("1n", 1),
            ("1500m", 1_500_000_000),
            ("-2", -2_000_000_000),
            ("1Gi", 1_073_741_824_000_000_000),
            ("1Ei", 1_152_921_504_606_846_976_000_000_000),
            ("1e300", i128::MAX),
            ("-1e300", i128::MIN),
        ] {
            assert_eq!(quantity(text).nano_value(), nano, "{text}");
        }
        assert_eq!((quantity("1") + &quantity("1n")).nano_value(), 1_000_000_001);
    }

    #[test]
    fn percentages_are_cut_towards_zero() {
        assert_eq!(quantity("7910m").milli_scaled_by(0.35).milli_value(), 2768);
        assert_eq!(quantity("270582939648").scaled_by(0.35).value(), 94_704_028_876);
        assert_eq!(quantity("33Gi").milli_scaled_by(1.33).to_string(), "47126528655360m");
        assert_eq!(quantity("32849844Ki").milli_scaled_by(1.15).to_string(), "38683976294400m");
    }

    #[test]
    fn canonical_text_follows_the_format() {
        assert_eq!(Quantity::new(50_000, Format::DecimalSI).to_string(), "50k");
        assert_eq!(Quantity::bytes(120 << 30).to_string(), "120Gi");
        assert_eq!(Quantity::bytes(1025).to_string(), "1025");
        assert_eq!(Quantity::cpu_milli(1500).to_string(), "1500m");
    }

    #[test]
    fn huge_exponents_cost_no_time() {
        let mut sum = quantity("1e1000000000");
        sum += &quantity("1n");
        assert_eq!(sum, quantity("1e1000000000"));
        assert!("12345678901234567890e2000000000".parse::<Quantity>().is_err());
        assert_eq!(quantity("12345678901234567890e-2000000000").to_string(), "1e-9");
        let few_digits = quantity("11111911111111111e191111111");
        let canonical = few_digits.to_string();
        assert_eq!(canonical, "1111191111111111100e191111109", "two zeros more, for the exponent");
        assert_eq!(quantity(&canonical), few_digits);
        assert_eq!(quantity(&canonical).to_string(), canonical);
        for (digits, zeros, exponent) in
            [(19, 4000, 96), (19, 4000, 97), (4096, 0, 5), (4096, 0, 4096), (4097, 0, 5), (1, 8000, 5)]
        {
            let text = format!("{}{}e{exponent}", "7".repeat(digits), "0".repeat(zeros));
            let canonical = text.parse::<Quantity>().map(|quantity| quantity.to_string());
            assert_eq!(
                canonical.is_ok(),
                digits <= 4096 && (digits <= 18 || zeros + exponent <= 4096),
                "{digits} {zeros} {exponent}"
            );
            let again = canonical.clone().map(|text| quantity(&text).to_string());
            assert_eq!(again, canonical, "{digits} {zeros} {exponent}");
        }
    }
}
