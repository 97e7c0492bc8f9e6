//! `added`, `renamed` and `changed`: how a field differs in older versions of its kind, and `#[derive(Convert)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Path, Type};

use crate::{
    entry::Entry,
    model::{Body, Field, Item},
    report::Report,
    schema::with_bound,
    shape::may_have_rules,
    words,
};

/// One difference between a field and its form in versions before `since`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The first version that has the field as it is declared.
    pub(crate) since: String,
    pub(crate) kind: ChangeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ChangeKind {
    /// The field did not exist.
    Added,
    /// The field had another JSON name.
    Renamed { from: String },
    /// The field had another type; two functions translate.
    Changed { from: Box<Type>, up: Path, down: Path },
}

impl Change {
    pub(crate) fn parse(entry: &Entry) -> syn::Result<Self> {
        let word = entry.name();
        let parts = entry.list()?;
        let known: &[&str] = match word.as_str() {
            "added" => &["since"],
            "renamed" => &["since", "from"],
            _ => &["since", "from", "up", "down"],
        };
        words::only(&parts, known)?;
        let part = |name: &str| {
            parts
                .iter()
                .find(|part| part.name() == name)
                .ok_or_else(|| entry.wrong(&format!("`{word}` needs `{name} = …`")))
        };
        let since = part("since")?.string()?;
        if rank(&since.value()).is_none() {
            return Err(syn::Error::new(since.span(), "a version is like \"v1\", \"v1beta1\" or \"v2alpha3\""));
        }
        let since = since.value();
        let kind = match word.as_str() {
            "added" => ChangeKind::Added,
            "renamed" => ChangeKind::Renamed { from: part("from")?.string()?.value() },
            _ => ChangeKind::Changed {
                from: Box::new(part("from")?.type_()?),
                up: part("up")?.path()?,
                down: part("down")?.path()?,
            },
        };
        Ok(Change { since, kind })
    }
}

/// How a field looks in the versions before one of its changes, or in the newest.
pub(crate) struct Form<'f> {
    /// The JSON name.
    pub(crate) name: &'f str,
    /// The type, where it is not the declared one.
    pub(crate) type_: Option<&'f Type>,
    pub(crate) present: bool,
}

/// The forms of a field, oldest first: one before each change, and the newest.
pub(crate) fn forms<'f>(field: &'f Field<'_>) -> Vec<Form<'f>> {
    let mut forms = vec![Form { name: &field.name, type_: None, present: true }];
    for change in field.markers.changes.iter().rev() {
        let Some(newer) = forms.last() else { break };
        let mut older = Form { ..*newer };
        match &change.kind {
            ChangeKind::Added => older.present = false,
            ChangeKind::Renamed { from } => older.name = from,
            ChangeKind::Changed { from, .. } => older.type_ = Some(from),
        }
        forms.push(older);
    }
    forms.reverse();
    forms
}

/// The order of versions: released before beta before alpha, then by number.
fn rank(version: &str) -> Option<(u8, u32, u32)> {
    let digits = version.strip_prefix('v')?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at(end);
    let major = major.parse().ok()?;
    let stage = |name: &str| rest.strip_prefix(name).and_then(|minor| minor.parse().ok());
    match (stage("beta"), stage("alpha")) {
        _ if rest.is_empty() => Some((3, major, 0)),
        (Some(minor), _) => Some((2, major, minor)),
        (None, Some(minor)) => Some((1, major, minor)),
        (None, None) => None,
    }
}

/// Notes changes that cannot be undone.
pub(crate) fn check(item: &Item<'_>, report: &Report) {
    if !matches!(item.body, Body::Struct(_)) {
        report.on(item.ident, "versions differ in named fields; `Convert` stands on a struct");
    }
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
        if field.serde.flatten && !field.markers.changes.is_empty() {
            report.at(field.span, "a flattened field has no name of its own; put the change on the fields inside");
        }
    }
}

