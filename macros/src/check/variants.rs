//! Checks of enums: what JSON their variants become together.

use crate::{
    model::{Body, Content, Item},
    report::Report,
    serde::Tagging,
    shape::{Shape, type_name},
};

pub(super) fn check_enum(item: &Item<'_>, report: &Report) {
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
