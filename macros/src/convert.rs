//! `#[derive(Convert)]`: the way between the versions of a kind, by what its fields say about older versions.

mod moved;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Path, Type};

use crate::{
    change::{Change, ChangeKind, rank},
    function,
    marker::Markers,
    model::{Body, Field, Item},
    report::Report,
    shape::{Shape, may_have_rules},
    versions::{self, Form, forms},
};

/// Notes changes that cannot be undone.
pub(crate) fn check(item: &Item<'_>, report: &Report) {
    match &item.body {
        Body::Enum(_) if !item.is_choice() => {
            report.on(
                item.ident,
                "versions differ in named fields; `Convert` stands on structs, and on enums without data",
            );
        }
        Body::Newtype(field) if !field.markers.changes.is_empty() || !field.markers.moves.is_empty() => {
            report.at(field.span, "a newtype has no fields in JSON; put the change on the field that holds it");
        }
        Body::Struct(_) | Body::Newtype(_) | Body::Enum(_) => {}
    }
    versions::check(item, report);
    moved::check(item, report);
    for field in item.fields() {
        let added = field.markers.changes.iter().any(|change| matches!(change.kind, ChangeKind::Added));
        if added && field.is_required() {
            report.at(
                field.span,
                format!("`{}` came with a later version, so objects of older ones lack it; give it a default or make it an `Option`", field.name),
            );
        }
        for pair in field.markers.changes.windows(2) {
            if rank(&pair[0].since) > rank(&pair[1].since) {
                report.at(field.span, "the changes of a field stand in the order of their versions");
            }
        }
        if field.serde.flatten && (!field.markers.changes.is_empty() || !field.markers.moves.is_empty()) {
            report.at(field.span, "a flattened field has no name of its own; put the change on the fields inside");
        }
    }
}

