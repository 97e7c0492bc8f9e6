//! The names in a project: which of them are good, and what is wrong with the others.

use koord_resource::schema::names::{LABEL_CHARS_MAX, SUBDOMAIN_CHARS_MAX, dns1035_label, dns1123_subdomain};

/// The longest name that another one of an installation ends with: the Service of the metrics.
const LONGEST_ENDING: &str = "-metrics";

/// The longest kind: its list, KINDList, is a label too.
const KIND_CHARS_MAX: usize = LABEL_CHARS_MAX - "List".len();

/// The longest group: definitions are called PLURAL.GROUP.
const GROUP_CHARS_MAX: usize = SUBDOMAIN_CHARS_MAX - LABEL_CHARS_MAX - ".".len();

/// Words of Rust, and those that are reserved for it.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Crates that the code of a project names.
const CRATES: [&str; 7] = ["alloc", "core", "koord", "proc_macro", "serde", "std", "test"];

/// Folders that cargo makes beside a program, and modules that a project imports.
const BESIDE: [&str; 7] = ["build", "deps", "examples", "incremental", "testing", "webhooks", "yaml"];

/// Files of a project beside that of its kind.
const MODULES: [&str; 4] = ["controller", "lib", "main", "webhooks"];

/// Kinds that clients, whatever the group is, take for an answer of the API server or for several objects.
const ANSWERS: [&str; 2] = ["List", "Status"];

/// Types and traits that the code of a project names beside its kind, in the same module.
const TYPES: [&str; 29] = [
    "Arc",
    "Box",
    "Clone",
    "Condition",
    "Controller",
    "Debug",
    "Default",
    "Deserialize",
    "Err",
    "Mutate",
    "None",
    "ObjectKey",
    "ObjectMeta",
    "Ok",
    "Option",
    "Outcome",
    "PartialEq",
    "Projection",
    "ReconcileError",
    "Resource",
    "Result",
    "Schema",
    "Serialize",
    "Some",
    "Store",
    "String",
    "Timestamp",
    "Validate",
    "Vec",
];

/// The name of an operator.
pub(crate) fn operator(text: &str) -> Result<String, String> {
    let chars_max = LABEL_CHARS_MAX - LONGEST_ENDING.len();
    if !dns1035_label(text).is_empty() && text.len() <= LABEL_CHARS_MAX {
        return Err("lower-case letters, digits and '-', and a letter first, such as shop-operator".to_owned());
    }
    if text.len() > chars_max {
        return Err(format!(
            "at most {chars_max} characters, because its metrics have a Service called NAME{LONGEST_ENDING}"
        ));
    }
    let package = text.replace('-', "_");
    let is_taken = [&KEYWORDS[..], &CRATES, &BESIDE].concat().contains(&package.as_str());
    if is_taken {
        return Err(format!("a name that neither Rust nor cargo has, such as {text}-operator"));
    }
    Ok(text.to_owned())
}

/// The name of a kind.
pub(crate) fn kind(text: &str) -> Result<String, String> {
    if !is_camel_case(text) {
        let meant = camel_case(text).filter(|meant| kind(meant).is_ok());
        let example = meant.unwrap_or_else(|| "Backup".to_owned());
        return Err(format!("a word in CamelCase of at most {KIND_CHARS_MAX} letters and digits, such as {example}"));
    }
    let module = module(text);
    if [&KEYWORDS[..], &CRATES, &MODULES].concat().contains(&module.as_str()) {
        return Err(format!("another word, because its file would be src/{module}.rs; {text}Request is free"));
    }
    if TYPES.contains(&text) {
        return Err(format!(
            "another word, because the project uses a {text} of Rust or the library; {text}Request is free"
        ));
    }
    if ANSWERS.contains(&text) {
        return Err(format!(
            "another word, because clients take a {text} of any group for one of the API server; {text}Request is free"
        ));
    }
    Ok(text.to_owned())
}

fn is_camel_case(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric())
        && text.len() <= KIND_CHARS_MAX
}

/// The words of a text, which may be in lower case and have dashes or underscores between, as a kind.
fn camel_case(text: &str) -> Option<String> {
    let mut kind = String::new();
    for word in text.split(['-', '_']) {
        let mut letters = word.chars();
        kind.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        kind.push_str(letters.as_str());
    }
    is_camel_case(&kind).then_some(kind)
}

