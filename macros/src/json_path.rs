//! The JSON paths in attributes, as far as they name single fields.

/// The field that a path begins with, as in `.name`, `.name[0]` and `['name']`, and what follows; none where the path
/// begins otherwise, as with a wildcard.
pub(crate) fn first_field(path: &str) -> Option<(&str, &str)> {
    let (name, rest, is_plain) = if let Some(quoted) = path.strip_prefix("['") {
        let (name, rest) = quoted.split_once("']")?;
        (name, rest, !name.contains(['\\', '\'', '*']))
    } else {
        let rest = path.strip_prefix('.')?;
        let (name, rest) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        (name, rest, name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-')))
    };
    (is_plain && !name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::first_field;

    #[test]
    fn a_path_is_followed_through_single_fields() {
        for (path, expected) in [
            (".spec", Some(("spec", ""))),
            (".spec.size", Some(("spec", ".size"))),
            (".pools[0].size", Some(("pools", "[0].size"))),
            (".conditions[?(@.type=='Ready')].status", Some(("conditions", "[?(@.type=='Ready')].status"))),
            (".spec.", Some(("spec", "."))),
            ("['size'].max", Some(("size", ".max"))),
            ("['a.b/c']", Some(("a.b/c", ""))),
            (".", None),
            ("..size", None),
            (".*", None),
            (".a\\.b", None),
            (".'a'", None),
            (".size ", None),
            ("[0].size", None),
            ("['size", None),
            ("['']", None),
            ("['a','b']", None),
            ("['a\\'b']", None),
        ] {
            assert_eq!(first_field(path), expected, "{path}");
        }
    }
}
