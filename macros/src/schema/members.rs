//! What derived code says of the members of an object, and the checks of list map keys, which the items must have.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Type, spanned::Spanned};

use super::variant;
use crate::{
    change::Removed,
    marker::{Keyword, Marker, Markers},
    model::{Body, Field, Item},
    report::respanned,
    shape::{Peeled, Shape, peel, type_name},
};

/// The constant `MEMBERS`; none where the members are not known.
pub(super) fn constant(item: &Item<'_>) -> TokenStream {
    let krate = &item.krate;
    let (members, inside) = match &item.body {
        _ if item.markers.may_have_others() => return TokenStream::new(),
        Body::Struct(fields) if !fields.iter().any(|field| field.serde.flatten) => {
            let members = fields.iter().map(|field| member(item, field));
            let members = members.chain(item.markers.removed.iter().map(|removed| removed_member(item, removed)));
            let inside = fields.iter().map(|field| inside(item, field));
            (quote!(#krate::declare::Members::Known(&[#(#members),*])), quote!(&[#(#inside),*]))
        }
        Body::Newtype(field) if !field.markers.may_have_others() => {
            let inner = field.type_;
            (quote!(<#inner as #krate::Schema>::MEMBERS), quote!(<#inner as #krate::Schema>::INSIDE))
        }
        Body::Struct(_) | Body::Newtype(_) | Body::Enum(_) => return TokenStream::new(),
    };
    quote! {
        const MEMBERS: #krate::declare::Members = #members;
        const INSIDE: &'static [#krate::declare::Members] = #inside;
    }
}

/// The members of what stands in a field.
fn inside(item: &Item<'_>, field: &Field<'_>) -> TokenStream {
    let (krate, type_) = (&item.krate, field.type_);
    if !matches!(field.peeled.shape, Shape::Named) || field.markers.is_foreign() || field.markers.may_have_others() {
        return quote!(#krate::declare::Members::Unknown);
    }
    quote!(<#type_ as #krate::Schema>::MEMBERS)
}

fn member(item: &Item<'_>, field: &Field<'_>) -> TokenStream {
    let (krate, name, shape, is_certain) = (&item.krate, &field.name, shape(item, field), is_certain(field));
    quote!(#krate::declare::Member { name: #name, shape: #shape, is_certain: #is_certain, is_removed: false })
}

fn removed_member(item: &Item<'_>, removed: &Removed) -> TokenStream {
    let (krate, name, type_) = (&item.krate, &removed.name, &removed.type_);
    let shape = quote!(<#type_ as #krate::Schema>::SHAPE);
    quote!(#krate::declare::Member { name: #name, shape: #shape, is_certain: false, is_removed: true })
}

fn shape(item: &Item<'_>, field: &Field<'_>) -> TokenStream {
    let krate = &item.krate;
    let said = field.markers.find(|keyword| match keyword {
        Keyword::Type(name) => Some(variant(name)),
        Keyword::IntOrString => Some(format_ident!("IntOrString")),
        _ => None,
    });
    match said {
        Some(shape) => quote!(#krate::declare::Shape::#shape),
        None if field.markers.is_foreign() => quote!(#krate::declare::Shape::Anything),
        None => {
            let type_ = field.type_;
            quote_spanned!(type_.span()=> <#type_ as #krate::Schema>::SHAPE)
        }
    }
}

/// Whether objects have the field once defaults are filled in, as far as follows from the field: a type of its own may
/// have a default.
fn is_certain(field: &Field<'_>) -> bool {
    let mut markers = field.markers.of_newest().chain(&field.markers.hardened);
    field.is_required()
        || matches!(field.peeled.shape, Shape::Named)
        || markers.any(|marker| matches!(marker.keyword, Keyword::Default(_)))
}

// === keys of lists ===

/// Constants that fail to compile where the items of a list cannot be known by a key.
pub(super) fn key_checks(item: &Item<'_>) -> TokenStream {
    let mut checks = TokenStream::new();
    for field in item.all_fields().into_iter().filter(|field| !field.markers.is_foreign()) {
        checks.extend(keys(item, &field.markers, &field.peeled.shape));
    }
    if let Body::Newtype(field) = &item.body {
        checks.extend(keys(item, &item.markers, &field.peeled.shape));
    }
    checks
}

fn keys(item: &Item<'_>, markers: &Markers, shape: &Shape<'_>) -> TokenStream {
    // Keys are named as the newest version has them.
    let mut checks = TokenStream::new();
    for marker in markers.of_newest().chain(&markers.hardened) {
        checks.extend(keys_of(item, marker, shape));
    }
    checks
}

/// The checks of the keys of a list, or of the lists that are its items.
fn keys_of(item: &Item<'_>, marker: &Marker, shape: &Shape<'_>) -> TokenStream {
    let Shape::Array(items) = shape else { return TokenStream::new() };
    let Peeled { inner, shape: of_items, .. } = peel(items);
    match &marker.keyword {
        Keyword::ListMapKey(keys) if matches!(of_items, Shape::Named) && !item.is_generic(inner) => {
            keys.iter().map(|key| key_check(item, marker, key, inner)).collect()
        }
        Keyword::Items(markers) => markers.iter().map(|marker| keys_of(item, marker, &of_items)).collect(),
        _ => TokenStream::new(),
    }
}

fn key_check(item: &Item<'_>, marker: &Marker, key: &str, type_: &Type) -> TokenStream {
    let (krate, name, span) = (&item.krate, type_name(type_), marker.word.span());
    let absent = format!("`list_map_key` names `{key}`, which is no field of `{name}` in JSON");
    let uncertain =
        format!("`list_map_key` names `{key}`, which `{name}` may lack; make it required, or give it a `default`");
    let unfit = format!("`list_map_key` names `{key}`, which is no text, number or boolean in `{name}`");
    // Every token stands where the marker stands, so that the compiler points there.
    let check = respanned(quote!(#krate::declare::needs_key::<#type_>(#key, [#absent, #uncertain, #unfit])), span);
    quote_spanned!(span=> const _: () = #check;)
}
