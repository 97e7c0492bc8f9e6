//! Equal texts are kept once: label keys, names, and whole specs that thousands of objects share.

use std::{collections::BTreeSet, sync::Arc};

/// Keeps one copy of each text that somebody still holds.
#[derive(Debug, Default)]
pub struct Interner {
    texts: BTreeSet<Arc<str>>,
    /// Size at which texts that nobody holds any more are dropped; doubles with what is left, so that the
    /// cost per text stays constant.
    sweep_at: usize,
}

impl Interner {
    const SWEEP_MIN: usize = 1024;

    /// The shared copy of a text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        if self.texts.len() >= self.sweep_at.max(Self::SWEEP_MIN) {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = self.texts.len() * 2;
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// How many different texts are kept.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let mut interner = Interner::default();
        let a = interner.intern("beta.kubernetes.io/arch");
        assert!(Arc::ptr_eq(&a, &interner.intern("beta.kubernetes.io/arch")));
        assert_eq!(interner.len(), 1);
    }

    #[test]
    fn texts_that_nobody_holds_are_dropped_in_time() {
        let mut interner = Interner::default();
        let kept = interner.intern("kept");
        for number in 0..10_000 {
            interner.intern(&number.to_string());
        }
        assert!(interner.len() <= 2 * Interner::SWEEP_MIN, "{} texts are left", interner.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
