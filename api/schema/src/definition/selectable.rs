//! The fields that field selectors may name.

use serde_json::Value;

use super::text;
use crate::field::{Errors, Path};

const FIELDS_MAX: usize = 8;
const NO_SUCH_FIELD: &str = "does not refer to a valid field";

/// Checks selectable fields against the schema of the same place.
pub(super) fn check(fields: &[Value], schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let (here, path) = (at.index(index), text(field, "jsonPath"));
        let here = here.child("jsonPath");
        if path.is_empty() {
            errors.required(&here, "");
            continue;
        }
        let field = match Declared::find(path, schema) {
            Ok(field) => field,
            Err(why) => {
                errors.invalid(&here, path, format!("is an invalid path: {why}"));
                continue;
            }
        };
        if field.root == "metadata" {
            errors.invalid(&here, path, "must not point to fields in metadata");
        }
        if !matches!(text(field.schema, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.invalid(&here, path, detail);
        }
        if seen.contains(&field.path) {
            errors.duplicate(&here, path);
        } else {
            seen.push(field.path);
        }
    }
    if seen.len() > FIELDS_MAX {
        errors.too_many(at, seen.len(), FIELDS_MAX);
    }
}

/// A field that a schema declares.
struct Declared<'v> {
    /// Name of the field of the object in which it is.
    root: &'v str,
    /// The path as it is compared with others.
    path: String,
    schema: &'v Value,
}

impl<'v> Declared<'v> {
    /// Follows a path of fields and keys of maps.
    fn find(path: &'v str, schema: &'v Value) -> Result<Self, String> {
        let mut tokens = Tokens(path);
        let mut found = Declared { root: "", path: String::new(), schema };
        while let Some(token) = tokens.next() {
            match token {
                "." => found.enter(tokens.next().ok_or("unexpected end of JSON path")?)?,
                "[" => return Err("array notation is not allowed".to_owned()),
                other => return Err(format!("expected [ or . but got: {other}")),
            }
        }
        Ok(found)
    }

    fn enter(&mut self, name: &'v str) -> Result<(), &'static str> {
        let schema = self.schema;
        let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
        let values = schema.get("additionalProperties").filter(|values| !values.is_null());
        match (properties, values) {
            (Some(properties), _) => {
                self.schema = properties.get(name).ok_or(NO_SUCH_FIELD)?;
                let dot = if self.path.is_empty() { "" } else { "." };
                self.path = format!("{}{dot}{name}", self.path);
            }
            (None, Some(values)) => {
                self.schema = values;
                self.path = format!("{}[{name}]", self.path);
            }
            (None, None) => return Err(NO_SUCH_FIELD),
        }
        if self.root.is_empty() {
            self.root = name;
        }
        Ok(())
    }
}

/// The parts of a path: `.`, `[`, `]`, and what stands between them. Text in single quotes is one part.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let first = self.0.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.0.as_bytes();
                let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\');
                close.map_or(bytes.len(), |at| at + 1)
            }
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(paths: &[&str]) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"}, "b": {"type": "boolean"}, "i": {"type": "integer"}, "n": {"type": "number"},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "additionalProperties": true}}}}});
        let fields: Vec<Value> = paths.iter().map(|path| json!({"jsonPath": path})).collect();
        let mut errors = Errors::new();
        check(&fields, &schema, &Path::root("s"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_must_lead_to_declared_scalars_outside_of_metadata() {
        let invalid = |path: &str, why: &str| vec![format!("s[0].jsonPath: Invalid value: {path:?}: {why}")];
        let type_ = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
        let table = [
            (".spec.a", Vec::new()),
            (".spec.b", Vec::new()),
            (".spec.i", Vec::new()),
            (".spec.m.key", Vec::new()),
            ("", vec!["s[0].jsonPath: Required value".to_owned()]),
            (".spec.n", invalid(".spec.n", type_)),
            (".spec", invalid(".spec", type_)),
            (".spec.free.key", invalid(".spec.free.key", type_)),
            (".metadata.name", invalid(".metadata.name", "must not point to fields in metadata")),
            (".spec.zz", invalid(".spec.zz", "is an invalid path: does not refer to a valid field")),
            (".spec.a.b", invalid(".spec.a.b", "is an invalid path: does not refer to a valid field")),
            ("..spec", invalid("..spec", "is an invalid path: does not refer to a valid field")),
            (".spec.", invalid(".spec.", "is an invalid path: unexpected end of JSON path")),
            ("spec.a", invalid("spec.a", "is an invalid path: expected [ or . but got: spec")),
            ("]", invalid("]", "is an invalid path: expected [ or . but got: ]")),
            (".spec.m['key']", invalid(".spec.m['key']", "is an invalid path: array notation is not allowed")),
            (".spec.'a.b'", invalid(".spec.'a.b'", "is an invalid path: does not refer to a valid field")),
        ];
        for (path, expected) in table {
            assert_eq!(wrong(&[path]), expected, "{path}");
        }
    }

    #[test]
    fn what_is_wrong_with_metadata_and_its_type_is_said_at_once() {
        assert_eq!(wrong(&[".metadata"]).len(), 2);
    }

    #[test]
    fn a_path_is_named_once_unless_it_is_invalid_anyway() {
        assert_eq!(wrong(&[".spec.a", ".spec.a"]), [r#"s[1].jsonPath: Duplicate value: ".spec.a""#]);
        let invalid = |index: usize| {
            format!(
                r#"s[{index}].jsonPath: Invalid value: ".spec.zz": is an invalid path: does not refer to a valid field"#
            )
        };
        assert_eq!(wrong(&[".spec.zz", ".spec.zz"]), [invalid(0), invalid(1)]);
    }

    #[test]
    fn eight_fields_are_enough() {
        let keys: Vec<String> = (0..9).map(|index| format!(".spec.m.k{index}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        assert_eq!(wrong(&keys[..8]), Vec::<String>::new());
        assert_eq!(wrong(&keys), ["s: Too many: 9: must have at most 8 items"]);
        let twice = [&keys[..8], &keys[..1]].concat();
        assert_eq!(wrong(&twice), [r#"s[8].jsonPath: Duplicate value: ".spec.m.k0""#]);
    }
}
