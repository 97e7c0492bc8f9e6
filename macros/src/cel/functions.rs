//! Names of CEL's functions in Kubernetes.

use crate::words::nearest;

/// Functions, with the namespaces that they stand in.
const FUNCTIONS: &[&str] = &[
    "bool",
    "bytes",
    "cidr",
    "double",
    "duration",
    "dyn",
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.named",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    "int",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isIP",
    "isQuantity",
    "isSemver",
    "isURL",
    "matches",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "optional.unwrap",
    "quantity",
    "semver",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "sign",
    "size",
    "string",
    "strings.quote",
    "timestamp",
    "type",
    "uint",
    "url",
];

/// What is asked of a value: `text.size()`.
const METHODS: &[&str] = &[
    "add",
    "allowed",
    "asApproximateFloat",
    "asInteger",
    "charAt",
    "check",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "endsWith",
    "error",
    "errored",
    "family",
    "fieldSelector",
    "find",
    "findAll",
    "first",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "group",
    "hasValue",
    "indexOf",
    "ip",
    "isGlobalUnicast",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isSorted",
    "isUnspecified",
    "join",
    "labelSelector",
    "last",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "name",
    "namespace",
    "or",
    "orValue",
    "patch",
    "path",
    "prefixLength",
    "reason",
    "replace",
    "resource",
    "serviceAccount",
    "size",
    "split",
    "startsWith",
    "sub",
    "subresource",
    "substring",
    "sum",
    "trim",
    "unwrapOpt",
    "upperAscii",
    "validate",
    "value",
];

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

/// Whether functions stand in a namespace of this name.
pub(super) fn is_namespace(name: &str) -> bool {
    functions().any(|function| function.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().chain(&MACROS).copied()
}

fn methods() -> impl Iterator<Item = &'static str> {
    METHODS.iter().chain(&MACROS_OF_VALUES).copied()
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

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, METHODS};

    #[test]
    fn the_names_are_those_of_koord_schema() {
        let table = include_str!("../../../api/schema/src/cel/functions.txt");
        for (kind, known) in [("function", FUNCTIONS), ("method", METHODS)] {
            let mut names: Vec<&str> = table
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(|line| {
                    let mut words = line.split_whitespace();
                    let name = words.next()?;
                    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains('@');
                    (is_name && name != "in" && words.nth(1) == Some(kind)).then_some(name)
                })
                .collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names, known, "{kind}");
        }
    }
}
