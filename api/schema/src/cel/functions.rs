//! The functions that expressions may call, and the types that they take.

use std::{collections::HashMap, sync::LazyLock};

use super::types::{Parameter, Type};

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// The name of this way, by which costs differ.
    pub id: &'static str,
    /// Whether it is written behind its first operand and a dot.
    pub is_method: bool,
    /// The types of the operands, that in front of the dot first.
    pub operands: Vec<Type>,
    pub result: Type,
}

/// Types that the libraries of functions bring.
const LIBRARY_TYPES: [&str; 11] = [
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.CIDR",
    "net.IP",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.Decision",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.ResourceCheck",
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions = HashMap::<_, Vec<Overload>>::new();
    for (name, overload) in include_str!("functions.txt").lines().filter_map(line) {
        functions.entry(name).or_default().push(overload);
    }
    functions
});

/// The ways to call a function; `None` where there is none of that name.
pub(super) fn named(name: &str) -> Option<(&'static str, &'static [Overload])> {
    FUNCTIONS.get_key_value(name).map(|(name, overloads)| (*name, overloads.as_slice()))
}

/// The type that a name stands for where it is a value.
pub(super) fn type_named(name: &str) -> Option<Type> {
    let parameter = |letter| Type::Parameter(Parameter::Letter(letter));
    let of = |type_| Some(Type::Kind(Some(std::sync::Arc::new(type_))));
    match name {
        "bool" => of(Type::Bool),
        "bytes" => of(Type::Bytes),
        "double" => of(Type::Double),
        "int" => of(Type::Int),
        "uint" => of(Type::Uint),
        "string" => of(Type::String),
        "list" => of(Type::list(parameter('A'))),
        "map" => of(Type::map(parameter('A'), parameter('B'))),
        "null_type" => of(Type::Null),
        "type" => of(Type::Kind(None)),
        "google.protobuf.Duration" => of(Type::Duration),
        "google.protobuf.Timestamp" => of(Type::Timestamp),
        _ => None,
    }
}

/// `NAME ID method|function (OPERAND, …) RESULT`.
fn line(text: &'static str) -> Option<(&'static str, Overload)> {
    let mut words = text.splitn(4, ' ');
    let (name, id, style) = (words.next()?, words.next()?, words.next()?);
    let is_method = match style {
        "method" => true,
        "function" => false,
        _ => return None,
    };
    let mut rest = words.next()?.strip_prefix('(')?;
    let mut operands = Vec::new();
    while !rest.starts_with(')') {
        let (operand, after) = type_(rest)?;
        operands.push(operand);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    let (result, _) = type_(rest.strip_prefix(") ")?)?;
    Some((name, Overload { id, is_method, operands, result }))
}

/// The type that a text begins with, and what follows.
fn type_(text: &'static str) -> Option<(Type, &'static str)> {
    let end = text.find(['(', ')', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(mut inner) = rest.strip_prefix('(') else { return Some((simple(name)?, rest)) };
    let mut parts = Vec::new();
    while !inner.starts_with(')') {
        let (part, after) = type_(inner)?;
        parts.push(part);
        inner = after.strip_prefix(", ").unwrap_or(after);
    }
    let mut parts = parts.into_iter();
    let first = parts.next()?;
    let made = match name {
        "list" => Type::list(first),
        "map" => Type::map(first, parts.next()?),
        "optional_type" => Type::optional(first),
        "type" => Type::Kind(Some(std::sync::Arc::new(first))),
        _ => return None,
    };
    Some((made, inner.strip_prefix(')')?))
}

fn simple(name: &'static str) -> Option<Type> {
    Some(match name {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "duration" => Type::Duration,
        "int" => Type::Int,
        "string" => Type::String,
        "timestamp" => Type::Timestamp,
        "uint" => Type::Uint,
        _ if LIBRARY_TYPES.contains(&name) => Type::Library(name),
        _ => {
            let mut letters = name.chars();
            let letter = letters.next().filter(|letter| letter.is_ascii_uppercase() && letters.next().is_none())?;
            Type::Parameter(Parameter::Letter(letter))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = include_str!("functions.txt").lines().filter(|line| !line.starts_with('#')).count();
        assert!(lines > 300, "{lines}");
        assert_eq!(FUNCTIONS.values().map(Vec::len).sum::<usize>(), lines);
    }

    #[test]
    fn types_are_read_with_their_parts() {
        let (name, overloads) = named("getQuery").unwrap();
        assert_eq!((name, overloads.len(), overloads[0].is_method), ("getQuery", 1, true));
        assert_eq!(overloads[0].operands, [Type::Library("kubernetes.URL")]);
        assert_eq!(overloads[0].result.name(), "map(string, list(string))");
        let (_, insertion) = named("cel.@mapInsert").unwrap();
        assert_eq!(insertion[0].operands.len(), 3);
    }
}
