//! Quoted scalars that go on no further right than their key.
//!
//! ```yaml
//! spec:
//!   description: 'controller-gen writes
//!   such lines'
//! ```
//!
//! Go's YAML reads them, and so files that controller-gen wrote have them; the parser here refuses them. The blanks before
//! such a line are no part of the text, so the lines are moved to the right before the text is read once more.
//!
//! One pass finds the lines, another one (by the parser's own scanner) makes sure that each of them lies within a quoted
//! scalar, so that no other line can move.

use serde_saphyr::granit_parser::{ScalarStyle, Scanner, StrInput, TokenType};

/// Most bytes of blanks that are added, for each byte of the text.
const GROWTH_MAX: usize = 4;

/// The text with its shallow continuation lines moved; none where there are none, or where a line is no continuation.
pub(super) fn indented(text: &str) -> Option<String> {
    let mut finder = Finder { bytes: text.as_bytes(), at: 0, blocks: Vec::new(), found: Vec::new() };
    finder.run();
    let added: usize = finder.found.iter().map(|line| line.blanks).sum();
    if finder.found.is_empty() || added > text.len().saturating_mul(GROWTH_MAX) {
        return None;
    }
    let mut moved = String::with_capacity(text.len() + added);
    let (mut copied, mut numbers) = (0, Vec::with_capacity(finder.found.len()));
    let mut number = 1;
    for line in &finder.found {
        let before = text.get(copied..line.start)?;
        number += before.matches('\n').count();
        numbers.push(number);
        moved.push_str(before);
        moved.extend(std::iter::repeat_n(' ', line.blanks));
        copied = line.start;
    }
    moved.push_str(text.get(copied..)?);
    are_continuations(&moved, &numbers).then_some(moved)
}

/// Whether each of these lines, counted from 1, begins within a quoted scalar, as far as the text can be scanned.
fn are_continuations(text: &str, lines: &[usize]) -> bool {
    let mut lines = lines.iter().copied().peekable();
    for token in Scanner::new(StrInput::new(text)) {
        let token = match token {
            Ok(token) => token,
            // Behind a mistake nothing is read, so nothing can be read wrongly.
            Err(mistake) => return lines.next().is_none_or(|line| line >= mistake.marker().line()),
        };
        let TokenType::Scalar(ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted, _) = token.token_type() else {
            continue;
        };
        let (first, last) = (token.span().start.line(), token.span().end.line());
        if lines.peek().is_some_and(|line| *line <= first) {
            return false;
        }
        while lines.next_if(|line| *line <= last).is_some() {}
    }
    lines.next().is_none()
}

/// A line that must move.
struct Line {
    /// Where it begins, in bytes.
    start: usize,
    /// How far it moves.
    blanks: usize,
}

/// Walks over a YAML text as far as it takes to know where quoted scalars are.
struct Finder<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Columns of the open block collections.
    blocks: Vec<usize>,
    found: Vec<Line>,
}

