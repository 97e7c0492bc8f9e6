//! Why a test fails that waited in vain.

use std::{error::Error, fmt};

/// What did not come true, and what there is to see of it. It reads the same by `{}` and by `{:?}`, so that `?` and `unwrap`
/// in a test print all of it.
pub struct Failure {
    what: String,
    shown: Vec<(&'static str, String)>,
}

impl Failure {
    pub(crate) fn new(what: String) -> Self {
        Self { what, shown: Vec::new() }
    }

    /// Shows this text under its title.
    pub(crate) fn showing(mut self, title: &'static str, text: String) -> Self {
        self.shown.push((title, text));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (title, text) in &self.shown {
            write!(f, "\n{title}:")?;
            let text = if text.is_empty() { "none" } else { text.as_str() };
            text.lines().try_for_each(|line| write!(f, "\n  {line}"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Failure {}
