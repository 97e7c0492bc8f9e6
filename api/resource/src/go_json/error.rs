//! Why a text cannot be decoded, and which of several reasons Go reports.

use std::{cell::RefCell, fmt};

use serde::de;

use super::parse::SyntaxError;

/// Why a text could not be decoded. Its text is Go's, because it reaches clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A value of another JSON type than its field has.
    #[error("json: cannot unmarshal {value} into Go {place} of type {go_type}")]
    Type {
        /// What stands there: `string`, `number 1.5`, …
        value: String,
        /// The field, as the type of its struct and its path from the root, such as `struct field Cfg.cluster.percent`;
        /// `value` for the root.
        place: String,
        /// What Go calls the type of the field.
        go_type: String,
    },
    /// A value that its own type refuses, such as a malformed quantity.
    #[error("{0}")]
    Value(String),
}

/// What ends the decoding at once: a value that its own type refuses.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub(super) struct Failure {
    /// Where the value begins in the text, once that is known.
    pub(super) at: Option<usize>,
    pub(super) error: DecodeError,
}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { at: None, error: DecodeError::Value(message.to_string()) }
    }
}

/// The first value in the text that has another JSON type than its field. Go decodes on after it, and reports it unless a later
/// value ends the decoding.
#[derive(Default)]
pub(super) struct FirstTypeError(RefCell<Option<(usize, DecodeError)>>);

impl FirstTypeError {
    pub(super) fn add(&self, at: usize, error: DecodeError) {
        let mut first = self.0.borrow_mut();
        if first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            *first = Some((at, error));
        }
    }

    pub(super) fn into_error(self) -> Option<DecodeError> {
        self.0.into_inner().map(|(_, error)| error)
    }
}
