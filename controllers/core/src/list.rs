//! A page of a collection, as API servers write it.
//!
//! Go writes a list that has no element as `[]`, as `null`, or not at all, and which of them depends on how the answer was made: a
//! collection asked for as PartialObjectMetadataList has `"items":null` when it is empty. All three are the same page here. Whoever
//! reads a page decodes it with this type.

use serde::{Deserialize, Deserializer};

/// A page of a collection: its metadata, and the objects as the caller reads them (`&RawValue` keeps their text).
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Page<T> {
    /// What the server says of the collection.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: PageMetadata,
    /// The objects of this page.
    #[serde(default = "Vec::new", deserialize_with = "null_is_default")]
    pub items: Vec<T>,
}

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PageMetadata {
    /// The revision of the collection; empty where the server names none.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_version: String,
    /// Asks for the next page; empty on the last one.
    #[serde(rename = "continue", deserialize_with = "null_is_default")]
    pub token: String,
    /// How many objects the pages after this one have, where the server knows it.
    #[serde(deserialize_with = "null_is_default")]
    pub remaining_item_count: usize,
}

impl<'de, T: Deserialize<'de>> Page<T> {
    /// Decodes an answer to a list.
    pub fn parse(text: &'de str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn an_empty_page_may_be_written_in_any_way() {
        let empty = Page {
            metadata: PageMetadata { resource_version: "7".to_owned(), ..PageMetadata::default() },
            items: vec![],
        };
        for written in [
            r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":null}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#,
            r#"{"metadata":{"resourceVersion":"7"}}"#,
            r#"{"items":null,"metadata":{"resourceVersion":"7","continue":null,"remainingItemCount":null}}"#,
        ] {
            assert_eq!(Page::<String>::parse(written).unwrap(), empty, "{written}");
        }
        for written in ["{}", r#"{"metadata":null,"items":null}"#] {
            assert_eq!(Page::<String>::parse(written).unwrap().metadata, PageMetadata::default(), "{written}");
        }
    }

    #[test]
    fn objects_keep_their_text_and_what_is_no_list_is_refused() {
        let text =
            r#"{"metadata":{"resourceVersion":"9","continue":"a\u003d","remainingItemCount":3},"items":[{"a":1}]}"#;
        let page = Page::<&RawValue>::parse(text).unwrap();
        assert_eq!(page.items[0].get(), r#"{"a":1}"#);
        assert_eq!((page.metadata.token.as_str(), page.metadata.remaining_item_count), ("a=", 3));
        for wrong in ["<html>", r#"{"items":{}}"#, r#"{"items":[],"metadata":{"resourceVersion":7}}"#] {
            assert!(Page::<&RawValue>::parse(wrong).is_err(), "{wrong}");
        }
    }
}
