//! `#[derive(Schema)]`: code that builds the structural schema of a type.

mod members;
mod older;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Type, spanned::Spanned};

use crate::{
    check::{Domain, domain, waits},
    json::Number,
    marker::{Count, Keyword, Marker, Markers, Rule},
    model::{Body, Content, Field, Item, Variant},
    paths,
    report::respanned,
    serde::Tagging,
    shape::peel,
    validate::how_many,
    versions::{self, Form, forms},
};

/// The implementation of `Schema`.
pub(crate) fn expand(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let generics = item.bounded(&quote!(#krate::Schema));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (shape, body) = match &item.body {
        Body::Struct(fields) => (quote!(#krate::declare::Shape::Object), object(item, &item.description, fields)),
        Body::Newtype(field) => {
            let inner = field.type_;
            let description = describe(&item.description);
            let schema = field_schema(item, field);
            (quote!(<#inner as #krate::Schema>::SHAPE), quote!({ let mut schema = #schema; #description schema }))
        }
        Body::Enum(variants) => enumeration(item, variants),
    };
    let rules = rules(item, &item.markers);
    let members = members::constant(item);
    let (late, keys, paths) = (late_checks(item), members::key_checks(item), paths::late_checks(item));
    let deeper = if matches!(item.body, Body::Enum(_)) && item.is_choice() {
        quote!()
    } else {
        quote!(let Some(cx) = cx.deeper() else { return #krate::declare::anything() };)
    };
    let finished = if rules.is_empty() { body } else { quote!({ let mut schema = #body; #rules schema }) };
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Schema for #ident #type_generics #where_clause {
            const SHAPE: #krate::declare::Shape = #shape;
            #members
            fn schema(cx: #krate::declare::Emit) -> #krate::schema::Schema {
                #deeper
                #finished
            }
        }
        #late
        #keys
        #paths
    }
}

fn object(item: &Item<'_>, description: &str, fields: &[Field<'_>]) -> TokenStream {
    let krate = &item.krate;
    let properties = fields.iter().map(|field| property(item, field));
    let moved =
        fields.iter().flat_map(|field| field.markers.moves.iter().map(move |moved| older::moved(item, field, moved)));
    // What stands on an enum is not of its variants.
    let removed = if matches!(item.body, Body::Struct(_)) { item.markers.removed.as_slice() } else { &[] };
    let removed = removed.iter().map(|removed| older::removed(item, removed));
    quote!({
        let mut object = #krate::declare::object(#description);
        #(#properties)*
        #(#moved)*
        #(#removed)*
        object
    })
}

/// Adds one field to `object`.
fn property(item: &Item<'_>, field: &Field<'_>) -> TokenStream {
    let krate = &item.krate;
    let schema = field_schema(item, field);
    if field.serde.flatten {
        let optional = field.peeled.optional;
        return quote!(#krate::declare::flatten(&mut object, #schema, #optional););
    }
    let required = required(field);
    let form = |form: &Form<'_>| {
        let name = form.name;
        let schema = form.type_.map_or_else(|| schema.clone(), |type_| quote!(<#type_ as #krate::Schema>::schema(cx)));
        // What was an `Option` may be absent, whatever it has become.
        let required =
            if form.type_.is_some_and(|type_| peel(type_).optional) { quote!(false) } else { required.clone() };
        if !form.present {
            return quote!();
        }
        let property = quote!(#krate::declare::property(&mut object, #name, #required, #schema););
        let newest = &field.name;
        let renamed = (name != newest).then(|| quote!(#krate::declare::renamed(&mut object, #name, #newest);));
        quote!(#property #renamed)
    };
    let forms = forms(field);
    let Some((newest, older)) = forms.split_last() else { return TokenStream::new() };
    // The oldest form holds until the first change, the next until the second, and so on.
    field.markers.changes.iter().zip(older).rev().fold(form(newest), |newer, (change, before)| {
        let (since, before) = (&change.since, form(before));
        quote!(if cx.has(#since) { #newer } else { #before })
    })
}

/// The condition that an object without the field is refused.
fn required(field: &Field<'_>) -> TokenStream {
    // What is left out when it is empty is absent when it is not empty.
    let never_empty = field.markers.admission.iter().any(|marker| matches!(marker.keyword, Keyword::NotEmpty));
    match (field.is_required(), never_empty && !field.peeled.optional) {
        (true, _) => quote!(true),
        (false, true) => quote!(cx.has_admission()),
        (false, false) => quote!(false),
    }
}

fn field_schema(item: &Item<'_>, field: &Field<'_>) -> TokenStream {
    let (krate, type_) = (&item.krate, field.type_);
    let schema = if field.markers.is_schemaless() {
        quote!(#krate::schema::Schema::default())
    } else if field.markers.is_of_schemars() {
        let inner = field.peeled.inner;
        quote_spanned!(inner.span()=> #krate::declare::from_schemars::<#inner>())
    } else {
        // Of a type that a macro was given, the place alone: `cx` is ours.
        quote_spanned!(Span::call_site().located_at(type_.span())=> <#type_ as #krate::Schema>::schema(cx))
    };
    let (description, rules) = (describe(&field.description), rules(item, &field.markers));
    if description.is_empty() && rules.is_empty() {
        return schema;
    }
    quote!({ let mut schema = #schema; #description #rules schema })
}

fn describe(description: &str) -> TokenStream {
    if description.is_empty() { quote!() } else { quote!(schema.description = Some(#description.to_owned());) }
}

// === enums ===

fn enumeration(item: &Item<'_>, variants: &[Variant<'_>]) -> (TokenStream, TokenStream) {
    let (krate, description) = (&item.krate, &item.description);
    let known = || variants.iter().filter(|variant| !variant.catch_all);
    let names: Vec<&str> = known().map(|variant| variant.name.as_str()).collect();
    if item.is_choice() {
        let schema = if item.markers.open.is_some() {
            quote!(#krate::declare::text(#description))
        } else {
            quote!(#krate::declare::choice(#description, &[#(#names),*]))
        };
        return (quote!(#krate::declare::Shape::String), schema);
    }
    let contents = known().map(|variant| match &variant.content {
        Content::Unit => {
            let description = &variant.description;
            quote!(#krate::declare::object(#description))
        }
        Content::Newtype(field) => {
            let (schema, description) = (field_schema(item, field), describe(&variant.description));
            if description.is_empty() { schema } else { quote!({ let mut schema = #schema; #description schema }) }
        }
        Content::Struct(fields) => object(item, &variant.description, fields),
    });
    let pairs = quote!([#((#names, #contents)),*]);
    let object = quote!(#krate::declare::Shape::Object);
    match &item.serde.tagging {
        Tagging::External => (object, quote!(#krate::declare::one_of_properties(#description, #pairs))),
        Tagging::Internal(tag) => (object, quote!(#krate::declare::tagged(#description, #tag, #pairs))),
        Tagging::Adjacent(tag, content) => {
            (object, quote!(#krate::declare::tagged_beside(#description, #tag, #content, #pairs)))
        }
        Tagging::Untagged => {
            (quote!(#krate::declare::Shape::Anything), quote!(#krate::declare::untagged(#description, #pairs)))
        }
    }
}

// === rules ===

/// Statements that put the markers into `schema`.
fn rules(item: &Item<'_>, markers: &Markers) -> TokenStream {
    let krate = &item.krate;
    let target = quote!(&mut schema);
    let plain = markers.schema.iter().map(|marker| keyword(item, marker, &target));
    let under = |condition: TokenStream, markers: &[Marker]| {
        let rules: TokenStream = markers.iter().map(|marker| keyword(item, marker, &target)).collect();
        if rules.is_empty() { rules } else { quote!(if #condition { #rules }) }
    };
    let in_versions = markers.in_versions.iter().map(|limited| {
        let versions = limited.versions.expand(krate);
        under(quote!(cx.is_among(#versions)), &limited.rules)
    });
    let hardened = under(quote!(cx.is_hardened()), &markers.hardened);
    let admission = under(quote!(cx.has_admission()), &markers.admission);
    quote!(#(#plain)* #(#in_versions)* #hardened #admission)
}

/// The statement of one marker; `target` borrows `schema`, which is a value, or a reference inside of `items(…)`.
fn keyword(item: &Item<'_>, marker: &Marker, target: &TokenStream) -> TokenStream {
    let krate = &item.krate;
    let json = |json: &crate::json::Json| quote!(#krate::serde_json::json!(#json));
    match &marker.keyword {
        Keyword::Minimum(bound) => set(&quote!(minimum), &number(item, *bound)),
        Keyword::Maximum(bound) => set(&quote!(maximum), &number(item, *bound)),
        Keyword::MultipleOf(bound) => set(&quote!(multiple_of), &number(item, *bound)),
        Keyword::ExclusiveMinimum => quote!(schema.exclusive_minimum = true;),
        Keyword::ExclusiveMaximum => quote!(schema.exclusive_maximum = true;),
        Keyword::MinLength(bound) => quote!(schema.min_length = Some(#bound);),
        Keyword::MaxLength(bound) => quote!(schema.max_length = Some(#bound);),
        Keyword::MinItems(bound) => quote!(schema.min_items = Some(#bound);),
        Keyword::MaxItems(bound) => quote!(schema.max_items = Some(#bound);),
        Keyword::MinProperties(bound) => quote!(schema.min_properties = Some(#bound);),
        Keyword::MaxProperties(bound) => quote!(schema.max_properties = Some(#bound);),
        Keyword::Pattern(text) => quote!(schema.pattern = Some(#text.to_owned());),
        Keyword::Format(text) => quote!(schema.format = Some(#text.to_owned());),
        Keyword::Title(text) => quote!(schema.title = Some(#text.to_owned());),
        Keyword::Enumeration(values) => {
            let values = values.iter().map(json);
            quote!(schema.enum_ = vec![#(#values),*];)
        }
        Keyword::Default(value) => set(&quote!(default), &{
            let value = json(value);
            quote!(Some(#value))
        }),
        Keyword::Example(value) => set(&quote!(example), &{
            let value = json(value);
            quote!(Some(#value))
        }),
        Keyword::ExternalDocs { description, url } => {
            let description = description.as_ref().map(|text| quote!("description": #text,));
            quote!(schema.external_docs = Some(#krate::serde_json::json!({#description "url": #url}));)
        }
        Keyword::PreserveUnknownFields(value) => quote!(schema.preserve_unknown_fields = Some(#value);),
        Keyword::EmbeddedResource => quote!(schema.embedded_resource = true;),
        Keyword::Nullable => quote!(schema.nullable = true;),
        Keyword::IntOrString => quote!(#krate::declare::make_int_or_string(#target);),
        Keyword::Type(name) => {
            let type_ = schema_type(item, name);
            quote!(#krate::declare::make_type(#target, #type_);)
        }
        Keyword::ListType(kind) => {
            let kind = variant(kind);
            quote!(schema.list_type = Some(#krate::schema::ListType::#kind);)
        }
        Keyword::ListMapKey(keys) => quote!(schema.list_map_keys.extend([#(#keys.to_owned()),*]);),
        Keyword::MapType(kind) => {
            let kind = variant(kind);
            quote!(schema.map_type = Some(#krate::schema::MapType::#kind);)
        }
        Keyword::Items(markers) => {
            let reference = quote!(schema);
            let inner = markers.iter().map(|marker| keyword(item, marker, &reference));
            quote!(#krate::declare::items(#target, |schema| { #(#inner)* });)
        }
        Keyword::Validate(rule) => cel(item, rule),
        Keyword::Immutable => cel(
            item,
            &Rule {
                expression: "self == oldSelf".to_owned(),
                message: Some("this field cannot be changed".to_owned()),
                ..Rule::default()
            },
        ),
        Keyword::OneOf(count, fields) => versions::by_names(item, fields, |names| {
            // Of fields that came later, one may be left: then there is nothing to choose.
            let says_something = names.len() > 1 || (*count != Count::AtMost && !names.is_empty());
            if !says_something {
                return quote!();
            }
            let how_many = how_many(krate, *count);
            quote!(schema.validations.push(#krate::declare::count_rule(#how_many, &[#(#names),*]));)
        }),
        Keyword::NotEmpty => quote!(#krate::declare::make_not_empty(#target);),
        Keyword::UniqueItems => quote!(schema.unique_items = true;),
        Keyword::Schemaless | Keyword::Schemars => quote!(),
    }
}

fn set(keyword: &TokenStream, value: &TokenStream) -> TokenStream {
    quote!(schema.#keyword = #value;)
}

fn number(item: &Item<'_>, number: Number) -> TokenStream {
    let krate = &item.krate;
    match number {
        Number::Integer(_) => quote!(Some(#krate::serde_json::Number::from(#number))),
        Number::Float(_) => quote!(#krate::serde_json::Number::from_f64(#number)),
    }
}

fn variant(word: &str) -> syn::Ident {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase()).into_iter();
    syn::Ident::new(&first.chain(letters).collect::<String>(), proc_macro2::Span::call_site())
}

fn schema_type(item: &Item<'_>, name: &str) -> TokenStream {
    let (krate, variant) = (&item.krate, variant(name));
    quote!(#krate::schema::SchemaType::#variant)
}

fn cel(item: &Item<'_>, rule: &Rule) -> TokenStream {
    let krate = &item.krate;
    let text = &rule.expression;
    let parts = [
        ("message", &rule.message),
        ("message_expression", &rule.message_expression),
        ("reason", &rule.reason),
        ("field_path", &rule.field_path),
    ];
    let parts = parts.into_iter().filter_map(|(name, value)| {
        let name = syn::Ident::new(name, proc_macro2::Span::call_site());
        value.as_ref().map(|value| quote!(#name: Some(#value.to_owned()),))
    });
    let optional_old_self = rule.optional_old_self.map(|value| quote!(optional_old_self: Some(#value),));
    let push = quote!(schema.validations.push(#krate::schema::Rule {
        rule: #text.to_owned(),
        #(#parts)*
        #optional_old_self
        ..#krate::schema::Rule::default()
    }););
    match (&rule.versions.since, &rule.versions.until) {
        (None, None) => push,
        (Some(since), None) => quote!(if cx.has(#since) { #push }),
        (None, Some(until)) => quote!(if !cx.has(#until) { #push }),
        (Some(since), Some(until)) => quote!(if cx.has(#since) && !cx.has(#until) { #push }),
    }
}

// === checks that need the type's own schema ===

/// Constants that fail to compile where a marker stands on a named type whose schema does not fit.
fn late_checks(item: &Item<'_>) -> TokenStream {
    let mut checks = TokenStream::new();
    let fields: Vec<&Field<'_>> = match &item.body {
        Body::Struct(fields) => fields.iter().collect(),
        Body::Newtype(field) => vec![field.as_ref()],
        Body::Enum(_) => Vec::new(),
    };
    for field in fields.into_iter().filter(|field| !field.markers.is_foreign() && !item.is_generic(field.type_)) {
        let markers = &field.markers;
        let others = markers.of_some().chain(&markers.hardened).chain(&markers.admission);
        for marker in markers.schema.iter().chain(others) {
            if waits(marker, &field.peeled.shape) {
                checks.extend(late_check(item, marker, field.peeled.inner));
            }
        }
    }
    checks
}

fn late_check(item: &Item<'_>, marker: &Marker, type_: &Type) -> TokenStream {
    let krate = &item.krate;
    let check = match domain(&marker.keyword) {
        Domain::Number => quote!(needs_number),
        Domain::String => quote!(needs_text),
        Domain::Array => quote!(needs_array),
        Domain::Object => quote!(needs_object),
        Domain::Sized => quote!(needs_length),
        Domain::Loose => quote!(needs_int_or_string),
        Domain::Any => return quote!(),
    };
    let span = marker.word.span();
    // Every token stands where the marker stands, so that the compiler points there.
    let check = respanned(quote!(#krate::declare::#check::<#type_>()), span);
    quote_spanned!(span=> const _: () = #check;)
}
