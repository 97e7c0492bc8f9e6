//! Pages for users: what every field of a kind means, and a first object to begin with.

use std::fmt::Write as _;

use koord_schema::{AdditionalProperties, Schema as Node, SchemaType};
use serde_json::Value;

use super::crd::{Declared, listed};
use crate::{declare::Profile, resource::Scope};

/// Nesting below this is not described on the page: whole pods and the like.
const DEPTH_MAX: usize = 16;

/// The reference page of a kind in Markdown: one row per field, in the order of names.
pub fn reference_page(versions: &[Declared]) -> String {
    let stored = listed(versions).find(|version| version.info.served.storage);
    let Some(main) = stored.or_else(|| listed(versions).next()) else { return String::new() };
    let info = &main.info;
    let mut page = format!("# {}\n\n", info.kind);
    if let Some(description) = &main.schema(Profile::Hardened).description {
        let _ = writeln!(page, "{description}\n");
    }
    let scope = match info.scope {
        Scope::Cluster => "One per name in the cluster.",
        Scope::Namespaced => "One per name in a namespace.",
    };
    let _ = writeln!(page, "{scope} `kubectl get {}.{}`", info.plural, info.group);
    let names: Vec<&str> = info.short_names.iter().chain(info.extras.short_names).copied().collect();
    if !names.is_empty() {
        let _ = writeln!(page, "Short names: `{}` (some only in the hardened profile).", names.join("`, `"));
    }
    for version in listed(versions) {
        let schema = version.schema(Profile::Hardened);
        let _ = writeln!(page, "\n## {}\n", version.info.api_version());
        let _ = writeln!(page, "| field | type | rules | meaning |\n|---|---|---|---|");
        for (name, field) in sorted(&schema) {
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                rows(&mut page, name, field, schema.required.contains(name), 0);
            }
        }
    }
    page
}

fn sorted(object: &Node) -> Vec<(&String, &Node)> {
    let mut fields: Vec<_> = object.properties.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    fields
}

fn rows(page: &mut String, path: &str, field: &Node, required: bool, depth: usize) {
    let mut rules = rules(field);
    if required {
        rules.insert(0, "required".to_owned());
    }
    let meaning = field.description.as_deref().unwrap_or_default().replace('|', "\\|").replace('\n', " ");
    let _ = writeln!(page, "| `{path}` | {} | {} | {meaning} |", type_name(field), rules.join("; "));
    if depth >= DEPTH_MAX {
        return;
    }
    let (path, object) = inner(path, field);
    for (name, field) in sorted(object) {
        rows(page, &format!("{path}.{name}"), field, object.required.contains(name), depth + 1);
    }
}

/// The object inside lists and maps, and how its path is written.
fn inner<'a>(path: &str, field: &'a Node) -> (String, &'a Node) {
    if let Some(items) = &field.items {
        return inner(&format!("{path}[]"), items);
    }
    if let Some(AdditionalProperties::Schema(values)) = &field.additional_properties {
        return inner(&format!("{path}[*]"), values);
    }
    (path.to_owned(), field)
}

fn type_name(field: &Node) -> String {
    if field.int_or_string {
        return if field.pattern.is_some() { "quantity" } else { "integer or text" }.to_owned();
    }
    match (field.type_, &field.format) {
        (None, _) => "any".to_owned(),
        (Some(SchemaType::Array), _) => match &field.items {
            Some(items) => format!("list of {}", type_name(items)),
            None => "list".to_owned(),
        },
        (Some(SchemaType::Object), _) => match &field.additional_properties {
            Some(AdditionalProperties::Schema(values)) => format!("map of {}", type_name(values)),
            _ => "object".to_owned(),
        },
        (Some(SchemaType::String), Some(format)) if format == "date-time" => "time".to_owned(),
        (Some(SchemaType::String), _) => "text".to_owned(),
        (Some(SchemaType::Integer), Some(format)) => format.clone(),
        (Some(SchemaType::Integer), None) => "integer".to_owned(),
        (Some(SchemaType::Number), _) => "number".to_owned(),
        (Some(SchemaType::Boolean), _) => "true or false".to_owned(),
    }
}

fn rules(field: &Node) -> Vec<String> {
    let mut rules = Vec::new();
    let mut say = |rule: Option<String>| rules.extend(rule);
    let at_least = |number: &serde_json::Number| {
        if field.exclusive_minimum { format!("above {number}") } else { format!("at least {number}") }
    };
    let at_most = |number: &serde_json::Number| {
        if field.exclusive_maximum { format!("below {number}") } else { format!("at most {number}") }
    };
    say(field.default.as_ref().map(|value| format!("default `{value}`")));
    say((!field.enum_.is_empty()).then(|| {
        let words: Vec<String> = field.enum_.iter().map(|word| format!("`{}`", plain(word))).collect();
        format!("one of {}", words.join(", "))
    }));
    say(field.minimum.as_ref().map(at_least));
    say(field.maximum.as_ref().map(at_most));
    say(field.min_length.map(|length| format!("at least {length} characters")));
    say(field.max_length.map(|length| format!("at most {length} characters")));
    say(field.min_items.map(|items| format!("at least {items} items")));
    say(field.max_items.map(|items| format!("at most {items} items")));
    say(field.min_properties.map(|fields| format!("at least {fields} fields")));
    say(field.max_properties.map(|fields| format!("at most {fields} fields")));
    say(field.nullable.then(|| "may be null".to_owned()));
    for rule in &field.validations {
        say(Some(rule.message.clone().unwrap_or_else(|| format!("`{}`", rule.rule.replace('|', "\\|")))));
    }
    rules
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A first object in YAML: required fields with something in them, optional ones as comments with their meaning.
pub fn sample_skeleton(declared: &Declared) -> String {
    let info = &declared.info;
    let mut text = format!(
        "apiVersion: {}\nkind: {}\nmetadata:\n  name: {}-sample\n",
        info.api_version(),
        info.kind,
        info.singular
    );
    if info.scope == Scope::Namespaced {
        text.push_str("  namespace: default\n");
    }
    let schema = declared.schema(Profile::Compatible);
    for (name, field) in sorted(&schema) {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            let written = schema.required.contains(name) || has_required(field);
            skeleton(&mut text, name, field, written, "", 0);
        }
    }
    text
}

