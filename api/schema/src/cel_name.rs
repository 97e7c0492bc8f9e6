//! How fields are called in CEL.

/// Words that are no names there.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is no name in CEL, so that a field of that name is escaped.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The name under which CEL sees a field; `None` where it cannot be written in CEL.
pub fn escape(name: &str) -> Option<String> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '-' | '/'));
    if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/')) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}
