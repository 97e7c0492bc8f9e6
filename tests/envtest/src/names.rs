//! The rules of names and keys of single kinds; those that all kinds share are in [`koord_schema::names`].

use std::borrow::Cow;

use koord_schema::names;

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
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        // The suffix of a generated name starts with a letter, so a trailing dash is fine.
        let masked: Cow<'_, str> = match name.strip_suffix('-') {
            Some(stem) if prefix && name.len() > 1 => Cow::Owned(format!("{stem}a")),
            _ => Cow::Borrowed(name),
        };
        match self {
            NameRule::Subdomain => names::dns1123_subdomain(&masked),
            NameRule::Label => names::dns1123_label(&masked),
            NameRule::Label1035 => names::dns1035_label(&masked),
            NameRule::PathSegment => names::path_segment(name),
        }
    }
}

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// A key of a ConfigMap or Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > 253 {
        messages.push("must be no more than 253 characters".to_owned());
    }
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        messages.push(CONFIG_KEY.to_owned());
    } else if value == "." {
        messages.push("must not be '.'".to_owned());
    } else if value == ".." {
        messages.push("must not be '..'".to_owned());
    } else if value.starts_with("..") {
        messages.push("must not start with '..'".to_owned());
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        for (rule, name) in [
            (NameRule::Subdomain, "a.b-c.9"),
            (NameRule::Label, "9-a"),
            (NameRule::Label1035, "a-9"),
            (NameRule::PathSegment, "system:node"),
        ] {
            assert_eq!(rule.check(name, false), Vec::<String>::new(), "{name}");
        }
        assert_eq!(NameRule::Subdomain.check("web-", true), Vec::<String>::new());
        assert_eq!(NameRule::Subdomain.check("web-", false).len(), 1);
        assert_eq!(NameRule::Label.check("a.b", false).len(), 1);
        assert_eq!(NameRule::Label1035.check("9a", false).len(), 1);
        assert_eq!(NameRule::PathSegment.check("a/b", false).len(), 1);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
    }
}
