//! The rules of a schema as functions on Rust values, worded as the API server words them.
//!
//! Derived code calls these; `koord_schema` holds the same rules for JSON.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    hash::BuildHasher,
};

use koord_schema::field::{Errors, Path};
use serde::Serialize;
use serde_json::Value;

use crate::{IntOrString, ResourceList};

/// A number that can be compared exactly with another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Without a fraction.
    Integer(i128),
    /// With a fraction.
    Float(f64),
}

impl Number {
    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Number::Integer(one), Number::Integer(other)) => Some(one.cmp(&other)),
            (one, other) => one.as_f64().partial_cmp(&other.as_f64()),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Self {
        Number::Integer(number.into())
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Number::Integer(number.into())
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Number::Integer(number.into())
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Number::Float(number)
    }
}

/// A value that may be a number.
pub trait AsNumber: Serialize {
    /// The number; none where the value is something else, which bounds do not concern.
    fn as_number(&self) -> Option<Number>;
}

/// A value that may be a text.
pub trait AsText: Serialize {
    /// The text; none where the value is something else.
    fn as_text(&self) -> Option<Cow<'_, str>>;
}

/// A value that holds others.
pub trait Count {
    /// How many; none where the value holds none by nature.
    fn count(&self) -> Option<usize>;
}

macro_rules! as_number {
    ($($type:ty),*) => {$(
        impl AsNumber for $type {
            fn as_number(&self) -> Option<Number> {
                Some(Number::Integer(i128::try_from(*self).ok()?))
            }
        }
    )*};
}

as_number!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl AsNumber for f64 {
    fn as_number(&self) -> Option<Number> {
        Some(Number::Float(*self))
    }
}

impl AsNumber for f32 {
    fn as_number(&self) -> Option<Number> {
        Some(Number::Float((*self).into()))
    }
}

impl AsNumber for Value {
    fn as_number(&self) -> Option<Number> {
        let Value::Number(number) = self else { return None };
        match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Some(number.into()),
            (None, Some(number)) => Some(number.into()),
            (None, None) => number.as_f64().map(Number::Float),
        }
    }
}

impl AsNumber for IntOrString {
    fn as_number(&self) -> Option<Number> {
        match self {
            IntOrString::Int(number) => Some(Number::Integer((*number).into())),
            IntOrString::String(_) => None,
        }
    }
}

impl AsText for str {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl AsText for String {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl AsText for Cow<'_, str> {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl AsText for char {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.to_string()))
    }
}

impl AsText for IntOrString {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            IntOrString::Int(_) => None,
            IntOrString::String(text) => Some(Cow::Borrowed(text)),
        }
    }
}

impl AsText for Value {
    fn as_text(&self) -> Option<Cow<'_, str>> {
        self.as_str().map(Cow::Borrowed)
    }
}

macro_rules! count {
    ($($type:ty $(, $parameter:ident)*;)*) => {$(
        impl<$($parameter),*> Count for $type {
            fn count(&self) -> Option<usize> {
                Some(self.len())
            }
        }
    )*};
}

count! {
    [T], T;
    Vec<T>, T;
    VecDeque<T>, T;
    BTreeSet<T>, T;
    BTreeMap<K, V>, K, V;
}

impl<T, const N: usize> Count for [T; N] {
    fn count(&self) -> Option<usize> {
        Some(N)
    }
}

impl<T, S: BuildHasher> Count for HashSet<T, S> {
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }
}

impl<K, V, S: BuildHasher> Count for HashMap<K, V, S> {
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }
}

impl Count for ResourceList {
    fn count(&self) -> Option<usize> {
        Some(self.iter().count())
    }
}

impl Count for String {
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }
}

impl Count for Value {
    fn count(&self) -> Option<usize> {
        match self {
            Value::Array(items) => Some(items.len()),
            Value::Object(members) => Some(members.len()),
            Value::String(text) => Some(text.len()),
            _ => None,
        }
    }
}

/// The value as JSON, for rules on types whose name does not show what they are.
pub fn json(value: &(impl Serialize + ?Sized)) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

// === numbers ===

/// `minimum`, and `exclusiveMinimum` where the bound itself is excluded.
pub fn minimum<T: AsNumber + ?Sized>(
    value: &T,
    bound: impl Into<Number>,
    exclusive: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let bound = bound.into();
    let order = value.as_number().and_then(|number| number.compare(bound));
    if order == Some(Ordering::Less) || (exclusive && order == Some(Ordering::Equal)) {
        let words = if exclusive { "greater than" } else { "greater than or equal to" };
        errors.invalid(at, value, format!("{at} in body should be {words} {bound}"));
    }
}

