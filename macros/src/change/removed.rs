//! `removed(…)` on a struct: a field that older versions had.

use proc_macro2::Span;
use syn::Type;

use super::{rank, version};
use crate::{
    entry::Entry,
    json::Json,
    shape::peel,
    words::{self, change::REMOVED},
};

/// A field that versions before `since` had.
#[derive(Clone, Debug)]
pub(crate) struct Removed {
    pub(crate) span: Span,
    /// The first version without it.
    pub(crate) since: String,
    /// The first version that had it; all older ones without it.
    pub(crate) added: Option<String>,
    /// The JSON name.
    pub(crate) name: String,
    pub(crate) type_: Type,
    /// The value in objects that never had one.
    pub(crate) default: Option<Json>,
    pub(crate) description: Option<String>,
}

impl Removed {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &[&REMOVED])?;
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let part = |name: &str| {
            find(name).ok_or_else(|| {
                entry.wrong(&format!(
                    "`removed` needs `{name} = …`, as in `removed(since = \"v1\", name = \"mode\", type = Option<String>)`"
                ))
            })
        };
        let since = version(part("since")?)?;
        let added = find("added").map(version).transpose()?;
        if let (Some(added), Some(word)) = (&added, find("added"))
            && rank(added) >= rank(&since)
        {
            return Err(
                word.wrong(&format!("a field is added before it is removed, and {added} does not come before {since}"))
            );
        }
        let removed = Removed {
            span: entry.span(),
            since,
            added,
            name: part("name")?.string()?.value(),
            type_: part("type")?.type_()?,
            default: find("default").map(Entry::json).transpose()?,
            description: find("description").map(Entry::string).transpose()?.map(|text| text.value()),
        };
        if removed.default.is_none() && !peel(&removed.type_).optional {
            return Err(entry.wrong(&format!(
                "objects that come from {} and later lack `{}`; make it an `Option`, or say what they have in it, as in `default = \"Slow\"`",
                removed.since, removed.name
            )));
        }
        Ok(removed)
    }

    /// Whether the versions just before `version` have it.
    pub(crate) fn is_before(&self, version: &str) -> bool {
        rank(version) <= rank(&self.since) && self.added.as_ref().is_none_or(|added| rank(added) < rank(version))
    }
}
