//! `#[derive(Validate)]`: the rules of a type as Rust.

mod changes;
mod place;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Member, Path};

use crate::{
    json::{Json, Number},
    marker::{Count, Keyword, Marker},
    model::{Body, Content, Field, Item, Variant},
    shape::{Peeled, Shape, Wrapper, may_have_rules, peel},
};

/// Which of the three functions is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Schema,
    Admission,
    Update,
}

/// The implementation of `Validate`.
pub(crate) fn expand(item: &Item<'_>) -> TokenStream {
    let (ident, krate) = (item.ident, &item.krate);
    let generics = item.bounded(&quote!(#krate::Validate));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let arguments = quote!(at: &#krate::field::Path<'_>, errors: &mut #krate::field::Errors);
    // A part without rules is left to the trait.
    let function =
        |signature: TokenStream, body: TokenStream| (!body.is_empty()).then(|| quote!(fn #signature { #body }));
    let schema = function(quote!(validate_schema(&self, #arguments)), body(item, Part::Schema));
    let admission = function(quote!(validate_admission(&self, #arguments)), body(item, Part::Admission));
    let update = function(quote!(validate_update(&self, old: &Self, #arguments)), body(item, Part::Update));
    let (changes, identities) = (changes::constant(item), changes::identities(item));
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Validate for #ident #type_generics #where_clause {
            #changes
            #schema
            #admission
            #update
        }
        #identities
    }
}

fn body(item: &Item<'_>, part: Part) -> TokenStream {
    let mut body = TokenStream::new();
    match &item.body {
        Body::Struct(fields) => {
            for field in fields {
                let member = &field.member;
                body.extend(field_code(item, field, &quote!(&self.#member), &quote!(&old.#member), part));
            }
        }
        Body::Newtype(field) => {
            // The inner value stands where the newtype stands.
            let member = &field.member;
            body.extend(inner_code(item, field, &quote!(&self.#member), &quote!(&old.#member), part));
        }
        Body::Enum(variants) => body.extend(enum_code(item, variants, part)),
    }
    body.extend(type_code(item, part));
    body
}

// === fields ===

fn field_code(item: &Item<'_>, field: &Field<'_>, value: &TokenStream, old: &TokenStream, part: Part) -> TokenStream {
    place::of_field(field, inner_code(item, field, value, old, part))
}

/// Everything about one field, with `at` naming it.
fn inner_code(item: &Item<'_>, field: &Field<'_>, value: &TokenStream, old: &TokenStream, part: Part) -> TokenStream {
    let krate = &item.krate;
    let mut code = TokenStream::new();
    let rules: Vec<&Marker> = match part {
        // Objects of older versions are converted to the newest one before they are decoded.
        Part::Schema => field.markers.of_newest().collect(),
        Part::Admission => field.markers.admission.iter().collect(),
        Part::Update => return changes::of_field(item, field, value, old),
    };
    let (always, when_present): (Vec<&Marker>, Vec<&Marker>) =
        rules.into_iter().partition(|marker| matches!(marker.keyword, Keyword::NotEmpty));
    code.extend(unwrapped(&field.peeled, value, &rules_code(item, &always, &field.peeled.shape)));
    let mut present = rules_code(item, &when_present, &field.peeled.shape);
    if part == Part::Admission {
        present.extend(field.markers.checks.iter().map(|check: &Path| quote!(#check(value, at, errors);)));
    }
    let present = unwrapped(&field.peeled, value, &present);
    code.extend(match field.left_out_if() {
        // What is left out of the JSON is absent for the schema.
        Some(condition) if !present.is_empty() => quote!(if !#condition(#value) { #present }),
        _ => present,
    });
    if may_have_rules(&field.peeled.shape) && !field.markers.is_foreign() {
        let function = if part == Part::Schema { quote!(validate_schema) } else { quote!(validate_admission) };
        code.extend(quote!(#krate::Validate::#function(#value, at, errors);));
    }
    code
}

/// Binds `value` to what is inside of the wrappers and does `code` with it; nothing for no code.
fn unwrapped(peeled: &Peeled<'_>, value: &TokenStream, code: &TokenStream) -> TokenStream {
    if code.is_empty() {
        return TokenStream::new();
    }
    let inside = peeled.wrappers.iter().rev().fold(code.clone(), |inside, wrapper| match wrapper {
        Wrapper::Option => quote!(if let Some(value) = value { #inside }),
        Wrapper::Pointer => quote!({ let value = &**value; #inside }),
    });
    quote!({ let value = #value; #inside })
}

// === rules ===

/// Whether rules see the Rust value itself or its JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Rust,
    Json,
}

fn rules_code(item: &Item<'_>, rules: &[&Marker], shape: &Shape<'_>) -> TokenStream {
    let krate = &item.krate;
    let direct = matches!(
        shape,
        Shape::Boolean | Shape::Integer(_) | Shape::Number | Shape::String | Shape::Array(_) | Shape::Map(_)
    );
    if direct {
        return rules.iter().filter_map(|marker| rule(item, rules, marker, Subject::Rust, shape)).collect();
    }
    let code: TokenStream =
        rules.iter().filter_map(|marker| rule(item, rules, marker, Subject::Json, &Shape::Anything)).collect();
    if code.is_empty() { code } else { quote!({ let value = &#krate::rule::json(value); #code }) }
}

fn rule(item: &Item<'_>, all: &[&Marker], marker: &Marker, subject: Subject, shape: &Shape<'_>) -> Option<TokenStream> {
    let krate = &item.krate;
    let has = |wanted: fn(&Keyword) -> bool| all.iter().any(|marker| wanted(&marker.keyword));
    let rule = quote!(#krate::rule);
    Some(match &marker.keyword {
        Keyword::Minimum(bound) => {
            let (bound, exclusive) = (number(*bound), has(|k| matches!(k, Keyword::ExclusiveMinimum)));
            quote!(#rule::minimum(value, #bound, #exclusive, at, errors);)
        }
        Keyword::Maximum(bound) => {
            let (bound, exclusive) = (number(*bound), has(|k| matches!(k, Keyword::ExclusiveMaximum)));
            quote!(#rule::maximum(value, #bound, #exclusive, at, errors);)
        }
        Keyword::MultipleOf(factor) => {
            let factor = number(*factor);
            quote!(#rule::multiple_of(value, #factor, at, errors);)
        }
        Keyword::MinLength(length) => quote!(#rule::min_length(value, #length, at, errors);),
        Keyword::MaxLength(length) => quote!(#rule::max_length(value, #length, at, errors);),
        Keyword::Pattern(pattern) => quote!(#rule::pattern(value, #pattern, at, errors);),
        Keyword::Format(format) if subject == Subject::Json || matches!(shape, Shape::String) => {
            quote!(#rule::format(value, #format, at, errors);)
        }
        Keyword::MinItems(count) => quote!(#rule::min_items(value, #count, at, errors);),
        Keyword::MaxItems(count) | Keyword::MaxProperties(count) => {
            quote!(#rule::max_items(value, #count, at, errors);)
        }
        Keyword::MinProperties(count) => quote!(#rule::min_properties(value, #count, at, errors);),
        Keyword::Enumeration(values) => {
            let values = values.iter().map(|value: &Json| quote!(#krate::serde_json::json!(#value)));
            quote!(#rule::enumeration(value, &[#(#values),*], at, errors);)
        }
        Keyword::NotEmpty => quote!(#rule::not_empty(value, at, errors);),
        Keyword::UniqueItems if subject == Subject::Rust => quote!(#rule::unique_items(value, at, errors);),
        Keyword::UniqueItems => quote!(#rule::unique_items(value.as_array().into_iter().flatten(), at, errors);),
        Keyword::Items(inner) => {
            let inner: Vec<&Marker> = inner.iter().collect();
            let code = match shape {
                Shape::Array(item_type) => {
                    let peeled = peel(item_type);
                    unwrapped(&peeled, &quote!(value), &rules_code(item, &inner, &peeled.shape))
                }
                _ => inner
                    .iter()
                    .filter_map(|marker| self::rule(item, &inner, marker, Subject::Json, &Shape::Anything))
                    .collect(),
            };
            if code.is_empty() {
                return None;
            }
            let items = if subject == Subject::Rust {
                quote!(value.iter())
            } else {
                quote!(value.as_array().into_iter().flatten())
            };
            quote!(for (index, value) in #items.enumerate() { let at = &at.index(index); #code })
        }
        _ => return None,
    })
}

fn number(number: Number) -> TokenStream {
    quote!(#number)
}

// === the type itself ===

fn type_code(item: &Item<'_>, part: Part) -> TokenStream {
    let mut code = TokenStream::new();
    match part {
        Part::Schema => {
            let rules: Vec<&Marker> = item.markers.of_newest().collect();
            code.extend(if let Body::Newtype(field) = &item.body {
                let member = &field.member;
                unwrapped(&field.peeled, &quote!(&self.#member), &rules_code(item, &rules, &field.peeled.shape))
            } else {
                let rules = rules_code(item, &rules, &Shape::Named);
                if rules.is_empty() { rules } else { quote!({ let value = self; #rules }) }
            });
            code.extend(rules.iter().filter_map(|marker| match &marker.keyword {
                Keyword::OneOf(count, fields) => Some(one_of(item, *count, fields)),
                _ => None,
            }));
        }
        Part::Admission => {
            code.extend(item.markers.checks.iter().map(|check| quote!(#check(self, at, errors);)));
        }
        Part::Update => {
            code.extend(item.markers.update_checks.iter().map(|check| quote!(#check(self, old, at, errors);)));
        }
    }
    code
}

/// The value of `HowMany`.
pub(crate) fn how_many(krate: &Path, count: Count) -> TokenStream {
    let variant = match count {
        Count::Exactly => quote!(Exactly),
        Count::AtMost => quote!(AtMost),
        Count::AtLeast => quote!(AtLeast),
    };
    quote!(#krate::rule::HowMany::#variant)
}

fn one_of(item: &Item<'_>, count: Count, names: &[String]) -> TokenStream {
    let krate = &item.krate;
    let how_many = how_many(krate, count);
    let fields = item.fields().iter().filter(|field| names.contains(&field.name)).map(|field| {
        let (member, name) = (&field.member, &field.name);
        match field.left_out_if() {
            Some(condition) => quote!((#name, !#condition(&self.#member))),
            None if field.peeled.optional => quote!((#name, self.#member.is_some())),
            None => quote!((#name, true)),
        }
    });
    quote!(#krate::rule::one_of(#how_many, &[#(#fields),*], at, errors);)
}

// === enums ===

fn enum_code(item: &Item<'_>, variants: &[Variant<'_>], part: Part) -> TokenStream {
    if part == Part::Update {
        return changes::of_variants(item, variants);
    }
    let arms: Vec<TokenStream> = variants.iter().filter_map(|variant| arm(item, variants, variant, part)).collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    let rest = (arms.len() < variants.len()).then(|| quote!(_ => {}));
    quote!(match self { #(#arms)* #rest })
}

/// The arm of a variant; none when it has nothing to check.
fn arm(item: &Item<'_>, all: &[Variant<'_>], variant: &Variant<'_>, part: Part) -> Option<TokenStream> {
    let (krate, ident) = (&item.krate, variant.ident);
    if variant.catch_all {
        if part != Part::Schema || item.markers.open.is_some() || !item.is_choice() {
            return None;
        }
        let names = all.iter().filter(|variant| !variant.catch_all).map(|variant| &variant.name);
        let names = quote!(&[#(#names),*]);
        return Some(if let Content::Newtype(_) = &variant.content {
            quote!(Self::#ident(value) => errors.not_supported(at, value, #names),)
        } else {
            quote!(Self::#ident => errors.not_supported(at, #krate::rule::json(self), #names),)
        });
    }
    let (pattern, code) = match &variant.content {
        Content::Unit => return None,
        Content::Newtype(field) => {
            (quote!(Self::#ident(value)), inner_code(item, field, &quote!(value), &quote!(value), part))
        }
        Content::Struct(fields) => {
            let bindings = (0..fields.len()).map(|index| format_ident!("field_{index}"));
            let members = fields.iter().map(|field| &field.member).filter_map(|member| match member {
                Member::Named(ident) => Some(ident),
                Member::Unnamed(_) => None,
            });
            let pattern = quote!(Self::#ident { #(#members: #bindings,)* .. });
            let code: TokenStream = fields
                .iter()
                .enumerate()
                .map(|(index, field)| {
                    let binding = format_ident!("field_{index}");
                    field_code(item, field, &quote!(#binding), &quote!(#binding), part)
                })
                .collect();
            (pattern, code)
        }
    };
    if code.is_empty() {
        return None;
    }
    let step = place::of_variant(item, variant);
    Some(quote!(#pattern => { #step #code }))
}