/// The implementation of `Convert`.
pub(crate) fn expand(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let generics = item.bounded(&quote!(#krate::Convert));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let up = function(item, Way::Up);
    let down = function(item, Way::Down);
    let name_in = name_in(item);
    let named = named(item);
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Convert for #ident #type_generics #where_clause { #named #up #down #name_in }
    }
}

/// The constants `NAMED`; none where the type is the same in all versions.
fn named(item: &Item<'_>) -> Option<TokenStream> {
    let krate = &item.krate;
    let own = versions::named(item);
    let types = item
        .all_fields()
        .into_iter()
        .filter(|field| may_have_rules(&field.peeled.shape) && !field.markers.is_foreign());
    let types: Vec<&Type> = types.map(|field| field.type_).collect();
    (!own.is_empty() || !types.is_empty()).then(|| {
        quote! {
            const NAMED: &'static [&'static str] = &[#(#own),*];
            const NAMED_INSIDE: &'static [&'static [&'static str]] = &[#(<#types as #krate::Convert>::NAMED),*];
            const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] =
                &[#(<#types as #krate::Convert>::NAMED_INSIDE),*];
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Way {
    fn name(self) -> Ident {
        format_ident!("{}", if self == Way::Up { "up" } else { "down" })
    }

    /// The argument that says which older version it is about.
    fn version(self) -> Ident {
        format_ident!("{}", if self == Way::Up { "from" } else { "to" })
    }
}

/// One of the two functions; none where the type is the same in all versions.
fn function(item: &Item<'_>, way: Way) -> Option<TokenStream> {
    let krate = &item.krate;
    let (name, version) = (way.name(), way.version());
    let body = match &item.body {
        Body::Newtype(field) => newtype(item, field, way)?,
        Body::Struct(fields) => {
            let flattened = fields.iter().filter(|field| field.serde.flatten && is_plainly_named(field)).map(|field| {
                let type_ = field.type_;
                quote!(<#type_ as #krate::Convert>::#name(value, #version, at, was, kept)?;)
            });
            let flattened: TokenStream = flattened.collect();
            let (begin, end) = moved::around(item, way);
            let named: TokenStream = fields.iter().map(|field| of_field(krate, field, way)).collect();
            let named = quote!(#begin #named #end);
            let named = (!named.is_empty()).then(|| {
                quote! {
                    let Some(object) = value.as_object_mut() else { return Ok(()) };
                    #named
                }
            });
            if flattened.is_empty() && named.is_none() {
                return None;
            }
            quote!(#flattened #named Ok(()))
        }
        Body::Enum(_) => return None,
    };
    Some(quote! {
        fn #name(
            value: &mut #krate::serde_json::Value, #version: &str, at: &#krate::convert::Place<'_>,
            was: &#krate::convert::Kept, kept: &mut #krate::convert::Kept,
        ) -> ::core::result::Result<(), #krate::convert::ConvertError> { #body }
    })
}

/// The inner value stands where the newtype stands.
fn newtype(item: &Item<'_>, field: &Field<'_>, way: Way) -> Option<TokenStream> {
    let (krate, type_) = (&item.krate, field.type_);
    let (name, version) = (way.name(), way.version());
    if !may_have_rules(&field.peeled.shape) || field.markers.is_foreign() {
        return None;
    }
    let Some((keys, items)) = keyed_items(field, &item.markers) else {
        return Some(quote!(<#type_ as #krate::Convert>::#name(value, #version, at, was, kept)));
    };
    let function = format_ident!("items_{name}");
    Some(quote!(#krate::convert::#function::<#items>(value, &[#(#keys),*], #version, at, was, kept)))
}

fn of_field(krate: &Path, field: &Field<'_>, way: Way) -> TokenStream {
    let name = &field.name;
    let forms = forms(field);
    let steps = field.markers.changes.iter().zip(forms.windows(2)).filter_map(|(change, forms)| {
        let step = step(krate, field, change, &forms[0], &forms[1], way)?;
        Some(since(krate, change, way, &step))
    });
    let steps: Vec<TokenStream> = steps.collect();
    let added = field.markers.changes.iter().find(|change| matches!(change.kind, ChangeKind::Added));
    let added = added.map(|change| {
        let step = match way {
            Way::Up => quote!(#krate::convert::restore_added(object, #name, was);),
            Way::Down => quote!(#krate::convert::drop_added(object, #name, kept);),
        };
        since(krate, change, way, &step)
    });
    let inner = inner(krate, field, way);
    // What was not there is kept in the newest form: it goes first and comes back last.
    match way {
        Way::Up => quote!(#(#steps)* #inner #added),
        Way::Down => {
            let steps = steps.iter().rev();
            quote!(#added #inner #(#steps)*)
        }
    }
}

/// One change of the name or the type.
fn step(
    krate: &Path,
    field: &Field<'_>,
    change: &Change,
    older: &Form<'_>,
    newer: &Form<'_>,
    way: Way,
) -> Option<TokenStream> {
    let (old_name, new_name) = (older.name, newer.name);
    Some(match &change.kind {
        ChangeKind::Added | ChangeKind::Moved => return None,
        ChangeKind::Renamed { .. } => match way {
            Way::Up => quote!(#krate::convert::rename(object, #old_name, #new_name);),
            Way::Down => quote!(#krate::convert::rename(object, #new_name, #old_name);),
        },
        ChangeKind::Changed { from, up, down } => {
            let (newer, since) = (newer.type_.unwrap_or(field.type_), &change.since);
            let up = function::pointer(up, quote!(fn(#from) -> #newer));
            let down = function::pointer(down, quote!(fn(#newer) -> #from));
            let (types, kept) = match way {
                Way::Up => (quote!(#from, #newer), quote!(was)),
                Way::Down => (quote!(#newer, #from), quote!(kept)),
            };
            let way = way.name();
            quote! {
                #krate::convert::Translation { name: #new_name, since: #since, up: #up, down: #down }
                    .#way::<#types>(object, at, #kept)?;
            }
        }
    })
}

/// What the field's own type says of older versions.
fn inner(krate: &Path, field: &Field<'_>, way: Way) -> Option<TokenStream> {
    let replaced = field.markers.changes.iter().any(|change| matches!(change.kind, ChangeKind::Changed { .. }));
    if !may_have_rules(&field.peeled.shape) || field.markers.is_foreign() || replaced || field.serde.flatten {
        return None;
    }
    let (name, type_, version) = (&field.name, field.type_, way.version());
    let Some((keys, items)) = keyed_items(field, &field.markers) else {
        let function = format_ident!("field_{}", way.name());
        return Some(quote!(#krate::convert::#function::<#type_>(object, #name, #version, at, was, kept)?;));
    };
    let function = format_ident!("map_list_{}", way.name());
    Some(quote!(#krate::convert::#function::<#items>(object, #name, &[#(#keys),*], #version, at, was, kept)?;))
}

fn keyed_items<'f>(field: &'f Field<'_>, markers: &'f Markers) -> Option<(Vec<&'f str>, &'f Type)> {
    let Shape::Array(items) = field.peeled.shape else { return None };
    let keys = markers.list_map_keys();
    (!keys.is_empty()).then_some((keys, items))
}

fn is_plainly_named(field: &Field<'_>) -> bool {
    matches!(field.peeled.shape, Shape::Named) && !field.markers.is_foreign()
}

/// What the fields are called in older versions, for lists whose items are known by them.
fn name_in(item: &Item<'_>) -> Option<TokenStream> {
    let krate = &item.krate;
    let arms: Vec<TokenStream> = match &item.body {
        Body::Newtype(field) if is_plainly_named(field) => {
            let type_ = field.type_;
            return Some(quote! {
                fn name_in<'n>(version: &str, name: &'n str) -> ::core::option::Option<&'n str> {
                    <#type_ as #krate::Convert>::name_in(version, name)
                }
            });
        }
        Body::Struct(fields) => fields.iter().filter_map(|field| older_names(krate, field)).collect(),
        Body::Newtype(_) | Body::Enum(_) => Vec::new(),
    };
    (!arms.is_empty()).then(|| {
        quote! {
            fn name_in<'n>(version: &str, name: &'n str) -> ::core::option::Option<&'n str> {
                let version = #krate::convert::version_rank(version);
                match name {
                    #(#arms)*
                    _ => Some(name),
                }
            }
        }
    })
}

fn older_names(krate: &Path, field: &Field<'_>) -> Option<TokenStream> {
    let forms = forms(field);
    let changes = field.markers.changes.iter().zip(&forms);
    let named: Vec<_> = changes.filter(|(change, _)| !matches!(change.kind, ChangeKind::Changed { .. })).collect();
    if named.is_empty() {
        return None;
    }
    let older = named.into_iter().rev().fold(quote!(Some(name)), |newer, (change, form)| {
        let (since, name) = (&change.since, form.name);
        let older = if form.present { quote!(Some(#name)) } else { quote!(None) };
        quote!(if version < #krate::convert::version_rank(#since) { #older } else { #newer })
    });
    let name = &field.name;
    Some(quote!(#name => #older,))
}

fn since(krate: &Path, change: &Change, way: Way, step: &TokenStream) -> TokenStream {
    let before = before(krate, &change.since, way);
    quote!(if #before { #step })
}

/// The condition that the older version comes before another.
fn before(krate: &Path, since: &str, way: Way) -> TokenStream {
    let version = way.version();
    quote!(#krate::convert::version_rank(#version) < #krate::convert::version_rank(#since))
}
