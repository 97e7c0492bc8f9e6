//! The multiplexer of NRI: several connections over one socket, each frame with the number of its connection and its length.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::{buffer::release, ttrpc};

/// Connection on which the runtime calls the plugin.
pub const PLUGIN_SERVICE: u32 = 1;
/// Connection on which the plugin calls the runtime.
pub const RUNTIME_SERVICE: u32 = 2;
/// Bytes before the payload: number of the connection and length of the payload, both big-endian `u32`.
pub const HEADER_BYTES: usize = 8;
/// Longest payload that a runtime sends: one ttrpc message with its header.
pub const PAYLOAD_BYTES_MAX: usize = ttrpc::HEADER_BYTES + ttrpc::MESSAGE_BYTES_MAX;

/// Bytes that the runtime reads at once. It reads through a buffer of this size and fails when the first frame of a message does
/// not fit into it; what follows is read into a buffer as large as the rest of the message.
const FIRST_FRAME_BYTES_MAX: usize = 4096;
/// Room for one read of the socket.
const READ_BYTES: usize = 8 << 10;

/// Bytes of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Number of the connection.
    pub connection: u32,
    /// A part of what this connection carries.
    pub payload: Bytes,
}

/// A frame that cannot be accepted; the socket must be closed, as nothing after it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is longer than accepted.
    #[error("a frame of connection {connection} has {length} bytes, more than {max}")]
    TooLong {
        /// Number of the connection.
        connection: u32,
        /// Length that the frame gives.
        length: u32,
        /// Longest payload that is accepted.
        max: usize,
    },
}

/// Cuts what is read from the socket into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    payload_bytes_max: usize,
}

impl FrameDecoder {
    /// A decoder that holds at most one frame of `payload_bytes_max` and what one read brings.
    pub fn new(payload_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), payload_bytes_max }
    }

    /// Where bytes from the socket are appended, with room for one read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// The next frame; `None` when more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let mut header = self.buffer.as_ref();
        if header.len() < HEADER_BYTES {
            release(&mut self.buffer);
            return Ok(None);
        }
        let (connection, length) = (header.get_u32(), header.get_u32());
        let bytes = length as usize;
        if bytes > self.payload_bytes_max {
            return Err(FrameError::TooLong { connection, length, max: self.payload_bytes_max });
        }
        if header.len() < bytes {
            self.buffer.reserve(HEADER_BYTES + bytes - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        Ok(Some(Frame { connection, payload: self.buffer.split_to(bytes).freeze() }))
    }
}

/// Appends one message of a connection as frames that the runtime can read.
pub fn encode(connection: u32, message: &[u8], out: &mut BytesMut) {
    let (first, rest) = message.split_at(message.len().min(FIRST_FRAME_BYTES_MAX));
    for payload in std::iter::once(first).chain(rest.chunks(PAYLOAD_BYTES_MAX)) {
        out.reserve(HEADER_BYTES + payload.len());
        out.put_u32(connection);
        out.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        out.put_slice(payload);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(decoder: &mut FrameDecoder) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
    }

    #[test]
    fn a_frame_is_given_out_when_its_last_byte_has_arrived() {
        let mut bytes = BytesMut::new();
        encode(PLUGIN_SERVICE, b"hello", &mut bytes);
        assert_eq!(&bytes[..], b"\0\0\0\x01\0\0\0\x05hello");
        let mut decoder = FrameDecoder::new(PAYLOAD_BYTES_MAX);
        for byte in &bytes[..bytes.len() - 1] {
            decoder.buffer().put_u8(*byte);
            assert_eq!(decoder.next_frame(), Ok(None));
        }
        decoder.buffer().put_u8(b'o');
        assert_eq!(frames(&mut decoder), [Frame { connection: 1, payload: Bytes::from_static(b"hello") }]);
    }

    #[test]
    fn the_first_frame_of_a_long_message_fits_into_the_buffer_of_the_runtime() {
        let message = vec![7; 10_000];
        let mut decoder = FrameDecoder::new(PAYLOAD_BYTES_MAX);
        encode(RUNTIME_SERVICE, &message, decoder.buffer());
        let lengths: Vec<_> = frames(&mut decoder).iter().map(|frame| frame.payload.len()).collect();
        assert_eq!(lengths, [4096, 5904]);
    }

    #[test]
    fn an_empty_message_is_an_empty_frame() {
        let mut decoder = FrameDecoder::new(PAYLOAD_BYTES_MAX);
        encode(9, b"", decoder.buffer());
        assert_eq!(frames(&mut decoder), [Frame { connection: 9, payload: Bytes::new() }]);
    }

    #[test]
    fn a_frame_over_the_limit_is_an_error_before_its_payload_is_read() {
        let mut decoder = FrameDecoder::new(16);
        decoder.buffer().put_slice(&[0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong { connection: 2, length: u32::MAX, max: 16 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut decoder = FrameDecoder::new(1024);
            'all: for piece in pieces {
                decoder.buffer().put_slice(&piece);
                loop {
                    match decoder.next_frame() {
                        Ok(Some(frame)) => prop_assert!(frame.payload.len() <= 1024),
                        Ok(None) => break,
                        Err(_) => break 'all,
                    }
                }
            }
        }

        #[test]
        fn messages_come_out_as_they_went_in(messages in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..9000)), 0..5)) {
            let mut decoder = FrameDecoder::new(PAYLOAD_BYTES_MAX);
            for (connection, message) in &messages {
                encode(*connection, message, decoder.buffer());
            }
            let sent: Vec<u8> = messages.iter().flat_map(|(_, message)| message.clone()).collect();
            let received: Vec<u8> = frames(&mut decoder).iter().flat_map(|frame| frame.payload.to_vec()).collect();
            prop_assert_eq!(sent, received);
        }
    }
}
