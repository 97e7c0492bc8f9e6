//! An RFC 6902 patch, written as it will be sent.

use std::{borrow::Cow, fmt};

use koord_schema::field::Path;
use serde::Serialize;
use serde_json::Value;

/// An RFC 6902 patch as JSON text, grown operation by operation.
///
/// A patch is only ever sent, so it is kept as text: adding an operation costs no allocation but the text's growth.
///
/// ```
/// use koord_resource::{admission::Patch, field::Path};
/// let (metadata, mut patch) = (Path::root("metadata"), Patch::default());
/// patch.add(&metadata.child("labels").key("a/b"), "c")?;
/// assert_eq!(patch.as_str(), r#"[{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// Empty, or an array with at least one operation.
    text: Vec<u8>,
}

impl Patch {
    /// Whether the object stays as it is.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The patch as a JSON array; nothing when it is empty.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The patch as a JSON array; the empty text when it is empty.
    pub fn as_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// Adds a value, or replaces the value that is there.
    pub fn add<T: Serialize + ?Sized>(&mut self, at: &Path<'_>, value: &T) -> Result<(), serde_json::Error> {
        self.operation("add", at, Some(value))
    }

    /// Replaces a value that is there.
    pub fn replace<T: Serialize + ?Sized>(&mut self, at: &Path<'_>, value: &T) -> Result<(), serde_json::Error> {
        self.operation("replace", at, Some(value))
    }

    /// Removes a value that is there.
    pub fn remove(&mut self, at: &Path<'_>) -> Result<(), serde_json::Error> {
        self.operation::<()>("remove", at, None)
    }

    /// What turns `before` into `after`. The documents as a whole must both be objects or both be lists.
    pub fn between(before: &Value, after: &Value) -> Result<Self, serde_json::Error> {
        let mut patch = Self::default();
        patch.differences(&Path::root(""), before, after)?;
        Ok(patch)
    }

    /// Adds what turns `before`, which stands at this place, into `after`. Lists are compared item by item; what one has
    /// more stands at its end.
    pub fn differences(&mut self, at: &Path<'_>, before: &Value, after: &Value) -> Result<(), serde_json::Error> {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for name in before.keys().filter(|name| !after.contains_key(*name)) {
                    self.remove(&at.key(name))?;
                }
                for (name, after) in after {
                    match before.get(name) {
                        Some(before) => self.differences(&at.key(name), before, after)?,
                        None => self.add(&at.key(name), after)?,
                    }
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    self.differences(&at.index(index), before, after)?;
                }
                for index in (after.len()..before.len()).rev() {
                    self.remove(&at.index(index))?;
                }
                for (index, item) in after.iter().enumerate().skip(before.len()) {
                    self.add(&at.index(index), item)?;
                }
            }
            (before, after) if before == after => {}
            (_, after) => self.replace(at, after)?,
        }
        Ok(())
    }

    fn operation<T: Serialize + ?Sized>(
        &mut self,
        verb: &str,
        at: &Path<'_>,
        value: Option<&T>,
    ) -> Result<(), serde_json::Error> {
        // The bracket that closes the array makes room for one more operation.
        let before = self.text.len();
        if let Some(bracket) = self.text.last_mut() {
            *bracket = b',';
        } else {
            self.text.reserve(TYPICAL_BYTES);
            self.text.push(b'[');
        }
        let written = write_operation(&mut self.text, verb, at, value);
        match (&written, before) {
            (Err(_), 0) => self.text.clear(),
            (Err(_), before) => {
                self.text.truncate(before - 1);
                self.text.push(b']');
            }
            (Ok(()), _) => self.text.push(b']'),
        }
        written
    }
}

/// Enough for most patches, so that the text is allocated once.
const TYPICAL_BYTES: usize = 1024;

fn write_operation<T: Serialize + ?Sized>(
    text: &mut Vec<u8>,
    verb: &str,
    at: &Path<'_>,
    value: Option<&T>,
) -> Result<(), serde_json::Error> {
    text.extend_from_slice(br#"{"op":""#);
    text.extend_from_slice(verb.as_bytes());
    text.extend_from_slice(br#"","path":""#);
    at.write_pointer(&mut InsideQuotes(text)).map_err(serde::ser::Error::custom)?;
    text.push(b'"');
    if let Some(value) = value {
        text.extend_from_slice(br#","value":"#);
        serde_json::to_writer(&mut *text, value)?;
    }
    text.push(b'}');
    Ok(())
}

/// Escapes what stands between the quotes of a JSON string: a label's key may hold anything until it is validated.
struct InsideQuotes<'a>(&'a mut Vec<u8>);

impl fmt::Write for InsideQuotes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', byte]),
                0..0x20 => self.0.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.0.push(byte),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_joined_and_every_key_is_escaped() {
        let labels = Path::root("metadata");
        let labels = labels.child("labels");
        let mut patch = Patch::default();
        assert!(patch.is_empty());
        patch.add(&labels.key("a/b~\"\n"), "x").unwrap();
        patch.remove(&labels.index(3)).unwrap();
        patch.replace(&labels, &json!({})).unwrap();
        let read: Value = serde_json::from_slice(patch.as_bytes()).unwrap();
        assert_eq!(
            read,
            json!([
                {"op": "add", "path": "/metadata/labels/a~1b~0\"\n", "value": "x"},
                {"op": "remove", "path": "/metadata/labels/3"},
                {"op": "replace", "path": "/metadata/labels", "value": {}},
            ])
        );
    }

    #[test]
    fn a_value_that_cannot_be_written_leaves_the_patch_as_it_was() {
        let mut patch = Patch::default();
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(patch.add(&Path::root("a"), &unwritable).is_err());
        assert!(patch.is_empty());
        patch.add(&Path::root("a"), &1).unwrap();
        assert!(patch.add(&Path::root("b"), &unwritable).is_err());
        assert_eq!(patch.as_str(), r#"[{"op":"add","path":"/a","value":1}]"#);
    }

    #[test]
    fn what_is_between_two_documents_turns_one_into_the_other() {
        let before = json!({"a": 1, "gone": {}, "list": [1, {"x": 1, "y": [2]}, 3], "short": [1], "b/~": {"c": null}});
        let after = json!({"a": 2, "new": [], "list": [1, {"x": 1}], "short": [1, 2, 3], "b/~": {"c": {"d": 1}}});
        for (before, after) in [(&before, &after), (&after, &before)] {
            let patch = Patch::between(before, after).unwrap();
            let operations = serde_json::from_slice(patch.as_bytes()).unwrap();
            assert_eq!(&koord_schema::patch::json::apply(before.clone(), &operations).unwrap(), after, "{patch:?}");
        }
        assert!(Patch::between(&before, &before.clone()).unwrap().is_empty());
        assert_eq!(
            Patch::between(&json!({"a": 1}), &json!({"a": 2})).unwrap().as_str(),
            r#"[{"op":"replace","path":"/a","value":2}]"#
        );
    }
}
