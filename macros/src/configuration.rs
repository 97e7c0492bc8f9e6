//! `#[derive(Configuration)]`: a configuration file, or a part of one, as a struct or a choice.

use proc_macro2::{Literal, Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Fields, Ident, LitStr, Path, Type};

use crate::{
    check::{check_alone, is_of_configurations},
    entry::{Entry, from_attributes},
    function,
    json::{Json, Number},
    marker::{Keyword, Marker, keyword},
    model::description,
    names,
    report::Report,
    serde::{Case, Container, Field as SerdeField, Variant as SerdeVariant},
    shape::{Peeled, Shape, may_have_rules, of_option, peel},
    words::{
        Table,
        configuration::{CONFIGURATION, SETTING},
        schema::RULES,
        unknown,
    },
};

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let report = Report::default();
    let entries = from_attributes(&input.attrs, "koord", &report);
    let krate = names::configuration(&entries, &report);
    let code = match &input.data {
        Data::Struct(data) => {
            if let Fields::Named(fields) = &data.fields {
                Section::parse(input, &entries, fields, &krate, &report).expand()
            } else {
                report.on(&input.ident, "a configuration has fields with names");
                TokenStream::new()
            }
        }
        Data::Enum(data) => choice(input, &entries, data, &krate, &report),
        Data::Union(_) => {
            report.on(&input.ident, "a configuration is a struct with named fields, or an enum without data");
            TokenStream::new()
        }
    };
    if !input.generics.params.is_empty() {
        report.on(&input.generics, "a configuration has no parameters: each kind of document is one type");
    }
    report.finish(code, |_| stand_in(&input.ident, &krate))
}

/// The traits with nothing in them, so that a mistake is shown once.
fn stand_in(ident: &Ident, krate: &Path) -> TokenStream {
    quote! {
        impl ::core::default::Default for #ident {
            fn default() -> Self { ::core::unimplemented!() }
        }
        impl #krate::schemars::JsonSchema for #ident {
            fn schema_name() -> ::std::borrow::Cow<'static, str> { "".into() }
            fn json_schema(_: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema { true.into() }
        }
        impl #krate::Setting for #ident {
            fn schema(_: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema { true.into() }
        }
    }
}

/// A struct with what its attributes say.
struct Section<'a> {
    ident: &'a Ident,
    krate: &'a Path,
    description: String,
    document: Option<Document>,
    complete: Vec<Path>,
    check: Vec<Path>,
    fields: Vec<Setting<'a>>,
}

/// What makes a struct a whole document.
struct Document {
    api_version: String,
    kind: String,
    item_keys: Vec<LitStr>,
}

struct Setting<'a> {
    ident: &'a Ident,
    /// The name in a document; none for a field that serde skips.
    name: Option<String>,
    type_: &'a Type,
    peeled: Peeled<'a>,
    description: String,
    markers: Vec<Marker>,
    checks: Vec<Path>,
    no_effect: Option<String>,
    zero_is_unset: bool,
    is_required: bool,
    is_opaque: bool,
    is_of_schemars: bool,
}

impl<'a> Section<'a> {
    fn parse(
        input: &'a DeriveInput,
        entries: &[Entry],
        fields: &'a syn::FieldsNamed,
        krate: &'a Path,
        report: &Report,
    ) -> Self {
        let serde = Container::parse(&input.attrs, false, report);
        if !serde.default || !serde.deny_unknown_fields {
            report.on(
                &input.ident,
                "a configuration is read strictly, and what is not set has its default: add `#[serde(rename_all = \"camelCase\", deny_unknown_fields, default)]`",
            );
        }
        let (mut complete, mut check) = (Vec::new(), Vec::new());
        let (mut group, mut version, mut kind, mut item_keys) = (None, None, None, None);
        for entry in entries {
            match entry.name().as_str() {
                "group" => group = report.keep(entry.string()).map(|text| text.value()),
                "version" => version = report.keep(entry.string()).map(|text| text.value()),
                "kind" => kind = report.keep(entry.string()).map(|text| text.value()),
                "item_keys" => item_keys = report.keep(entry.strings()),
                "complete" => complete.extend(report.keep(entry.path())),
                "check" => check.extend(report.keep(entry.path())),
                "crate" => {}
                _ => report.add(misplaced(entry, &CONFIGURATION, &SETTING, "a field")),
            }
        }
        let document = match (group, version) {
            (Some(group), Some(version)) => Some(Document {
                api_version: format!("{group}/{version}"),
                kind: kind.unwrap_or_else(|| input.ident.to_string()),
                item_keys: item_keys.unwrap_or_else(|| vec![LitStr::new("name", Span::call_site())]),
            }),
            (None, None) => {
                for entry in entries.iter().filter(|entry| matches!(entry.name().as_str(), "kind" | "item_keys")) {
                    report.on(entry, format!("`{}` is of a document, which has a `group` and a `version`", entry.word));
                }
                None
            }
            _ => {
                report.on(&input.ident, "a document has a `group` and a `version`; a part of one has neither");
                None
            }
        };
        let fields = fields.named.iter().filter_map(|field| Setting::parse(field, serde.fields, report)).collect();
        Self { ident: &input.ident, krate, description: description(&input.attrs), document, complete, check, fields }
    }

