//! Checks of markers: against the shape of what they stand on, against each other, and of the literals in them.

use proc_macro2::Span;

use crate::{
    json::{Json, Number},
    marker::{Keyword, Marker},
    report::Report,
    shape::{Range, Shape, peel},
};

/// What a keyword is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Any,
    Number,
    String,
    Array,
    Object,
    /// Something that has a length.
    Sized,
    /// Something whose type may be said otherwise.
    Loose,
}

pub(crate) fn domain(keyword: &Keyword) -> Domain {
    match keyword {
        Keyword::Minimum(_)
        | Keyword::Maximum(_)
        | Keyword::ExclusiveMinimum
        | Keyword::ExclusiveMaximum
        | Keyword::MultipleOf(_) => Domain::Number,
        Keyword::MinLength(_) | Keyword::MaxLength(_) | Keyword::Pattern(_) => Domain::String,
        Keyword::MinItems(_)
        | Keyword::MaxItems(_)
        | Keyword::UniqueItems
        | Keyword::ListType(_)
        | Keyword::ListMapKey(_)
        | Keyword::Items(_) => Domain::Array,
        Keyword::MinProperties(_)
        | Keyword::MaxProperties(_)
        | Keyword::MapType(_)
        | Keyword::EmbeddedResource
        | Keyword::OneOf(..) => Domain::Object,
        Keyword::NotEmpty => Domain::Sized,
        Keyword::IntOrString => Domain::Loose,
        _ => Domain::Any,
    }
}

/// Whether a rule is one that Rust can check on a value.
pub(crate) fn is_rust_rule(keyword: &Keyword) -> bool {
    !matches!(
        keyword,
        Keyword::Type(_)
            | Keyword::IntOrString
            | Keyword::Title(_)
            | Keyword::Example(_)
            | Keyword::ExternalDocs { .. }
            | Keyword::ListType(_)
            | Keyword::ListMapKey(_)
            | Keyword::MapType(_)
            | Keyword::PreserveUnknownFields(_)
            | Keyword::EmbeddedResource
            | Keyword::Validate(_)
            | Keyword::Nullable
            | Keyword::Schemaless
            | Keyword::Schemars
            | Keyword::OneOf(..)
    )
}

/// Whether a keyword says something of a value in a configuration file, where no API server is.
pub(crate) fn is_of_configurations(keyword: &Keyword) -> bool {
    match keyword {
        Keyword::Minimum(_)
        | Keyword::Maximum(_)
        | Keyword::ExclusiveMinimum
        | Keyword::ExclusiveMaximum
        | Keyword::MinLength(_)
        | Keyword::MaxLength(_)
        | Keyword::Pattern(_)
        | Keyword::MinItems(_)
        | Keyword::MaxItems(_)
        | Keyword::UniqueItems
        | Keyword::Enumeration(_)
        | Keyword::Title(_)
        | Keyword::Example(_)
        | Keyword::Default(_) => true,
        Keyword::Items(inner) => inner.iter().all(|marker| is_of_configurations(&marker.keyword)),
        _ => false,
    }
}

/// Whether a keyword may stand on a field that schemars describes: the rules of its values are those of its type.
fn fits_schemars(keyword: &Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Schemars
            | Keyword::Validate(_)
            | Keyword::Immutable
            | Keyword::Default(_)
            | Keyword::Nullable
            | Keyword::Title(_)
            | Keyword::Example(_)
            | Keyword::ExternalDocs { .. }
            | Keyword::PreserveUnknownFields(_)
    )
}

/// Notes the rules that schemars should say.
pub(super) fn check_schemars(rules: &[Marker], report: &Report) {
    for marker in rules.iter().filter(|marker| !fits_schemars(&marker.keyword)) {
        let word = &marker.word;
        report.at(
            word.span(),
            format!(
                "`{word}` cannot stand beside `schemars`, which describes the type; say it there with `#[schemars(…)]`"
            ),
        );
    }
}

/// Whether the shape fits; none when only the type's own schema shows it.
fn fits(domain: Domain, shape: &Shape<'_>) -> Option<bool> {
    Some(match (domain, shape) {
        (Domain::Any, _) | (_, Shape::Anything) => true,
        (_, Shape::Named) => return None,
        (Domain::Number, shape) => matches!(shape, Shape::Integer(_) | Shape::Number | Shape::IntOrString),
        (Domain::String, shape) => matches!(shape, Shape::String | Shape::Formatted | Shape::IntOrString),
        (Domain::Array, shape) => matches!(shape, Shape::Array(_)),
        (Domain::Object, shape) => matches!(shape, Shape::Map(_)),
        (Domain::Sized, shape) => matches!(shape, Shape::String | Shape::Array(_) | Shape::Map(_)),
        (Domain::Loose, shape) => matches!(shape, Shape::IntOrString),
    })
}

