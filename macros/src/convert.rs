//! `added`, `renamed` and `changed`: how a field differs in older versions of its kind.

use syn::{Path, Type};

use crate::{entry::Entry, words};

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
}

impl Change {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        let word = entry.name();
        let parts = entry.list()?;
        let known: &[&str] = match word.as_str() {
            "added" => &["since"],
            "renamed" => &["since", "from"],
            _ => &["since", "from", "up", "down"],
        };
        words::only(&parts, known)?;
        let part = |name: &str| {
            parts
                .iter()
                .find(|part| part.name() == name)
                .ok_or_else(|| entry.wrong(&format!("`{word}` needs `{name} = …`")))
        };
        let since = part("since")?.string()?.value();
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
