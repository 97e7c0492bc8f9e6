//! Column definitions of built-in kinds, read from `columns.txt`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

/// What a `Table` says about one of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// `name` for the column with the object's name; otherwise an OpenAPI format, or empty.
    pub format: String,
    /// Prose.
    pub description: String,
    /// 0 shows it always, more only in wide output.
    pub priority: i32,
}

// === impl ColumnDefinition ===

impl ColumnDefinition {
    /// The column with an object's name.
    pub fn object_name() -> Self {
        Self::new("Name", "string", 0, prose("name"))
    }

    /// The column with a custom resource's age, where the definition declares no columns.
    pub fn custom_age() -> Self {
        Self::new("Age", "date", 0, prose("age"))
    }

    fn new(name: &str, type_: &str, priority: i32, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            type_: type_.to_owned(),
            format: if name == "Name" { "name".to_owned() } else { String::new() },
            description: description.to_owned(),
            priority,
        }
    }

    /// As a `TableColumnDefinition`.
    pub fn to_value(&self) -> Value {
        let Self { name, type_, format, description, priority } = self;
        json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority})
    }
}

fn sections() -> &'static BTreeMap<&'static str, Vec<ColumnDefinition>> {
    static SECTIONS: OnceLock<BTreeMap<&'static str, Vec<ColumnDefinition>>> = OnceLock::new();
    SECTIONS.get_or_init(|| parse(include_str!("columns.txt")))
}

fn parse(text: &'static str) -> BTreeMap<&'static str, Vec<ColumnDefinition>> {
    let mut sections: BTreeMap<&'static str, Vec<ColumnDefinition>> = BTreeMap::new();
    let mut section = "";
    let mut shared: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            continue;
        }
        let mut parts = line.splitn(4, " | ");
        let (Some(name), Some(type_), Some(priority), Some(description)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if section == "@" {
            shared.insert(name, description.replace("\\n", "\n"));
        }
        let description = match description.strip_prefix('@').and_then(|name| shared.get(name)) {
            Some(text) => text.clone(),
            None => description.replace("\\n", "\n"),
        };
        let priority = priority.parse().unwrap_or_default();
        sections.entry(section).or_default().push(ColumnDefinition::new(name, type_, priority, &description));
    }
    sections
}

fn prose(name: &str) -> &'static str {
    let shared = sections().get("@").map(Vec::as_slice).unwrap_or_default();
    shared.iter().find(|column| column.name == name).map_or("", |column| &column.description)
}

/// The columns of a built-in kind; those of a kind without its own are name and creation time.
pub(super) fn columns(group: &str, plural: &str) -> Vec<ColumnDefinition> {
    let section = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let plain = || vec![ColumnDefinition::object_name(), ColumnDefinition::new("Created At", "date", 0, prose("age"))];
    sections().get(section.as_str()).cloned().unwrap_or_else(plain)
}

/// Kinds for which the real server has no printer: it shows their name and creation time by a general one.
const WITHOUT_PRINTER: [(&str, &str); 4] = [
    ("", "limitranges"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// Whether the real server has a printer for a built-in kind.
pub(super) fn has_printer(group: &str, plural: &str) -> bool {
    !WITHOUT_PRINTER.contains(&(group, plural))
}

/// Every kind that has columns of its own, as `plural.group`.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    sections().keys().copied().filter(|name| *name != "@")
}