/// Whether the check of a marker must wait for the type's own schema.
pub(crate) fn waits(marker: &Marker, shape: &Shape<'_>) -> bool {
    fits(domain(&marker.keyword), shape).is_none()
}

pub(super) fn needs(marker: &Marker, what: &str) -> String {
    let wanted = match domain(&marker.keyword) {
        Domain::Number => "a number",
        Domain::String => "a text",
        Domain::Array => "an array",
        Domain::Object => "an object",
        Domain::Sized => "a text, an array or a map",
        Domain::Loose | Domain::Any => "a type that is an integer or a text",
    };
    format!("`{}` needs {wanted}, but this is {what}", marker.word)
}

/// Notes rules of one list that contradict each other.
pub(super) fn check_together(rules: &[Marker], shape: &Shape<'_>, report: &Report) {
    for (span, message) in contradictions(&rules.iter().collect::<Vec<_>>(), shape) {
        report.at(span, message);
    }
}

/// Checks each marker by itself.
pub(super) fn check_each(rules: &[Marker], shape: &Shape<'_>, report: &Report) {
    for marker in rules {
        let span = marker.word.span();
        if fits(domain(&marker.keyword), shape) == Some(false) {
            report.at(span, needs(marker, shape.words()));
            continue;
        }
        match &marker.keyword {
            Keyword::Minimum(bound) | Keyword::Maximum(bound) | Keyword::MultipleOf(bound) => {
                check_bound(marker, *bound, shape, report);
            }
            Keyword::Default(json) if !(matches!(json, Json::Null) && is_nullable(rules)) => {
                check_literal(marker, json, shape, report);
            }
            Keyword::Example(json) => check_literal(marker, json, shape, report),
            Keyword::Enumeration(values) => {
                for value in values {
                    check_literal(marker, value, shape, report);
                }
            }
            Keyword::Items(inner) => {
                if let Shape::Array(item) = shape {
                    let shape = peel(item).shape;
                    check_each(inner, &shape, report);
                    check_together(inner, &shape, report);
                }
            }
            Keyword::UniqueItems if matches!(shape, Shape::Array(_)) => {}
            _ => {}
        }
    }
}

/// An old item is found by its keys alone.
pub(super) fn check_changes(rules: &[Marker], has_keys: bool, report: &Report) {
    for marker in rules {
        let Keyword::Items(inner) = &marker.keyword else { continue };
        for rule in inner {
            let compares = match &rule.keyword {
                Keyword::Immutable => true,
                Keyword::Validate(rule) => rule.expression.contains("oldSelf"),
                _ => false,
            };
            if compares && !has_keys {
                report.at(
                    rule.word.span(),
                    format!("`{}` inside of `items` needs `list_type = \"map\"` and `list_map_key`, by which an old item is found", rule.word),
                );
            }
        }
        let inner_keys = inner.iter().any(|marker| matches!(marker.keyword, Keyword::ListMapKey(_)));
        check_changes(inner, has_keys && inner_keys, report);
    }
}

fn is_nullable(rules: &[Marker]) -> bool {
    rules.iter().any(|marker| matches!(marker.keyword, Keyword::Nullable))
}

fn check_bound(marker: &Marker, bound: Number, shape: &Shape<'_>, report: &Report) {
    let span = marker.word.span();
    if matches!(marker.keyword, Keyword::MultipleOf(_)) && bound.as_f64() <= 0.0 {
        report.at(span, "`multiple_of` needs a number above 0");
        return;
    }
    let Shape::Integer(range) = shape else { return };
    match bound {
        Number::Float(_) => report.at(span, format!("`{}` needs a whole number, as this is an integer", marker.word)),
        Number::Integer(bound) if bound < range.min || bound > range.max => {
            report.at(span, beyond(bound, *range));
        }
        Number::Integer(_) => {}
    }
}

fn beyond(value: i128, range: Range) -> String {
    format!("{value} lies outside of what the type can hold ({} to {})", range.min, range.max)
}

/// Literals must be values of the type.
fn check_literal(marker: &Marker, json: &Json, shape: &Shape<'_>, report: &Report) {
    if let (Shape::Integer(range), Json::Number(Number::Integer(value))) = (shape, json)
        && !(range.min..=range.max).contains(value)
    {
        report.at(marker.word.span(), beyond(*value, *range));
        return;
    }
    let fits = match (shape, json) {
        (Shape::Boolean, json) => matches!(json, Json::Bool(_)),
        (Shape::Number, json) => matches!(json, Json::Number(_)),
        (Shape::String | Shape::Formatted, json) => matches!(json, Json::String(_)),
        (Shape::Array(item), Json::Array(values)) => {
            let item = peel(item);
            for value in values {
                check_literal(marker, value, &item.shape, report);
            }
            true
        }
        (Shape::Map(value), Json::Object(members)) => {
            let value = peel(value);
            for (_, member) in members {
                check_literal(marker, member, &value.shape, report);
            }
            true
        }
        (Shape::IntOrString, json) => matches!(json, Json::String(_) | Json::Number(Number::Integer(_))),
        (Shape::Anything | Shape::Named, _) | (Shape::Integer(_), Json::Number(Number::Integer(_))) => true,
        (Shape::Integer(_) | Shape::Array(_) | Shape::Map(_), _) => false,
    };
    if !fits {
        report.at(marker.word.span(), format!("`{}` is {}, but this is {}", marker.word, json.kind(), shape.words()));
    }
}

