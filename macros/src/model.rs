//! The checked model of a type: what every derive reads instead of raw syntax.

use proc_macro2::Span;
use syn::{DeriveInput, GenericParam, Generics, Ident, Member, Path, Type, spanned::Spanned};

use crate::{
    entry::{Entry, from_attributes},
    marker::Markers,
    report::Report,
    serde::{self, Case, Tagging},
    shape::{Peeled, mentions, peel, ungrouped_expression},
    words::Place,
};

/// A struct or enum with everything that its attributes say.
pub(crate) struct Item<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) generics: &'a Generics,
    pub(crate) description: String,
    /// Where koord-resource is found.
    pub(crate) krate: Path,
    pub(crate) markers: Markers,
    /// All `#[koord(…)]` entries on the type, for the root's own reader.
    pub(crate) entries: Vec<Entry>,
    pub(crate) serde: serde::Container,
    pub(crate) body: Body<'a>,
}

pub(crate) enum Body<'a> {
    /// Named fields; none for a unit struct.
    Struct(Vec<Field<'a>>),
    /// `struct Name(Inner)`, or a struct of one field with `serde(transparent)`.
    Newtype(Box<Field<'a>>),
    Enum(Vec<Variant<'a>>),
}

pub(crate) struct Field<'a> {
    pub(crate) member: Member,
    pub(crate) span: Span,
    /// The name in JSON.
    pub(crate) name: String,
    pub(crate) type_: &'a Type,
    pub(crate) peeled: Peeled<'a>,
    pub(crate) description: String,
    pub(crate) markers: Markers,
    pub(crate) serde: serde::Field,
    /// Whether serde can do without the field.
    pub(crate) has_serde_default: bool,
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    /// The name in JSON.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) catch_all: bool,
    pub(crate) content: Content<'a>,
}

pub(crate) enum Content<'a> {
    Unit,
    Newtype(Box<Field<'a>>),
    Struct(Vec<Field<'a>>),
}

impl<'a> Item<'a> {
    /// Reads a type with the words on it; mistakes go to the report, and none is returned only where nothing can be emitted.
    pub(crate) fn parse(input: &'a DeriveInput, entries: Vec<Entry>, krate: Path, report: &Report) -> Option<Self> {
        let is_enum = matches!(input.data, syn::Data::Enum(_));
        let markers = Markers::parse(&entries, Place::Type, report);
        let serde = serde::Container::parse(&input.attrs, is_enum, report);
        if let Some(foreign) = &serde.foreign {
            report.on(
                foreign,
                format!("`{}` makes the JSON that of another type; implement the traits by hand there", foreign.word),
            );
        }
        let body = match &input.data {
            syn::Data::Struct(data) => match &data.fields {
                syn::Fields::Named(named) => {
                    body(fields(&named.named, serde.fields, serde.default, report), serde.transparent)
                }
                syn::Fields::Unit => Body::Struct(Vec::new()),
                syn::Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
                    Body::Newtype(Box::new(Field::parse(0, &unnamed.unnamed[0], Case::None, false, report)))
                }
                syn::Fields::Unnamed(unnamed) => {
                    report.on(unnamed, "a tuple becomes a JSON array of mixed types, which no structural schema allows; name the fields");
                    return None;
                }
            },
            syn::Data::Enum(data) => {
                Body::Enum(data.variants.iter().filter_map(|variant| Variant::parse(variant, &serde, report)).collect())
            }
            syn::Data::Union(data) => {
                report.on(data.union_token, "a union has no JSON");
                return None;
            }
        };
        Some(Item {
            ident: &input.ident,
            generics: &input.generics,
            description: described(&input.attrs, &markers),
            krate,
            markers,
            entries,
            serde,
            body,
        })
    }

    /// The generics with a bound on every type parameter.
    pub(crate) fn bounded(&self, bound: &proc_macro2::TokenStream) -> Generics {
        let mut generics = self.generics.clone();
        for parameter in generics.type_params_mut() {
            parameter.bounds.push(syn::parse_quote!(#bound));
        }
        generics
    }

    /// The named fields of a struct.
    pub(crate) fn fields(&self) -> &[Field<'a>] {
        match &self.body {
            Body::Struct(fields) => fields,
            _ => &[],
        }
    }

    /// All fields: of a struct, of a newtype, or of the variants of an enum.
    pub(crate) fn all_fields(&self) -> Vec<&Field<'a>> {
        match &self.body {
            Body::Struct(fields) => fields.iter().collect(),
            Body::Newtype(field) => vec![field.as_ref()],
            Body::Enum(variants) => {
                let fields = variants.iter().flat_map(|variant| match &variant.content {
                    Content::Unit => &[],
                    Content::Newtype(field) => std::slice::from_ref(field.as_ref()),
                    Content::Struct(fields) => fields.as_slice(),
                });
                fields.collect()
            }
        }
    }

    /// Whether a type depends on the item's parameters, or is named by way of `Self`, so that a constant beside the item
    /// cannot name it.
    pub(crate) fn is_generic(&self, type_: &Type) -> bool {
        let parameters = self.generics.params.iter().map(|parameter| match parameter {
            GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
            GenericParam::Type(parameter) => parameter.ident.to_string(),
            GenericParam::Const(parameter) => parameter.ident.to_string(),
        });
        parameters.chain(["Self".to_owned()]).any(|name| mentions(type_, &name).is_some())
    }

    /// Whether JSON is a plain text with a fixed choice: every variant is a unit, but for one that catches the rest.
    pub(crate) fn is_choice(&self) -> bool {
        match &self.body {
            Body::Enum(variants) => {
                self.serde.tagging == Tagging::External
                    && variants.iter().all(|variant| variant.catch_all || matches!(variant.content, Content::Unit))
            }
            _ => false,
        }
    }
}

/// A struct with these fields. With `serde(transparent)` its JSON is that of its only field.
fn body(mut fields: Vec<Field<'_>>, is_transparent: bool) -> Body<'_> {
    match fields.pop() {
        Some(only) if is_transparent && fields.is_empty() => Body::Newtype(Box::new(only)),
        last => {
            fields.extend(last);
            Body::Struct(fields)
        }
    }
}

fn fields<'a>(
    fields: &'a syn::punctuated::Punctuated<syn::Field, syn::Token![,]>,
    case: Case,
    default: bool,
    report: &Report,
) -> Vec<Field<'a>> {
    let fields = fields.iter().enumerate();
    fields
        .map(|(index, field)| Field::parse(index, field, case, default, report))
        .filter(|field| !field.serde.skip)
        .collect()
}

impl<'a> Field<'a> {
    fn parse(index: usize, field: &'a syn::Field, case: Case, default: bool, report: &Report) -> Self {
        let entries = from_attributes(&field.attrs, "koord", report);
        let serde = serde::Field::parse(&field.attrs, report);
        let markers = Markers::parse(&entries, Place::Field, report);
        let member = field.ident.clone().map_or_else(|| Member::from(index), Member::from);
        let rust_name = match &member {
            Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        Field {
            span: field.ident.as_ref().map_or_else(|| field.ty.span(), Ident::span),
            member,
            name: serde.rename.clone().unwrap_or_else(|| case.field(&rust_name)),
            type_: &field.ty,
            peeled: peel(&field.ty),
            description: described(&field.attrs, &markers),
            markers,
            has_serde_default: serde.default || default,
            serde,
        }
    }

    /// The function by which serde leaves a value out that is there; none where only `None` is left out.
    pub(crate) fn left_out_if(&self) -> Option<Path> {
        let path = self.serde.skip_serializing_if.as_ref().and_then(|path| path.parse::<Path>().ok())?;
        let is_none = path.segments.last().is_some_and(|last| last.ident == "is_none");
        (!is_none).then_some(path)
    }

    /// Whether an object without the field is refused.
    pub(crate) fn is_required(&self) -> bool {
        if self.markers.required.is_some() {
            return true;
        }
        self.markers.optional.is_none()
            && !self.peeled.optional
            && !self.has_serde_default
            && self.markers.schema_default().is_none()
            && !self.serde.flatten
    }
}

impl<'a> Variant<'a> {
    fn parse(variant: &'a syn::Variant, container: &serde::Container, report: &Report) -> Option<Self> {
        let serde = serde::Variant::parse(&variant.attrs, report);
        for entry in from_attributes(&variant.attrs, "koord", report) {
            report.on(&entry, format!("`{}` cannot stand on a variant; put it on the enum or on a field", entry.word));
        }
        if serde.skip {
            return None;
        }
        let rust_name = variant.ident.to_string();
        let content = match &variant.fields {
            syn::Fields::Unit => Content::Unit,
            syn::Fields::Named(named) => {
                let case = serde.fields.unwrap_or(container.variant_fields);
                Content::Struct(fields(&named.named, case, false, report))
            }
            syn::Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
                Content::Newtype(Box::new(Field::parse(0, &unnamed.unnamed[0], Case::None, false, report)))
            }
            syn::Fields::Unnamed(unnamed) => {
                report.on(
                    unnamed,
                    "a tuple becomes a JSON array of mixed types, which no structural schema allows; name the fields",
                );
                return None;
            }
        };
        Some(Variant {
            ident: &variant.ident,
            name: serde.rename.unwrap_or_else(|| container.variants.variant(rust_name.trim_start_matches("r#"))),
            description: description(&variant.attrs),
            catch_all: serde.catch_all,
            content,
        })
    }
}

/// The doc comment, unless the markers leave it out.
fn described(attributes: &[syn::Attribute], markers: &Markers) -> String {
    if markers.skips_description { String::new() } else { description(attributes) }
}

/// The doc comment as prose: one line per paragraph or list item, without the brackets of intra-doc links.
pub(crate) fn description(attributes: &[syn::Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
        let value = ungrouped_expression(&pair.value);
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) = value else { continue };
        for line in line.value().split('\n') {
            let line = line.trim();
            let starts_anew = line.is_empty() || line.starts_with(['*', '-', '#', '|']);
            if line.is_empty() {
                text.push_str("\n\n");
            } else {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(if starts_anew { '\n' } else { ' ' });
                }
                text.push_str(line);
            }
        }
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim().replace("[`", "`").replace("`]", "`")
}
