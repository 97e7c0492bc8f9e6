//! The terminal that an answer is printed on, and text that fits into it.

use std::io::{self, IsTerminal as _};

use textwrap::{Options, WordSplitter, WrapAlgorithm};

/// On a narrower terminal nothing is wrapped: it would be one word a line.
const COLUMNS_MIN: usize = 40;

/// How wide an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    columns: Option<usize>,
}

impl Screen {
    /// As wide as a line becomes: for files, pipes and programs.
    pub const ENDLESS: Self = Self { columns: None };

    /// A terminal with so many columns.
    pub fn of(columns: usize) -> Self {
        Self { columns: Some(columns) }
    }

    /// The terminal that standard output is, or what the variable `COLUMNS` says.
    pub fn of_stdout() -> Self {
        let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        named.or_else(terminal_columns).filter(|columns| *columns >= COLUMNS_MIN).map_or(Self::ENDLESS, Self::of)
    }

    /// What is left beside an indentation.
    pub fn beside(self, indent: usize) -> Self {
        self.columns.map_or(self, |columns| Self::of(columns.saturating_sub(indent)))
    }

    /// The columns, where they end.
    pub fn columns(self) -> Option<usize> {
        self.columns
    }

    /// A paragraph, wrapped at words: the first line begins with `first`, the others with `rest`. Words are never cut, so that
    /// commands and paths can be copied.
    pub fn wrapped(self, text: &str, first: &str, rest: &str) -> String {
        let Some(columns) = self.columns else { return format!("{first}{text}") };
        let options = Options::new(columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .wrap_algorithm(WrapAlgorithm::FirstFit)
            .word_splitter(WordSplitter::NoHyphenation);
        textwrap::fill(text, options)
    }
}

/// Whether text on standard output may have colours: on a terminal, unless the variable `NO_COLOR` says otherwise.
pub fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

#[cfg(unix)]
fn terminal_columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_columns() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_words_and_no_word_is_cut() {
        let text = "the last report is older than degradeTimeMinutes (15 min): batch and mid resources are withdrawn";
        let wrapped = Screen::of(40).wrapped(text, "  → ", "    ");
        assert!(wrapped.lines().count() > 2 && wrapped.lines().all(|line| line.chars().count() <= 40), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    ")), "{wrapped}");
        assert_eq!(Screen::ENDLESS.wrapped(text, "  → ", "    "), format!("  → {text}"));
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        assert_eq!(Screen::of(40).wrapped(path, "", ""), path);
    }
}
