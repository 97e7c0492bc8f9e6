//! `moved` and `removed`: what stood elsewhere in older versions, or stands nowhere now.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Path;

use super::{Way, before, is_plainly_named};
use crate::{
    change::{ChangeKind, Move, Removed},
    model::{Body, Field, Item},
    report::Report,
    shape::may_have_rules,
    versions::form_before,
};

/// Notes moves and removals that cannot be undone.
pub(super) fn check(item: &Item<'_>, report: &Report) {
    if let (Some(removed), false) = (item.markers.removed.first(), matches!(item.body, Body::Struct(_))) {
        report.at(removed.span, "this type has no fields in JSON; put `removed` on the struct that had the field");
    }
    for field in item.fields() {
        for moved in &field.markers.moves {
            check_move(item, field, moved, report);
        }
    }
}

fn check_move(item: &Item<'_>, field: &Field<'_>, moved: &Move, report: &Report) {
    if moved.member.is_none() && field.markers.changes.len() > 1 {
        report.at(
            moved.span,
            "a field that moved is the same in all versions but for its place; put other changes on the fields inside of its type",
        );
    }
    if moved.member.is_some() && !is_plainly_named(field) {
        report.at(
            moved.span,
            format!("`member` names a field of a struct, and `{}` is of another type; move the field as a whole, without `member`", field.name),
        );
    }
    let parent = moved.parent.as_ref().and_then(|parent| item.fields().iter().find(|field| field.name == *parent));
    let added = parent.and_then(|parent| {
        let added = parent.markers.changes.iter().find(|change| matches!(change.kind, ChangeKind::Added))?;
        Some((&parent.name, &added.since))
    });
    if let Some((parent, since)) = added {
        report.at(
            moved.span,
            format!("versions before {since} have no `{parent}` that could hold the field; `from` goes through a field of all older versions"),
        );
    }
}

/// What is done before and after the other fields are converted.
pub(super) fn around(item: &Item<'_>, way: Way) -> (TokenStream, TokenStream) {
    let krate = &item.krate;
    let (mut begin, mut end) = (TokenStream::new(), TokenStream::new());
    let moves = item.fields().iter().flat_map(|field| field.markers.moves.iter().map(move |moved| (field, moved)));
    for (index, (field, moved)) in moves.enumerate() {
        let (place, value) = (format_ident!("place_{index}"), format_ident!("moved_{index}"));
        let (take, put) = (format_ident!("take_{}", way.name()), format_ident!("put_{}", way.name()));
        let (version, before) = (way.version(), before(krate, &moved.since, way));
        let type_ = if may_have_rules(&field.peeled.shape) && !field.markers.is_foreign() {
            let type_ = field.type_;
            quote!(#type_)
        } else {
            quote!(#krate::serde_json::Value)
        };
        let declared = declared(item, field, moved, way);
        begin.extend(quote! {
            let #place = #declared;
            let #value = if #before { #place.#take::<#type_>(object, #version, at, was, kept)? } else { None };
        });
        end.extend(quote!(#place.#put(object, #value, kept);));
    }
    for removed in &item.markers.removed {
        let step = remove(item, removed, way);
        if way == Way::Up { begin.extend(step) } else { end.extend(step) }
    }
    (begin, end)
}

/// The two places of a field, as a `Moved`.
fn declared(item: &Item<'_>, field: &Field<'_>, moved: &Move, way: Way) -> TokenStream {
    let (krate, version) = (&item.krate, way.version());
    let Move { since, parent, name, member, .. } = moved;
    let older = match parent {
        Some(parent) => {
            let stays = item.fields().iter().any(|field| field.name == *parent);
            spot(krate, &quote!(<Self as #krate::Convert>::name_in(#version, #parent)), stays, name)
        }
        None => spot(krate, &quote!(None), false, name),
    };
    let own = &field.name;
    let newest = match member {
        Some(member) => spot(krate, &quote!(Some(#own)), form_before(field, since).is_some(), member),
        None => spot(krate, &quote!(None), false, own),
    };
    quote!(#krate::convert::Moved { since: #since, older: #older, newest: #newest })
}

fn spot(krate: &Path, parent: &TokenStream, stays: bool, name: &str) -> TokenStream {
    quote!(#krate::convert::Spot { parent: #parent, stays: #stays, name: #name })
}

fn remove(item: &Item<'_>, removed: &Removed, way: Way) -> TokenStream {
    let (krate, direction, version) = (&item.krate, way.name(), way.version());
    let Removed { since, added, name, default, .. } = removed;
    let before = before(krate, since, way);
    let after = added
        .as_ref()
        .map(|added| quote!(&& #krate::convert::version_rank(#version) >= #krate::convert::version_rank(#added)));
    let default =
        default.as_ref().map_or_else(|| quote!(None), |default| quote!(Some(#krate::serde_json::json!(#default))));
    quote! {
        if #before #after {
            #krate::convert::Removed { name: #name, since: #since, default: #default }.#direction(object, kept);
        }
    }
}
