//! The derives and attributes of koord-resource.
//!
//! Three steps, one file each way: attributes are read into a model (`entry`, `serde`, `marker`, `model`), the model is
//! checked (`check`), and code is made of it (`schema`, `resource`, …). Mistakes are collected and all shown; the user's
//! item stays as it is. The code that is made is short, names only the crate whose traits it implements (by the name that the user's Cargo.toml
//! has for it, `names`) and calls ordinary functions there.
//! `KOORD_MACROS_DEBUG=1` prints it while it compiles.
//!
//! Use these through `koord_resource` (or the facade `koord`). The crate knows Rust syntax and the words of its attributes, and
//! nothing of what the code that it makes does. Read first: the page of `Resource`, then that of `Schema`; each lists what its
//! macro takes (`words`, `docs`).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod admission;
mod cel;
mod change;
mod check;
mod configuration;
mod controller;
mod convert;
mod entry;
#[cfg(test)]
mod expansions;
mod function;
mod handler;
mod json;
mod json_path;
mod marker;
mod model;
mod mutate;
mod names;
#[cfg(test)]
mod pages;
mod paths;
mod projection;
mod rbac;
mod report;
mod resource;
mod schema;
mod serde;
mod shape;
mod validate;
mod versions;
mod words;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use crate::{model::Item, report::Report};

#[doc = include_str!("../docs/resource.md")]
#[proc_macro_derive(Resource, attributes(koord))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Resource", &input, None, |item, report| {
        let root = resource::Root::parse(item, report);
        resource::check(item, &root, report);
        paths::check(item, &root, report);
        let handlers = admission::derived(item, report);
        let identity = if report.is_clean() { resource::expand(item, &root) } else { resource::stand_in(item, &root) };
        quote::quote!(#identity #handlers)
    })
}

#[doc = include_str!("../docs/schema.md")]
#[proc_macro_derive(Schema, attributes(koord))]
pub fn derive_schema(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Schema", &input, Some(no_schema), |item, report| {
        check::check(item, report);
        for markers in item.fields().iter().map(|field| &field.markers).chain([&item.markers]) {
            check::check_structural(markers, report);
        }
        let rules = cel::check(item, report);
        let schema = schema::expand(item);
        quote::quote!(#schema #rules)
    })
}

#[doc = include_str!("../docs/validate.md")]
#[proc_macro_derive(Validate, attributes(koord))]
pub fn derive_validate(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Validate", &input, Some(nothing), |item, report| {
        check::check(item, report);
        validate::expand(item)
    })
}

#[doc = include_str!("../docs/mutate.md")]
#[proc_macro_derive(Mutate, attributes(koord))]
pub fn derive_mutate(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Mutate", &input, Some(nothing), |item, report| {
        check::check(item, report);
        mutate::check(item, report);
        mutate::expand(item)
    })
}

#[doc = include_str!("../docs/convert.md")]
#[proc_macro_derive(Convert, attributes(koord))]
pub fn derive_convert(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Convert", &input, Some(nothing), |item, report| {
        check::check(item, report);
        convert::check(item, report);
        convert::expand(item)
    })
}

#[doc = include_str!("../docs/projection.md")]
#[proc_macro_derive(Projection, attributes(koord))]
pub fn derive_projection(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    print("Projection", projection::derive(&input))
}

#[doc = include_str!("../docs/configuration.md")]
#[proc_macro_derive(Configuration, attributes(koord))]
pub fn derive_configuration(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    print("Configuration", configuration::derive(&input))
}

#[doc = include_str!("../docs/admission.md")]
#[proc_macro_attribute]
pub fn admission(words: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as syn::ItemFn);
    print("admission", admission::attribute(words.into(), &function))
}

/// A constant table of handlers: `handlers![validate_quota, Reservation::validating_handler()]`.
#[proc_macro]
pub fn handlers(list: TokenStream) -> TokenStream {
    print("handlers", admission::table(list.into()))
}

#[doc = include_str!("../docs/controller.md")]
#[proc_macro_attribute]
pub fn controller(words: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::ItemStruct);
    print("controller", controller::attribute(words.into(), &item))
}

/// A constant table of `ControllerSpec`s: `controllers![NodeSlo, NodeMetric]`.
#[proc_macro]
pub fn controllers(list: TokenStream) -> TokenStream {
    print("controllers", controller::table(list.into()))
}

/// Reads, checks and expands. After a mistake the type still gets the trait, with nothing in it: the content that
/// `stand_in` makes, or what `expand` made where there is no `stand_in`.
fn derive(
    name: &str,
    input: &DeriveInput,
    stand_in: Option<fn(&syn::Path) -> proc_macro2::TokenStream>,
    expand: impl FnOnce(&Item<'_>, &Report) -> proc_macro2::TokenStream,
) -> TokenStream {
    let report = Report::default();
    let entries = entry::from_attributes(&input.attrs, "koord", &report);
    let krate = names::resource(&entries, &report);
    let item = Item::parse(input, entries, krate.clone(), &report);
    let code = item.map(|item| expand(&item, &report)).unwrap_or_default();
    let tokens = report.finish(code, |code| {
        let Some(stand_in) = stand_in else { return code };
        let (ident, content) = (&input.ident, stand_in(&krate));
        let name = syn::Ident::new(name, ident.span());
        let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
        quote::quote! {
            impl #impl_generics #krate::#name for #ident #type_generics #where_clause { #content }
        }
    });
    print(name, tokens)
}

fn print(name: &str, tokens: proc_macro2::TokenStream) -> TokenStream {
    if std::env::var_os("KOORD_MACROS_DEBUG").is_some_and(|value| value == "1") {
        eprintln!("// {name}\n{tokens}\n");
    }
    tokens.into()
}

fn no_schema(krate: &syn::Path) -> proc_macro2::TokenStream {
    quote::quote! {
        const SHAPE: #krate::declare::Shape = #krate::declare::Shape::Anything;
        fn schema(_: #krate::declare::Emit) -> #krate::schema::Schema {
            #krate::declare::anything()
        }
    }
}

fn nothing(_: &syn::Path) -> proc_macro2::TokenStream {
    proc_macro2::TokenStream::new()
}