/// The implementation of `Convert`.
pub(crate) fn expand(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let generics = with_bound(item, &quote!(#krate::Convert));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let up: TokenStream = item.fields().iter().map(|field| up(krate, field)).collect();
    let down: TokenStream = item.fields().iter().map(|field| down(krate, field)).collect();
    let result = quote!(::core::result::Result<(), #krate::convert::ConvertError>);
    let (value, place) = (quote!(value: &mut #krate::serde_json::Value), quote!(at: &#krate::convert::Place<'_>));
    let function = |signature: TokenStream, body: TokenStream| {
        (!body.is_empty()).then(|| {
            quote!(fn #signature -> #result {
                let Some(object) = value.as_object_mut() else { return Ok(()) };
                #body
                Ok(())
            })
        })
    };
    let up = function(quote!(up(#value, from: &str, #place)), up);
    let down = function(quote!(down(#value, to: &str, #place, lost: &mut #krate::convert::Lost)), down);
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Convert for #ident #type_generics #where_clause { #up #down }
    }
}

/// From the oldest change to the newest, and then into the field's own type.
fn up(krate: &Path, field: &Field<'_>) -> TokenStream {
    let forms = forms(field);
    let steps = field.markers.changes.iter().zip(forms.windows(2)).filter_map(|(change, forms)| {
        let (name, newer) = (forms[0].name, &forms[1]);
        let new_name = newer.name;
        let step = match &change.kind {
            ChangeKind::Added => return None,
            ChangeKind::Renamed { .. } => quote!(#krate::convert::rename(object, #name, #new_name);),
            ChangeKind::Changed { from, up, .. } => {
                let type_ = newer.type_.unwrap_or(field.type_);
                quote!(#krate::convert::change::<#from, #type_>(object, #name, #up, at)?;)
            }
        };
        Some(since(krate, change, &quote!(from), &step))
    });
    let inner = inner(field).then(|| {
        let (type_, name) = (field.type_, &field.name);
        quote!(#krate::convert::field(object, #name, |value| {
            <#type_ as #krate::Convert>::up(value, from, &at.child(#name))
        })?;)
    });
    quote!(#(#steps)* #inner)
}

/// The same the other way round.
fn down(krate: &Path, field: &Field<'_>) -> TokenStream {
    let inner = inner(field).then(|| {
        let (type_, name) = (field.type_, &field.name);
        quote!(#krate::convert::field(object, #name, |value| {
            <#type_ as #krate::Convert>::down(value, to, &at.child(#name), lost)
        })?;)
    });
    let forms = forms(field);
    let changes: Vec<_> = field.markers.changes.iter().zip(forms.windows(2)).collect();
    let steps = changes.into_iter().rev().map(|(change, forms)| {
        let (old_name, newer) = (forms[0].name, &forms[1]);
        let name = newer.name;
        let step = match &change.kind {
            ChangeKind::Added => quote!(#krate::convert::drop_added(object, #name, at, lost);),
            ChangeKind::Renamed { .. } => quote!(#krate::convert::rename(object, #name, #old_name);),
            ChangeKind::Changed { from, down, .. } => {
                let type_ = newer.type_.unwrap_or(field.type_);
                quote!(#krate::convert::change::<#type_, #from>(object, #name, #down, at)?;)
            }
        };
        since(krate, change, &quote!(to), &step)
    });
    quote!(#inner #(#steps)*)
}

fn since(krate: &Path, change: &Change, version: &TokenStream, step: &TokenStream) -> TokenStream {
    let since = &change.since;
    quote!(if #krate::convert::version_rank(#version) < #krate::convert::version_rank(#since) { #step })
}

/// Whether the field's own type may look otherwise in older versions.
fn inner(field: &Field<'_>) -> bool {
    let replaced = field.markers.changes.iter().any(|change| matches!(change.kind, ChangeKind::Changed { .. }));
    may_have_rules(&field.peeled.shape) && !field.markers.is_schemaless() && !replaced && !field.serde.flatten
}
