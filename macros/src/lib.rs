//! The derives and attributes of koord-resource.
//!
//! Three steps, one file each way: attributes are read into a model (`entry`, `serde`, `marker`, `model`), the model is
//! checked (`check`), and code is made of it (`schema`, `resource`, …). Mistakes are collected and all shown; the user's
//! item stays as it is. The code that is made is short, names only `koord_resource` and calls ordinary functions there.
//! `KOORD_MACROS_DEBUG=1` prints it while it compiles.
//!
//! Use these through `koord_resource` (or the facade `koord`); `docs/library.md` lists the vocabulary.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod check;
mod convert;
mod entry;
mod json;
mod marker;
mod model;
mod report;
mod resource;
mod schema;
mod serde;
mod shape;
mod words;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use crate::{model::Item, report::Report};

/// The identity of a kind: `koord_resource::Resource`, the traits of k8s-openapi (so that `kube::Api` works) and
/// `Serialize` with `apiVersion` and `kind`. Stands on the root struct.
#[proc_macro_derive(Resource, attributes(koord))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Resource", &input, |item, report| {
        let root = resource::Root::parse(item, report);
        resource::check(item, &root, report);
        resource::expand(item, &root)
    })
}

/// The structural schema of a type: `koord_resource::Schema`. Stands on structs, newtypes and enums, generic or not.
#[proc_macro_derive(Schema, attributes(koord))]
pub fn derive_schema(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive("Schema", &input, |item, report| {
        check::check(item, report);
        for markers in item.fields().iter().map(|field| &field.markers).chain([&item.markers]) {
            check::check_structural(markers, report);
        }
        schema::expand(item)
    })
}

fn derive(
    name: &str,
    input: &DeriveInput,
    expand: impl FnOnce(&Item<'_>, &Report) -> proc_macro2::TokenStream,
) -> TokenStream {
    let report = Report::default();
    let tokens = Item::parse(input, &report).map(|item| expand(&item, &report)).unwrap_or_default();
    finish(name, tokens, report)
}

/// The code, or what is wrong. Code made of a wrong model would only add errors about itself.
fn finish(name: &str, tokens: proc_macro2::TokenStream, report: Report) -> TokenStream {
    let tokens = if report.is_clean() { tokens } else { report.into_tokens() };
    if std::env::var_os("KOORD_MACROS_DEBUG").is_some_and(|value| value == "1") {
        eprintln!("// {name}\n{tokens}\n");
    }
    tokens.into()
}
