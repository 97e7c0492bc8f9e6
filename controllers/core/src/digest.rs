//! Numbers that stand for texts, where equality is all that is asked.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A number that stands for a text; never 0.
pub(crate) fn digest_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish().max(1)
}
