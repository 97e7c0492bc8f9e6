//! Conversions of literals, which are made when a rule is compiled and refuse it where they fail.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{Expr, LiteralValue},
};

use super::{macros::parts, typing::Typing};
use crate::pattern;

/// A value that is known when an expression is compiled.
#[derive(Clone, Debug, PartialEq)]
enum Constant {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Of another type, or not converted here.
    Other,
}

/// Makes all conversions of literals in an expression; why one of them fails.
pub(super) fn check(expression: &IdedExpr, typing: &Typing) -> Result<(), String> {
    value(expression, typing).map(|_| ())
}

/// The constant that an expression is; none where it is none.
fn value(expression: &IdedExpr, typing: &Typing) -> Result<Option<Constant>, String> {
    let mut operands = Vec::new();
    for part in parts(&expression.expr) {
        operands.push(value(part, typing)?);
    }
    if let Expr::Literal(literal) = &expression.expr {
        return Ok(Some(of_literal(literal)));
    }
    let Some(call) = typing.call(expression) else { return Ok(None) };
    match (call.function, operands.as_slice()) {
        ("matches", [_, Some(Constant::Text(text))]) => {
            pattern::compile(text).map(|_| None).map_err(|error| error.to_string())
        }
        (function, [Some(constant)]) if !call.is_method => converted(function, constant),
        _ => Ok(None),
    }
}

fn of_literal(literal: &LiteralValue) -> Constant {
    match literal {
        LiteralValue::Boolean(value) => Constant::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Constant::Bytes(value.inner().to_vec()),
        LiteralValue::Double(value) => Constant::Double(*value.inner()),
        LiteralValue::Int(value) => Constant::Int(*value.inner()),
        LiteralValue::Null => Constant::Other,
        LiteralValue::String(value) => Constant::Text(value.inner().to_owned()),
        LiteralValue::UInt(value) => Constant::Uint(*value.inner()),
    }
}

fn converted(function: &str, from: &Constant) -> Result<Option<Constant>, String> {
    let unread = || format!("type conversion error from 'string' to '{function}'");
    let constant = match (function, from) {
        ("bool", Constant::Text(text)) => Constant::Bool(to_bool(text).ok_or_else(unread)?),
        ("int", Constant::Text(text)) => Constant::Int(text.parse().map_err(|_| unread())?),
        ("uint", Constant::Text(text)) => {
            let digits = Some(text).filter(|text| !text.starts_with('+'));
            Constant::Uint(digits.and_then(|digits| digits.parse().ok()).ok_or_else(unread)?)
        }
        ("double", Constant::Text(text)) => Constant::Double(to_double(text).ok_or_else(unread)?),
        ("int", Constant::Double(number)) => {
            Constant::Int(whole(*number, -TWO_TO_63, TWO_TO_63).ok_or(INTEGER)? as i64)
        }
        ("uint", Constant::Double(number)) => {
            Constant::Uint(whole(*number, 0.0, 2.0 * TWO_TO_63).ok_or(UNSIGNED)? as u64)
        }
        ("int", Constant::Uint(number)) => Constant::Int(i64::try_from(*number).map_err(|_| INTEGER)?),
        ("uint", Constant::Int(number)) => Constant::Uint(u64::try_from(*number).map_err(|_| UNSIGNED)?),
        ("double", Constant::Int(number)) => Constant::Double(*number as f64),
        ("double", Constant::Uint(number)) => Constant::Double(*number as f64),
        ("string", Constant::Bytes(bytes)) => {
            let text = String::from_utf8(bytes.clone());
            Constant::Text(text.map_err(|_| "invalid UTF-8 in bytes, cannot convert to string".to_owned())?)
        }
        ("string", Constant::Int(number)) => Constant::Text(number.to_string()),
        ("string", Constant::Uint(number)) => Constant::Text(number.to_string()),
        ("string", Constant::Bool(value)) => Constant::Text(value.to_string()),
        ("bytes", Constant::Text(text)) => Constant::Bytes(text.clone().into_bytes()),
        ("bool" | "bytes" | "double" | "dyn" | "int" | "string" | "uint", constant) => constant.clone(),
        ("duration" | "timestamp" | "type", _) => Constant::Other,
        _ => return Ok(None),
    };
    Ok(Some(constant))
}

const INTEGER: &str = "integer overflow";
const UNSIGNED: &str = "unsigned integer overflow";
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A number that lies between two others, of which the least is one of them.
fn whole(number: f64, least: f64, most: f64) -> Option<f64> {
    (number >= least && number < most).then_some(number)
}

pub(super) fn to_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn to_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    // What is written in digits is no infinity.
    let is_written = text.contains(|letter: char| letter.is_ascii_digit());
    Some(number).filter(|number| number.is_finite() || !is_written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, from: Constant) -> Result<Option<Constant>, String> {
        converted(function, &from)
    }

    #[test]
    fn texts_are_read_as_go_reads_them() {
        let text = |text: &str| Constant::Text(text.to_owned());
        assert_eq!(of("int", text("+1")), Ok(Some(Constant::Int(1))));
        assert_eq!(of("bool", text("T")), Ok(Some(Constant::Bool(true))));
        for (function, from) in [("int", "0x1F"), ("int", " 1"), ("int", ""), ("uint", "+1"), ("double", "1e400")] {
            let why = format!("type conversion error from 'string' to '{function}'");
            assert_eq!(of(function, text(from)), Err(why), "{function}({from})");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(of("int", Constant::Double(1e300)), Err(INTEGER.to_owned()));
        assert_eq!(of("int", Constant::Uint(u64::MAX)), Err(INTEGER.to_owned()));
        assert_eq!(of("uint", Constant::Int(-1)), Err(UNSIGNED.to_owned()));
        assert_eq!(of("uint", Constant::Double(1.5)), Ok(Some(Constant::Uint(1))));
    }
}
