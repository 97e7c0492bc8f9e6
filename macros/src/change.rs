//! `added`, `renamed`, `changed`, `moved` and `removed`: how fields differ in older versions of their kind, as the attributes
//! say it; and `since` and `until` of what only some versions have.

mod moved;
mod removed;
mod versions;

pub(crate) use moved::Move;
pub(crate) use removed::Removed;
use syn::{Path, Type};
pub(crate) use versions::Versions;

use crate::{
    entry::Entry,
    words::{
        self, Table,
        change::{ADDED, CHANGED, RENAMED},
    },
};

/// One difference between a field and its form in versions before `since`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The first version that has the field as it is declared.
    pub(crate) since: String,
    pub(crate) kind: ChangeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ChangeKind {
    /// The field did not exist.
    Added,
    /// The field had another JSON name.
    Renamed { from: String },
    /// The field had another type; two functions translate.
    Changed { from: Box<Type>, up: Path, down: Path },
    /// The field stood in another object.
    Moved,
}

impl Change {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        let word = entry.name();
        let parts = entry.list()?;
        let known: &Table = match word.as_str() {
            "added" => &ADDED,
            "renamed" => &RENAMED,
            _ => &CHANGED,
        };
        words::only(&parts, &[known])?;
        let part = |name: &str| {
            parts
                .iter()
                .find(|part| part.name() == name)
                .ok_or_else(|| entry.wrong(&format!("`{word}` needs `{name} = …`")))
        };
        let since = version(part("since")?)?;
        let kind = match word.as_str() {
            "added" => ChangeKind::Added,
            "renamed" => ChangeKind::Renamed { from: part("from")?.string()?.value() },
            _ => ChangeKind::Changed {
                from: Box::new(part("from")?.type_()?),
                up: part("up")?.path()?,
                down: part("down")?.path()?,
            },
        };
        Ok(Change { since, kind })
    }
}

/// The version that an entry names.
pub(crate) fn version(entry: &Entry) -> syn::Result<String> {
    let literal = entry.string()?;
    if rank(&literal.value()).is_none() {
        return Err(syn::Error::new(literal.span(), "a version is like \"v1\", \"v1beta1\" or \"v2alpha3\""));
    }
    Ok(literal.value())
}

/// The order of versions: released before beta before alpha, then by number.
pub(crate) fn rank(version: &str) -> Option<(u8, u32, u32)> {
    let digits = version.strip_prefix('v')?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at(end);
    let major = major.parse().ok()?;
    let stage = |name: &str| rest.strip_prefix(name).and_then(|minor| minor.parse().ok());
    match (stage("beta"), stage("alpha")) {
        _ if rest.is_empty() => Some((3, major, 0)),
        (Some(minor), _) => Some((2, major, minor)),
        (None, Some(minor)) => Some((1, major, minor)),
        (None, None) => None,
    }
}
