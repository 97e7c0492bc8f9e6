//! The vocabulary: which word may stand where, and the nearest valid word for one that may not.

use crate::entry::Entry;

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a struct or enum.
    Type,
    /// On a field.
    Field,
    /// Inside `items(…)`, or `hardened(…)` and `admission(…)` on a field.
    Rules,
    /// Inside `hardened(…)` on a type.
    Hardened,
}

/// Keywords of a schema that mean the same on a field, on a type and on the items of an array.
pub(crate) const RULES: &[&str] = &[
    "minimum",
    "maximum",
    "exclusive_minimum",
    "exclusive_maximum",
    "multiple_of",
    "min_length",
    "max_length",
    "pattern",
    "format",
    "min_items",
    "max_items",
    "unique_items",
    "min_properties",
    "max_properties",
    "enumeration",
    "preserve_unknown_fields",
    "embedded_resource",
    "int_or_string",
    "type",
    "title",
    "example",
    "external_docs",
    "list_type",
    "list_map_key",
    "map_type",
    "struct_type",
    "items",
    "validate",
    "immutable",
    "exactly_one_of",
    "at_most_one_of",
    "at_least_one_of",
    "not_empty",
    "default",
];

/// Words for fields alone.
const FIELD: &[&str] = &[
    "nullable",
    "optional",
    "required",
    "schemaless",
    "schemars",
    "skip_description",
    "hardened",
    "admission",
    "check",
    "check_update",
    "default_fn",
    "normalize",
    "added",
    "renamed",
    "changed",
    "moved",
];

/// Words for any type that has a schema.
const TYPE: &[&str] =
    &["crate", "open", "skip_description", "hardened", "check", "check_update", "normalize", "admission", "removed"];

/// Words for the root of a resource.
pub(crate) const ROOT: &[&str] = &[
    "group",
    "version",
    "kind",
    "plural",
    "singular",
    "list_kind",
    "scope",
    "status",
    "scale",
    "short_name",
    "category",
    "column",
    "selectable",
    "annotation",
    "label",
    "served",
    "storage",
    "deprecated",
    "skip_version",
    "older",
    "rbac",
];

/// Words for the root that the hardened profile may add to.
const EXTRAS: &[&str] = &["short_name", "category", "column", "selectable"];

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
    fn allows(self, word: &str) -> bool {
        match self {
            Place::Type => RULES.contains(&word) || TYPE.contains(&word) || ROOT.contains(&word),
            Place::Field => RULES.contains(&word) || FIELD.contains(&word),
            Place::Rules => RULES.contains(&word) || word == "nullable",
            Place::Hardened => RULES.contains(&word) || EXTRAS.contains(&word),
        }
    }

    fn words(self) -> Vec<&'static str> {
        let lists: &[&[&str]] = match self {
            Place::Type => &[RULES, TYPE, ROOT],
            Place::Field => &[RULES, FIELD],
            Place::Rules => &[RULES],
            Place::Hardened => &[RULES, EXTRAS],
        };
        lists.concat()
    }

    /// Nothing, or why the word may not stand here.
    pub(crate) fn check(self, entry: &Entry) -> syn::Result<()> {
        let word = entry.name();
        if self.allows(&word) {
            return Ok(());
        }
        let elsewhere = if ROOT.contains(&word.as_str()) || TYPE.contains(&word.as_str()) {
            Some("a type")
        } else if FIELD.contains(&word.as_str()) {
            Some("a field")
        } else {
            None
        };
        Err(entry.wrong(&match elsewhere {
            Some(place) => format!("`{word}` belongs on {place}"),
            None => unknown(&word, &self.words()),
        }))
    }
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

/// Refuses words that are not in a short list of their own.
pub(crate) fn only(entries: &[Entry], known: &[&str]) -> syn::Result<()> {
    match entries.iter().find(|entry| !known.contains(&entry.name().as_str())) {
        Some(entry) => Err(entry.wrong(&unknown(&entry.name(), known))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_names_every_word() {
        let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/library.md")).unwrap();
        let vocabulary = guide.split("## The vocabulary").nth(1).unwrap();
        for word in [RULES, FIELD, TYPE, ROOT].concat() {
            assert!(vocabulary.contains(&format!("`{word}`")), "{word} is missing in docs/library.md");
        }
    }

    #[test]
    fn words_of_controller_gen_lead_to_ours() {
        assert_eq!(nearest("minLength", RULES), Some("min_length"));
        assert_eq!(nearest("Enum", RULES), Some("enumeration"));
        assert_eq!(nearest("XValidation", RULES), Some("validate"));
        assert_eq!(nearest("printcolumn", ROOT), Some("column"));
        assert_eq!(nearest("unservedversion", ROOT), Some("served"));
        assert_eq!(nearest("zebra", RULES), None);
    }
}
