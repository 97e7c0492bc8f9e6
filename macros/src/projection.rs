//! `#[derive(Projection)]`: what a cache keeps of an object, member by member.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Path, Type, spanned::Spanned};

use crate::{
    entry::{Entry, from_attributes},
    report::Report,
    words,
};

/// The implementation of `Projection`, with the borrowed form that is read from the wire.
pub(crate) fn expand(input: &DeriveInput, report: &Report) -> Option<TokenStream> {
    let entries = from_attributes(&input.attrs, "koord", report);
    report.keep(words::only(&entries, &["crate", "runtime", "kind", "index"]));
    let find = |name: &str| entries.iter().find(|entry| entry.name() == name);
    let path = |name: &str, default: Path| find(name).and_then(|entry| report.keep(entry.path())).unwrap_or(default);
    let krate = path("crate", syn::parse_quote!(::koord_resource));
    let runtime = path("runtime", syn::parse_quote!(::koord_runtime));
    let Some(kind) = find("kind").map(Entry::path) else {
        report.on(&input.ident, "a projection needs `#[koord(kind = Type)]`, or a `ResourceKind`");
        return None;
    };
    let kind = report.keep(kind)?;
    let is_constant = kind.segments.last().is_some_and(|last| !last.ident.to_string().contains(char::is_lowercase));
    let kind = if is_constant {
        quote!(#kind)
    } else {
        quote!(#krate::controller::ResourceKind::of(&<#kind as #krate::Resource>::INFO))
    };
    let index = find("index").and_then(|entry| report.keep(entry.type_())).unwrap_or_else(|| syn::parse_quote!(()));
    let syn::Data::Struct(syn::DataStruct { fields: syn::Fields::Named(fields), .. }) = &input.data else {
        report.on(&input.ident, "a projection is a struct whose fields are members of the object, such as `spec`");
        return None;
    };
    let ident = &input.ident;
    let wire = format_ident!("{ident}Members");
    let (mut members, mut values) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let (Some(name), type_) = (&field.ident, &field.ty) else { continue };
        if name == "metadata" {
            report.at(name.span(), "the cache keeps the metadata itself; take `labels` or `annotations`");
        }
        values.push(value(name, type_, &runtime));
        if name != "labels" && name != "annotations" {
            members.push(name);
        }
    }
    let lifetime = (!members.is_empty()).then(|| quote!(<'a>));
    let serde = quote!(#krate::serde).to_string().replace(' ', "");
    let visibility = &input.vis;
    let documentation = format!("What is read of the JSON of a [`{ident}`], beside its metadata.");
    Some(quote! {
        #[automatically_derived]
        impl #runtime::projection::Projection for #ident {
            const KIND: #krate::controller::ResourceKind = #kind;
            type Wire<'a> = #runtime::projection::WireObject<'a, #wire #lifetime>;
            type Index = #index;
            fn project(
                wire: Self::Wire<'_>,
                strings: &mut #runtime::intern::Interner,
            ) -> ::core::result::Result<Self, #runtime::projection::DecodeError> {
                let _ = &strings;
                Ok(Self { #(#values)* })
            }
        }
        #[doc = #documentation]
        #[derive(#krate::serde::Deserialize)]
        #[serde(crate = #serde)]
        #visibility struct #wire #lifetime {
            #(#[serde(borrow, default)] #members: Option<&'a #krate::serde_json::value::RawValue>,)*
        }
    })
}

fn value(name: &Ident, type_: &Type, runtime: &Path) -> TokenStream {
    let text = name.to_string();
    if name == "labels" || name == "annotations" {
        let field = format!("metadata.{text}");
        return quote!(#name: #runtime::projection::Labels::read(#field, wire.metadata.#name, strings)?,);
    }
    let shown = quote!(#type_).to_string().replace(' ', "");
    if shown == "Arc<str>" {
        return quote!(#name: strings.intern(#runtime::projection::text(wire.members.#name)),);
    }
    let part = quote::quote_spanned!(type_.span()=> part);
    quote!(#name: #runtime::projection::#part(#text, wire.members.#name)?,)
}
