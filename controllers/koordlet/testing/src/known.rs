//! Differences that are known, each with its reason.

use std::collections::BTreeMap;

use crate::{compare::Difference, pattern::matches};

/// The known differences of one case.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    /// Patterns of JSON pointers; none for whatever differs.
    patterns: Vec<&'a str>,
}

/// Known differences by case: `group/name POINTER…: reason` a line. A pointer is a pattern in which `*` also stands for slashes; without pointers the case
/// may differ in whatever way. A line that begins with `#` is a comment.
pub(crate) fn parse_known(text: &str) -> Result<BTreeMap<&str, Known<'_>>, String> {
    let mut known = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (about, _) = line
            .split_once(": ")
            .filter(|(_, reason)| !reason.trim().is_empty())
            .ok_or_else(|| format!("no reason: {line}"))?;
        let mut words = about.split_whitespace();
        let name = words.next().unwrap_or_default();
        if known.insert(name, Known { patterns: words.collect() }).is_some() {
            return Err(format!("named twice: {name}"));
        }
    }
    Ok(known)
}

impl Known<'_> {
    /// Whether a difference is known.
    pub(crate) fn has(&self, difference: &Difference) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| matches(pattern, &difference.pointer))
    }

    /// The patterns that no difference has.
    pub(crate) fn unused(&self, differences: &[Difference]) -> impl Iterator<Item = &str> {
        let is_used = |pattern: &str| differences.iter().any(|difference| matches(pattern, &difference.pointer));
        self.patterns.iter().copied().filter(move |pattern| !is_used(pattern))
    }
}
