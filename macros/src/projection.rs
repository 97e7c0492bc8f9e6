//! `#[derive(Projection)]`: what a cache keeps of an object, member by member.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Field, Path, Type, ext::IdentExt, spanned::Spanned};

use crate::{
    entry::{Entry, from_attributes},
    names,
    report::Report,
    serde::Case,
    shape::{Wrapper, is_shared_text, peel},
    words::{self, projection::PROJECTION},
};

const KIND: &str = "the type of a kind, or a `ResourceKind`";

/// The implementation of `Projection`, or what stands in for it after a mistake.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let report = Report::default();
    let entries = from_attributes(&input.attrs, "koord", &report);
    report.keep(words::only(&entries, &[&PROJECTION]));
    let (krate, runtime) = (names::resource(&entries, &report), names::runtime(&entries, &report));
    let code = expand(input, &entries, (&krate, &runtime), &report).unwrap_or_default();
    report.finish(code, |_| stand_in(input, &entries, (&krate, &runtime)))
}

/// A projection of another kind whose functions are never called.
fn stand_in(input: &DeriveInput, entries: &[Entry], (krate, runtime): (&Path, &Path)) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let index = entries.iter().find(|entry| entry.name() == "index").and_then(|entry| entry.type_().ok());
    let index = index.unwrap_or_else(|| syn::parse_quote!(()));
    let traits =
        named(input).into_iter().flatten().filter_map(|(name, field)| of_field(ident, name, &field.ty, runtime));
    let traits = input.generics.params.is_empty().then(|| quote!(#(#traits)*));
    quote! {
        #traits
        impl #impl_generics #runtime::projection::Projection for #ident #type_generics #where_clause {
            const KIND: #krate::controller::ResourceKind = #krate::controller::ResourceKind::POD;
            type Wire<'a> = #runtime::projection::WireObject<'a, #krate::serde::de::IgnoredAny>;
            type Index = #index;
            fn project(
                _: Self::Wire<'_>,
                _: &mut #runtime::intern::Interner,
            ) -> ::core::result::Result<Self, #runtime::projection::DecodeError> {
                loop {}
            }
        }
    }
}

/// The fields of a struct that has names for them.
fn named(input: &DeriveInput) -> Option<impl Iterator<Item = (&Ident, &Field)>> {
    let syn::Data::Struct(syn::DataStruct { fields: syn::Fields::Named(fields), .. }) = &input.data else {
        return None;
    };
    Some(fields.named.iter().filter_map(|field| Some((field.ident.as_ref()?, field))))
}

/// The trait by which the runtime gets at a field, if it does.
fn of_field(ident: &Ident, name: &Ident, type_: &Type, runtime: &Path) -> Option<TokenStream> {
    let text = name.to_string();
    match of_metadata(ident, &text, runtime) {
        Some(OfMetadata::Read { implementation, .. }) => Some(implementation),
        Some(OfMetadata::Kept(_)) => None,
        None => (text == "status").then(|| with_status(ident, type_, runtime)),
    }
}

