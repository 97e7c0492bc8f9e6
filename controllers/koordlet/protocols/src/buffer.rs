//! Buffers of what was read from a socket.

use bytes::BytesMut;

/// Memory that an empty buffer keeps.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

/// Gives back the memory of an empty buffer that a large message has made large.
pub(crate) fn release(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > BUFFER_BYTES_KEPT {
        *buffer = BytesMut::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_buffer_that_has_become_large_gives_its_memory_back() {
        for (capacity, content, is_kept) in [(1 << 10, "", true), (1 << 20, "x", true), (1 << 20, "", false)] {
            let mut buffer = BytesMut::with_capacity(capacity);
            buffer.extend_from_slice(content.as_bytes());
            release(&mut buffer);
            assert_eq!(buffer.capacity() > 0, is_kept, "{capacity} {content:?}");
        }
    }
}