/// The group of a kind.
pub(crate) fn group(text: &str) -> Result<String, String> {
    if !dns1123_subdomain(text).is_empty() || !text.contains('.') {
        return Err("a domain of yours in lower case, such as shop.example.com".to_owned());
    }
    if text.len() > GROUP_CHARS_MAX {
        return Err(format!("at most {GROUP_CHARS_MAX} characters, because the definition is called PLURAL.GROUP"));
    }
    if ["k8s.io", "kubernetes.io"].iter().any(|protected| format!(".{text}").ends_with(&format!(".{protected}"))) {
        return Err("a domain of yours: API servers keep k8s.io and kubernetes.io for Kubernetes".to_owned());
    }
    Ok(text.to_owned())
}

/// The version of a kind.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let is_number = |digits: &str| {
        !digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_version = |number: &str| match number.split_once("alpha").or_else(|| number.split_once("beta")) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(number),
    };
    let is_good = text.strip_prefix('v').is_some_and(is_version);
    is_good.then(|| text.to_owned()).ok_or_else(|| "v1, v1beta1, v1alpha1 and so on".to_owned())
}

/// The module of a kind: its words in lower case, with underscores between. Letters that are upper-case together are one word.
pub(crate) fn module(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut module = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let follows = index.checked_sub(1).map(|before| letters[before]);
        let begins_word = letter.is_ascii_uppercase()
            && follows.is_some_and(|before| {
                let precedes_lower = letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
                !before.is_ascii_uppercase() || precedes_lower
            });
        if begins_word {
            module.push('_');
        }
        module.push(letter.to_ascii_lowercase());
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That each text is refused with these words.
    #[track_caller]
    fn refuses(read: fn(&str) -> Result<String, String>, texts: &[&str], words: &str) {
        for text in texts {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_is_one_of_a_package_and_of_a_service() {
        for name in ["shop", "shop-operator", "s3", &"x".repeat(55)] {
            assert_eq!(operator(name).as_deref(), Ok(name));
        }
        refuses(operator, &["", "Shop", "shop_operator", "3s", "-shop", "shop-", "a.b"], "a letter first");
        refuses(operator, &[&"x".repeat(56), &"x".repeat(64)], "at most 55 characters");
        refuses(operator, &["koord", "serde", "std", "test", "proc-macro", "deps", "type", "testing"], "such as");
        refuses(operator, &["match"], "match-operator");
    }

    #[test]
    fn a_kind_is_a_word_that_the_code_has_no_other_use_for() {
        for name in ["Backup", "CronJob", "NodeSLO", "S3", "Cluster", "Service", "Value", &"X".repeat(59)] {
            assert_eq!(kind(name).as_deref(), Ok(name));
        }
        refuses(kind, &["", "3S", "Übung", "type", &"X".repeat(60)], "59 letters and digits, such as Backup");
        refuses(kind, &["cronJob", "cron-job", "cron_job", "Cron_Job", "-CronJob"], "digits, such as CronJob");
        refuses(kind, &["Type", "Self", "Controller", "Webhooks", "Main", "Serde"], "its file would be src/");
        refuses(kind, &["Condition", "Option", "Store"], "of Rust or the library");
        refuses(kind, &["Status"], "for one of the API server; StatusRequest is free");
        refuses(kind, &["List"], "ListRequest is free");
    }

    #[test]
    fn a_group_is_a_domain_of_ones_own() {
        for name in ["example.com", "db.shop.example.com", "myk8s.io"] {
            assert_eq!(group(name).as_deref(), Ok(name));
        }
        refuses(group, &["", "shop", "Example.com", "example..com", "example.com/v1"], "such as shop.example.com");
        refuses(group, &["k8s.io", "apps.k8s.io", "x.kubernetes.io"], "for Kubernetes");
        let long = |chars: usize| format!("{}.example.com", "a.".repeat(chars / 2 - 6) + "b");
        assert_eq!(long(189).len(), 189);
        assert!(group(&long(189)).is_ok());
        refuses(group, &[&long(191)], "at most 189 characters");
    }

    #[test]
    fn a_version_is_one_of_kubernetes() {
        for name in ["v1", "v12", "v1alpha1", "v2beta10"] {
            assert_eq!(version(name).as_deref(), Ok(name));
        }
        refuses(version, &["", "1", "v", "v0", "v01", "v1alpha", "v1alpha0", "v1gamma1", "v1.2", "V1"], "v1beta1");
    }

    #[test]
    fn words_of_a_kind_have_underscores_between() {
        for (kind, expected) in [
            ("Backup", "backup"),
            ("CronJob", "cron_job"),
            ("NodeSLO", "node_slo"),
            ("HTTPRoute", "http_route"),
            ("S3Bucket", "s3_bucket"),
            ("VM", "vm"),
        ] {
            assert_eq!(module(kind), expected);
        }
    }
}
