//! Why a pod stays: cheap to make, and a text only for who reads it.

use std::{fmt, sync::Arc};

use smallvec::SmallVec;

use crate::reason::{Reason, ReasonCode};

/// Why a pod stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: ReasonCode,
    operands: SmallVec<[(&'static str, Operand); 2]>,
}

/// What belongs to a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Number(i64),
    Text(Arc<str>),
    Static(&'static str),
}

impl Refusal {
    pub fn new(code: ReasonCode) -> Self {
        Self { code, operands: SmallVec::new() }
    }

    /// The same with an operand.
    #[must_use]
    pub fn with(mut self, name: &'static str, operand: impl Into<Operand>) -> Self {
        self.operands.push((name, operand.into()));
        self
    }

    /// With its text: what the code means, and the operands in brackets.
    pub fn reason(&self) -> Reason {
        let mut text = self.code.meaning().trim().trim_end_matches('.').to_owned();
        let operands: Vec<(&'static str, String)> =
            self.operands.iter().map(|(name, operand)| (*name, operand.to_string())).collect();
        if !operands.is_empty() {
            let shown: Vec<String> = operands.iter().map(|(name, value)| format!("{name} {value}")).collect();
            text = format!("{text} ({})", shown.join(", "));
        }
        Reason { code: self.code, text, operands }
    }
}

impl From<ReasonCode> for Refusal {
    fn from(code: ReasonCode) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(f)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Static(text) => text.fmt(f),
        }
    }
}

impl From<i64> for Operand {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Operand {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<Arc<str>> for Operand {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<&Arc<str>> for Operand {
    fn from(text: &Arc<str>) -> Self {
        Self::Text(Arc::clone(text))
    }
}

impl From<&'static str> for Operand {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_becomes_a_text_with_its_operands() {
        let refusal = Refusal::new(ReasonCode::TooFewReplicas).with("replicas", 1_i64).with("minReplicas", 2_i64);
        let reason = refusal.reason();
        assert_eq!((reason.operand("replicas"), reason.operand("minReplicas")), (Some("1"), Some("2")));
        assert!(refusal.to_string().ends_with("(replicas 1, minReplicas 2)"), "{refusal}");
        assert!(!Refusal::from(ReasonCode::MirrorPod).to_string().contains('('));
    }
}
