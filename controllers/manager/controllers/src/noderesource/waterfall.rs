//! How a number came about: the terms in order, each with the object and field it was read from.
//!
//! A formula reports its terms to a listener. The controller has none, and then reporting costs nothing.

use std::borrow::Cow;

use serde::Serialize;

use crate::amount::{Amount, Native};

/// What a term does to the number so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// The number begins with it.
    Start,
    /// A part of the term that follows.
    Part,
    /// It is taken off.
    Minus,
    /// It is added.
    Plus,
    /// The number is at least this.
    AtLeast,
    /// The number is at most this.
    AtMost,
    /// The number is multiplied; the amount is the product.
    Times,
    /// The number is nothing, because of this.
    Nothing,
    Result,
}

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub operation: Operation,
    /// How much.
    pub amount: Amount,
    /// What it stands for.
    pub what: Cow<'static, str>,
    /// Where it was read.
    pub source: Source,
}

/// Where a term was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Kind and name of the object, such as `Node n1`; empty for what follows from other terms.
    pub object: Cow<'static, str>,
    /// The field in it, with its value where that is not the amount itself.
    pub field: Cow<'static, str>,
}

impl Source {
    /// A field of an object.
    pub fn of(kind: &str, name: &str, field: impl Into<Cow<'static, str>>) -> Self {
        Self { object: format!("{kind} {name}").into(), field: field.into() }
    }

    /// What follows from other terms.
    pub fn derived() -> Self {
        Self::default()
    }
}

/// Who may want to know the terms.
pub trait Listener {
    /// Hears the next term, if it wants to.
    fn term(&mut self, term: impl FnOnce() -> Term);
}

/// Wants to know nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unasked;

impl Listener for Unasked {
    #[inline]
    fn term(&mut self, _: impl FnOnce() -> Term) {}
}

/// Wants to know everything.
impl Listener for Vec<Term> {
    fn term(&mut self, term: impl FnOnce() -> Term) {
        self.push(term());
    }
}

/// Reports a term.
pub(super) fn add_term(
    listener: &mut impl Listener,
    operation: Operation,
    amount: Amount,
    what: impl Into<Cow<'static, str>>,
    source: impl FnOnce() -> Source,
) {
    listener.term(|| Term { operation, amount, what: what.into(), source: source() });
}

/// The number that a waterfall arrives at, computed from its terms alone; none where they are no waterfall.
///
/// The tests hold every formula to it: what is reported is what is computed.
pub fn arrives_at(native: Native, terms: &[Term]) -> Option<Amount> {
    let mut number = Amount::ZERO;
    for term in terms {
        number = match term.operation {
            Operation::Start | Operation::Times => term.amount,
            Operation::Part => number,
            Operation::Minus => number - term.amount,
            Operation::Plus => number + term.amount,
            Operation::AtLeast => number.max(term.amount),
            Operation::AtMost => number.min(term.amount),
            Operation::Nothing => Amount::ZERO,
            Operation::Result => return (native.count(number) == native.count(term.amount)).then_some(number),
        };
    }
    None
}
