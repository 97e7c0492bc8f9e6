//! Why a text of the kernel is not understood.

use std::fmt;

/// A text lacks a field, or a field holds something else than the kernel writes. Making one allocates no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The field is not in the text. Kernels write all fields of a file or none, so the text is cut or of another file.
    #[error("{file} lacks {field}")]
    Missing {
        /// The kind of file, such as `memory.stat`.
        file: &'static str,
        /// The field, such as `total_cache`.
        field: &'static str,
    },
    /// The field holds something else.
    #[error("{file}: {field} is {text}, not {expected}")]
    Malformed {
        /// The kind of file.
        file: &'static str,
        /// The field.
        field: &'static str,
        /// The first bytes of what the field holds.
        text: Excerpt,
        /// What the field holds where it is right.
        expected: &'static str,
    },
}

/// The first bytes of a text that is not understood.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
    is_cut: bool,
}

impl Excerpt {
    /// Longer texts are cut.
    pub const BYTES_MAX: usize = 40;

    /// The first bytes of a text.
    pub fn new(text: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        let length = text.len().min(Self::BYTES_MAX);
        for (place, byte) in bytes.iter_mut().zip(text) {
            *place = *byte;
        }
        Self { bytes, length: length as u8, is_cut: length < text.len() }
    }

    /// The bytes, at most [`Self::BYTES_MAX`].
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }
}

impl fmt::Display for Excerpt {
    /// In quotes, with other bytes than printable ASCII escaped, and with an ellipsis where it was cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}{}\"", self.as_bytes().escape_ascii(), if self.is_cut { "…" } else { "" })
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_file_field_and_the_first_bytes_of_the_text() {
        let missing = ParseError::Missing { file: "memory.stat", field: "total_cache" };
        assert_eq!(missing.to_string(), "memory.stat lacks total_cache");
        let malformed = |text: &[u8]| {
            let text = Excerpt::new(text);
            ParseError::Malformed { file: "cpu.stat", field: "nr_periods", text, expected: "a number" }.to_string()
        };
        assert_eq!(malformed(b"a\"\xffb"), r#"cpu.stat: nr_periods is "a\"\xffb", not a number"#);
        let long = malformed(&[b'x'; 1000]);
        assert_eq!(long, format!("cpu.stat: nr_periods is \"{}…\", not a number", "x".repeat(40)));
    }
}
