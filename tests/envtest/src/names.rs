//! The rules of names, labels and keys, with the API server's messages.

use std::borrow::Cow;

type Messages = Vec<Cow<'static, str>>;

/// How a kind's names are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, up to 253 characters.
    #[default]
    Subdomain,
    /// RFC 1123 label, up to 63 characters.
    Label,
    /// RFC 1035 label, up to 63 characters.
    Label1035,
    /// Anything that can be one segment of a URL path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; with `prefix`, with the start of a generated one.
    pub fn check(self, name: &str, prefix: bool) -> Messages {
        // The suffix of a generated name starts with a letter, so a trailing dash is fine.
        let masked: Cow<'_, str> = match name.strip_suffix('-') {
            Some(stem) if prefix && name.len() > 1 => Cow::Owned(format!("{stem}a")),
            _ => Cow::Borrowed(name),
        };
        match self {
            NameRule::Subdomain => subdomain(&masked),
            NameRule::Label => label(&masked),
            NameRule::Label1035 => label_1035(&masked),
            NameRule::PathSegment => path_segment(name, prefix),
        }
    }
}

const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED_SHAPE: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn too_long(limit: usize) -> Cow<'static, str> {
    Cow::Owned(format!("must be no more than {limit} characters"))
}

/// A key of a label, taint or finalizer: `name` or `prefix/name`.
pub fn qualified_name(value: &str) -> Messages {
    let mut messages = Messages::new();
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                messages.push(Cow::Borrowed("prefix part must be non-empty"));
            } else {
                messages
                    .extend(subdomain(prefix).into_iter().map(|message| Cow::Owned(format!("prefix part {message}"))));
            }
            name
        }
        _ => return vec![Cow::Borrowed(QUALIFIED_SHAPE)],
    };
    if name.is_empty() {
        messages.push(Cow::Borrowed("name part must be non-empty"));
    } else if name.len() > 63 {
        messages.push(Cow::Borrowed("name part must be no more than 63 characters"));
    }
    if !is_token(name) {
        messages.push(Cow::Borrowed(QUALIFIED));
    }
    messages
}

/// A value of a label.
pub fn label_value(value: &str) -> Messages {
    let mut messages = Messages::new();
    if value.len() > 63 {
        messages.push(too_long(63));
    }
    if !value.is_empty() && !is_token(value) {
        messages.push(Cow::Borrowed(LABEL_VALUE));
    }
    messages
}

/// RFC 1123 subdomain.
pub fn subdomain(value: &str) -> Messages {
    let mut messages = Messages::new();
    if value.len() > 253 {
        messages.push(too_long(253));
    }
    if !value.split('.').all(is_dns_part) {
        messages.push(Cow::Borrowed(SUBDOMAIN));
    }
    messages
}

/// RFC 1123 label.
pub fn label(value: &str) -> Messages {
    let mut messages = Messages::new();
    if value.len() > 63 {
        messages.push(too_long(63));
    }
    if !is_dns_part(value) {
        messages.push(Cow::Borrowed(LABEL));
    }
    messages
}

/// RFC 1035 label.
pub fn label_1035(value: &str) -> Messages {
    let mut messages = Messages::new();
    if value.len() > 63 {
        messages.push(too_long(63));
    }
    if !is_dns_part(value) || !value.starts_with(|c: char| c.is_ascii_lowercase()) {
        messages.push(Cow::Borrowed(LABEL_1035));
    }
    messages
}

/// A key of a ConfigMap or Secret.
pub fn config_key(value: &str) -> Messages {
    let mut messages = Messages::new();
    if value.len() > 253 {
        messages.push(too_long(253));
    }
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        messages.push(Cow::Borrowed(CONFIG_KEY));
    } else if value == "." {
        messages.push(Cow::Borrowed("must not be '.'"));
    } else if value == ".." {
        messages.push(Cow::Borrowed("must not be '..'"));
    } else if value.starts_with("..") {
        messages.push(Cow::Borrowed("must not start with '..'"));
    }
    messages
}

/// One segment of a URL path.
pub fn path_segment(value: &str, prefix: bool) -> Messages {
    let mut messages = Messages::new();
    if !prefix && (value == "." || value == "..") {
        return vec![Cow::Owned(format!("may not be '{value}'"))];
    }
    for bad in ['/', '%'] {
        if value.contains(bad) {
            messages.push(Cow::Owned(format!("may not contain '{bad}'")));
        }
    }
    messages
}

/// Letters, digits, `-`, `_`, `.`, beginning and ending with a letter or digit.
fn is_token(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn is_dns_part(value: &str) -> bool {
    let bytes = value.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        for (rule, name) in [
            (NameRule::Subdomain, "a.b-c.9"),
            (NameRule::Label, "9-a"),
            (NameRule::Label1035, "a-9"),
            (NameRule::PathSegment, "system:node"),
        ] {
            assert_eq!(rule.check(name, false), Messages::new(), "{name}");
        }
        assert_eq!(NameRule::Subdomain.check("web-", true), Messages::new());
        assert_eq!(qualified_name("example.com/A_b.c"), Messages::new());
        assert_eq!(label_value(""), Messages::new());
    }

    #[test]
    fn bad_names_say_what_is_wrong() {
        assert_eq!(NameRule::Subdomain.check("web-", false).len(), 1);
        assert_eq!(NameRule::Label.check("a.b", false).len(), 1);
        assert_eq!(NameRule::Label1035.check("9a", false).len(), 1);
        assert_eq!(NameRule::PathSegment.check("a/b", false), ["may not contain '/'"]);
        assert_eq!(qualified_name("/k"), ["prefix part must be non-empty"]);
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
    }
}
