//! Why a pod or a node is refused: a code that stays the same, and the text of events and conditions.

mod codes;

use std::fmt;

use serde_json::{Map, Value, json};

pub use self::codes::ReasonCode;

/// A code of reasons: a name that stays the same and that programs can rely on, and what people read about it. [`reason_codes`](crate::reason_codes)
/// declares an enum of them.
pub trait StableCode: Copy + Ord + fmt::Debug + 'static {
    fn as_str(self) -> &'static str;
    fn meaning(self) -> &'static str;
    /// What to look at.
    fn look(self) -> &'static str;
    fn remedy(self) -> &'static str;
}

/// What belongs to a code, by name: a resource, a quota, numbers.
pub type Operands = Vec<(&'static str, String)>;

/// Why a pod or a node is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason<C = ReasonCode> {
    /// For programs.
    pub code: C,
    /// For people, as events and conditions show it.
    pub text: String,
    /// What belongs to the code.
    pub operands: Operands,
}

// === impl Reason ===

impl<C: StableCode> Reason<C> {
    /// The same with an operand.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.operands.push((name, value.to_string()));
        self
    }

    /// The same reasons, each with those of these operands that it lacks.
    pub fn all_with_further(reasons: Vec<Self>, operands: &[(&'static str, String)]) -> Vec<Self> {
        reasons.into_iter().map(|reason| reason.with_further(operands)).collect()
    }

    /// The same with those of these operands that it lacks.
    #[must_use]
    pub fn with_further(mut self, operands: &[(&'static str, String)]) -> Self {
        let further = operands.iter().filter(|(name, _)| self.operand(name).is_none()).cloned();
        let further: Operands = further.collect();
        self.operands.extend(further);
        self
    }

    /// The operand of this name.
    pub fn operand(&self, name: &str) -> Option<&str> {
        self.operands.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// The texts of reasons, in one line.
    pub fn joined(reasons: &[Self]) -> String {
        reasons.iter().map(|reason| &*reason.text).collect::<Vec<_>>().join(", ")
    }

    /// For programs: `code`, `text`, and `operands` where there are any.
    pub fn document(&self) -> Value {
        let mut document = json!({"code": self.code.as_str(), "text": self.text});
        if !self.operands.is_empty() {
            let operands = self.operands.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
            document["operands"] = operands.collect::<Map<String, Value>>().into();
        }
        document
    }
}

impl<C> fmt::Display for Reason<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<C> From<Reason<C>> for Vec<Reason<C>> {
    fn from(reason: Reason<C>) -> Self {
        vec![reason]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_is_documented() {
        let names: BTreeSet<&str> = ReasonCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ReasonCode::ALL.len());
        for code in ReasonCode::ALL {
            assert!(code.as_str().starts_with(char::is_uppercase), "{code}");
            for text in [code.meaning(), code.look(), code.remedy()] {
                assert!(text.len() > 10 && text.ends_with('.'), "{code}: {text}");
            }
        }
    }

    #[test]
    fn programs_read_the_code_and_the_operands() {
        let reason = ReasonCode::InsufficientResources.reason("Insufficient cpu").with("resource", "cpu");
        let document =
            json!({"code": "InsufficientResources", "text": "Insufficient cpu", "operands": {"resource": "cpu"}});
        assert_eq!((reason.operand("resource"), reason.operand("quota")), (Some("cpu"), None));
        assert_eq!((reason.document(), reason.to_string()), (document, "Insufficient cpu".to_owned()));
        let further = reason.clone().with_further(&[("resource", "memory".to_owned()), ("free", "2".to_owned())]);
        assert_eq!(
            (further.operand("resource"), further.operand("free")),
            (Some("cpu"), Some("2")),
            "what it has stays"
        );
        let other = ReasonCode::TooManyPods.reason("Too many pods");
        assert_eq!(other.document(), json!({"code": "TooManyPods", "text": "Too many pods"}));
        assert_eq!(Reason::joined(&[reason, other]), "Insufficient cpu, Too many pods");
    }
}
