//! `#[derive(Mutate)]`: defaults and normalisation of a type as Rust.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Member;

use crate::{
    function,
    json::Json,
    marker::{Keyword, Marker},
    model::{Body, Content, Field, Item, Variant},
    report::Report,
    shape::{may_have_rules, of_option},
};

/// Notes where a default could never be seen to be missing.
pub(crate) fn check(item: &Item<'_>, report: &Report) {
    for field in item.fields() {
        let admission_default =
            field.markers.admission.iter().find(|marker| matches!(marker.keyword, Keyword::Default(_)));
        if let Some(marker) = admission_default.filter(|_| !field.peeled.optional) {
            report.at(marker.word.span(), "only an `Option` shows that a value is absent");
        }
        if let Some(path) = field.markers.default_fn.as_ref().filter(|_| !field.peeled.optional) {
            report.on(path, "only an `Option` shows that a value is absent");
        }
    }
}

/// The implementation of `Mutate`.
pub(crate) fn expand(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let generics = item.bounded(&quote!(#krate::Mutate));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let mut body = match &item.body {
        Body::Struct(fields) => struct_code(item, fields),
        Body::Newtype(field) => {
            let member = &field.member;
            changes(item, field, &quote!(&mut self.#member))
        }
        Body::Enum(variants) => enum_code(item, variants),
    };
    body.extend(item.markers.normalize.iter().map(|path| quote!(#path(self);)));
    let function = (!body.is_empty()).then(|| quote!(fn mutate(&mut self) { #body }));
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Mutate for #ident #type_generics #where_clause { #function }
    }
}

fn struct_code(item: &Item<'_>, fields: &[Field<'_>]) -> TokenStream {
    let krate = &item.krate;
    let constants = fields.iter().filter(|field| field.peeled.optional).filter_map(|field| {
        let (literal, member) = (default(field)?, &field.member);
        let absent = field.left_out_if().map_or_else(|| quote!(Option::is_none), |path| quote!(#path));
        Some(quote!(#krate::mutate::default(&mut self.#member, #absent, #krate::serde_json::json!(#literal));))
    });
    let computed = fields.iter().filter_map(|field| {
        let (path, member) = (field.markers.default_fn.as_ref()?, &field.member);
        let value = of_option(field.type_).map_or_else(|| quote!(_), |value| quote!(#value));
        let function = function::pointer(path, quote!(fn(&Self) -> #value));
        Some(quote!(if self.#member.is_none() { self.#member = Some(#function(self)); }))
    });
    let inner = fields.iter().map(|field| {
        let member = &field.member;
        changes(item, field, &quote!(&mut self.#member))
    });
    quote!(#(#constants)* #(#computed)* #(#inner)*)
}

/// The default that admission gives, or else the one that the API server gives.
fn default<'f>(field: &'f Field<'_>) -> Option<&'f Json> {
    let find = |markers: &'f [Marker]| {
        markers.iter().find_map(|marker| match &marker.keyword {
            Keyword::Default(json) => Some(json),
            _ => None,
        })
    };
    find(&field.markers.admission).or_else(|| find(&field.markers.schema))
}

/// What happens to a value that is there.
fn changes(item: &Item<'_>, field: &Field<'_>, value: &TokenStream) -> TokenStream {
    let krate = &item.krate;
    let mut code = TokenStream::new();
    if may_have_rules(&field.peeled.shape) && !field.markers.is_foreign() {
        code.extend(quote!(#krate::Mutate::mutate(#value);));
    }
    code.extend(field.markers.normalize.iter().map(|path| quote!(#path(#value);)));
    code
}

fn enum_code(item: &Item<'_>, variants: &[Variant<'_>]) -> TokenStream {
    let arms: Vec<TokenStream> = variants.iter().filter_map(|variant| arm(item, variant)).collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    let rest = (arms.len() < variants.len()).then(|| quote!(_ => {}));
    quote!(match self { #(#arms)* #rest })
}

fn arm(item: &Item<'_>, variant: &Variant<'_>) -> Option<TokenStream> {
    let ident = variant.ident;
    let (pattern, code) = match &variant.content {
        Content::Unit => return None,
        Content::Newtype(field) => (quote!(Self::#ident(value)), changes(item, field, &quote!(value))),
        Content::Struct(fields) => {
            let (mut members, mut code) = (TokenStream::new(), TokenStream::new());
            for (index, field) in fields.iter().enumerate() {
                let binding = format_ident!("field_{index}");
                if let (Member::Named(member), changes) = (&field.member, changes(item, field, &quote!(#binding)))
                    && !changes.is_empty()
                {
                    members.extend(quote!(#member: #binding,));
                    code.extend(changes);
                }
            }
            (quote!(Self::#ident { #members .. }), code)
        }
    };
    (!code.is_empty()).then(|| quote!(#pattern => { #code }))
}