impl Finder<'_> {
    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let start = self.at;
            self.skip_blanks();
            let column = self.at - start;
            match self.peek() {
                None | Some(b'\n' | b'\r' | b'#') => self.skip_line(),
                Some(b'%') if column == 0 => self.skip_line(),
                Some(_) if self.is_marker(start) => {
                    self.blocks.clear();
                    self.at = start + 3;
                    self.skip_blanks();
                    self.node(start);
                }
                Some(_) => {
                    while self.blocks.last().is_some_and(|block| *block > column) {
                        self.blocks.pop();
                    }
                    self.node(start);
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Whether the next byte is a blank, a line break or the end.
    fn is_space_after(&self) -> bool {
        self.bytes.get(self.at + 1).is_none_or(u8::is_ascii_whitespace)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    }

    /// Whether a document begins or ends on the line that begins here.
    fn is_marker(&self, start: usize) -> bool {
        let rest = &self.bytes[start..];
        (rest.starts_with(b"---") || rest.starts_with(b"...")) && rest.get(3).is_none_or(u8::is_ascii_whitespace)
    }

    /// Column of the innermost block collection; none outside of all.
    fn block(&self) -> Option<usize> {
        self.blocks.last().copied()
    }

    fn open_block(&mut self, column: usize) {
        while self.blocks.last().is_some_and(|block| *block > column) {
            self.blocks.pop();
        }
        if self.blocks.last() != Some(&column) {
            self.blocks.push(column);
        }
    }

    /// Whether a key ends here; then the collection that holds it is open, and the value follows.
    fn is_key_end(&mut self, column: usize) -> bool {
        let is_end = self.peek() == Some(b':') && self.is_space_after();
        if is_end {
            self.open_block(column);
            self.at += 1;
        }
        is_end
    }

    /// What stands on the line that begins at `line`, from the cursor to the end of its last node.
    fn node(&mut self, line: usize) {
        loop {
            self.skip_blanks();
            let column = self.at - line;
            match self.peek() {
                None | Some(b'\n' | b'\r' | b'#') => return self.skip_line(),
                Some(b'-' | b'?') if self.is_space_after() => {
                    self.open_block(column);
                    self.at += 1;
                }
                Some(b':') if self.is_space_after() => self.at += 1,
                Some(b'&' | b'!') => {
                    while self.peek().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                        self.at += 1;
                    }
                }
                Some(quote @ (b'"' | b'\'')) => {
                    self.quoted(quote, true);
                    self.skip_blanks();
                    if !self.is_key_end(column) {
                        return self.skip_line();
                    }
                }
                Some(b'[' | b'{') => {
                    self.flow();
                    self.skip_blanks();
                    if !self.is_key_end(column) {
                        return self.skip_line();
                    }
                }
                Some(b'|' | b'>') => {
                    self.skip_line();
                    return self.skip_deeper_lines();
                }
                Some(_) => {
                    self.plain();
                    if !self.is_key_end(column) {
                        self.skip_line();
                        return self.skip_deeper_lines();
                    }
                }
            }
        }
    }

    /// The lines of a block scalar, or the further lines of a plain one.
    fn skip_deeper_lines(&mut self) {
        while self.at < self.bytes.len() {
            let start = self.at;
            self.skip_blanks();
            let is_empty = matches!(self.peek(), None | Some(b'\n' | b'\r'));
            let is_deeper = self.block().is_none_or(|block| self.at - start > block) && !self.is_marker(start);
            if !is_empty && !is_deeper {
                self.at = start;
                return;
            }
            self.skip_line();
        }
    }

    /// A plain scalar, up to the end of its key or line.
    fn plain(&mut self) {
        let mut is_after_blank = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => return,
                b':' if self.is_space_after() => return,
                b'#' if is_after_blank => return,
                _ => {}
            }
            is_after_blank = matches!(byte, b' ' | b'\t');
            self.at += 1;
        }
    }

    /// A quoted scalar; in block context its shallow lines are noted.
    fn quoted(&mut self, quote: u8, is_block: bool) {
        let least = self.block().map_or(0, |block| block + 1);
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' if quote == b'"' && self.peek() != Some(b'\n') => self.at += 1,
                b'\'' if quote == b'\'' && self.peek() == Some(b'\'') => self.at += 1,
                b'\n' => {
                    let start = self.at;
                    self.skip_blanks();
                    let column = self.at - start;
                    let is_empty = matches!(self.peek(), None | Some(b'\n' | b'\r'));
                    if is_block && !is_empty && column < least {
                        self.found.push(Line { start, blanks: least - column });
                    }
                }
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    /// A flow collection.
    fn flow(&mut self) {
        let mut open = 0_usize;
        let mut is_start = true;
        while let Some(byte) = self.peek() {
            match byte {
                b'[' | b'{' => open += 1,
                b']' | b'}' => {
                    open -= 1;
                    if open == 0 {
                        self.at += 1;
                        return;
                    }
                }
                b'"' | b'\'' if is_start => {
                    self.quoted(byte, false);
                    is_start = false;
                    continue;
                }
                b'#' if self.at > 0 && self.bytes[self.at - 1].is_ascii_whitespace() => {
                    self.skip_line();
                    continue;
                }
                _ => {}
            }
            is_start = match byte {
                b'[' | b'{' | b',' | b':' => true,
                byte if byte.is_ascii_whitespace() => is_start,
                _ => false,
            };
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_quoted_scalars_move() {
        let text = "a:\n  plain: it is\n    'tis the season\n  block: |\n    don't\n  'move: me'\n  key: 'one\n  two\n\nthree'\n";
        let moved = text.replace("\n  two", "\n   two").replace("\nthree", "\n   three");
        // The block scalar ends before the quoted key.
        assert_eq!(indented(text).as_deref(), Some(moved.as_str()));
    }

    #[test]
    fn flow_collections_keep_their_lines() {
        assert_eq!(indented("a: ['one\ntwo', {b: \"three\nfour\"}]\nc: 1\n"), None);
    }

    #[test]
    fn no_text_grows_without_bound() {
        let deep = " ".repeat(5_000);
        assert_eq!(indented(&format!("{deep}a: 'x{}'\n", "\ny".repeat(5_000))), None);
    }

    #[test]
    fn a_line_that_is_no_continuation_stays() {
        // The first quote opens nothing for the parser: an anchor's name may hold one.
        assert_eq!(indented("- x\n-\n  y 'a\nb'\n"), None);
    }
}
