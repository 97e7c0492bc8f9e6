//! Names of CEL's functions in Kubernetes.

use crate::words::nearest;

/// Each with what it is: a `function`, with the namespace that it stands in, or a `method`, which is asked of a value: `text.size()`. A test of
/// koord-resource compares them with those of koord-schema.
const TABLE: &str = include_str!("functions.txt");
/// Macros that look like functions.
const MACROS: [&str; 2] = ["cel.bind", "has"];
/// Macros that look like methods.
const MACROS_OF_VALUES: [&str; 11] = [
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "map",
    "optFlatMap",
    "optMap",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// Whether a macro of this name, without its namespace, binds names.
pub(super) fn binds_names(name: &str) -> bool {
    name == "bind" || MACROS_OF_VALUES.contains(&name)
}

/// Whether functions stand in a namespace of this name.
pub(super) fn is_namespace(name: &str) -> bool {
    functions().any(|function| function.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

fn functions() -> impl Iterator<Item = &'static str> {
    in_table("function").chain(MACROS)
}

fn methods() -> impl Iterator<Item = &'static str> {
    in_table("method").chain(MACROS_OF_VALUES)
}

fn in_table(wanted: &'static str) -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(move |line| line.split_once(' ').filter(|(kind, _)| *kind == wanted).map(|(_, name)| name))
}

/// Why there is no function of this name, with its namespace.
pub(super) fn unknown_function(name: &str) -> Option<String> {
    if functions().any(|known| known == name) {
        return None;
    }
    if methods().any(|known| known == name) {
        return Some(format!("`{name}` is asked of a value: `value.{name}(…)`"));
    }
    Some(unknown(name, functions()))
}

/// Why nothing of this name can be asked of a value.
pub(super) fn unknown_method(name: &str) -> Option<String> {
    if methods().any(|known| known == name) {
        return None;
    }
    if functions().any(|known| known == name) {
        return Some(format!("`{name}` is asked of no value: `{name}(…)`"));
    }
    Some(unknown(name, methods()))
}

fn unknown(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let hint = nearest(name, &known.collect::<Vec<_>>()).map(|name| format!("; did you mean `{name}`?"));
    format!("CEL has no function `{name}` in Kubernetes{}", hint.unwrap_or_default())
}