/// `maximum`, and `exclusiveMaximum` where the bound itself is excluded.
pub fn maximum<T: AsNumber + ?Sized>(
    value: &T,
    bound: impl Into<Number>,
    exclusive: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let bound = bound.into();
    let order = value.as_number().and_then(|number| number.compare(bound));
    if order == Some(Ordering::Greater) || (exclusive && order == Some(Ordering::Equal)) {
        let words = if exclusive { "less than" } else { "less than or equal to" };
        errors.invalid(at, value, format!("{at} in body should be {words} {bound}"));
    }
}

/// `multipleOf`.
pub fn multiple_of<T: AsNumber + ?Sized>(value: &T, factor: impl Into<Number>, at: &Path<'_>, errors: &mut Errors) {
    let factor = factor.into();
    let fits = match (value.as_number(), factor) {
        (None, _) => true,
        (Some(Number::Integer(number)), Number::Integer(factor)) => number.checked_rem(factor) == Some(0),
        (Some(number), factor) => (number.as_f64() / factor.as_f64()).fract() == 0.0,
    };
    if !fits {
        errors.invalid(at, value, format!("{at} in body should be a multiple of {factor}"));
    }
}

// === texts ===

/// `minLength`, in code points.
pub fn min_length<T: AsText + ?Sized>(value: &T, length: u64, at: &Path<'_>, errors: &mut Errors) {
    if value.as_text().is_some_and(|text| (text.chars().count() as u64) < length) {
        errors.invalid(at, value, format!("{at} in body should be at least {length} chars long"));
    }
}

/// `maxLength`, in code points.
pub fn max_length<T: AsText + ?Sized>(value: &T, length: u64, at: &Path<'_>, errors: &mut Errors) {
    if value.as_text().is_some_and(|text| text.chars().count() as u64 > length) {
        errors.too_long(at, usize::try_from(length).unwrap_or(usize::MAX));
    }
}

/// `pattern`, an RE2 expression.
pub fn pattern<T: AsText + ?Sized>(value: &T, pattern: &str, at: &Path<'_>, errors: &mut Errors) {
    let Some(text) = value.as_text() else { return };
    match koord_schema::pattern::compile(pattern) {
        Ok(compiled) if compiled.is_match(&text) => {}
        Ok(_) => errors.invalid(at, value, format!("{at} in body should match '{pattern}'")),
        Err(error) => errors.invalid(at, value, error.to_string()),
    }
}

/// `format`; a name that the API server does not know holds for every text.
pub fn format<T: AsText + ?Sized>(value: &T, format: &str, at: &Path<'_>, errors: &mut Errors) {
    if let Some(text) = value.as_text().filter(|text| !koord_schema::structural::formats::holds(format, text)) {
        let shown = koord_schema::go_text::quote(&text);
        errors.type_invalid(at, value, format!("{at} in body must be of type {format}: {shown}"));
    }
}

/// `enum`.
pub fn enumeration(value: &(impl Serialize + ?Sized), allowed: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let json = json(value);
    if allowed.contains(&json) {
        return;
    }
    let words: Vec<String> =
        allowed.iter().map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned)).collect();
    errors.not_supported(at, json, &words.iter().map(String::as_str).collect::<Vec<_>>());
}

// === arrays and objects ===

/// `minItems`.
pub fn min_items<T: Count + ?Sized>(value: &T, least: u64, at: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = value.count().filter(|found| (*found as u64) < least) {
        errors.invalid(at, found, format!("{at} in body should have at least {least} items"));
    }
}

/// `maxItems`, and `maxProperties` of an object.
pub fn max_items<T: Count + ?Sized>(value: &T, most: u64, at: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = value.count().filter(|found| *found as u64 > most) {
        errors.too_many(at, found, usize::try_from(most).unwrap_or(usize::MAX));
    }
}

/// `minProperties`.
pub fn min_properties<T: Count + ?Sized>(value: &T, least: u64, at: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = value.count().filter(|found| (*found as u64) < least) {
        errors.invalid(at, found, format!("{at} in body should have at least {least} properties"));
    }
}

/// No item occurs twice.
pub fn unique_items<'v, T: Serialize + 'v>(items: impl IntoIterator<Item = &'v T>, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, item) in items.into_iter().enumerate() {
        let json = json(item);
        if !seen.insert(json.to_string()) {
            errors.duplicate(&at.index(index), json);
        }
    }
}

