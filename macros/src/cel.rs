//! CEL rules as far as they are understood while compiling: their syntax, and the fields, types and functions that they name.
//!
//! The grammar is that of cel-spec's `langdef.md`, with optional selection and indices. It is a parser of its own, because the crates that
//! evaluate CEL take longer to compile than all of this crate. What only the whole schema shows is found by `document::check`.

mod functions;
mod lexer;
mod names;
mod parser;

pub(crate) use names::check;
pub(crate) use parser::{Literal, Node, Operator, parse};

/// What is wrong with a text that is no CEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Where, in bytes.
    pub(crate) at: usize,
    /// What.
    pub(crate) message: String,
}

impl Mistake {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The message with the place in the text.
    pub(crate) fn shown(&self, text: &str) -> String {
        let before = &text[..self.at.min(text.len())];
        let (line, column) =
            (before.lines().count().max(1), before.rsplit('\n').next().unwrap_or_default().chars().count() + 1);
        let rest: String =
            text[self.at.min(text.len())..].chars().take_while(|letter| *letter != '\n').take(20).collect();
        let place =
            if text.contains('\n') { format!("line {line}, column {column}") } else { format!("column {column}") };
        match rest.trim() {
            "" => format!("this is no CEL: {} at the end", self.message),
            rest => format!("this is no CEL: {} at {place}, before `{rest}`", self.message),
        }
    }
}
