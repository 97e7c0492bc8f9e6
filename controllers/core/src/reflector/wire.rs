//! What of an answer the protocol reads.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) type_: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// Type and object of an event that is written as API servers write it. The end of the line is then the end of the
/// object, which is not read here: should that be wrong, its reader finds out.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let (type_, rest) = line.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    Some((type_, rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Status<'a> {
    pub(super) code: u16,
    #[serde(borrow)]
    pub(super) message: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Bookmark<'a> {
    #[serde(borrow)]
    pub(super) metadata: BookmarkMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookmarkMetadata<'a> {
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) annotations: BookmarkAnnotations<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct BookmarkAnnotations<'a> {
    #[serde(borrow, rename = "k8s.io/initial-events-end", default)]
    pub(super) initial_events_end: Cow<'a, str>,
}
