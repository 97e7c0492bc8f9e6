//! Lines out of the frames in which a connection brings them.

use bytes::Bytes;

/// Cuts frames into lines. A line that lies within one frame is not copied, and between frames nothing is held but
/// what has come of a line.
#[derive(Default)]
pub(crate) struct Lines {
    /// What has not been handed out.
    frame: Bytes,
    /// The line handed out last, where it lay within one frame.
    line: Bytes,
    /// A line whose end is to come, or that was handed out last.
    joined: Vec<u8>,
    /// Whether the line handed out last is the joined one.
    is_joined: bool,
}

impl Lines {
    /// So much room for joined lines is kept.
    const ROOM_MAX: usize = 64 << 10;

    /// Goes to the next line; otherwise another frame is needed.
    pub(crate) fn advance(&mut self) -> bool {
        self.line = Bytes::new();
        if std::mem::take(&mut self.is_joined) {
            self.joined.clear();
            self.joined.shrink_to(Self::ROOM_MAX);
        }
        let Some(end) = memchr::memchr(b'\n', &self.frame) else {
            self.joined.extend_from_slice(&std::mem::take(&mut self.frame));
            return false;
        };
        let mut line = self.frame.split_to(end + 1);
        line.truncate(end);
        if self.joined.is_empty() {
            self.line = line;
        } else {
            self.joined.extend_from_slice(&line);
            self.is_joined = true;
        }
        true
    }

    /// The line that was gone to.
    pub(crate) fn line(&self) -> &[u8] {
        if self.is_joined { &self.joined } else { &self.line }
    }

    /// Brings the frame that [`Lines::advance`] asked for.
    pub(crate) fn put(&mut self, frame: Bytes) {
        self.frame = frame;
    }

    /// What has come of a line whose end is to come.
    pub(crate) fn begun(&self) -> &[u8] {
        &self.joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_wherever_frames_end() {
        let text = "one\n\nthree is longer\nx\nopen";
        for size in 1..=text.len() {
            let (mut lines, mut cut) = (Lines::default(), Vec::new());
            for frame in text.as_bytes().chunks(size) {
                lines.put(Bytes::copy_from_slice(frame));
                while lines.advance() {
                    cut.push(String::from_utf8(lines.line().to_vec()).unwrap());
                }
            }
            assert_eq!(cut, ["one", "", "three is longer", "x"], "frames of {size} bytes");
            assert_eq!(lines.begun(), b"open");
        }
    }

    #[test]
    fn the_room_of_a_long_line_is_given_back() {
        let mut lines = Lines::default();
        for frame in [vec![b'x'; 1 << 20], b"\n".to_vec()] {
            lines.put(Bytes::from(frame));
            while lines.advance() {
                assert_eq!(lines.line().len(), 1 << 20);
            }
        }
        assert!(lines.begun().is_empty() && lines.joined.capacity() <= Lines::ROOM_MAX);
    }
}
