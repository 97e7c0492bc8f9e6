//! Typed access to labels and annotations, by which Koordinator's components speak to each other and to users.
//!
//! A [`Key`] knows the name of one label or annotation, the type of its value, and the advice for a user whose value is invalid.
//! Keys work on plain maps, so that whole objects and projections of them are read alike:
//!
//! ```
//! use std::collections::BTreeMap;
//! use koord_types::node_annotations::CPU_NORMALIZATION_RATIO;
//!
//! let mut annotations = BTreeMap::new();
//! assert_eq!(CPU_NORMALIZATION_RATIO.get(&annotations)?, None);
//! annotations.insert(CPU_NORMALIZATION_RATIO.name().to_owned(), "fast".to_owned());
//! let error = CPU_NORMALIZATION_RATIO.get(&annotations).unwrap_err();
//! assert!(error.to_string().contains("expected a number above 0"));
//! # Ok::<(), koord_types::protocol::ProtocolError>(())
//! ```

mod names;

use std::{collections::BTreeMap, marker::PhantomData};

use koord_resource::{Duration, Quantity, ResourceList, go_json};
use serde::{Serialize, de::DeserializeOwned};

use crate::go_text;

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// A value that a label or annotation holds as text.
pub trait Text: Sized {
    /// Reads the text; the error says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;

    /// The text, as the original writes it.
    fn write(&self) -> String;
}

/// One label or annotation.
pub struct Key<T> {
    name: &'static str,
    expected: &'static str,
    value: PhantomData<fn() -> T>,
}

/// A label or annotation whose text makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {value:?} is wrong: {reason}; expected {expected}")]
pub struct ProtocolError {
    /// Name of the label or annotation.
    pub key: &'static str,
    /// What stands there.
    pub value: String,
    /// What is wrong with it, in the original's words where clients see them.
    pub reason: String,
    /// What would be right.
    pub expected: &'static str,
}

impl<T: Text> Key<T> {
    /// A key with the description of its values for users: a noun phrase such as "an integer".
    pub const fn new(name: &'static str, expected: &'static str) -> Self {
        Self { name, expected, value: PhantomData }
    }

    /// The label's or annotation's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What its values are: a noun phrase for users.
    pub const fn expected(&self) -> &'static str {
        self.expected
    }

    /// The value; none where there is no such key.
    pub fn get(&self, map: &Labels) -> Result<Option<T>, ProtocolError> {
        map.get(self.name).map(|text| self.read(text)).transpose()
    }

    /// Reads a text that stands under this key.
    pub fn read(&self, text: &str) -> Result<T, ProtocolError> {
        T::read(text).map_err(|reason| self.wrong(text, reason))
    }

    /// That a text under this key makes no sense, for a reason that shows in more than its form.
    pub fn wrong(&self, text: &str, reason: String) -> ProtocolError {
        ProtocolError { key: self.name, value: text.to_owned(), reason, expected: self.expected }
    }

    /// Writes the value; returns whether that changed the text.
    pub fn set(&self, map: &mut Labels, value: &T) -> bool {
        let text = value.write();
        match map.get_mut(self.name) {
            Some(old) if *old == text => false,
            Some(old) => {
                *old = text;
                true
            }
            None => {
                map.insert(self.name.to_owned(), text);
                true
            }
        }
    }

    /// Takes the key away; returns whether it was there.
    pub fn remove(&self, map: &mut Labels) -> bool {
        map.remove(self.name).is_some()
    }

    /// Whether the key is there, whatever it says.
    pub fn is_present(&self, map: &Labels) -> bool {
        map.contains_key(self.name)
    }
}

/// A label or annotation that is set when it says exactly `true`.
#[derive(Clone, Copy, Debug)]
pub struct Flag(&'static str);

impl Flag {
    /// The flag of this name.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The label's or annotation's name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Whether it says `true`. Anything else, and nothing, is false.
    pub fn is_set(self, map: &Labels) -> bool {
        map.get(self.0).is_some_and(|text| text == "true")
    }

    /// Whether it says `false`. Anything else, and nothing, is not.
    pub fn is_denied(self, map: &Labels) -> bool {
        map.get(self.0).is_some_and(|text| text == "false")
    }

    /// Sets it to `true`, or takes it away.
    pub fn set(self, map: &mut Labels, value: bool) {
        if value {
            map.insert(self.0.to_owned(), "true".to_owned());
        } else {
            map.remove(self.0);
        }
    }
}

// === impl Text ===

impl Text for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn write(&self) -> String {
        self.clone()
    }
}

