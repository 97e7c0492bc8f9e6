//! The vocabulary: which word may stand where, and the nearest valid word for one that may not.
//!
//! The tables are what the parsers read and what the pages in `docs` show.

pub(crate) mod change;
pub(crate) mod configuration;
pub(crate) mod controller;
pub(crate) mod projection;
pub(crate) mod rbac;
pub(crate) mod root;
pub(crate) mod schema;
pub(crate) mod values;
pub(crate) mod webhook;

use self::{
    change::{CHANGES, LOST, VERSIONS},
    root::{HARDENED, ROOT},
    schema::{ANYWHERE, CRATE, FIELD, RULES, TYPE},
    values::{CHECKS, COMPUTED, FIELD_ADMISSION, NORMALIZED},
    webhook::TYPE_ADMISSION,
};
use crate::entry::Entry;

/// A word of an attribute, with what its page says of it.
#[cfg_attr(not(test), allow(dead_code, reason = "the pages show all of it, and the parsers read the name"))]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    /// What follows the word.
    pub(crate) takes: &'static str,
    /// What holds without the word.
    pub(crate) default: &'static str,
    /// The word as it stands in an attribute.
    pub(crate) example: &'static str,
    /// What is made of it.
    pub(crate) becomes: &'static str,
}

/// Words that stand in one place, in the order of their page.
#[cfg_attr(not(test), allow(dead_code, reason = "pages know a table by its name, and parsers by its constant"))]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) words: &'static [Word],
}

impl Table {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known.name == word)
    }
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a struct or enum.
    Type,
    /// On a field.
    Field,
    /// Inside `items(…)`, or `hardened(…)` and `admission(…)` on a field.
    Rules,
    /// Inside `in_versions(…)`.
    InVersions,
    /// Inside `hardened(…)` on a type.
    Hardened,
}

/// Words for types, beside the keywords of a schema.
const ON_TYPES: [&Table; 8] = [&CRATE, &TYPE, &ANYWHERE, &CHECKS, &NORMALIZED, &TYPE_ADMISSION, &LOST, &ROOT];

/// Words for fields, beside the keywords of a schema.
const ON_FIELDS: [&Table; 7] = [&FIELD, &ANYWHERE, &FIELD_ADMISSION, &CHECKS, &COMPUTED, &NORMALIZED, &CHANGES];

/// What controller-gen and its users call a word of ours.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("enum", "enumeration"),
    ("printcolumn", "column"),
    ("print_column", "column"),
    ("shortname", "short_name"),
    ("short_names", "short_name"),
    ("categories", "category"),
    ("annotations", "annotation"),
    ("labels", "label"),
    ("selectablefield", "selectable"),
    ("subresource", "status"),
    ("storageversion", "storage"),
    ("deprecatedversion", "deprecated"),
    ("unservedversion", "served"),
    ("skipversion", "skip_version"),
    ("x_validation", "validate"),
    ("validation", "validate"),
    ("cel", "validate"),
    ("rule", "validate"),
    ("x_int_or_string", "int_or_string"),
    ("x_preserve_unknown_fields", "preserve_unknown_fields"),
    ("pruning", "preserve_unknown_fields"),
    ("x_embedded_resource", "embedded_resource"),
    ("min", "minimum"),
    ("max", "maximum"),
    ("regex", "pattern"),
    ("namespaced", "scope"),
    ("json_path", "path"),
];

impl Place {
    /// The words beside the keywords of a schema.
    fn beside_rules(self) -> &'static [&'static Table] {
        match self {
            Place::Type => &ON_TYPES,
            Place::Field => &ON_FIELDS,
            Place::Rules => &[],
            Place::InVersions => &[&VERSIONS],
            Place::Hardened => &[&HARDENED],
        }
    }

    fn allows(self, word: &str) -> bool {
        RULES.has(word) || have(self.beside_rules(), word) || (self == Place::Rules && word == "nullable")
    }

    /// Nothing, or why the word may not stand here.
    pub(crate) fn check(self, entry: &Entry) -> syn::Result<()> {
        let word = entry.name();
        if self.allows(&word) {
            return Ok(());
        }
        let elsewhere = if have(&ON_TYPES, &word) {
            Some("a type")
        } else if have(&ON_FIELDS, &word) {
            Some("a field")
        } else {
            None
        };
        Err(entry.wrong(&match elsewhere {
            Some(place) => format!("`{word}` belongs on {place}"),
            None => unknown(&word, &[names(&[&RULES]), names(self.beside_rules())].concat()),
        }))
    }
}

fn have(tables: &[&Table], word: &str) -> bool {
    tables.iter().any(|table| table.has(word))
}

fn names(tables: &[&Table]) -> Vec<&'static str> {
    tables.iter().flat_map(|table| table.words).map(|word| word.name).collect()
}

/// The message for a word that is not in the vocabulary.
pub(crate) fn unknown(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("unknown word `{word}`; did you mean `{nearest}`?"),
        None => format!("unknown word `{word}`"),
    }
}

/// The nearest word that is known.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = snake(word);
    if let Some((_, ours)) = OTHER_NAMES.iter().find(|(theirs, ours)| *theirs == word && known.contains(ours)) {
        return known.iter().find(|known| *known == ours).copied();
    }
    known
        .iter()
        .map(|known| (strsim::jaro_winkler(&word, known), *known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

/// `minLength` and `MinLength` as we write them.
fn snake(word: &str) -> String {
    let mut snake = String::new();
    for (index, letter) in word.char_indices() {
        if letter.is_uppercase() && index > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake.replace("__", "_")
}

/// Refuses words that stand in none of the tables.
pub(crate) fn only(entries: &[Entry], tables: &[&Table]) -> syn::Result<()> {
    match entries.iter().find(|entry| !have(tables, &entry.name())) {
        Some(entry) => Err(entry.wrong(&unknown(&entry.name(), &names(tables)))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_controller_gen_lead_to_ours() {
        let (rules, root) = (names(&[&RULES]), names(&[&ROOT]));
        assert_eq!(nearest("minLength", &rules), Some("min_length"));
        assert_eq!(nearest("Enum", &rules), Some("enumeration"));
        assert_eq!(nearest("XValidation", &rules), Some("validate"));
        assert_eq!(nearest("printcolumn", &root), Some("column"));
        assert_eq!(nearest("unservedversion", &root), Some("served"));
        assert_eq!(nearest("zebra", &rules), None);
    }
}