/// Rules that contradict each other or need each other: where, and how.
pub(super) fn contradictions(rules: &[&Marker], shape: &Shape<'_>) -> Vec<(Span, String)> {
    let mut found = Vec::new();
    let mut note = |marker: &Marker, message: String| found.push((marker.word.span(), message));
    for (marker, other) in rules.iter().flat_map(|lower| rules.iter().map(move |upper| (lower, upper))) {
        if empty_range(&marker.keyword, &other.keyword) {
            note(marker, format!("`{}` is above `{}`: no value is legal", marker.word, other.word));
        }
    }
    let has = |wanted: fn(&Keyword) -> bool| rules.iter().copied().find(|marker| wanted(&marker.keyword));
    for (exclusive, bound, name) in [
        (has(|k| matches!(k, Keyword::ExclusiveMinimum)), has(|k| matches!(k, Keyword::Minimum(_))), "minimum"),
        (has(|k| matches!(k, Keyword::ExclusiveMaximum)), has(|k| matches!(k, Keyword::Maximum(_))), "maximum"),
    ] {
        if let (Some(marker), None) = (exclusive, bound) {
            note(marker, format!("`{}` needs `{name} = …`", marker.word));
        }
    }
    let list_type = has(|k| matches!(k, Keyword::ListType(_)));
    let keys = has(|k| matches!(k, Keyword::ListMapKey(_)));
    match (list_type.map(|marker| (marker, &marker.keyword)), keys) {
        (Some((marker, Keyword::ListType("map"))), None) => {
            note(marker, "`list_type = \"map\"` needs `list_map_key = \"…\"`".to_owned());
        }
        (None | Some((_, Keyword::ListType("atomic" | "set"))), Some(marker)) => {
            note(marker, "`list_map_key` needs `list_type = \"map\"`".to_owned());
        }
        _ => {}
    }
    if let (Some((marker, Keyword::ListType(kind))), Shape::Array(item)) =
        (list_type.map(|marker| (marker, &marker.keyword)), shape)
    {
        let item = peel(item).shape;
        let scalar =
            matches!(item, Shape::Boolean | Shape::Integer(_) | Shape::Number | Shape::String | Shape::Formatted);
        if *kind == "map" && scalar {
            note(marker, "the items of a `map` list are objects; a list of plain values is a `set`".to_owned());
        }
        if *kind == "set" && matches!(item, Shape::Array(_) | Shape::Map(_)) {
            note(marker, "the items of a `set` are plain values".to_owned());
        }
    }
    if let (Some(marker), Some(default)) = (
        has(|k| matches!(k, Keyword::Default(_))),
        rules.iter().find_map(|marker| match &marker.keyword {
            Keyword::Default(json) => Some(json),
            _ => None,
        }),
    ) && let Some(broken) = rules.iter().find(|rule| breaks(&rule.keyword, default))
    {
        note(marker, format!("the default breaks `{}`", broken.word));
    }
    found
}

/// Whether a lower bound lies above the upper bound of the same thing.
fn empty_range(lower: &Keyword, upper: &Keyword) -> bool {
    match (lower, upper) {
        (Keyword::Minimum(lower), Keyword::Maximum(upper)) => lower.as_f64() > upper.as_f64(),
        (Keyword::MinLength(lower), Keyword::MaxLength(upper))
        | (Keyword::MinItems(lower), Keyword::MaxItems(upper))
        | (Keyword::MinProperties(lower), Keyword::MaxProperties(upper)) => lower > upper,
        _ => false,
    }
}

/// Whether a literal breaks a rule, as far as that can be seen here.
fn breaks(rule: &Keyword, json: &Json) -> bool {
    match (rule, json) {
        (Keyword::Minimum(bound), Json::Number(value)) => value.as_f64() < bound.as_f64(),
        (Keyword::Maximum(bound), Json::Number(value)) => value.as_f64() > bound.as_f64(),
        (Keyword::MinLength(bound), Json::String(value)) => (value.chars().count() as u64) < *bound,
        (Keyword::MaxLength(bound), Json::String(value)) => value.chars().count() as u64 > *bound,
        (Keyword::MinItems(bound), Json::Array(values)) => (values.len() as u64) < *bound,
        (Keyword::MaxItems(bound), Json::Array(values)) => values.len() as u64 > *bound,
        (Keyword::Enumeration(values), value) => !values.contains(value),
        _ => false,
    }
}
