//! Labels and annotations: read in place, changed, and written back as patch operations.

use std::{borrow::Cow, fmt};

use koord_resource::{
    admission::{Patch, text},
    field::Path,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

/// A map of texts.
#[derive(Clone, Debug, Default)]
pub struct Texts<'a> {
    entries: Vec<Entry<'a>>,
    /// Whether the object has the map at all.
    exists: bool,
}

#[derive(Clone, Debug)]
struct Entry<'a> {
    key: Cow<'a, str>,
    value: Cow<'a, str>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Kept,
    Changed,
    Added,
    /// Only its key is left, because the object still has it.
    Removed,
}

impl<'a> Texts<'a> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.present().find(|entry| entry.key == key).map(|entry| entry.value.as_ref())
    }

    /// All pairs, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.present().map(|entry| (entry.key.as_ref(), entry.value.as_ref()))
    }

    fn present(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|entry| entry.state != State::Removed)
    }

    /// Whether both say the same, in whatever order.
    pub fn same(&self, other: &Texts<'_>) -> bool {
        self.present().count() == other.present().count()
            && self.present().all(|entry| other.get(&entry.key) == Some(entry.value.as_ref()))
    }

    /// Sets a value; nothing is changed when it is there already.
    pub fn set(&mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) if entry.value == value && entry.state != State::Removed => {}
            Some(entry) => {
                entry.value = value;
                if entry.state != State::Added {
                    entry.state = State::Changed;
                }
            }
            None => self.entries.push(Entry { key, value, state: State::Added }),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        let Some(at) = self.entries.iter().position(|entry| entry.key == key) else { return };
        if self.entries.get(at).is_some_and(|entry| entry.state == State::Added) {
            self.entries.remove(at);
        } else if let Some(entry) = self.entries.get_mut(at) {
            entry.state = State::Removed;
        }
    }

    /// Appends to a value that is there.
    pub fn append(&mut self, key: &str, suffix: &str) {
        if suffix.is_empty() {
            return;
        }
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key && entry.state != State::Removed) {
            entry.value.to_mut().push_str(suffix);
            if entry.state == State::Kept {
                entry.state = State::Changed;
            }
        }
    }

    /// Copies a value to another key; a missing one is copied as the empty text. QUIRK, kept as recorded
    /// (`label-keys-mapping-missing-clears`).
    pub fn copy(&mut self, from: &str, to: &'a str) {
        let value = self.present().find(|entry| entry.key == from).map(|entry| entry.value.clone());
        self.set(to, value.unwrap_or_default());
    }

    /// Writes what has changed.
    pub fn write(&self, at: &Path<'_>, patch: &mut Patch) -> Result<(), serde_json::Error> {
        if !self.exists {
            return if self.entries.is_empty() { Ok(()) } else { patch.add(at, self) };
        }
        for entry in &self.entries {
            let at = at.key(&entry.key);
            match entry.state {
                State::Kept => {}
                State::Changed => patch.replace(&at, &entry.value)?,
                State::Added => patch.add(&at, &entry.value)?,
                State::Removed => patch.remove(&at)?,
            }
        }
        Ok(())
    }

    /// Whether nothing would be written.
    pub fn unchanged(&self) -> bool {
        self.entries.iter().all(|entry| entry.state == State::Kept)
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for entry in self.present() {
            map.serialize_entry(&entry.key, &entry.value)?;
        }
        map.end()
    }
}

/// A text that borrows where it can.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow, deserialize_with = "text")] pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Texts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Texts::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut texts = Texts { entries: Vec::with_capacity(8), exists: true };
                while let Some((Text(key), Text(value))) = map.next_entry()? {
                    texts.entries.push(Entry { key, value, state: State::Kept });
                }
                Ok(texts)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(texts: &Texts<'_>) -> String {
        let mut patch = Patch::default();
        texts.write(&Path::root("labels"), &mut patch).unwrap();
        patch.as_str().into_owned()
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut texts: Texts<'_> = serde_json::from_str(r#"{"a":"1","b":"2","c/d":"3"}"#).unwrap();
        texts.set("a", "1");
        assert!(texts.unchanged());
        texts.append("c/d", "-x");
        texts.append("missing", "-x");
        texts.copy("missing", "b");
        texts.set("n", "new");
        assert_eq!(
            patch(&texts),
            r#"[{"op":"replace","path":"/labels/b","value":""},{"op":"replace","path":"/labels/c~1d","value":"3-x"},{"op":"add","path":"/labels/n","value":"new"}]"#
        );
    }

    #[test]
    fn what_is_removed_is_gone_until_it_is_set_again() {
        let mut texts: Texts<'_> = serde_json::from_str(r#"{"a":"1","b":"2"}"#).unwrap();
        for key in ["a", "b", "missing"] {
            texts.remove(key);
        }
        texts.append("a", "-x");
        assert_eq!((texts.get("a"), texts.iter().count(), texts.unchanged()), (None, 0, false));
        texts.copy("a", "c");
        texts.set("b", "2");
        texts.set("n", "new");
        texts.remove("n");
        let mut same: Texts<'_> = serde_json::from_str(r#"{"b":"2"}"#).unwrap();
        same.set("c", "");
        assert!(texts.same(&same) && same.same(&texts));
        assert_eq!(
            patch(&texts),
            r#"[{"op":"remove","path":"/labels/a"},{"op":"replace","path":"/labels/b","value":"2"},{"op":"add","path":"/labels/c","value":""}]"#
        );
    }

    #[test]
    fn a_map_that_is_not_there_is_added_whole() {
        let mut texts: Texts<'_> = serde_json::from_str("null").unwrap();
        assert_eq!(patch(&texts), "");
        texts.set("a", "1");
        assert_eq!(patch(&texts), r#"[{"op":"add","path":"/labels","value":{"a":"1"}}]"#);
    }
}