/// Whether an object that is left out would leave out something required.
fn has_required(field: &Node) -> bool {
    field.type_ == Some(SchemaType::Object) && !field.required.is_empty()
}

fn skeleton(text: &mut String, name: &str, field: &Node, written: bool, indent: &str, depth: usize) {
    let mark = if written { "" } else { "# " };
    for line in field.description.iter().flat_map(|description| description.lines()).filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "{indent}# {line}");
    }
    let below = format!("{indent}  ");
    let (item, object) = match (&field.items, written && depth < DEPTH_MAX) {
        (Some(items), true) => (true, items.as_ref()),
        _ => (false, field),
    };
    let nested = written && depth < DEPTH_MAX && !object.required.is_empty();
    if nested {
        let _ = writeln!(text, "{indent}{name}:");
        let indent = if item {
            let _ = writeln!(text, "{below}-");
            format!("{below}  ")
        } else {
            below
        };
        for (name, inner) in sorted(object) {
            skeleton(text, name, inner, object.required.contains(name), &indent, depth + 1);
        }
    } else {
        let _ = writeln!(text, "{indent}{mark}{name}: {}", placeholder(field));
    }
}

fn placeholder(field: &Node) -> String {
    if let Some(default) = &field.default {
        return default.to_string();
    }
    if let Some(first) = field.enum_.first() {
        return first.to_string();
    }
    if field.int_or_string {
        return "\"1\"".to_owned();
    }
    match field.type_ {
        Some(SchemaType::String) if field.format.as_deref() == Some("date-time") => {
            "\"2024-01-01T00:00:00Z\"".to_owned()
        }
        Some(SchemaType::String) => "\"…\"".to_owned(),
        Some(SchemaType::Integer | SchemaType::Number) => {
            field.minimum.as_ref().map_or_else(|| "1".to_owned(), ToString::to_string)
        }
        Some(SchemaType::Boolean) => "false".to_owned(),
        Some(SchemaType::Array) => match (&field.items, field.min_items) {
            (Some(items), Some(1..)) => format!("[{}]", placeholder(items)),
            _ => "[]".to_owned(),
        },
        Some(SchemaType::Object) if field.min_properties.is_some_and(|fields| fields > 0) => {
            let plain = sorted(field).into_iter().find(|(_, field)| !has_required(field));
            plain.map_or_else(|| "{}".to_owned(), |(name, field)| format!("{{{name}: {}}}", placeholder(field)))
        }
        Some(SchemaType::Object) | None => "{}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use koord_macros::{Resource, Schema};
    use serde::Deserialize;

    use super::*;
    use crate as koord_resource;

    /// A shop.
    #[derive(Clone, Default, Deserialize, Resource, Schema)]
    #[koord(group = "example.com", version = "v1", scope = "Namespaced", crate = koord_resource)]
    struct Shop {
        #[serde(default)]
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
        /// What is wanted.
        #[serde(default)]
        spec: ShopSpec,
    }

    #[derive(Clone, Default, Deserialize, serde::Serialize, Schema)]
    #[koord(crate = koord_resource)]
    struct ShopSpec {
        /// How many doors it has.
        #[koord(minimum = 1)]
        doors: i32,
        /// Who keeps it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keeper: Option<String>,
    }

    #[test]
    fn a_page_has_one_row_per_field() {
        let page = reference_page(&[Declared::of::<Shop>()]);
        for line in [
            "# Shop",
            "One per name in a namespace. `kubectl get shops.example.com`",
            "| `spec` | object |  | What is wanted. |",
            "| `spec.doors` | int32 | required; at least 1 | How many doors it has. |",
            "| `spec.keeper` | text |  | Who keeps it. |",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }

    #[test]
    fn a_skeleton_has_what_is_required_and_tells_the_rest() {
        let skeleton = sample_skeleton(&Declared::of::<Shop>());
        let expected = "apiVersion: example.com/v1\nkind: Shop\nmetadata:\n  name: shop-sample\n  namespace: default\n\
                        # What is wanted.\nspec:\n  # How many doors it has.\n  doors: 1\n  # Who keeps it.\n  # keeper: \"…\"\n";
        assert_eq!(skeleton, expected);
    }
}
