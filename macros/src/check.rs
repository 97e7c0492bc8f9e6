//! Checks of a model: markers against Rust types, and serde against the schema.

use crate::{
    json::{Json, Number},
    marker::{Keyword, Marker, Markers},
    model::{Body, Content, Field, Item},
    report::Report,
    serde::Tagging,
    shape::{Range, Shape, mentions, peel, type_name},
    words::nearest,
};

/// Notes everything that is wrong with a type.
pub(crate) fn check(item: &Item<'_>, report: &Report) {
    check_type_markers(item, report);
    match &item.body {
        Body::Struct(fields) => check_fields(item, fields, report),
        Body::Newtype(field) => check_field(item, field, report),
        Body::Enum(variants) => {
            for variant in variants {
                match &variant.content {
                    Content::Unit => {}
                    Content::Newtype(field) => check_field(item, field, report),
                    Content::Struct(fields) => check_fields(item, fields, report),
                }
            }
            check_enum(item, report);
        }
    }
}

fn check_fields(item: &Item<'_>, fields: &[Field<'_>], report: &Report) {
    for (index, field) in fields.iter().enumerate() {
        check_field(item, field, report);
        check_agreement(field, report);
        if fields[..index].iter().any(|earlier| earlier.name == field.name && !earlier.serde.flatten) {
            report.at(field.span, format!("two fields are called `{}` in JSON", field.name));
        }
    }
}

fn check_field(item: &Item<'_>, field: &Field<'_>, report: &Report) {
    let loose = field.markers.is_schemaless();
    let shape = if loose { Shape::Anything } else { field.peeled.shape.clone() };
    for rules in [&field.markers.schema, &field.markers.hardened, &field.markers.admission] {
        check_rules(rules, &shape, report);
        check_changes(rules, !field.markers.list_map_keys().is_empty(), report);
    }
    for marker in &field.markers.admission {
        if !is_rust_rule(&marker.keyword) {
            report.at(
                marker.word.span(),
                format!("`{}` describes the schema; `admission(…)` takes rules about values", marker.word),
            );
        }
    }
    if let Some(span) = mentions(field.type_, &item.ident.to_string()).filter(|_| !loose) {
        report.at(
            span,
            "a structural schema cannot contain itself; mark the field `schemaless, preserve_unknown_fields`",
        );
    }
    if let (Some(required), Some(_)) = (field.markers.required, field.markers.optional) {
        report.at(required, "a field is either `required` or `optional`");
    }
}

/// serde and the schema must allow the same objects.
fn check_agreement(field: &Field<'_>, report: &Report) {
    let name = &field.name;
    let filled_in = field.markers.schema_default().is_some();
    let may_be_absent = field.peeled.optional || field.has_serde_default;
    if let Some(span) = field.markers.required.filter(|_| may_be_absent && !filled_in) {
        let cause = if field.peeled.optional { "its type is `Option`" } else { "serde has a default for it" };
        report.at(span, format!("`{name}` is required, but {cause}; take one of the two away"));
    }
    if let Some(span) = field.markers.optional.filter(|_| !may_be_absent && field.markers.required.is_none()) {
        report.at(
            span,
            format!("`{name}` is optional, but serde fails without it; add `#[serde(default)]` or use `Option`"),
        );
    }
    if filled_in && !may_be_absent {
        report.at(
            field.span,
            format!("`{name}` may be absent, as it has a default, but serde fails without it; add `#[serde(default = …)]` or use `Option`"),
        );
    }
    if field.is_required() && !may_be_absent && field.serde.may_be_left_out && !filled_in {
        report.at(field.span, format!("`{name}` is required, but serde may leave it out when it writes"));
    }
    let writes_null = field.peeled.optional && !field.serde.may_be_left_out && !field.serde.flatten;
    if writes_null && !field.markers.is_nullable() && !field.markers.is_schemaless() {
        report.at(
            field.span,
            format!(
                "`{name}` is written as null when it is None, which the schema refuses; add `#[serde(skip_serializing_if = \"Option::is_none\")]` or mark it `nullable`"
            ),
        );
    }
    if let Some(marker) = field.markers.schema.iter().find(|marker| matches!(marker.keyword, Keyword::Nullable))
        && !field.peeled.optional
        && !matches!(field.peeled.shape, Shape::Anything)
    {
        report.at(marker.word.span(), format!("`{name}` may be null, but serde reads null only into an `Option`"));
    }
    let says_its_type = field
        .markers
        .find(|keyword| matches!(keyword, Keyword::Type(_) | Keyword::IntOrString | Keyword::Schemaless).then_some(()))
        .is_some();
    if let Some(entry) = field.serde.written_by.as_ref().filter(|_| !says_its_type) {
        report.on(
            entry,
            format!("serde writes `{name}` with functions of its own; say what they write with `#[koord(type = \"…\")]`, `int_or_string` or `schemaless`"),
        );
    }
}

