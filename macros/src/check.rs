//! Checks of a model: markers against Rust types, and serde against the schema.

mod in_versions;
mod rules;
mod variants;

pub(crate) use rules::{Domain, domain, is_of_configurations, is_rust_rule, waits};
use rules::{check_changes, check_each, check_schemars, check_together, needs};
use variants::check_enum;

use crate::{
    marker::{Keyword, Marker, Markers, refuse_repetition},
    model::{Body, Content, Field, Item},
    report::Report,
    shape::{Shape, mentions},
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
    if field.markers.is_of_schemars() {
        field.markers.lists().for_each(|rules| check_schemars(rules, report));
    } else {
        check_markers(&field.markers, Some(&shape), report);
    }
    in_versions::check_effect(field, report);
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

/// Checks the rules on something of this shape, or on an object with fields of its own.
fn check_markers(markers: &Markers, shape: Option<&Shape<'_>>, report: &Report) {
    for rules in markers.lists() {
        match shape {
            Some(shape) => check_each(rules, shape, report),
            None => check_object_rules(rules, report),
        }
    }
    if let Some(shape) = shape {
        in_versions::check_together(markers, shape, report);
        for rules in [&markers.hardened, &markers.admission] {
            check_together(rules, shape, report);
        }
    }
    for rules in [&markers.schema, &markers.hardened, &markers.admission] {
        check_changes(rules, !markers.list_map_keys().is_empty(), report);
    }
    for limited in &markers.in_versions {
        check_changes(&limited.rules, in_versions::have_keys(markers, &limited.versions), report);
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

/// Checks rules that hold on something of this shape, whatever stands around it.
pub(crate) fn check_alone(rules: &[Marker], shape: &Shape<'_>, report: &Report) {
    refuse_repetition(rules, report);
    check_each(rules, shape, report);
    check_together(rules, shape, report);
}

fn check_type_markers(item: &Item<'_>, report: &Report) {
    let shape = match &item.body {
        Body::Newtype(field) => Some(field.peeled.shape.clone()),
        Body::Enum(_) if item.is_choice() => Some(Shape::String),
        Body::Struct(_) | Body::Enum(_) => None,
    };
    check_markers(&item.markers, shape.as_ref(), report);
    let names: Vec<&str> = item.fields().iter().map(|field| field.name.as_str()).collect();
    for marker in item.markers.schema.iter().chain(item.markers.of_some()).chain(&item.markers.hardened) {
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

/// Refuses markers that a structural schema forbids.
pub(crate) fn check_structural(markers: &Markers, report: &Report) {
    for marker in markers.schema.iter().chain(markers.of_some()).chain(&markers.hardened) {
        if matches!(marker.keyword, Keyword::UniqueItems) {
            report.at(
                marker.word.span(),
                "the API server refuses `uniqueItems`; say `list_type = \"set\"`, or `admission(unique_items)`",
            );
        }
    }
}
