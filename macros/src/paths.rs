//! The paths of columns, scale and selectable fields, checked as far as the fields of the root and their types show what
//! there is. What lies deeper is checked with the whole definition, by `document::check`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::{
    json_path::first_field,
    model::Item,
    report::{Report, respanned},
    resource::{GivenPath, Root},
    shape::{Shape, type_name},
    words::{nearest, root::ROOT},
};

/// Notes paths that begin with no field of the root.
pub(crate) fn check(item: &Item<'_>, root: &Root, report: &Report) {
    if item.markers.may_have_others() {
        return;
    }
    let mut names: Vec<&str> = item.fields().iter().map(|field| field.name.as_str()).collect();
    names.extend(["apiVersion", "kind", "metadata"]);
    for GivenPath { path, versions, .. } in root.paths() {
        let text = path.value();
        let Some((name, _)) = first_field(&text) else { continue };
        let removed = item.markers.removed.iter().find(|removed| removed.name == name);
        if names.contains(&name) || (removed.is_some() && versions.until.is_some()) {
            continue;
        }
        let remedy = match (removed, nearest(name, &names)) {
            (Some(removed), _) => {
                format!("versions before {0} had it, so that its path needs `until = \"{0}\"`", removed.since)
            }
            (None, Some(nearest)) => format!("did you mean `{nearest}`?"),
            (None, None) => "a path starts at the root, as \".spec.size\" does".to_owned(),
        };
        report.on(path, format!("`{}` has no field `{name}` in JSON; {remedy}", item.ident));
    }
    for GivenPath { path, is_selectable, .. } in root.paths() {
        let text = path.value();
        let Some((name, "")) = first_field(&text).filter(|_| is_selectable) else { continue };
        let field = item.fields().iter().find(|field| field.name == name && !field.markers.may_have_others());
        if let Some(shape @ (Shape::Number | Shape::Array(_) | Shape::Map(_) | Shape::IntOrString)) =
            field.map(|field| &field.peeled.shape)
        {
            report
                .on(path, format!("`{name}` is {}, and a selectable field a text, boolean or integer", shape.words()));
        }
    }
}

/// Constants that fail to compile where the type of a field of the root has no field that a path names. They need the
/// schema of that type, so that `derive(Schema)` makes them.
pub(crate) fn late_checks(item: &Item<'_>) -> TokenStream {
    if !item.entries.iter().any(|entry| ROOT.has(&entry.name())) {
        return TokenStream::new();
    }
    // `derive(Resource)` reports what is wrong with the words.
    let root = Root::parse(item, &Report::default());
    root.paths().iter().filter_map(|given| path_check(item, given)).collect()
}

/// The fields that a path names one after the other, and whether that is all of it.
fn names(path: &str) -> (Vec<&str>, bool) {
    let (mut names, mut rest) = (Vec::new(), path);
    while let Some((name, after)) = first_field(rest) {
        names.push(name);
        rest = after;
    }
    (names, rest.is_empty())
}

fn path_check(item: &Item<'_>, GivenPath { path, versions, is_selectable }: &GivenPath<'_>) -> Option<TokenStream> {
    let text = path.value();
    let (holder, inside) = first_field(&text)?;
    let (name, rest) = first_field(inside)?;
    let holder = item.fields().iter().find(|field| field.name == holder)?;
    let ends = versions.until.is_some();
    // Before it was changed, the field had another type.
    let had_another_type = ends && !holder.markers.changes.is_empty();
    let (krate, type_, span) = (&item.krate, holder.peeled.inner, path.span());
    let is_named = matches!(holder.peeled.shape, Shape::Named) && !item.is_generic(type_);
    if !is_named || holder.markers.may_have_others() || had_another_type {
        return None;
    }
    let of = type_name(type_);
    let (deeper, is_whole) = names(inside);
    let check = if deeper.len() > 1 && !ends {
        let path = deeper.join(".");
        let absent = format!("`{of}` has no field `{path}` in the JSON of the newest version, whose names paths use");
        let unfit = format!("`{path}` of `{of}` is no text, boolean or integer, as selectable fields are");
        let is_selectable = *is_selectable && is_whole;
        quote!(needs_path::<#type_>(&[#(#deeper),*], #is_selectable, [#absent, #unfit]))
    } else if ends {
        let absent = format!("`{of}` has no field `{name}` in JSON, neither in the newest version nor `removed`");
        quote!(needs_member_of_any_version::<#type_>(#name, #absent))
    } else {
        let absent = format!(
            "`{of}` has no field `{name}` in the JSON of the newest version, whose names paths use; the path of a field that was `removed` needs `until`"
        );
        if *is_selectable && rest.is_empty() {
            let unfit = format!("`{name}` of `{of}` is no text, boolean or integer, as selectable fields are");
            quote!(needs_selectable::<#type_>(#name, [#absent, #unfit]))
        } else {
            quote!(needs_member::<#type_>(#name, #absent))
        }
    };
    // Every token stands where the path stands, so that the compiler points there.
    let check = respanned(quote!(#krate::declare::#check), span);
    Some(quote_spanned!(span=> const _: () = #check;))
}