fn check_type_markers(item: &Item<'_>, report: &Report) {
    let shape = match &item.body {
        Body::Newtype(field) => Some(field.peeled.shape.clone()),
        Body::Enum(_) if item.is_choice() => Some(Shape::String),
        Body::Struct(_) | Body::Enum(_) => None,
    };
    for rules in [&item.markers.schema, &item.markers.hardened, &item.markers.admission] {
        check_changes(rules, !item.markers.list_map_keys().is_empty(), report);
        match &shape {
            Some(shape) => check_rules(rules, shape, report),
            None => check_object_rules(rules, report),
        }
    }
    let names: Vec<&str> = item.fields().iter().map(|field| field.name.as_str()).collect();
    for marker in item.markers.schema.iter().chain(&item.markers.hardened) {
        let Keyword::OneOf(_, listed) = &marker.keyword else { continue };
        for name in listed {
            match item.fields().iter().find(|field| field.name == *name) {
                None => report.at(marker.word.span(), absent_field(name, &names)),
                Some(field) if !field.peeled.optional && !field.serde.may_be_left_out => report.at(
                    marker.word.span(),
                    format!("`{name}` is always there; make it an `Option` or leave it out when it is empty"),
                ),
                Some(_) => {}
            }
        }
    }
    if let Some(open) = item.markers.open
        && !matches!(&item.body, Body::Enum(variants) if variants.iter().any(|variant| variant.catch_all))
    {
        report.at(
            open,
            "an open enum needs a variant for what it does not know, such as `#[serde(untagged)] Other(String)`",
        );
    }
}

fn absent_field(name: &str, names: &[&str]) -> String {
    match nearest(name, names) {
        Some(nearest) => format!("there is no field `{name}` in JSON; did you mean `{nearest}`?"),
        None => format!("there is no field `{name}` in JSON"),
    }
}

fn check_object_rules(rules: &[Marker], report: &Report) {
    for marker in rules {
        let fits = matches!(domain(&marker.keyword), Domain::Any | Domain::Object);
        if !fits {
            report.at(marker.word.span(), needs(marker, "an object"));
        }
    }
}

fn check_enum(item: &Item<'_>, report: &Report) {
    let Body::Enum(variants) = &item.body else { return };
    let catch_all = variants.iter().filter(|variant| variant.catch_all);
    for (index, variant) in catch_all.enumerate() {
        let text = match &variant.content {
            Content::Newtype(field) => matches!(field.peeled.shape, Shape::String),
            Content::Unit => true,
            Content::Struct(_) => false,
        };
        if !text || index > 0 {
            report.on(variant.ident, "one variant alone catches what no other takes, and it holds a `String`");
        }
    }
    for (index, variant) in variants.iter().enumerate() {
        if !variant.catch_all && variants[..index].iter().any(|earlier| earlier.name == variant.name) {
            report.on(variant.ident, format!("two variants are called `{}` in JSON", variant.name));
        }
    }
    if item.serde.tagging == Tagging::External && !item.is_choice() {
        for variant in variants.iter().filter(|variant| matches!(variant.content, Content::Unit)) {
            report.on(
                variant.ident,
                "beside variants with data a unit variant is a text where the others are objects, which no structural schema allows; give it `{}` or the enum a `#[serde(tag = \"…\")]`",
            );
        }
    }
    if item.serde.tagging == Tagging::Untagged {
        for variant in variants.iter().filter(|variant| matches!(variant.content, Content::Unit)) {
            report.on(
                variant.ident,
                "an untagged unit variant is null in JSON; leave the field out with `Option` instead",
            );
        }
    }
    same_type_under_one_name(item, report);
}

