//! The uid of an object, which a later one of the same name does not have.

use std::fmt;

use serde::{Serialize, Serializer};

/// An object's `metadata.uid`. API servers hand out UUIDs, which are kept as the 16 bytes that they are: a cache holds
/// one for every object of a cluster. Any other text is kept as it is.
///
/// Maps by uid are searched with every pod that comes: two UUIDs are compared as two numbers, in the order of their texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    /// The first and the last eight bytes.
    Uuid(u64, u64),
    Text(Box<str>),
}

impl Uid {
    /// Whether there is none, as in an object that no API server has stored.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Text(text) if text.is_empty())
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| Form::Text(text.into()), |(first, last)| Form::Uuid(first, last)))
    }
}

/// The numbers of a UUID that is written the one way in which [`Uid`] writes it: in small letters, with four hyphens.
fn uuid(text: &str) -> Option<(u64, u64)> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut rest = <&[u8; 36]>::try_from(text.as_bytes()).ok()?.as_slice();
    let mut number = 0_u128;
    for at in 0..16 {
        if has_hyphen_before(at) {
            rest = rest.strip_prefix(b"-")?;
        }
        let [high, low, after @ ..] = rest else { return None };
        (number, rest) = (number << 8 | u128::from(digit(*high)? << 4 | digit(*low)?), after);
    }
    Some(((number >> 64) as u64, number as u64))
}

fn bytes(first: u64, last: u64) -> impl Iterator<Item = u8> {
    first.to_be_bytes().into_iter().chain(last.to_be_bytes())
}

fn has_hyphen_before(byte: usize) -> bool {
    matches!(byte, 4 | 6 | 8 | 10)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => f.write_str(text),
            Form::Uuid(first, last) => bytes(*first, *last).enumerate().try_for_each(|(at, byte)| {
                let hyphen = if has_hyphen_before(at) { "-" } else { "" };
                write!(f, "{hyphen}{byte:02x}")
            }),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text that [`fmt::Display`] shows.
impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was() {
        let uuid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        let others = ["", "u", "0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"];
        let almost = ["0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fg", "0a1b2c3d-4e5f-60718-293-a4b5c6d7e8f9"];
        for text in [uuid].into_iter().chain(others).chain(almost) {
            let uid = Uid::from(text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(serde_json::json!(uid), text);
            assert_eq!(matches!(uid.0, Form::Uuid(..)), text == uuid, "{text}");
        }
        assert!(Uid::default().is_empty() && !Uid::from(uuid).is_empty());
        assert_ne!(Uid::from(uuid), Uid::from("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f8"));
    }

    #[test]
    fn the_order_is_that_of_the_texts() {
        let texts = [
            "0a1b2c3d-4e5f-6071-0293-a4b5c6d7e8f9",
            "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f8",
            "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
            "0a1b2c3d-4e5f-f071-0000-000000000000",
            "fa1b2c3d-0000-0000-0000-000000000000",
        ];
        let uids = texts.map(Uid::from);
        assert!(uids.is_sorted() && uids.iter().all(|uid| matches!(uid.0, Form::Uuid(..))));
    }
}
