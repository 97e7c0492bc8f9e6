//! `moved(…)` on a field: it, or a field of it, stood elsewhere in older versions.

use proc_macro2::Span;

use super::version;
use crate::{
    entry::Entry,
    words::{self, change::MOVED},
};

/// A field that stood elsewhere in the struct before `since`.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) span: Span,
    /// The first version that has the field where it stands.
    pub(crate) since: String,
    /// The field of the struct that held it; none where the struct itself did.
    pub(crate) parent: Option<String>,
    /// Its JSON name there.
    pub(crate) name: String,
    /// The field of this field that moved; none where this field did.
    pub(crate) member: Option<String>,
}

impl Move {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        const FROM: &str =
            "`from` names a field, or a field of a field, as in `from = \"replicas\"` or `from = \"scaling.replicas\"`";
        let parts = entry.list()?;
        words::only(&parts, &[&MOVED])?;
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let part = |name: &str| {
            find(name).ok_or_else(|| {
                entry.wrong(&format!(
                    "`moved` needs `{name} = …`, as in `moved(since = \"v1\", from = \"scaling.replicas\")`"
                ))
            })
        };
        let since = version(part("since")?)?;
        let literal = part("from")?.string()?;
        let from = literal.value();
        let steps: Vec<&str> = from.split('.').collect();
        let (parent, name) = match steps.as_slice() {
            [name] if !name.is_empty() => (None, *name),
            [parent, name] if !parent.is_empty() && !name.is_empty() => (Some((*parent).to_owned()), *name),
            _ => return Err(syn::Error::new(literal.span(), FROM)),
        };
        let member = find("member").map(Entry::string).transpose()?.map(|text| text.value());
        if parent.is_none() && member.is_none() {
            let message = format!(
                "the field is in the same object as before, so it was renamed: `renamed(since = \"{since}\", from = \"{from}\")`; a field of another object is named like `from = \"scaling.replicas\"`"
            );
            return Err(syn::Error::new(literal.span(), message));
        }
        Ok(Move { span: entry.span(), since, parent, name: name.to_owned(), member })
    }
}
