//! Words: fields that hold one of a few texts, without losing a text that a newer version brought.

use std::fmt;

/// A field that holds one of a few texts.
pub trait Word: fmt::Debug + Clone {
    /// The text on the wire.
    fn as_str(&self) -> &str;

    /// Go writes the empty text where nothing is set.
    fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

/// For `skip_serializing_if`: an unset word and an empty one are the same, and neither is written.
pub fn is_unset<W: Word>(word: &Option<W>) -> bool {
    word.as_ref().is_none_or(Word::is_empty)
}

/// For `skip_serializing_if`: Go leaves a zero out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Declares an enum of texts with a variant `Other` for texts that it does not know.
///
/// `enum Name { … }` lists what the schema allows; `open enum Name { … }` leaves the schema a plain text.
macro_rules! words {
    ($(#[$doc:meta])* $visibility:vis enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        words!(@type $(#[$doc])* $visibility $name { $($(#[$variant_doc])* $variant = $text,)* });

        impl koord_resource::Schema for $name {
            const SHAPE: koord_resource::declare::Shape = koord_resource::declare::Shape::String;

            fn schema(_: koord_resource::declare::Emit) -> koord_resource::schema::Schema {
                koord_resource::declare::choice("", Self::TEXTS)
            }
        }

        impl koord_resource::Validate for $name {
            fn validate_schema(
                &self,
                at: &koord_resource::field::Path<'_>,
                errors: &mut koord_resource::field::Errors,
            ) {
                if let Self::Other(text) = self {
                    errors.not_supported(at, text, Self::TEXTS);
                }
            }
        }
    };
    ($(#[$doc:meta])* $visibility:vis open enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        words!(@type $(#[$doc])* $visibility $name { $($(#[$variant_doc])* $variant = $text,)* });

        impl koord_resource::Schema for $name {
            const SHAPE: koord_resource::declare::Shape = koord_resource::declare::Shape::String;

            fn schema(_: koord_resource::declare::Emit) -> koord_resource::schema::Schema {
                koord_resource::declare::text("")
            }
        }

        impl koord_resource::Validate for $name {}
    };
    (@type $(#[$doc:meta])* $visibility:vis $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A text that this version does not know.
            Other(String),
        }

        impl $name {
            /// The known texts.
            pub const TEXTS: &'static [&'static str] = &[$($text),*];

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }

            /// The variant for a text, if it is a known one.
            pub fn known(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl koord_resource::Mutate for $name {}

        impl $crate::word::Word for $name {
            fn as_str(&self) -> &str {
                self.as_str()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::known(text).unwrap_or_else(|| Self::Other(text.to_owned()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro makes methods public, and an example in a test is not")]
mod tests {
    words! {
        /// An example.
        pub enum Side {
            /// One.
            Left = "left",
            /// The other.
            Right = "right",
        }
    }

    #[test]
    fn unknown_words_survive() {
        for json in [r#""left""#, r#""right""#, r#""up""#, r#""""#] {
            let side: Side = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&side).unwrap(), json);
        }
        assert_eq!(Side::from("left"), Side::Left);
        assert_eq!(Side::known("up"), None);
        assert!(serde_json::from_str::<Side>("5").is_err());
    }
}
