//! The pieces in which bodies are collected. Those of one size are used again.
//!
//! An allocator has a heap per thread. Bodies that are given up in one of them while others grow in another would take
//! the memory of several budgets.

use bytes::Bytes;
use parking_lot::Mutex;

/// A body is collected in pieces of this size: one that grows would be copied again and again, and leave holes.
const CHUNK_BYTES: usize = 16 * 1024;
/// Most pieces that wait for the next body: those of a usual budget.
const FREE_MAX: usize = 48 * 1024 * 1024 / CHUNK_BYTES;

static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Gives the pieces that nobody uses back to the allocator.
pub(crate) fn forget_free() {
    // They are dropped when the lock is free again.
    let free = std::mem::take(&mut *FREE.lock());
    drop(free);
}

/// A body as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    chunks: Vec<Vec<u8>>,
    length: usize,
}

// === impl Chunks ===

impl Chunks {
    /// How many bytes have arrived.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Adds what has arrived; `announced` bytes are said to follow.
    pub(crate) fn push(&mut self, mut data: Bytes, announced: usize) {
        self.length += data.len();
        while !data.is_empty() {
            let room = self.chunks.last().map_or(0, |last| last.capacity() - last.len());
            if room == 0 {
                self.chunks.push(chunk(announced.saturating_add(data.len())));
            }
            if let Some(last) = self.chunks.last_mut() {
                let part = data.split_to(data.len().min(last.capacity() - last.len()));
                last.extend_from_slice(&part);
            }
        }
    }

    /// The whole body.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        match self.chunks.len() {
            0 => Bytes::new(),
            1 if self.length < CHUNK_BYTES => self.chunks.pop().unwrap_or_default().into(),
            // Nothing is awaited here, so that few bodies are in memory twice at a time.
            _ => self.chunks.concat().into(),
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let mut used = std::mem::take(&mut self.chunks);
        used.retain_mut(|chunk| {
            chunk.clear();
            chunk.capacity() == CHUNK_BYTES
        });
        let mut free = FREE.lock();
        used.truncate(FREE_MAX.saturating_sub(free.len()));
        free.append(&mut used);
    }
}

/// A piece for a body of which this much is expected. Short bodies get a piece of their length.
fn chunk(expected: usize) -> Vec<u8> {
    if expected < CHUNK_BYTES {
        return Vec::with_capacity(expected);
    }
    FREE.lock().pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(bytes: usize) -> Chunks {
        let mut chunks = Chunks::default();
        for start in (0..bytes).step_by(5000) {
            chunks.push(Bytes::from(vec![b'x'; 5000.min(bytes - start)]), bytes - start);
        }
        chunks
    }

    #[test]
    fn bodies_are_collected_whole() {
        for length in [0, 1, 4999, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 100_000] {
            let chunks = arrived(length);
            assert_eq!(chunks.len(), length);
            assert_eq!(chunks.into_bytes(), vec![b'x'; length], "{length}");
        }
    }

    #[test]
    fn pieces_of_a_body_that_is_given_up_serve_the_next_in_any_thread() {
        let pieces = |chunks: &Chunks| -> Vec<usize> {
            let whole = chunks.chunks.iter().filter(|chunk| chunk.capacity() == CHUNK_BYTES);
            let mut addresses: Vec<usize> = whole.map(|chunk| chunk.as_ptr().addr()).collect();
            addresses.sort_unstable();
            addresses
        };
        // Other tests of this process take some: of many pieces, nearly all come again.
        let first = arrived(200 * CHUNK_BYTES);
        let known = pieces(&first);
        std::thread::spawn(move || drop(first)).join().unwrap();
        let again = std::thread::spawn(move || pieces(&arrived(200 * CHUNK_BYTES))).join().unwrap();
        let reused = again.iter().filter(|address| known.binary_search(address).is_ok()).count();
        assert!(reused > 150, "{reused} of {}", again.len());
    }
}
