//! What happened, in order: hashed as a whole, kept in part.

use std::{
    collections::VecDeque,
    fmt::{self, Write as _},
};

use koord_runtime::clock::Moment;

/// Lines that are kept for a person.
const KEPT: usize = 200;

/// The story of one run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    length: u64,
}

impl Default for Trace {
    fn default() -> Self {
        // The offset basis of FNV-1a.
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::with_capacity(KEPT), length: 0 }
    }
}

impl Trace {
    /// One more thing that happened.
    pub fn note(&mut self, now: Moment, what: fmt::Arguments<'_>) {
        let mut line =
            if self.lines.len() == KEPT { self.lines.pop_front().unwrap_or_default() } else { String::new() };
        line.clear();
        let seconds = now.since(Moment::default());
        // Writing into a String cannot fail.
        let _ = write!(line, "{:>6}.{:03} {what}", seconds.as_secs(), seconds.subsec_millis());
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.lines.push_back(line);
        self.length += 1;
    }

    /// The hash over all lines, those that are not kept too.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many lines there were.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The lines that are kept, one below the other.
    pub fn last_lines(&self) -> String {
        self.lines.iter().fold(String::new(), |story, line| story + "  " + line + "\n")
    }
}
