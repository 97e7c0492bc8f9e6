//! The words of refusals by number: they name amounts and resources, and a refusal has no place for them.

use std::collections::BTreeMap;

use crate::{Reason, ReasonCode};
use parking_lot::Mutex;

/// Words of refusals, each with its number.
#[derive(Debug, Default)]
pub struct Texts(Mutex<BTreeMap<Vec<Reason>, u64>>);

impl Texts {
    /// Words beyond are replaced.
    const TEXTS_MAX: usize = 1 << 16;

    /// The number of these words.
    pub fn number(&self, reasons: Vec<Reason>) -> u64 {
        let mut texts = self.0.lock();
        let next = texts.len() as u64;
        if texts.len() >= Self::TEXTS_MAX {
            return texts.get(&reasons).copied().unwrap_or(u64::MAX);
        }
        *texts.entry(reasons).or_insert(next)
    }

    /// The words of a number; these where they are lost.
    pub fn get(&self, number: u64, otherwise: &str) -> Vec<Reason> {
        let texts = self.0.lock();
        let known = texts.iter().find(|(_, known)| **known == number).map(|(reasons, _)| reasons.clone());
        known.unwrap_or_else(|| ReasonCode::PluginSpecific.says(otherwise).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_have_the_same_number() {
        let texts = Texts::default();
        let words = |text: &str| vec![ReasonCode::PluginSpecific.says(text)];
        let numbers: Vec<u64> = ["a", "b", "a"].iter().map(|text| texts.number(words(text))).collect();
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!((texts.get(1, "-"), texts.get(2, "-")), (words("b"), words("-")));
    }
}
