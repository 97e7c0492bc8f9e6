//! ttrpc: the remote procedure calls of containerd, gRPC without HTTP. Unary calls only; NRI has no others.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::buffer::release;

/// Bytes before a message: length and stream as big-endian `u32`, type and flags as `u8`.
pub const HEADER_BYTES: usize = 10;
/// Longest message without its header; a runtime refuses to send more.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins a call; streams of callers are odd and grow.
    Request,
    /// Ends a call.
    Response,
    /// Belongs to a call with a stream of messages.
    Data,
    /// A type that the protocol does not have.
    Unknown(u8),
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Response => 2,
            Self::Data => 3,
            Self::Unknown(number) => number,
        }
    }

    fn of(number: u8) -> Self {
        match number {
            1 => Self::Request,
            2 => Self::Response,
            3 => Self::Data,
            other => Self::Unknown(other),
        }
    }
}

/// What the decoder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A whole message.
    Message {
        /// The call it belongs to.
        stream: u32,
        /// What it is.
        kind: Kind,
        /// A [`Request`] or a [`Response`], encoded.
        body: Bytes,
    },
    /// A message over the limit; its body is skipped, what follows it can be read.
    TooLong {
        /// The call it belongs to.
        stream: u32,
        /// What it is.
        kind: Kind,
        /// Bytes of its body.
        length: u32,
    },
}

/// Cuts the bytes of a connection into messages.
#[derive(Debug)]
pub struct MessageDecoder {
    buffer: BytesMut,
    skip: usize,
    body_bytes_max: usize,
}

impl MessageDecoder {
    /// A decoder that accepts bodies of at most `body_bytes_max`.
    pub fn new(body_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), skip: 0, body_bytes_max }
    }

    /// Appends bytes of the connection. The decoder holds them until [`Self::next_message`] has given out `None`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message; `None` when more bytes are needed.
    pub fn next_message(&mut self) -> Option<Incoming> {
        let skipped = self.skip.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skip -= skipped;
        let mut header = self.buffer.as_ref();
        if header.len() < HEADER_BYTES {
            release(&mut self.buffer);
            return None;
        }
        let (length, stream, kind) = (header.get_u32(), header.get_u32(), Kind::of(header.get_u8()));
        header.advance(1);
        let bytes = length as usize;
        if bytes > self.body_bytes_max {
            self.buffer.advance(HEADER_BYTES);
            self.skip = bytes;
            return Some(Incoming::TooLong { stream, kind, length });
        }
        if header.len() < bytes {
            return None;
        }
        self.buffer.advance(HEADER_BYTES);
        Some(Incoming::Message { stream, kind, body: self.buffer.split_to(bytes).freeze() })
    }
}

/// One message with its header. `None` when its body is longer than [`MESSAGE_BYTES_MAX`].
pub fn encode(stream: u32, kind: Kind, body: &impl prost::Message) -> Option<BytesMut> {
    let length = body.encoded_len();
    if length > MESSAGE_BYTES_MAX {
        return None;
    }
    let mut message = BytesMut::with_capacity(HEADER_BYTES + length);
    message.put_u32(u32::try_from(length).ok()?);
    message.put_u32(stream);
    message.put_u8(kind.number());
    message.put_u8(0);
    body.encode_raw(&mut message);
    Some(message)
}

/// A call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Full name of the service.
    #[prost(string, tag = "1")]
    pub service: String,
    /// Name of the method.
    #[prost(string, tag = "2")]
    pub method: String,
    /// The encoded request.
    #[prost(bytes = "bytes", tag = "3")]
    pub payload: Bytes,
    /// Time until the caller gives up, in nanoseconds; 0 when it waits for ever.
    #[prost(int64, tag = "4")]
    pub timeout_nano: i64,
}

/// The answer to a call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Absent, or with code 0, when the call succeeded.
    #[prost(message, optional, tag = "1")]
    pub status: Option<Status>,
    /// The encoded answer.
    #[prost(bytes = "bytes", tag = "2")]
    pub payload: Bytes,
}

