//! Something that can be read and hardly does what was meant.

use std::fmt;

/// How many characters of a path, and of what is wrong, are shown.
const SHOWN_MAX: usize = 240;

/// Something in an object, or in a text of it, that can be read and hardly does what was meant. Nothing is refused for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Path of the field; empty for the whole text.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl Doubt {
    pub(super) fn new(field: String, problem: String, remedy: impl Into<String>) -> Self {
        Self { field: cut(field), problem: cut(problem), remedy: remedy.into() }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, problem, remedy } = self;
        if !field.is_empty() {
            write!(f, "{field}: ")?;
        }
        write!(f, "{problem}; {remedy}")
    }
}

/// Annotations may be long.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        let doubt = Doubt::new("ä".repeat(1000), "is not known".to_owned(), "remove it");
        assert_eq!(doubt.to_string(), format!("{}…: is not known; remove it", "ä".repeat(SHOWN_MAX)));
        assert_eq!(Doubt::new(String::new(), "5".to_owned(), "7").to_string(), "5; 7");
    }
}
