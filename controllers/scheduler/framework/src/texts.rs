//! The texts of refusals by number: they name amounts and resources, which a refusal has no place for.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{Reason, ReasonCode};

/// Texts of refusals, each with its number. Refusals outlive the attempt in which they are made: nodes are filtered again only when they change.
#[derive(Debug, Default)]
pub struct Texts(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    numbers: BTreeMap<Arc<[Reason]>, u64>,
    /// By number.
    reasons: Vec<Arc<[Reason]>>,
}

impl Texts {
    /// Further texts have no number.
    const TEXTS_MAX: usize = 1 << 16;

    /// The number of a text.
    pub fn number(&self, reasons: Vec<Reason>) -> u64 {
        let mut known = self.0.lock();
        if let Some(number) = known.numbers.get(&*reasons) {
            return *number;
        }
        let next = known.reasons.len();
        if next >= Self::TEXTS_MAX {
            return u64::MAX;
        }
        let (reasons, number) = (Arc::<[Reason]>::from(reasons), next as u64);
        known.reasons.push(Arc::clone(&reasons));
        known.numbers.insert(reasons, number);
        number
    }

    /// The text of a number, or another where it has none.
    pub fn get(&self, number: u64, otherwise: &str) -> Vec<Reason> {
        let known = self.0.lock();
        let reasons = usize::try_from(number).ok().and_then(|number| known.reasons.get(number));
        reasons.map_or_else(|| ReasonCode::PluginSpecific.reason(otherwise).into(), |reasons| reasons.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_the_same_number() {
        let texts = Texts::default();
        let words = |text: &str| vec![ReasonCode::PluginSpecific.reason(text)];
        let numbers: Vec<u64> = ["a", "b", "a"].iter().map(|text| texts.number(words(text))).collect();
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!((texts.get(1, "-"), texts.get(2, "-")), (words("b"), words("-")));
    }
}
