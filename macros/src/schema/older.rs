//! Properties of older versions that stood elsewhere, or stand nowhere now.

use proc_macro2::TokenStream;
use quote::quote;

use super::{describe, field_schema, required};
use crate::{
    change::{Move, Removed},
    model::{Field, Item},
};

/// Puts a field where it stood.
pub(super) fn moved(item: &Item<'_>, field: &Field<'_>, moved: &Move) -> TokenStream {
    let (krate, own, type_) = (&item.krate, &field.name, field.type_);
    let Move { since, parent, name, member, .. } = moved;
    let there = parent.as_ref().map_or_else(|| quote!(None), |parent| quote!(Some(#parent)));
    let put = if let Some(member) = member {
        let of = quote!(&<#type_ as #krate::Schema>::schema(cx));
        quote!(#krate::declare::moved_member(&mut object, [#own, #member], #of, (#there, #name));)
    } else {
        let (schema, required) = (field_schema(item, field), required(field));
        quote!(#krate::declare::moved(&mut object, #own, [#parent, #name], #required, #schema);)
    };
    quote!(if !cx.has(#since) { #put })
}

/// Adds a field that is no more.
pub(super) fn removed(item: &Item<'_>, removed: &Removed) -> TokenStream {
    let krate = &item.krate;
    let Removed { since, added, name, type_, default, description, .. } = removed;
    let description = describe(description.as_deref().unwrap_or_default());
    let default = default.as_ref().map(|json| quote!(schema.default = Some(#krate::serde_json::json!(#json));));
    let mut schema = quote!(<#type_ as #krate::Schema>::schema(cx));
    if default.is_some() || !description.is_empty() {
        schema = quote!({ let mut schema = #schema; #description #default schema });
    }
    let after = added.as_ref().map(|added| quote!(&& cx.has(#added)));
    quote!(if !cx.has(#since) #after { #krate::declare::property(&mut object, #name, false, #schema); })
}
