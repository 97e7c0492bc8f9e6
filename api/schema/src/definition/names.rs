//! The names of a kind.

use serde_json::Value;

use super::{items, text};
use crate::{
    field::{Errors, Path},
    names::dns1035_label,
};

const FIELDS: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// Checks the names that a definition wants, all of which must be there.
pub(super) fn check(given: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in FIELDS {
        if text(given, field).is_empty() {
            errors.required(&at.child(field), "");
        }
    }
    check_shapes(given, at, errors);
}

/// Checks the names that are there.
pub(super) fn check_shapes(given: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in FIELDS {
        let name = text(given, field);
        let is_kind = matches!(field, "kind" | "listKind");
        let wrong = if is_kind { dns1035_label(&name.to_lowercase()) } else { dns1035_label(name) };
        if name.is_empty() || wrong.is_empty() {
            continue;
        }
        let prefix = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
        errors.invalid(&at.child(field), name, format!("{prefix}{}", wrong.join(",")));
    }
    check_list(given, "shortNames", at, errors);
    let kind = text(given, "kind");
    if !kind.is_empty() && kind == text(given, "listKind") {
        errors.invalid(&at.child("listKind"), kind, "kind and listKind may not be the same");
    }
    check_list(given, "categories", at, errors);
}

fn check_list(given: &Value, field: &str, at: &Path<'_>, errors: &mut Errors) {
    let list = at.child(field);
    for (index, name) in items(given, field).iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let wrong = dns1035_label(name);
        if !wrong.is_empty() {
            errors.invalid(&list.index(index), name, wrong.join(","));
        }
    }
}
