//! Lets clients in whose name for the server is the path of its socket.
//!
//! HTTP/2 wants a host in `:authority`. Over a unix socket there is none: newer clients of Go send `localhost`, others the path,
//! as it is (Go with a dialer of its own, Java) or with `%2F` (C and Python), and the server that tonic uses refuses those with
//! PROTOCOL_ERROR before any of our code runs. So the value is replaced in what is read from the socket. Tables of headers stay as
//! the client has them: an entry keeps its place, and its size, as the replacement is as long as the value.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{BufMut as _, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
};
use tonic::transport::server::Connected;

/// What a client of HTTP/2 begins with.
const PREFACE_BYTES: usize = 24;
/// Bytes before a frame's payload.
const FRAME_HEADER_BYTES: usize = 9;
/// Longest frame that a server accepts unless it says otherwise.
const FRAME_BYTES_MAX: usize = 16 << 10;
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// Place of `:authority` in the static table of HPACK.
const AUTHORITY_INDEX: usize = 1;
const AUTHORITY: &[u8] = b":authority";
/// `:authority` in the Huffman code of HPACK.
const AUTHORITY_HUFFMAN: &[u8] = &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f];
/// How many symbols of HPACK's Huffman code have 1, 2, 3 … bits. The code is canonical: these numbers say where each symbol ends.
/// The end of a string, 30 ones, is none of them.
const HUFFMAN_CODES: [u32; 30] =
    [0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 3];

/// A connection whose `:authority` is replaced.
#[derive(Debug)]
pub(crate) struct AnyAuthority {
    stream: UnixStream,
    rewriter: Rewriter,
    input: BytesMut,
    output: BytesMut,
}

impl AnyAuthority {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, rewriter: Rewriter::default(), input: BytesMut::new(), output: BytesMut::new() }
    }
}

