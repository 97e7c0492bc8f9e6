//! Messages of netlink: a header, and attributes that may hold others.

/// The header that every message has: length, type, flags, sequence number, sender.
pub(super) const HEADER: usize = 16;
const NESTED: u16 = 1 << 15;
/// The two highest bits of an attribute's type are flags.
const TYPE_MASK: u16 = 0x3fff;

/// A message that is being written.
#[derive(Clone, Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message with the header of its family.
    pub(super) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        set(&mut bytes, 4, &kind.to_ne_bytes());
        set(&mut bytes, 6, &flags.to_ne_bytes());
        bytes.extend_from_slice(header);
        Self { bytes }
    }

    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.begin(kind, value.len());
        self.bytes.extend_from_slice(value);
        self.pad();
        self
    }

    pub(super) fn text(self, kind: u16, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value)
    }

    /// A number in the byte order of the network.
    pub(super) fn big_endian(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    pub(super) fn nested(mut self, kind: u16, write: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.begin(kind | NESTED, 0);
        let mut written = write(self);
        let length = written.bytes.len() - start;
        // Callers keep nested attributes far below this limit.
        set(&mut written.bytes, start, &u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
        written
    }

    fn begin(&mut self, kind: u16, length: usize) {
        let length = u16::try_from(length + 4).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The bytes with this sequence number.
    pub(super) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        set(&mut self.bytes, 0, &length.to_ne_bytes());
        set(&mut self.bytes, 8, &sequence.to_ne_bytes());
        self.bytes
    }
}

fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    pub(super) kind: u16,
    pub(super) sequence: u32,
    pub(super) payload: &'a [u8],
}

/// The messages of a datagram; it ends at the first that is malformed.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Received<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let payload = bytes.get(HEADER..length)?;
        let kind = u16_at(bytes, 4)?;
        let sequence = u32_at(bytes, 8)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Received { kind, sequence, payload })
    })
}

/// The value of an attribute; `None` where there is none.
pub(super) fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(4..length)?;
        if u16_at(bytes, 2)? & TYPE_MASK == kind {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let message = Message::new(36, 5, &[7; 20])
            .text(1, "htb")
            .nested(2, |options| options.attribute(1, &[1, 2, 3]).big_endian(2, 9));
        let bytes = message.finish(4);
        let all: Vec<_> = messages(&bytes).collect();
        let [received] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((received.kind, received.sequence), (36, 4));
        let attributes = &received.payload[20..];
        assert_eq!(attribute(attributes, 1), Some(&b"htb\0"[..]));
        let options = attribute(attributes, 2).unwrap();
        assert_eq!(attribute(options, 1), Some(&[1, 2, 3][..]));
        assert_eq!(attribute(options, 2), Some(&[0, 0, 0, 9][..]));
        assert_eq!(attribute(options, 3), None);
    }

    #[test]
    fn malformed_messages_end_the_datagram() {
        for bytes in [&[][..], &[255; 40], &[0; 40], &[20, 0, 0, 0]] {
            assert_eq!(messages(bytes).take(100).count(), 0, "{bytes:?}");
            assert_eq!(attribute(bytes, 1), None, "{bytes:?}");
        }
    }
}