    fn expand(&self) -> TokenStream {
        let (ident, krate) = (self.ident, self.krate);
        let defaults = self.fields.iter().map(|field| {
            let (member, value) = (field.ident, field.default(self));
            quote!(#member: #value,)
        });
        let (name, description) = (ident.to_string(), &self.description);
        let properties = self.fields.iter().filter_map(|field| field.property(self));
        let set_defaults = self.fields.iter().map(|field| field.set_default(self));
        let complete = self.complete.iter().map(|path| {
            let function = function::pointer(path, quote!(fn(&mut Self)));
            quote!((#function)(self);)
        });
        let validate = self.fields.iter().filter_map(|field| field.validate(self));
        let check = self.check.iter().map(|path| {
            let function = function::pointer(path, quote!(fn(&Self, &mut #krate::Problems)));
            quote!((#function)(self, problems);)
        });
        let warn = self.fields.iter().filter_map(|field| field.warn(self));
        let document = self.document.as_ref().map(|Document { api_version, kind, item_keys }| {
            quote! {
                #[automatically_derived]
                impl #krate::Configuration for #ident {
                    const API_VERSION: &'static str = #api_version;
                    const KIND: &'static str = #kind;
                    const ITEM_KEYS: &'static [&'static str] = &[#(#item_keys),*];
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl ::core::default::Default for #ident {
                fn default() -> Self {
                    Self { #(#defaults)* }
                }
            }

            #[automatically_derived]
            impl #krate::schemars::JsonSchema for #ident {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(#name)
                }
                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #name))
                }
                fn json_schema(generator: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema {
                    let unset = <Self as ::core::default::Default>::default();
                    let mut section = #krate::declare::Section::new(#description);
                    #(#properties)*
                    section.into_schema()
                }
            }

            #[automatically_derived]
            impl #krate::Setting for #ident {
                fn schema(generator: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema {
                    generator.subschema_for::<Self>()
                }
                fn set_defaults(&mut self) {
                    #(#set_defaults)*
                    #(#complete)*
                }
                fn validate(&self, problems: &mut #krate::Problems) {
                    #(#validate)*
                    #(#check)*
                }
                fn warn(&self, unset: &Self, problems: &mut #krate::Problems) {
                    #(#warn)*
                }
            }

            #document
        }
    }
}

impl<'a> Setting<'a> {
    fn parse(field: &'a syn::Field, case: Case, report: &Report) -> Option<Self> {
        let ident = field.ident.as_ref()?;
        let serde = SerdeField::parse(&field.attrs, report);
        if serde.flatten {
            report.on(ident, "a flattened field takes what nobody knows, and a configuration is read strictly");
        }
        let rust_name = ident.to_string();
        let name = serde.rename.unwrap_or_else(|| case.field(rust_name.trim_start_matches("r#")));
        let mut setting = Self {
            ident,
            name: (!serde.skip).then_some(name),
            type_: &field.ty,
            peeled: peel(&field.ty),
            description: description(&field.attrs),
            markers: Vec::new(),
            checks: Vec::new(),
            no_effect: None,
            zero_is_unset: false,
            is_required: false,
            is_opaque: false,
            is_of_schemars: false,
        };
        for entry in from_attributes(&field.attrs, "koord", report) {
            if let Err(error) = setting.take(&entry, report) {
                report.add(error);
            }
        }
        setting.check(report);
        Some(setting)
    }

    fn take(&mut self, entry: &Entry, report: &Report) -> syn::Result<()> {
        match entry.name().as_str() {
            "zero_is_unset" => self.zero_is_unset = entry.flag()?,
            "no_effect" => self.no_effect = Some(entry.string()?.value()),
            "required" => self.is_required = entry.flag()?,
            "opaque" => self.is_opaque = entry.flag()?,
            "schemars" => self.is_of_schemars = entry.flag()?,
            "check" => self.checks.push(entry.path()?),
            word if RULES.has(word) => match keyword(entry, report)? {
                Some(marker) if is_of_configurations(&marker.keyword) => self.markers.push(marker),
                Some(_) => return Err(entry.wrong(&format!("`{word}` is of objects in an API server"))),
                None => {}
            },
            _ => return Err(misplaced(entry, &SETTING, &CONFIGURATION, "the struct")),
        }
        Ok(())
    }

    /// Notes what contradicts itself.
    fn check(&self, report: &Report) {
        let loose = self.is_opaque || self.is_of_schemars;
        let shape = if loose { Shape::Anything } else { self.peeled.shape.clone() };
        check_alone(&self.markers, &shape, report);
        if self.literal().is_some() && self.peeled.optional {
            report.on(self.ident, "a field with a default is never absent; take the `Option` away, or the default");
        }
        if self.zero_is_unset && self.literal().is_none() {
            report.on(self.ident, "`zero_is_unset` needs a `default`, which takes the place of the zero");
        }
        if self.is_required && self.literal().is_some() {
            report.on(self.ident, "a field with a `default` is not `required`");
        }
        if self.is_opaque && self.is_of_schemars {
            report.on(self.ident, "a field is either `opaque` or of `schemars`");
        }
    }

    fn literal(&self) -> Option<&Json> {
        self.markers.iter().find_map(|marker| match &marker.keyword {
            Keyword::Default(json) => Some(json),
            _ => None,
        })
    }

    /// The expression of the default.
    fn default(&self, of: &Section<'_>) -> TokenStream {
        let Some(json) = self.literal() else { return quote!(::core::default::Default::default()) };
        let is_plain = self.peeled.wrappers.is_empty();
        match (&self.peeled.shape, json) {
            (Shape::Boolean, Json::Bool(value)) if is_plain => quote!(#value),
            (Shape::Integer(_), Json::Number(Number::Integer(value))) if is_plain => {
                signed(*value < 0, &Literal::u128_unsuffixed(value.unsigned_abs()))
            }
            (Shape::Number, Json::Number(value)) if is_plain => {
                let value = value.as_f64();
                signed(value < 0.0, &Literal::f64_unsuffixed(value.abs()))
            }
            (Shape::String, Json::String(text)) if is_plain => quote!(::std::borrow::ToOwned::to_owned(#text)),
            _ => {
                let (krate, field) = (of.krate, format!("{}.{}", of.ident, self.ident));
                quote!(#krate::declare::default_of(#field, #krate::serde_json::json!(#json)))
            }
        }
    }

    /// Adds the field to `section`.
    fn property(&self, of: &Section<'_>) -> Option<TokenStream> {
        let (krate, type_, member) = (of.krate, self.type_, self.ident);
        let name = self.name.as_ref()?;
        let schema = if self.is_opaque {
            let optional = self.peeled.optional;
            quote!(#krate::declare::opaque(#optional))
        } else if self.is_of_schemars {
            quote!(generator.subschema_for::<#type_>())
        } else {
            quote!(<#type_ as #krate::Setting>::schema(generator))
        };
        let keywords = self.markers.iter().filter_map(|marker| {
            let (name, value) = json_keyword(&marker.keyword, &self.markers, krate)?;
            Some(quote!((#name, #value)))
        });
        let (description, required) = (&self.description, self.is_required);
        let no_effect = option(self.no_effect.as_ref());
        Some(quote! {
            section.field(#krate::declare::Field {
                name: #name,
                description: #description,
                no_effect: #no_effect,
                required: #required,
                schema: #schema,
                keywords: ::std::vec![#(#keywords),*],
                default: #krate::serde_json::to_value(&unset.#member).ok(),
            });
        })
    }

    fn set_default(&self, of: &Section<'_>) -> TokenStream {
        let (krate, member) = (of.krate, self.ident);
        let zero = self.zero_is_unset.then(|| {
            let value = self.default(of);
            quote!(#krate::declare::replace_zero(&mut self.#member, || #value);)
        });
        let inner = self.is_looked_into().then(|| quote!(#krate::Setting::set_defaults(&mut self.#member);));
        quote!(#zero #inner)
    }

    fn validate(&self, of: &Section<'_>) -> Option<TokenStream> {
        let (krate, member, name) = (of.krate, self.ident, self.name.as_ref()?);
        let inner = self.is_looked_into().then(|| quote!(#krate::Setting::validate(&self.#member, problems);));
        // Not by a pointer of one type, so that a function of texts may take a `&str`.
        let checks = self.checks.iter().map(|path| {
            if of_option(self.type_).is_some() {
                quote!(if let ::core::option::Option::Some(value) = &self.#member { #path(value, problems); })
            } else {
                quote!(#path(&self.#member, problems);)
            }
        });
        (inner.is_some() || !self.checks.is_empty())
            .then(|| quote!(problems.within(#name, |problems| { #inner #(#checks)* });))
    }

    fn warn(&self, of: &Section<'_>) -> Option<TokenStream> {
        let (krate, member, name) = (of.krate, self.ident, self.name.as_ref()?);
        if let Some(why) = &self.no_effect {
            return Some(
                quote!(#krate::declare::warn_of_no_effect(&self.#member, &unset.#member, #name, #why, problems);),
            );
        }
        self.is_looked_into().then(
            || quote!(problems.within(#name, |problems| #krate::Setting::warn(&self.#member, &unset.#member, problems));),
        )
    }

    /// Whether there may be settings inside of the value.
    fn is_looked_into(&self) -> bool {
        self.name.is_some() && !self.is_opaque && !self.is_of_schemars && may_have_rules(&self.peeled.shape)
    }
}

fn signed(negative: bool, magnitude: &Literal) -> TokenStream {
    if negative { quote!(-#magnitude) } else { quote!(#magnitude) }
}

fn option(text: Option<&String>) -> TokenStream {
    text.map_or_else(|| quote!(::core::option::Option::None), |text| quote!(::core::option::Option::Some(#text)))
}

/// A word that is none of the table's.
fn misplaced(entry: &Entry, table: &Table, elsewhere: &Table, place: &str) -> syn::Error {
    let word = entry.name();
    if elsewhere.has(&word) {
        return entry.wrong(&format!("`{word}` belongs on {place}"));
    }
    let known: Vec<&str> = table.words.iter().chain(RULES.words).map(|word| word.name).collect();
    entry.wrong(&unknown(&word, &known))
}

/// The keyword of JSON Schema with its value; none for what is said otherwise.
fn json_keyword(keyword: &Keyword, among: &[Marker], krate: &Path) -> Option<(&'static str, TokenStream)> {
    let has = |wanted: fn(&Keyword) -> bool| among.iter().any(|marker| wanted(&marker.keyword));
    let json = |value: TokenStream| quote!(#krate::serde_json::json!(#value));
    let number = |number: &Number| json(quote!(#number));
    Some(match keyword {
        Keyword::Minimum(bound) if has(|other| matches!(other, Keyword::ExclusiveMinimum)) => {
            ("exclusiveMinimum", number(bound))
        }
        Keyword::Minimum(bound) => ("minimum", number(bound)),
        Keyword::Maximum(bound) if has(|other| matches!(other, Keyword::ExclusiveMaximum)) => {
            ("exclusiveMaximum", number(bound))
        }
        Keyword::Maximum(bound) => ("maximum", number(bound)),
        Keyword::MinLength(bound) => ("minLength", json(quote!(#bound))),
        Keyword::MaxLength(bound) => ("maxLength", json(quote!(#bound))),
        Keyword::Pattern(text) => ("pattern", json(quote!(#text))),
        Keyword::MinItems(bound) => ("minItems", json(quote!(#bound))),
        Keyword::MaxItems(bound) => ("maxItems", json(quote!(#bound))),
        Keyword::UniqueItems => ("uniqueItems", json(quote!(true))),
        Keyword::Enumeration(values) => ("enum", json(quote!([#(#values),*]))),
        Keyword::Title(text) => ("title", json(quote!(#text))),
        Keyword::Example(value) => ("examples", json(quote!([#value]))),
        Keyword::Items(inner) => {
            let inner = inner.iter().filter_map(|marker| json_keyword(&marker.keyword, inner, krate));
            let members = inner.map(|(name, value)| quote!(#name: #value));
            ("items", json(quote!({#(#members),*})))
        }
        _ => return None,
    })
}

/// An enum without data: a choice of texts.
fn choice(input: &DeriveInput, entries: &[Entry], data: &syn::DataEnum, krate: &Path, report: &Report) -> TokenStream {
    for entry in entries.iter().filter(|entry| entry.name() != "crate") {
        report.add(entry.wrong(&format!("`{}` is of structs; an enum is a choice of texts", entry.word)));
    }
    let container = Container::parse(&input.attrs, true, report);
    let variants: Vec<(String, String)> = data
        .variants
        .iter()
        .filter_map(|variant| {
            if !matches!(variant.fields, Fields::Unit) {
                report.on(
                    variant,
                    "a choice of texts has no data; describe such a type with `schemars`, and say so on its fields",
                );
            }
            let serde = SerdeVariant::parse(&variant.attrs, report);
            let name = variant.ident.to_string();
            let name = serde.rename.unwrap_or_else(|| container.variants.variant(name.trim_start_matches("r#")));
            (!serde.skip).then(|| (name, description(&variant.attrs)))
        })
        .collect();
    let (ident, name, description) = (&input.ident, input.ident.to_string(), description(&input.attrs));
    let (texts, meanings): (Vec<_>, Vec<_>) = variants.into_iter().unzip();
    quote! {
        #[automatically_derived]
        impl #krate::schemars::JsonSchema for #ident {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#name)
            }
            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #name))
            }
            fn json_schema(_: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema {
                #krate::declare::choice(#description, &[#((#texts, #meanings)),*])
            }
        }

        #[automatically_derived]
        impl #krate::Setting for #ident {
            fn schema(generator: &mut #krate::schemars::SchemaGenerator) -> #krate::schemars::Schema {
                generator.subschema_for::<Self>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::derive;

    /// What is said of a type.
    fn said(source: &str) -> String {
        derive(&syn::parse_str(source).unwrap()).to_string()
    }

    #[test]
    fn every_mistake_says_what_would_be_right() {
        let strict = |on_struct: &str, fields: &str| {
            format!("#[serde(deny_unknown_fields, default)] {on_struct} struct Job {{ {fields} }}")
        };
        for (source, message) in [
            ("struct Job { a: i32 }".to_owned(), "add `#[serde(rename_all"),
            (strict(r#"#[koord(group = "example.com")]"#, "a: i32"), "a document has a `group` and a `version`"),
            (strict(r#"#[koord(kind = "Job")]"#, "a: i32"), "`kind` is of a document"),
            (strict("#[koord(default = 1)]", "a: i32"), "unknown word `default`"),
            (strict("#[koord(no_effect = \"x\")]", "a: i32"), "`no_effect` belongs on a field"),
            (strict("", "#[koord(defualt = 1)] a: i32"), "did you mean `default`?"),
            (strict("", "#[koord(complete = x)] a: i32"), "`complete` belongs on the struct"),
            (strict("", "#[koord(default = \"1\")] a: i32"), "`default` is a text, but this is an integer"),
            (strict("", "#[koord(default = 300)] a: u8"), "300 lies outside of what the type can hold"),
            (strict("", "#[koord(default = 1, minimum = 2)] a: u8"), "the default breaks `minimum`"),
            (strict("", "#[koord(default = 1)] a: Option<u8>"), "take the `Option` away, or the default"),
            (strict("", "#[koord(zero_is_unset)] a: u8"), "needs a `default`"),
            (strict("", "#[koord(required, default = 1)] a: u8"), "is not `required`"),
            (strict("", "#[koord(immutable)] a: u8"), "`immutable` is of objects in an API server"),
            (strict("", "#[koord(opaque, schemars)] a: Selector"), "either `opaque` or of `schemars`"),
            (strict("", "#[serde(flatten)] a: Part"), "a configuration is read strictly"),
            ("#[serde(deny_unknown_fields, default)] struct Job(i32);".to_owned(), "fields with names"),
            ("#[serde(deny_unknown_fields, default)] struct Job<T> { a: T }".to_owned(), "has no parameters"),
            ("enum Mode { Fast, Slow(u8) }".to_owned(), "a choice of texts has no data"),
            ("#[koord(group = \"example.com\")] enum Mode { Fast }".to_owned(), "an enum is a choice of texts"),
            ("union Job { a: i32 }".to_owned(), "a struct with named fields, or an enum without data"),
        ] {
            let made = said(&source);
            assert!(made.contains("compile_error") && made.contains(message), "{source}\n{message}\n{made}");
        }
        assert!(!said(&strict("", "#[koord(default = 1, minimum = 1)] a: u8, b: Vec<Part>")).contains("compile_error"));
    }
}
