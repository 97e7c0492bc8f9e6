//! What serde's own attributes say about the JSON of a type, as far as a schema must know it.

use syn::{Attribute, LitStr};

use crate::{
    entry::{Entry, Value, from_attributes},
    report::Report,
};

/// A renaming rule of serde.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    None,
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "lowercase" => Case::Lower,
            "UPPERCASE" => Case::Upper,
            "PascalCase" => Case::Pascal,
            "camelCase" => Case::Camel,
            "snake_case" => Case::Snake,
            "SCREAMING_SNAKE_CASE" => Case::ScreamingSnake,
            "kebab-case" => Case::Kebab,
            "SCREAMING-KEBAB-CASE" => Case::ScreamingKebab,
            _ => return None,
        })
    }

    /// The JSON name of a field, which Rust writes in snake case.
    pub(crate) fn field(self, name: &str) -> String {
        let pascal = || name.split('_').map(capitalized).collect::<String>();
        match self {
            Case::None | Case::Lower | Case::Snake => name.to_owned(),
            Case::Upper | Case::ScreamingSnake => name.to_ascii_uppercase(),
            Case::Pascal => pascal(),
            Case::Camel => uncapitalized(&pascal()),
            Case::Kebab => name.replace('_', "-"),
            Case::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The JSON name of a variant, which Rust writes in Pascal case.
    pub(crate) fn variant(self, name: &str) -> String {
        let snake = || {
            let mut snake = String::new();
            for (index, letter) in name.char_indices() {
                if index > 0 && letter.is_uppercase() {
                    snake.push('_');
                }
                snake.push(letter.to_ascii_lowercase());
            }
            snake
        };
        match self {
            Case::None | Case::Pascal => name.to_owned(),
            Case::Lower => name.to_ascii_lowercase(),
            Case::Upper => name.to_ascii_uppercase(),
            Case::Camel => uncapitalized(name),
            Case::Snake => snake(),
            Case::ScreamingSnake => snake().to_ascii_uppercase(),
            Case::Kebab => snake().replace('_', "-"),
            Case::ScreamingKebab => snake().to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn uncapitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_lowercase().to_string() + letters.as_str())
}

/// How an enum says which variant it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tagging {
    External,
    Internal(String),
    Adjacent(String, String),
    Untagged,
}

/// serde's attributes of a struct or enum.
pub(crate) struct Container {
    pub(crate) fields: Case,
    pub(crate) variants: Case,
    /// Fields of every variant.
    pub(crate) variant_fields: Case,
    pub(crate) default: bool,
    pub(crate) deny_unknown_fields: bool,
    pub(crate) transparent: bool,
    pub(crate) tagging: Tagging,
    /// `from`, `try_from`, `into` or `remote`: the JSON is another type's.
    pub(crate) foreign: Option<Entry>,
}

impl Container {
    pub(crate) fn parse(attributes: &[Attribute], is_enum: bool, report: &Report) -> Self {
        let mut container = Container {
            fields: Case::None,
            variants: Case::None,
            variant_fields: Case::None,
            default: false,
            deny_unknown_fields: false,
            transparent: false,
            tagging: Tagging::External,
            foreign: None,
        };
        let (mut tag, mut content) = (None, None);
        for entry in from_attributes(attributes, "serde", report) {
            match entry.name().as_str() {
                "rename_all" if is_enum => container.variants = case(&entry, report),
                "rename_all" => container.fields = case(&entry, report),
                "rename_all_fields" => container.variant_fields = case(&entry, report),
                "default" => container.default = true,
                "deny_unknown_fields" => container.deny_unknown_fields = true,
                "transparent" => container.transparent = true,
                "tag" => tag = report.keep(entry.string()).map(|name| name.value()),
                "content" => content = report.keep(entry.string()).map(|name| name.value()),
                "untagged" => container.tagging = Tagging::Untagged,
                "from" | "try_from" | "into" | "remote" => container.foreign = Some(entry),
                _ => {}
            }
        }
        match (tag, content) {
            (Some(tag), Some(content)) => container.tagging = Tagging::Adjacent(tag, content),
            (Some(tag), None) => container.tagging = Tagging::Internal(tag),
            _ => {}
        }
        container
    }
}

/// serde's attributes of a field.
#[derive(Default)]
pub(crate) struct Field {
    pub(crate) rename: Option<String>,
    pub(crate) default: bool,
    pub(crate) flatten: bool,
    /// Neither written nor read.
    pub(crate) skip: bool,
    /// Never written, or left out under a condition.
    pub(crate) may_be_left_out: bool,
    /// The condition of `skip_serializing_if`.
    pub(crate) skip_serializing_if: Option<LitStr>,
    /// The field is written by functions whose result cannot be known.
    pub(crate) written_by: Option<Entry>,
}

impl Field {
    pub(crate) fn parse(attributes: &[Attribute], report: &Report) -> Self {
        let mut field = Field::default();
        let (mut not_written, mut not_read) = (false, false);
        for entry in from_attributes(attributes, "serde", report) {
            match entry.name().as_str() {
                "rename" => field.rename = renamed(&entry, report),
                "default" => field.default = true,
                "flatten" => field.flatten = true,
                "skip" => (not_written, not_read) = (true, true),
                "skip_serializing" => not_written = true,
                "skip_deserializing" => not_read = true,
                "skip_serializing_if" => field.skip_serializing_if = report.keep(entry.string()),
                "with" | "serialize_with" => field.written_by = Some(entry),
                _ => {}
            }
        }
        field.skip = not_written && not_read;
        field.may_be_left_out = not_written || field.skip_serializing_if.is_some();
        field.default |= not_read;
        field
    }
}

/// serde's attributes of a variant.
#[derive(Default)]
pub(crate) struct Variant {
    pub(crate) rename: Option<String>,
    pub(crate) fields: Option<Case>,
    pub(crate) skip: bool,
    /// Takes whatever no other variant takes.
    pub(crate) catch_all: bool,
}

impl Variant {
    pub(crate) fn parse(attributes: &[Attribute], report: &Report) -> Self {
        let mut variant = Variant::default();
        for entry in from_attributes(attributes, "serde", report) {
            match entry.name().as_str() {
                "rename" => variant.rename = renamed(&entry, report),
                "rename_all" => variant.fields = Some(case(&entry, report)),
                "skip" => variant.skip = true,
                "other" | "untagged" => variant.catch_all = true,
                _ => {}
            }
        }
        variant
    }
}

/// `rename = "x"`, or `rename(serialize = "x", deserialize = "x")` with one and the same name.
fn renamed(entry: &Entry, report: &Report) -> Option<String> {
    let Value::List(_) = &entry.value else {
        return report.keep(entry.string()).map(|name| name.value());
    };
    let parts = report.keep(entry.list())?;
    let mut names: Vec<LitStr> = parts.iter().filter_map(|part| report.keep(part.string())).collect();
    let first = names.pop()?;
    if let Some(other) = names.iter().find(|other| other.value() != first.value()) {
        report.at(
            other.span(),
            "the field is written under one name and read under another; a schema has one name for both",
        );
    }
    Some(first.value())
}

fn case(entry: &Entry, report: &Report) -> Case {
    let Some(rule) = renamed(entry, report) else { return Case::None };
    Case::parse(&rule).unwrap_or_else(|| {
        report.at(entry.word.span(), format!("`{rule}` is no renaming rule of serde"));
        Case::None
    })
}