impl Text for bool {
    fn read(text: &str) -> Result<Self, String> {
        go_text::parse_bool(text).ok_or_else(|| format!("strconv.ParseBool: parsing {text:?}: invalid syntax"))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// Decimal integers with an optional sign.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Text for $type {
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                        format!("strconv.ParseInt: parsing {text:?}: value out of range")
                    }
                    _ => format!("strconv.ParseInt: parsing {text:?}: invalid syntax"),
                })
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

integers!(i32, i64);

impl Text for Duration {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: koord_resource::duration::ParseDurationError| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for Quantity {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: koord_resource::quantity::ParseQuantityError| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A JSON value that a key holds: declares [`Text`] by Go's rules for JSON.
macro_rules! json_texts {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::protocol::Text for $type {
            fn read(text: &str) -> Result<Self, String> {
                $crate::protocol::read_json(text)
            }

            fn write(&self) -> String {
                $crate::protocol::write_json(self)
            }
        }
    )*};
}

pub(crate) use json_texts;

json_texts!(ResourceList, Vec<String>, BTreeMap<String, i64>);

/// A word of a fixed list: declares [`Text`]; words that are not known are kept.
macro_rules! word_texts {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::protocol::Text for $type {
            fn read(text: &str) -> Result<Self, String> {
                Ok(Self::from(text))
            }

            fn write(&self) -> String {
                self.as_str().to_owned()
            }
        }
    )*};
}

pub(crate) use word_texts;

pub(crate) fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    go_json::from_str_named(text, &names::NAMES).map_err(|error| error.to_string())
}

/// Values of the protocol always have JSON; should one not, its annotation says `null`, which reads as unset.
pub(crate) fn write_json<T: Serialize>(value: &T) -> String {
    go_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The machinery of the property tests: what every key must do with any text and any value.
#[cfg(test)]
pub(crate) mod laws {
    use std::fmt::Debug;

    use proptest::{
        prelude::{Strategy, any},
        prop_assert, prop_assert_eq, prop_oneof,
        test_runner::{Config, TestRunner},
    };

    use super::{Key, Labels, Text};

    /// Texts that look like what users write: JSON, near-JSON, numbers, and any characters.
    pub(crate) fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            r#"[\[{"a-zA-Z:,0-9.\]} ]{0,24}"#,
            "[-+]?[0-9_xob]{0,12}(\\.[0-9]{0,3})?([eE][0-9]{1,3})?",
            r#"\{"[a-zA-Z]{1,12}":("[a-z0-9]{0,6}"|-?[0-9]{1,6}|null|true|\[\]|\{\})\}"#,
        ]
    }

    /// Any text is read or refused with the key's name; what was read is written and read again unchanged.
    #[track_caller]
    pub(crate) fn reads_any_text<T: Text + Debug + PartialEq>(key: &Key<T>) {
        let mut runner = TestRunner::new(Config::with_cases(256));
        let outcome = runner.run(&texts(), |text| {
            let map = Labels::from([(key.name().to_owned(), text.clone())]);
            match key.get(&map) {
                Ok(Some(value)) => {
                    let mut again = Labels::new();
                    prop_assert!(key.set(&mut again, &value));
                    prop_assert_eq!(key.get(&again), Ok(Some(value)));
                }
                Ok(None) => return Err(proptest::test_runner::TestCaseError::fail("the key was there")),
                Err(error) => {
                    prop_assert!(error.to_string().starts_with(key.name()));
                    prop_assert_eq!(error.value, text);
                }
            }
            Ok(())
        });
        outcome.unwrap();
    }

    /// Any value is written and read again unchanged, and writing it again changes nothing.
    #[track_caller]
    pub(crate) fn keeps_values<T: Text + Debug + PartialEq>(key: &Key<T>, values: impl Strategy<Value = T>) {
        let mut runner = TestRunner::new(Config::with_cases(128));
        let outcome = runner.run(&values, |value| {
            let mut map = Labels::new();
            key.set(&mut map, &value);
            let again = key.get(&map).unwrap().unwrap();
            prop_assert_eq!(&again, &value);
            prop_assert!(!key.set(&mut map, &again));
            Ok(())
        });
        outcome.unwrap();
    }

    /// The text that a value has.
    #[track_caller]
    pub(crate) fn written<T: Text>(key: &Key<T>, value: &T) -> String {
        let mut map = Labels::new();
        key.set(&mut map, value);
        map.remove(key.name()).unwrap()
    }

    /// The value of a text, or the reason why it has none.
    pub(crate) fn read<T: Text>(key: &Key<T>, text: &str) -> Result<T, String> {
        key.read(text).map_err(|error| error.reason)
    }
}