/// The implementation of `Projection`, with the borrowed form that is read from the wire.
fn expand(
    input: &DeriveInput,
    entries: &[Entry],
    (krate, runtime): (&Path, &Path),
    report: &Report,
) -> Option<TokenStream> {
    let find = |name: &str| entries.iter().find(|entry| entry.name() == name);
    let Some(kind) = find("kind").map(|entry| entry.path_to(KIND)) else {
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
    let Some(fields) = named(input) else {
        report.on(&input.ident, "a projection is a struct whose fields are members of the object, such as `spec`");
        return None;
    };
    let ident = &input.ident;
    let wire = format_ident!("{ident}Members");
    let (mut members, mut values, mut traits) = (Vec::new(), Vec::new(), Vec::new());
    for (name, field) in fields {
        traits.extend(of_field(ident, name, &field.ty, runtime));
        if let Some(attribute) = field
            .attrs
            .iter()
            .find(|attribute| attribute.path().is_ident("koord") || attribute.path().is_ident("serde"))
        {
            report.on(attribute, "a field of a projection has no attributes: its name says which member of the object it is, its type how that is read");
        }
        let text = name.to_string();
        match of_metadata(ident, &text, runtime) {
            Some(OfMetadata::Read { value, .. }) => values.push(quote!(#name: #value,)),
            Some(OfMetadata::Kept(instead)) => {
                report.at(name.span(), format!("`{text}` is in the object's metadata: {instead}"));
            }
            None => {
                values.push(value(name, &field.ty, runtime));
                members.push(name);
            }
        }
    }
    let lifetime = (!members.is_empty()).then(|| quote!(<'a>));
    let serde = quote!(#krate::serde).to_string().replace(' ', "");
    let visibility = &input.vis;
    let documentation = format!("What is read of the JSON of a [`{ident}`], beside its metadata.");
    Some(quote! {
        #(#traits)*
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
        #[serde(crate = #serde, rename_all = "camelCase")]
        #visibility struct #wire #lifetime {
            #(#[serde(borrow, default)] #members: Option<&'a #krate::serde_json::value::RawValue>,)*
        }
    })
}

/// The status of an object is what a controller writes of it.
fn with_status(ident: &Ident, type_: &Type, runtime: &Path) -> TokenStream {
    let peeled = peel(type_);
    let (status, shown) = match peeled.wrappers.as_slice() {
        [Wrapper::Option] => (peeled.inner, quote!(self.status.as_ref())),
        _ => (type_, quote!(Some(&self.status))),
    };
    quote! {
        #[automatically_derived]
        impl #runtime::outcome::WithStatus for #ident {
            type Status = #status;
            fn status(&self) -> ::core::option::Option<&#status> { #shown }
        }
    }
}

/// A field that is named after a part of the metadata.
enum OfMetadata {
    /// It is read from there, and a trait gives it to the runtime where that uses it.
    Read { value: TokenStream, implementation: TokenStream },
    /// Every cache has it; or it is asked for by another name.
    Kept(&'static str),
}

fn of_metadata(ident: &Ident, name: &str, runtime: &Path) -> Option<OfMetadata> {
    const ENTRY: &str = "the cache's entry and its key have it";
    Some(match name {
        "labels" => OfMetadata::Read {
            value: quote!(#runtime::projection::Labels::read("metadata.labels", wire.metadata.labels, strings)?),
            implementation: quote! {
                #[automatically_derived]
                impl #runtime::projection::Labelled for #ident {
                    fn labels(&self) -> &#runtime::projection::Labels { &self.labels }
                }
            },
        },
        "annotations" => OfMetadata::Read {
            value: quote!(
                #runtime::projection::Labels::read("metadata.annotations", wire.metadata.annotations, strings)?
            ),
            implementation: TokenStream::new(),
        },
        "finalizers" => OfMetadata::Read {
            value: quote!(#runtime::ownership::Finalizers::read(wire.metadata.finalizers, strings)?),
            implementation: quote! {
                #[automatically_derived]
                impl #runtime::ownership::Finalized for #ident {
                    fn finalizers(&self) -> &#runtime::ownership::Finalizers { &self.finalizers }
                }
            },
        },
        "controller" => OfMetadata::Read {
            value: quote!(#runtime::ownership::Owner::read(wire.metadata.owner_references, strings)?),
            implementation: quote! {
                #[automatically_derived]
                impl #runtime::ownership::Controlled for #ident {
                    fn controller(&self) -> ::core::option::Option<&#runtime::ownership::Owner> {
                        self.controller.as_ref()
                    }
                }
            },
        },
        "creation_timestamp" => {
            OfMetadata::Read { value: quote!(wire.metadata.created()?), implementation: TokenStream::new() }
        }
        "name" | "namespace" | "uid" | "generation" | "resource_version" | "deletion_timestamp" => {
            OfMetadata::Kept(ENTRY)
        }
        "metadata" => {
            OfMetadata::Kept("take `labels`, `annotations`, `finalizers`, `controller` or `creation_timestamp`")
        }
        "owner_references" => OfMetadata::Kept("take `controller: Option<Owner>`"),
        "managed_fields" | "self_link" | "generate_name" => {
            OfMetadata::Kept("no cache keeps it; implement `Projection` by hand where it is needed")
        }
        _ => return None,
    })
}

/// A member of the object beside its metadata.
fn value(name: &Ident, type_: &Type, runtime: &Path) -> TokenStream {
    let member = Case::Camel.field(&name.unraw().to_string());
    if is_shared_text(type_) {
        return quote!(#name: strings.intern(#runtime::projection::text(wire.members.#name)),);
    }
    let part = quote::quote_spanned!(type_.span()=> part);
    quote!(#name: #runtime::projection::#part(#member, wire.members.#name)?,)
}