/// Variants share one list of properties, so a name has one type.
fn same_type_under_one_name(item: &Item<'_>, report: &Report) {
    let Body::Enum(variants) = &item.body else { return };
    if !matches!(item.serde.tagging, Tagging::Internal(_) | Tagging::Untagged) {
        return;
    }
    let mut seen: Vec<(&str, String)> = Vec::new();
    for variant in variants {
        let Content::Struct(fields) = &variant.content else { continue };
        for field in fields {
            if matches!(&item.serde.tagging, Tagging::Internal(tag) if *tag == field.name) {
                report.at(field.span, format!("`{}` is the tag of the enum", field.name));
            }
            let type_ = type_name(field.peeled.inner);
            match seen.iter().find(|(name, _)| *name == field.name) {
                Some((_, earlier)) if *earlier != type_ => report.at(
                    field.span,
                    format!(
                        "`{}` is {earlier} in another variant; in a structural schema a name has one type",
                        field.name
                    ),
                ),
                Some(_) => {}
                None => seen.push((&field.name, type_)),
            }
        }
    }
}

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
fn is_rust_rule(keyword: &Keyword) -> bool {
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
            | Keyword::OneOf(..)
    )
}

/// Whether the shape fits; none when only the type's own schema can tell.
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

fn needs(marker: &Marker, what: &str) -> String {
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

fn check_rules(rules: &[Marker], shape: &Shape<'_>, report: &Report) {
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
                    check_rules(inner, &peel(item).shape, report);
                }
            }
            Keyword::UniqueItems if matches!(shape, Shape::Array(_)) => {}
            _ => {}
        }
    }
    check_together(rules, shape, report);
}

/// An old item is found by its keys alone.
fn check_changes(rules: &[Marker], has_keys: bool, report: &Report) {
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

/// Rules that contradict each other or need each other.
fn check_together(rules: &[Marker], shape: &Shape<'_>, report: &Report) {
    for (marker, other) in rules.iter().flat_map(|lower| rules.iter().map(move |upper| (lower, upper))) {
        if empty_range(&marker.keyword, &other.keyword) {
            report.at(marker.word.span(), format!("`{}` is above `{}`: no value is legal", marker.word, other.word));
        }
    }
    let has = |wanted: fn(&Keyword) -> bool| rules.iter().find(|marker| wanted(&marker.keyword));
    for (exclusive, bound, name) in [
        (has(|k| matches!(k, Keyword::ExclusiveMinimum)), has(|k| matches!(k, Keyword::Minimum(_))), "minimum"),
        (has(|k| matches!(k, Keyword::ExclusiveMaximum)), has(|k| matches!(k, Keyword::Maximum(_))), "maximum"),
    ] {
        if let (Some(marker), None) = (exclusive, bound) {
            report.at(marker.word.span(), format!("`{}` needs `{name} = …`", marker.word));
        }
    }
    let list_type = has(|k| matches!(k, Keyword::ListType(_)));
    let keys = has(|k| matches!(k, Keyword::ListMapKey(_)));
    match (list_type.map(|marker| (marker, &marker.keyword)), keys) {
        (Some((marker, Keyword::ListType("map"))), None) => {
            report.at(marker.word.span(), "`list_type = \"map\"` needs `list_map_key = \"…\"`");
        }
        (None | Some((_, Keyword::ListType("atomic" | "set"))), Some(marker)) => {
            report.at(marker.word.span(), "`list_map_key` needs `list_type = \"map\"`");
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
            report.at(marker.word.span(), "the items of a `map` list are objects; a list of plain values is a `set`");
        }
        if *kind == "set" && matches!(item, Shape::Array(_) | Shape::Map(_)) {
            report.at(marker.word.span(), "the items of a `set` are plain values");
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
        report.at(marker.word.span(), format!("the default breaks `{}`", broken.word));
    }
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

/// Refuses markers that a structural schema forbids.
pub(crate) fn check_structural(markers: &Markers, report: &Report) {
    for marker in markers.schema.iter().chain(&markers.hardened) {
        if matches!(marker.keyword, Keyword::UniqueItems) {
            report.at(
                marker.word.span(),
                "the API server refuses `uniqueItems`; say `list_type = \"set\"`, or `admission(unique_items)`",
            );
        }
    }
}
