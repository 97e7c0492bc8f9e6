//! The shapes of names, labels and keys, with the API server's words for what is wrong.
//!
//! Every check returns the errors; an empty list means that the text is right.

const LABEL_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_1123: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_1123_UNDERSCORES: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Longest DNS label, qualified name part and label value.
pub const LABEL_CHARS_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_CHARS_MAX: usize = 253;

/// A DNS-1123 label, such as a namespace.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_CHARS_MAX);
    if !is_label(name) && dns1123_subdomain(name).is_empty() {
        // A name that is right as a subdomain is wrong as a label only for its dots.
        wrong.push("must not contain dots".to_owned());
    } else if !is_label(name) {
        wrong.push(shape(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            LABEL_1123,
            &["my-name", "123-abc"],
        ));
    }
    wrong
}

/// A DNS-1123 subdomain, such as the name of most objects.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_CHARS_MAX);
    if !name.split('.').all(is_label) {
        wrong.push(shape(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_1123,
            &["example.com"],
        ));
    }
    wrong
}

/// A DNS-1123 subdomain whose labels may have underscores, such as the search path of a resolver.
pub fn dns1123_subdomain_with_underscores(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_CHARS_MAX);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-' || c == '_')
    };
    if !name.split('.').all(is_part) {
        wrong.push(shape(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_1123_UNDERSCORES,
            &["example.com"],
        ));
    }
    wrong
}

/// A DNS-1035 label, such as the name of a Service or the plural of a resource.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_CHARS_MAX);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(shape(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// A key of labels or annotations: an optional DNS subdomain with a slash, then a name.
pub fn qualified_name(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns1123_subdomain(prefix).into_iter().map(|what| format!("prefix part {what}")));
            }
            name
        }
        _ => {
            let what = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
            let examples = ["MyName", "my.name", "123-abc"];
            let optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![shape(what, QUALIFIED, &examples) + optional];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(too_long(name, LABEL_CHARS_MAX).into_iter().map(|what| format!("name part {what}")));
    }
    if !is_name(name) {
        wrong.push(shape(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            QUALIFIED,
            &["MyName", "my.name", "123-abc"],
        ));
    }
    wrong
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_CHARS_MAX);
    if !value.is_empty() && !is_name(value) {
        wrong.push(shape(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// A name that only has to be one segment of a URL path.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|bad| name.contains(**bad)).map(|bad| format!("may not contain '{bad}'")).collect()
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    if text.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}

/// The message about a shape, with examples and the expression.
fn shape(what: &str, expression: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{expression}')", examples.join(" or "))
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match text.as_bytes() {
        [] => false,
        [only] => alphanumeric(only),
        [first, middle @ .., last] => {
            alphanumeric(first) && alphanumeric(last) && middle.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        }
    }
}

fn is_name(text: &str) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => only.is_ascii_alphanumeric(),
        [first, middle @ .., last] => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && middle.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_worded_as_recorded() {
        assert_eq!(
            qualified_name("a b"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(qualified_name("/k"), ["prefix part must be non-empty"]);
        assert_eq!(
            dns1123_subdomain("Widgets.example.com"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }

    #[test]
    fn what_is_right_has_no_errors() {
        assert!(dns1123_label("my-name").is_empty() && dns1035_label("abc-123").is_empty());
        assert!(dns1123_subdomain("a.b-c.d0").is_empty() && qualified_name("example.com/My_Name").is_empty());
        assert!(label_value("").is_empty() && label_value("a_b.c-D").is_empty() && path_segment("a:b").is_empty());
        assert!(
            !dns1035_label("1a").is_empty() && !dns1123_label("-a").is_empty() && !dns1123_subdomain("a..b").is_empty()
        );
    }
}