/// The value is not empty.
pub fn not_empty<T: Count + ?Sized>(value: &T, at: &Path<'_>, errors: &mut Errors) {
    if value.count() == Some(0) {
        errors.required(at, "must not be empty");
    }
}

/// How many of some fields may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowMany {
    /// One of them.
    Exactly,
    /// One of them or none.
    AtMost,
    /// One of them or more.
    AtLeast,
}

impl HowMany {
    /// What is said where more or less of these fields are set.
    pub(crate) fn message(self, fields: &[&str]) -> String {
        let words = match self {
            HowMany::Exactly => "exactly one",
            HowMany::AtMost => "at most one",
            HowMany::AtLeast => "at least one",
        };
        format!("{words} of {} must be set", fields.join(", "))
    }
}

/// `exactly_one_of`, `at_most_one_of` and `at_least_one_of`: each field with whether it is set.
pub fn one_of(how_many: HowMany, fields: &[(&str, bool)], at: &Path<'_>, errors: &mut Errors) {
    let set = fields.iter().filter(|(_, set)| *set).count();
    let legal = match how_many {
        HowMany::Exactly => set == 1,
        HowMany::AtMost => set <= 1,
        HowMany::AtLeast => set >= 1,
    };
    if !legal {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        errors.invalid(at, serde_json::json!({}), how_many.message(&names));
    }
}

// === changes ===

/// The value is what it was.
pub fn immutable<T: Serialize + PartialEq>(new: &T, old: &T, at: &Path<'_>, errors: &mut Errors) {
    if new != old {
        errors.invalid(at, new, "field is immutable");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(rule: impl FnOnce(&Path<'_>, &mut Errors)) -> String {
        let mut errors = Errors::new();
        rule(&Path::root("spec").child("x"), &mut errors);
        if errors.is_empty() { String::new() } else { errors.to_string() }
    }

    #[test]
    fn rules_are_worded_as_the_api_server_words_them() {
        let rows = [
            (
                message(|at, e| minimum(&-1, 0, false, at, e)),
                "spec.x: Invalid value: -1: spec.x in body should be greater than or equal to 0",
            ),
            (
                message(|at, e| minimum(&0, 0, true, at, e)),
                "spec.x: Invalid value: 0: spec.x in body should be greater than 0",
            ),
            (
                message(|at, e| maximum(&101, 100, false, at, e)),
                "spec.x: Invalid value: 101: spec.x in body should be less than or equal to 100",
            ),
            (
                message(|at, e| multiple_of(&7, 5, at, e)),
                "spec.x: Invalid value: 7: spec.x in body should be a multiple of 5",
            ),
            (
                message(|at, e| min_length("", 1, at, e)),
                "spec.x: Invalid value: \"\": spec.x in body should be at least 1 chars long",
            ),
            (message(|at, e| max_length("abc", 2, at, e)), "spec.x: Too long: may not be more than 2 bytes"),
            (
                message(|at, e| pattern("B", "^a$", at, e)),
                "spec.x: Invalid value: \"B\": spec.x in body should match '^a$'",
            ),
            (
                message(|at, e| min_items(&Vec::<i32>::new(), 1, at, e)),
                "spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
            ),
            (message(|at, e| max_items(&vec![1, 2, 3], 2, at, e)), "spec.x: Too many: 3: must have at most 2 items"),
            (
                message(|at, e| enumeration("c", &[json!("a"), json!("b")], at, e)),
                "spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ),
            (message(|at, e| unique_items(&[1, 2, 1], at, e)), "spec.x[2]: Duplicate value: 1"),
            (message(|at, e| not_empty(&String::new(), at, e)), "spec.x: Required value: must not be empty"),
            (message(|at, e| immutable(&1, &2, at, e)), "spec.x: Invalid value: 1: field is immutable"),
        ];
        for (message, expected) in rows {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn what_a_rule_does_not_concern_passes() {
        assert_eq!(message(|at, e| minimum(&json!("text"), 3, false, at, e)), "");
        assert_eq!(
            message(|at, e| multiple_of(&0.3, 0.1, at, e)),
            "spec.x: Invalid value: 0.3: spec.x in body should be a multiple of 0.1"
        );
        assert_ne!(message(|at, e| minimum(&i64::MIN, u64::MAX, false, at, e)), "");
        assert_ne!(message(|at, e| multiple_of(&f64::NAN, 1.0, at, e)), "");
    }
}