impl From<Result<Bytes, Status>> for Response {
    fn from(answer: Result<Bytes, Status>) -> Self {
        match answer {
            Ok(payload) => Self { status: None, payload },
            Err(status) => Self { status: Some(status), payload: Bytes::new() },
        }
    }
}

impl From<Response> for Result<Bytes, Status> {
    fn from(response: Response) -> Self {
        match response.status {
            Some(status) if status.code != 0 => Err(status),
            _ => Ok(response.payload),
        }
    }
}

/// Why a call failed: a code of gRPC and a text.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// Code of gRPC.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Text for people.
    #[prost(string, tag = "2")]
    pub message: String,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

/// Codes of gRPC that are answered here.
pub mod code {
    /// An error without a code of its own, such as one of a handler.
    pub const UNKNOWN: i32 = 2;
    /// The request cannot be decoded.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// The handler did not answer in time.
    pub const DEADLINE_EXCEEDED: i32 = 4;
    /// A limit was exceeded.
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    /// The service or method does not exist.
    pub const UNIMPLEMENTED: i32 = 12;
    /// The handler panicked.
    pub const INTERNAL: i32 = 13;
}

impl Status {
    /// A failure with one of the codes of gRPC.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Decodes the payload of a request.
pub(crate) fn decode<M: prost::Message + Default>(what: &str, payload: Bytes) -> Result<M, Status> {
    M::decode(payload)
        .map_err(|error| Status::new(code::INVALID_ARGUMENT, format!("{what} cannot be decoded: {error}")))
}

impl Request {
    /// Decodes a body of [`Kind::Request`].
    pub fn read(body: Bytes) -> Result<Self, Status> {
        decode("the request", body)
    }
}

impl Response {
    /// Decodes a body of [`Kind::Response`].
    pub fn read(body: Bytes) -> Result<Self, Status> {
        decode("the response", body)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request() -> Request {
        Request { service: "s".into(), method: "m".into(), payload: Bytes::from_static(b"p"), timeout_nano: 7 }
    }

    #[test]
    fn a_message_has_length_stream_type_and_flags_before_it() {
        let message = encode(3, Kind::Request, &request()).unwrap();
        assert_eq!(&message[..], b"\0\0\0\x0b\0\0\0\x03\x01\0\x0a\x01s\x12\x01m\x1a\x01p\x20\x07");
        let mut decoder = MessageDecoder::new(MESSAGE_BYTES_MAX);
        decoder.push(&message[..15]);
        assert_eq!(decoder.next_message(), None);
        decoder.push(&message[15..]);
        let Some(Incoming::Message { stream: 3, kind: Kind::Request, body }) = decoder.next_message() else { panic!() };
        assert_eq!(Request::read(body), Ok(request()));
        assert_eq!(decoder.next_message(), None);
    }

    #[test]
    fn a_message_over_the_limit_is_skipped_and_the_next_one_is_read() {
        let mut decoder = MessageDecoder::new(8);
        decoder.push(&encode(1, Kind::Request, &request()).unwrap());
        decoder.push(&encode(5, Kind::Data, &Status { code: 1, message: String::new() }).unwrap());
        assert_eq!(decoder.next_message(), Some(Incoming::TooLong { stream: 1, kind: Kind::Request, length: 11 }));
        assert!(matches!(decoder.next_message(), Some(Incoming::Message { stream: 5, kind: Kind::Data, .. })));
    }

    #[test]
    fn what_is_too_long_for_the_runtime_is_not_encoded() {
        let response = Response { status: None, payload: Bytes::from(vec![0; MESSAGE_BYTES_MAX]) };
        assert_eq!(encode(1, Kind::Response, &response), None);
    }

    #[test]
    fn a_status_of_code_0_is_a_success() {
        let response = Response { status: Some(Status::default()), payload: Bytes::from_static(b"x") };
        assert_eq!(Result::from(response), Ok(Bytes::from_static(b"x")));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut decoder = MessageDecoder::new(64);
            for piece in pieces {
                decoder.push(&piece);
                while let Some(incoming) = decoder.next_message() {
                    if let Incoming::Message { body, .. } = incoming {
                        let _ = (Request::read(body.clone()), Response::read(body));
                    }
                }
            }
        }
    }
}