impl Connected for AnyAuthority {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for AnyAuthority {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        const READ_BYTES: usize = 8 << 10;
        let this = self.get_mut();
        while this.output.is_empty() {
            this.input.reserve(READ_BYTES);
            let mut buffer = (&mut this.input).limit(READ_BYTES);
            let read = ready!(tokio_util::io::poll_read_buf(Pin::new(&mut this.stream), context, &mut buffer))?;
            if read == 0 {
                // What is not a whole frame goes on as it is.
                std::mem::swap(&mut this.input, &mut this.output);
                break;
            }
            this.rewriter.rewrite(&mut this.input, &mut this.output);
        }
        let given = this.output.len().min(to.remaining());
        to.put_slice(&this.output.split_to(given));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AnyAuthority {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Finds frames with headers in what a client sends.
#[derive(Debug)]
struct Rewriter {
    /// Bytes that go on as they are.
    pass: usize,
}

impl Default for Rewriter {
    fn default() -> Self {
        Self { pass: PREFACE_BYTES }
    }
}

impl Rewriter {
    /// Moves what is complete from `input` to `output`.
    fn rewrite(&mut self, input: &mut BytesMut, output: &mut BytesMut) {
        loop {
            let passed = self.pass.min(input.len());
            output.unsplit(input.split_to(passed));
            self.pass -= passed;
            let Some(&[high, middle, low, kind, flags, ..]) = input.first_chunk::<FRAME_HEADER_BYTES>() else { return };
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            let whole = FRAME_HEADER_BYTES + length;
            if kind != HEADERS || flags & END_HEADERS == 0 || length > FRAME_BYTES_MAX {
                self.pass = whole;
                continue;
            }
            if input.len() < whole {
                return;
            }
            let frame = input.split_to(whole);
            match rewritten_frame(&frame, flags) {
                Some(rewritten) => output.put_slice(&rewritten),
                None => output.unsplit(frame),
            }
        }
    }
}

/// The frame with another authority; `None` when it has none, or cannot be read.
fn rewritten_frame(frame: &[u8], flags: u8) -> Option<Vec<u8>> {
    let (header, payload) = frame.split_at_checked(FRAME_HEADER_BYTES)?;
    let padding = if flags & PADDED == 0 { 0 } else { usize::from(*payload.first()?) };
    let before = usize::from(flags & PADDED != 0) + if flags & PRIORITY == 0 { 0 } else { 5 };
    let (before, rest) = payload.split_at_checked(before)?;
    let (block, after) = rest.split_at_checked(rest.len().checked_sub(padding)?)?;
    let block = rewritten_block(block)?;
    let length = before.len() + block.len() + after.len();
    let [_, length @ ..] = u32::try_from(length).ok().filter(|_| length <= FRAME_BYTES_MAX)?.to_be_bytes();
    Some([&length, header.get(3..)?, before, &block, after].concat())
}

/// The headers with another authority; `None` when they do not set one, or cannot be read.
fn rewritten_block(block: &[u8]) -> Option<Vec<u8>> {
    let mut rest = block;
    while let Some(&first) = rest.first() {
        let name_bits = match first {
            // a whole entry of a table
            0x80.. => {
                integer(&mut rest, 7)?;
                continue;
            }
            // size of the dynamic table
            0x20..0x40 => {
                integer(&mut rest, 5)?;
                continue;
            }
            0x40..0x80 => 6,
            _ => 4,
        };
        let index = integer(&mut rest, name_bits)?;
        let is_authority = match index {
            0 => matches!(string(&mut rest)?, (false, AUTHORITY) | (true, AUTHORITY_HUFFMAN)),
            index => index == AUTHORITY_INDEX,
        };
        let before_value = block.len() - rest.len();
        let (is_huffman, value) = string(&mut rest)?;
        if is_authority {
            let length = if is_huffman { huffman_symbols(value)? } else { value.len() };
            let mut rewritten = block.get(..before_value)?.to_vec();
            put_string_length(length, &mut rewritten);
            // A host that is allowed everywhere; nobody reads it.
            rewritten.resize(rewritten.len() + length, b'a');
            rewritten.extend_from_slice(rest);
            return (length > 0).then_some(rewritten);
        }
    }
    None
}

/// An integer of HPACK that begins in the last `bits` of a byte.
fn integer(from: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1 << bits) - 1;
    let (first, mut rest) = from.split_first()?;
    let mut value = usize::from(first & mask);
    if value == usize::from(mask) {
        for shift in [0, 7, 14] {
            let (next, after) = rest.split_first()?;
            rest = after;
            value += usize::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                *from = rest;
                return Some(value);
            }
        }
        return None;
    }
    *from = rest;
    Some(value)
}

/// A string of HPACK, and whether it is in the Huffman code.
fn string<'a>(from: &mut &'a [u8]) -> Option<(bool, &'a [u8])> {
    let is_huffman = from.first()? & 0x80 != 0;
    let length = integer(from, 7)?;
    let (string, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some((is_huffman, string))
}

/// Writes the length of a string that is not in the Huffman code.
fn put_string_length(length: usize, to: &mut Vec<u8>) {
    const MASK: usize = 0x7f;
    if length < MASK {
        to.push(length as u8);
        return;
    }
    to.push(MASK as u8);
    let mut rest = length - MASK;
    while rest > MASK {
        to.push((rest & MASK) as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// How many symbols a string in the Huffman code has.
fn huffman_symbols(string: &[u8]) -> Option<usize> {
    let mut symbols = 0;
    let mut bits = string.iter().flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    loop {
        let (mut code, mut first) = (0, 0);
        let mut lengths = HUFFMAN_CODES.iter();
        loop {
            let Some(bit) = bits.next() else { return Some(symbols) };
            code |= bit;
            let codes = lengths.next()?;
            if code - first < *codes {
                break;
            }
            first = (first + codes) << 1;
            code <<= 1;
        }
        symbols += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    /// `www.example.com`, from the examples of RFC 7541.
    const EXAMPLE: &[u8] = &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn rewritten(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut rewriter, mut input, mut output) = (Rewriter::default(), BytesMut::new(), BytesMut::new());
        for piece in pieces {
            input.put_slice(piece);
            rewriter.rewrite(&mut input, &mut output);
        }
        output.put(input);
        output.to_vec()
    }

    #[test]
    fn the_huffman_code_is_complete_and_its_symbols_are_counted() {
        let shares = HUFFMAN_CODES.iter().zip(1..).map(|(codes, bits)| u64::from(*codes) << (30 - bits));
        assert_eq!(shares.sum::<u64>() + 1, 1 << 30);
        assert_eq!(HUFFMAN_CODES.iter().sum::<u32>(), 256);
        assert_eq!(huffman_symbols(EXAMPLE), Some(15));
        assert_eq!(huffman_symbols(AUTHORITY_HUFFMAN), Some(10));
        assert_eq!(huffman_symbols(&[0xff; 4]), None, "the end of the string is no symbol");
    }

    #[test]
    fn the_authority_is_replaced_by_one_of_its_length() {
        let path = b"/run/a.sock";
        let name_indexed = |value: &[u8]| [&[0x86, 0x41, value.len() as u8], value, &[0x84]].concat();
        let named = |value: &[u8]| [&[0x40, 10], AUTHORITY, &[value.len() as u8], value].concat();
        let named_huffman = |value: &[u8]| [&[0x10, 0x88], AUTHORITY_HUFFMAN, &[value.len() as u8], value].concat();
        let expected = &[b'a'; 11];
        assert_eq!(rewritten_block(&name_indexed(path)), Some(name_indexed(expected)));
        assert_eq!(rewritten_block(&named(path)), Some(named(expected)));
        assert_eq!(rewritten_block(&named_huffman(path)), Some(named_huffman(expected)));
        let huffman = [&[0x41, 0x8c], EXAMPLE, &[0x84]].concat();
        assert_eq!(rewritten_block(&huffman), Some([&[0x41, 15], &[b'a'; 15][..], &[0x84]].concat()));
        let long = [&[0x3f, 0x02, 0x41, 0x7f, 0x49], &[b'/'; 200][..]].concat();
        assert_eq!(rewritten_block(&long), Some([&[0x3f, 0x02, 0x41, 0x7f, 0x49], &[b'a'; 200][..]].concat()));
    }

    #[test]
    fn headers_without_an_authority_stay() {
        for block in [
            &b""[..],
            &[0x82, 0x86],
            &[0x04, 1, b'/'],
            &[0x41, 0],
            &[0x41, 5, b'a'],
            &[0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x41],
        ] {
            assert_eq!(rewritten_block(block), None, "{block:?}");
        }
    }

    #[test]
    fn padding_priority_and_other_frames_stay() {
        let headers = |value: &[u8]| {
            let payload = [&[3], &[0, 0, 0, 0, 9][..], &[0x41, 4], value, &[0x84, 0, 0, 0]].concat();
            frame(HEADERS, END_HEADERS | PADDED | PRIORITY, &payload)
        };
        let around = [&frame(4, 0, b"settings")[..], &frame(0, 1, &[0x41; 5000])].concat();
        let sent = [PREFACE, &around, &headers(b"/a/b"), &around].concat();
        let expected = [PREFACE, &around, &headers(b"aaaa"), &around].concat();
        assert_eq!(rewritten(&[&sent]), expected);
        let bytes: Vec<&[u8]> = sent.chunks(1).collect();
        assert_eq!(rewritten(&bytes), expected, "wherever the client's writes are cut");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_depend_on_how_they_are_cut(
            frames in prop::collection::vec((0u8..4, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            noise in prop::collection::vec(any::<u8>(), 0..30),
            cut in 1usize..50,
        ) {
            let frames: Vec<u8> = frames.iter().flat_map(|(kind, flags, payload)| frame(*kind, *flags, payload)).collect();
            let sent = [PREFACE, &frames, &noise].concat();
            let whole = rewritten(&[&sent]);
            prop_assert_eq!(rewritten(&sent.chunks(cut).collect::<Vec<_>>()), whole);
        }
    }
}
