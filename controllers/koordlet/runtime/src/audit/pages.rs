//! Pages of audit events: readers that stand somewhere in the files and go backwards.

use std::{fs::File, io, os::unix::fs::FileExt as _, time::Duration};

use koord_core::clock::Moment;
use serde_json::Value;

/// Some events, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub events: Vec<Value>,
    /// The token of the next page; `None` when there is none.
    pub next: Option<String>,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("invalid pageToken: it was never given, or its reader has ended; begin without one")]
    UnknownToken,
    #[error("size is too large: a page has at most {most} events")]
    TooLarge { most: usize },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PageLimits {
    pub(super) readers_max: usize,
    pub(super) page_max: usize,
}

/// The readers of pages that are not at their end.
#[derive(Debug)]
pub(super) struct Readers {
    limits: PageLimits,
    /// The one that was used last comes last.
    readers: Vec<Reader>,
}

#[derive(Debug)]
struct Reader {
    token: String,
    used: Moment,
    /// Newest first. An open file stays what it was when it is renamed or removed.
    files: Vec<File>,
    /// Where the next page ends in the first file.
    end: u64,
}

/// A reader that is not used for this long ends.
const IDLE_MAX: Duration = Duration::from_mins(10);
const PAGE_DEFAULT: usize = 256;
/// More than this of a file is not read: what is older is lost.
const READ_BYTES_MAX: u64 = 8 << 20;

impl Readers {
    pub(super) fn new(limits: PageLimits) -> Self {
        Self { limits, readers: Vec::new() }
    }

    pub(super) fn forget_old(&mut self, now: Moment) {
        self.readers.retain(|reader| now.since(reader.used) < IDLE_MAX);
    }

    /// The page after a token, or the first page of these files.
    pub(super) fn page(
        &mut self,
        after: Option<&str>,
        size: Option<usize>,
        files: Vec<File>,
        now: Moment,
        token: impl FnOnce() -> String,
    ) -> Result<Page, PageError> {
        let size = size.unwrap_or(PAGE_DEFAULT);
        if size > self.limits.page_max {
            return Err(PageError::TooLarge { most: self.limits.page_max });
        }
        let mut reader = match after {
            None => Reader::of(files, now),
            Some(after) => {
                let at = self.readers.iter().position(|reader| reader.token == after);
                self.readers.remove(at.ok_or(PageError::UnknownToken)?)
            }
        };
        let mut events = Vec::new();
        while events.len() < size && !reader.files.is_empty() {
            reader.read(size, &mut events);
        }
        if reader.files.is_empty() {
            return Ok(Page { events, next: None });
        }
        reader.token = token();
        reader.used = now;
        let next = Some(reader.token.clone());
        self.readers.push(reader);
        while self.readers.len() > self.limits.readers_max {
            self.readers.remove(0);
        }
        Ok(Page { events, next })
    }
}

impl Reader {
    fn of(files: Vec<File>, now: Moment) -> Self {
        let mut reader = Self { token: String::new(), used: now, files, end: 0 };
        reader.end = reader.length();
        reader
    }

    fn length(&self) -> u64 {
        self.files.first().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len())
    }

    /// Adds events of the first file until there are `size`, or goes to the next file.
    fn read(&mut self, size: usize, events: &mut Vec<Value>) {
        let Some(text) = self.files.first().and_then(|file| before(file, self.end).ok()) else {
            return self.next_file();
        };
        // The end of a line is where the next page ends.
        let mut end = text.len();
        while end > 0 && events.len() < size {
            let line = text.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            // A line that was cut by a full disk is no event.
            events.extend(serde_json::from_slice(line.get(start..).unwrap_or_default()).ok());
            end = start;
        }
        if end == 0 {
            self.next_file();
        } else {
            self.end = self.end - text.len() as u64 + end as u64;
        }
    }

    fn next_file(&mut self) {
        if !self.files.is_empty() {
            self.files.remove(0);
        }
        self.end = self.length();
    }
}

/// What of a file stands before a place.
fn before(file: &File, end: u64) -> io::Result<Vec<u8>> {
    let start = end.saturating_sub(READ_BYTES_MAX);
    let mut text = vec![0; usize::try_from(end - start).unwrap_or_default()];
    file.read_exact_at(&mut text, start)?;
    Ok(text)
}
